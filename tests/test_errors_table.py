"""`tools/errors_table.py`: what misses a goal is counted and named; snapshots of traces are drawn by number."""

from __future__ import annotations

import errors_table


def test_one_cell() -> None:
    found = errors_table.rows("alphaPF-VDS(alpha=2)", "nested", 0, "small")
    assert [row["status"] for row in found] == ["solved", "solved"]
