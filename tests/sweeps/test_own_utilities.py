"""Games of a utility of one's own in sweeps: the plug-in and the experiment of docs/utilities.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import ROOT

from fairopt.base import plugins
from fairopt.mechanisms import REGISTRY
from fairopt.report import Results, tables_of

from .small import load, sweep


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The plug-in is of this test alone: rows of others name those that are loaded, and lists those registered."""
    monkeypatch.setattr(plugins, "_LOADED", {})
    yield
    REGISTRY.pop("saturating", None)


def test_a_sweep_over_a_parameter_of_a_utility(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "utilities.md").read_text()
    plugin = re.search(r"```python\n(from dataclasses .*?)```", text, re.DOTALL)
    experiment = re.search(r"```toml\n(.*?)```", text, re.DOTALL)
    assert plugin is not None
    assert experiment is not None
    (tmp_path / "saturating.py").write_text(f"import cvxpy as cp\nimport fairopt as fo\n{plugin[1]}")
    file = tmp_path / "steepness.toml"
    load(file, experiment[1].replace("repetitions = 6", "repetitions = 2"))
    rows = sweep(file, tmp_path / "store")
    assert rows["status"].eq("ok").all()
    assert len(rows) == 2 * 3 * 2
    assert rows["judged_by"].eq("backward error").all()
    means, games = tables_of(str(file), Results(tmp_path / "store"))
    assert sorted(set(means.frame["k"])) == [1, 3, 9]
    assert {"k", "order", "level", "rounds"} <= set(games.frame)
    assert means.frame.groupby("k")["min_share"].mean().nunique() == 3
    faster = games.frame.pivot_table(index=["k", "level"], columns="order", values="rounds")
    assert (faster["elastic"] <= faster["cyclic"]).mean() > 0.5
