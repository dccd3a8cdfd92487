"""`tools/errors_table.py`: what misses a goal is counted and named; snapshots of traces are drawn by number."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairopt.workloads import traces_root

sys.path.append(str(Path(__file__).resolve().parent.parent / "tools"))

import errors_table
import snapshots

FIELDS = ["mechanism", "family", "seed", "tol", "status", "error", "e", "condition"]


def test_what_misses_a_goal() -> None:
    """Fine; off by 100 times e; off by 1e-4 at a good condition, and at a bad one; refused; a near tie; unproved."""
    rows = [
        ("m", "types", 0, 1e-6, "solved", 1e-9, 1e-8, 1.0),
        ("m", "types", 1, 1e-6, "solved", 1e-6, 1e-8, 1.0),
        ("m", "types", 2, 1e-6, "solved", 1e-4, 1e-4, 10.0),
        ("m", "types", 3, 1e-6, "solved", 1e-4, 1e-4, 1e3),
        ("m", "types", 4, 1e-6, "SolverError", np.nan, np.nan, np.nan),
        ("m", "near-ties", 0, 1e-6, "SolverError", np.nan, np.nan, np.nan),
        ("m", "types", 5, 1e-6, "unproved", np.nan, 1e-8, 1.0),
    ]
    kept = errors_table.assessed(pd.DataFrame(rows, columns=FIELDS))
    assert errors_table.findings(kept)[["family", "seed"]].to_numpy().tolist() == [
        ["types", 1],
        ["types", 2],
        ["types", 4],
        ["near-ties", 0],
    ]
    line = errors_table.summary(kept).splitlines()[0]
    assert "worst error 1.0e-04, over e times condition 1.0e+02" in line
    assert "at a condition below 100: 1 " in line
    assert "1 of 6 = 16.67%" in line
    assert "unproved: 1" in line
    assert errors_table.table(kept)["refused 1e-06"].tolist() == ["16.7%", "100.0%"]


def test_one_cell() -> None:
    found = errors_table.rows("alphaPF-VDS(2)", "nested", 0, "small")
    assert [row["status"] for row in found] == ["solved", "solved"]


@pytest.mark.long
@pytest.mark.parametrize("family", snapshots.SNAPSHOTS)
def test_snapshots(family: str) -> None:
    traces = traces_root()
    if reason := snapshots.missing(family, traces):
        pytest.skip(reason)
    for seed in range(3):
        cluster = snapshots.snapshot(family, seed, (8, 8), traces)
        users, servers, _ = cluster.shape
        assert 1 <= users <= 8
        assert 1 <= servers <= 10
        snapshots.snapshot.cache_clear()
        again = snapshots.snapshot(family, seed, (8, 8), traces)
        np.testing.assert_array_equal(again.demand, cluster.demand)


def test_no_traces(tmp_path: Path) -> None:
    assert snapshots.missing("google", tmp_path) == f"google: no trace below {tmp_path}"
