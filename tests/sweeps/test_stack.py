"""Draws that are solved together have the rows of draws that are solved alone, whoever computes them and when."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from numpy.testing import assert_allclose

import fairopt as fo
from fairopt import harness
from fairopt.harness import executors, stack
from fairopt.harness.run import run

from .small import load, sweep

TEXT = """
title = "Draws"
repetitions = 7
seed = 5

[clusters.drawn]
source = "lognormal"
users = {users}
servers = 3
density = {density}

[[grid]]
mechanisms = ["drfh", "tsf", "drf", "ceei", "per-server-drf", "alpha-fair(alpha=2)", "alphapf-vds", "ps-dsf"]
alphas = [0.5, 1, 3]
measures = ["utilization", "classes", "tasks"]
"""
TOGETHER = {"drfh", "tsf", "drf", "ceei", "per-server-drf", "alpha-fair", "alphapf-vds"}
#: What may differ: what a cell took, and where the same tasks of a user run.
LOOSE = {*harness.store_of("x", False).schema.chance, "certificate", "feasibility", "optimality", "steps"}


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stacks of five at most."""
    monkeypatch.setattr(stack, "TOGETHER", 5)


def drawn(path: Path, users: object = 4, density: float = 1.0) -> list[harness.Cell]:
    return harness.cells_of(load(path, TEXT.format(users=users, density=density)))


@pytest.mark.parametrize(("users", "density"), [(4, 1.0), (2, 1.0), (5, 0.6)])
def test_rows_are_those_of_cells_alone(path: Path, users: int, density: float) -> None:
    cells = drawn(path, users, density)
    answered: set[str] = set()
    for work in executors.works(cells, [cell.key for cell in cells]):
        found = stack.rows(work.cells, None)
        for cell in work.cells:
            if cell.key in found:
                answered.add(cell.job.asked["name"])
                compared(cell.requested | found[cell.key], run(cell))
    assert answered == (TOGETHER if density == 1 else set())


def compared(together: dict[str, Any], alone: dict[str, Any]) -> None:
    for name, value in together.items():
        if isinstance(value, float) and name not in LOOSE:
            assert_allclose(value, alone[name], rtol=1e-9, err_msg=name)
        elif not isinstance(value, list) and name not in LOOSE:
            assert value == alone[name], name
    assert together["certificate"] <= 1e-10
    rows = [pd.DataFrame(row["allocated"]).groupby("user")["tasks"].sum() for row in (together, alone)]
    pd.testing.assert_series_equal(*rows, rtol=1e-7)
    for row in (together, alone):
        every = [each["utilization"] for each in row["use"][together["resources"] :]]
        assert len(every) == together["resources"] * (1 if together["pooled"] else together["servers"])
        assert max(every) <= 1 + 1e-9


@pytest.mark.usefixtures("few")
def test_what_was_computed_before_does_not_matter(path: Path, tmp_path: Path) -> None:
    keys = [cell.key for cell in drawn(path, [3, 4])]
    whole, some = harness.Store(tmp_path / "whole"), harness.Store(tmp_path / "some")
    frame = sweep(path, whole)
    assert (frame["status"] == "ok").all()
    some.write([row for k, row in enumerate(whole.read().table.to_pylist()) if k % 3])
    assert sweep(path, some)["key"].tolist() == frame["key"].tolist() == keys
    assert some.read().same_as(whole.read()) == []


@pytest.mark.usefixtures("few")
def test_a_stack_that_fails_is_solved_cell_by_cell(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    def own(self: fo.TSF, cluster: fo.Cluster, *_: object, **__: object) -> fo.Allocation:
        raise fo.errors.NotConverged(f"{len(cluster.users)} users are too many")

    drawn(path)
    monkeypatch.setattr(stack, "together", fail)
    monkeypatch.setattr(fo.TSF, "solve", own)  # a mechanism with a way of its own is asked for every cell
    with pytest.warns(fo.errors.EngineWarning, match="solving them together failed"):
        frame = sweep(path, tmp_path / "store")
    assert set(frame.loc[frame["status"] == "failed", "name"]) == {"tsf"}
    assert set(frame["error"].dropna()) == {"NotConverged: 4 users are too many"}
    assert (frame["status"] == "ok").sum() == len(frame) * 9 / 10
