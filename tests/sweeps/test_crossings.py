"""Cells that measure crossings: all equilibria on the curve at an alpha, each checked as an equilibrium by itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from numpy.testing import assert_allclose

import fairopt as fo
from fairopt import harness
from fairopt.base.shipped import folder
from fairopt.errors import DataError
from fairopt.harness.run import run
from fairopt.harness.solve import crossings

from .small import load

CLUSTER = fo.Cluster.load(folder("experiments") / "four_users.json")
TEXT = """
title = "Crossings"
clusters.one = "paper:drf-4.1"

[[grid]]
mechanisms = ["alphapf-vds"]
alphas = {}
measures = ["crossings"]
"""


def found(mechanism: fo.Mechanism) -> dict[str, float]:
    return {row["measure"]: row["value"] for row in crossings(mechanism, CLUSTER)}


def test_crossings_are_the_equilibria_that_are_enumerated() -> None:
    rows, every = found(fo.AlphaPFVDS(5.9)), fo.game.equilibria(CLUSTER, 5.9)
    assert len(rows) == 3 * 5 == len(every) * 5
    assert [rows[f"crossing {k}: index"] for k in (1, 2, 3)] == [1, -1, 1]
    ours = [[rows[f"crossing {k}: tasks of {user}"] for user in CLUSTER.users] for k in (1, 2, 3)]
    known = sorted((one.arrays.user_tasks.tolist() for one in every), reverse=True)
    assert_allclose(ours, known, rtol=1e-6)
    assert_allclose(ours[0], fo.AlphaPFVDS(5.9, "curve").solve(CLUSTER).arrays.user_tasks, rtol=1e-6)


@pytest.mark.parametrize(("alpha", "tasks"), [(5.4, 6.3544), (6.4, 4.8543)])
def test_there_is_one_outside_of_the_fold(alpha: float, tasks: float) -> None:
    rows = found(fo.AlphaPFVDS(alpha))
    assert len(rows) == 5
    assert rows["crossing 1: tasks of user4"] == pytest.approx(tasks, abs=1e-3)


@pytest.mark.parametrize("mechanism", [fo.PSDSF(), fo.AlphaFair(2.0), fo.AlphaPFVDS(1.0), fo.AlphaPFVDS(0.0)])
def test_other_mechanisms_have_none(mechanism: fo.Mechanism) -> None:
    with pytest.raises(DataError, match="has no crossings: they are those of alphaPF-VDS at finite alpha"):
        crossings(mechanism, CLUSTER)


def test_a_cell_has_them_or_says_why_not(path: Path) -> None:
    good, bad = map(run, harness.cells_of(load(path, TEXT.format("[3, inf]"))))
    names = [each["measure"] for each in good["measured"]]
    assert names == ["crossing 1: tasks of A", "crossing 1: tasks of B", "crossing 1: index"]
    assert (bad["status"], "has no crossings" in bad["error"]) == ("failed", True)
