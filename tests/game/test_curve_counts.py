"""The curve where task counts bind, where demands are zero, and where somebody can run nothing."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.core.game.curve import follow
from fairopt.model.problem import Problem

from .clusters import FIRST, SEVERAL
from .test_curve import lognormal


def zeros_and_counts(seed: int) -> fo.Cluster:
    """30% of demands are zero, and half of the users have counts: some have all their tasks where nothing is scarce."""
    rng, found = np.random.default_rng(seed), lognormal(seed, whole=False)
    part, counted = np.exp(rng.uniform(np.log(0.05), np.log(2), 5)), rng.random(5) < 0.5
    return found.replace(max_tasks=np.where(counted, part * found.gamma.sum(axis=1), np.inf))


def test_a_user_with_all_its_tasks_where_nothing_has_a_price() -> None:
    """Its level has no bound; as alpha falls the resource that it needs is used up, and comes to have a price."""
    cluster = fo.Cluster(
        [[10, 4, 6], [5, 5, 9]], [[1, 0, 0], [0, 1, 1], [1, 1, 3], [2, 1, 0]], max_tasks=[5.5, *[np.inf] * 3]
    )
    found = fo.game.equilibrium_curve(cluster, [0.2, 1.002, 30.0])
    assert not found.missing
    for alpha in (0.2, 1.002, 30.0):
        [one] = found.crossings(alpha)
        assert one.certificate < 1e-9
    priced = {alpha: bool((found.crossings(alpha)[0].log_rows[:, 0] > -9).any()) for alpha in (0.2, 1.002, 30.0)}
    assert priced == {0.2: True, 1.002: False, 30.0: False}
    convex = fo.CEEI("servers").solve(cluster, 1e-9).arrays.user_tasks
    np.testing.assert_allclose(found.crossings(1.002)[0].user_tasks, convex, rtol=3e-3)
    assert not fo.AlphaPFVDS(3.0, "curve").solve(cluster).notes


@pytest.mark.parametrize("seed", range(8))
def test_the_curve_begins_with_zeros_and_counts(seed: int) -> None:
    """Near alpha = 1 it is at the optimum of the convex program there, whose tasks are unique, as the answer at 1 is.

    Of seed 2 last digits once led the answer to another of a continuum of equilibria.
    """
    cluster = zeros_and_counts(seed)
    found = fo.game.equilibrium_curve(cluster, [0.3, 0.997, 1.003, 8.0])
    assert not found.missing
    convex = fo.CEEI("servers").solve(cluster, 1e-9).arrays.user_tasks
    np.testing.assert_allclose(fo.AlphaPFVDS(1).solve(cluster).arrays.user_tasks, convex, rtol=1e-5)
    for alpha in (0.997, 1.003):
        np.testing.assert_allclose(found.user_tasks(found.crossings(alpha)[0].user_tasks), convex, rtol=0.01)
    assert all(found.crossings(alpha)[0].certificate < 1e-7 for alpha in (0.3, 0.997, 1.003, 8.0))


def test_a_user_who_can_run_nothing_does_not_keep_the_curve_from_beginning() -> None:
    """Of the instance with three equilibria, with a stranger: all three, and the jump."""
    with_stranger = fo.Cluster(
        SEVERAL.capacity,
        np.vstack([SEVERAL.demand, [1.0, 1, 1]]),
        weight=[*SEVERAL.weight, 1],
        eligible=[[True, True]] * 3 + [[False, False]],
    )
    found = fo.game.equilibrium_curve(with_stranger, [3.0, 20.0])
    assert not found.missing
    first = found.user_tasks(found.crossings(3.0)[0].user_tasks)
    np.testing.assert_allclose(first, [*FIRST, 0.0], rtol=1e-6)
    assert len(found.crossings(3.0)) == 3
    assert len(found.jumps()) == 4
    assert not any("curve" in note for note in fo.AlphaPFVDS(3.0, "curve").solve(with_stranger).notes)


def test_nobody_can_run_anything() -> None:
    cluster = fo.Cluster([[1.0, 0], [2, 0]], [[1.0, 1], [0, 1]])
    found = fo.game.equilibrium_curve(cluster, [3.0])
    assert not found.curves
    problem = Problem(cluster, fo.AlphaPFVDS(2.0).criterion(cluster))
    assert not follow(problem, [3.0]).arrived
