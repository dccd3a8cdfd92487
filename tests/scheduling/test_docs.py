"""docs/scheduling.md has every policy, as the registry says it."""

from __future__ import annotations

import inspect
from pathlib import Path

from fairopt.scheduling import policies

DOCS = Path(__file__).parents[2] / "docs" / "scheduling.md"


def test_the_table_of_policies_is_the_registry() -> None:
    table = DOCS.read_text(encoding="utf-8").partition("<!-- policies -->\n")[2].partition("<!-- /policies -->")[0]
    rows = []
    for name in policies.names():
        kind = policies.kind(name)
        if kind.__module__.startswith("fairopt."):
            first = (inspect.getdoc(kind) or "").split("\n\n")[0].replace("\n", " ")
            rows.append(f"| `{name}` | {first} | {kind.source} |")
    assert table.splitlines()[2:] == rows


def test_every_policy_says_where_it_is_from() -> None:
    assert all(policies.kind(name).title and policies.kind(name).source for name in policies.names())
