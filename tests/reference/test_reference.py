"""The reference itself: cases by hand, ties, stray servers, users of small welfare; a wrong answer is no proof."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from certificates.test_judges import OPTIMA
from families import draw
from numpy.typing import NDArray

from fairopt.mechanisms import GameMechanism, Mechanism, get
from fairopt.model.cluster import Cluster

from . import reference
from .conditions import NOTHING, conditions, decimals, many_digits, refuted

Array = NDArray[np.float64]
TIE = Cluster([[1, 1], [1, 1]], [[1, 0.5], [1, 0.5]], eligible=[[0, 1], [1, 1]])
STRAY = Cluster([[1e8, 1e8], [1, 2]], [[1, 1], [1, 1]], eligible=[[1, 1], [0, 1]])
SMALL = Cluster(
    [[10, 20], [0.7, 0.4]], [[3, 4], [5, 2]], weight=[0.5, 0.5], eligible=[[1, 0], [1, 1]], max_tasks=[0.2, 1]
)
#: Who is at its limit costs next to nothing beside what its tasks are worth: 1e20 times less.
CHEAP = Cluster([[1, 1], [1, 1]], [[1, 1], [1, 0.5], [1, 0.25]], max_tasks=[0.1, np.inf, np.inf])
FINITE = [
    case for case in OPTIMA if case.values[0].name in ("ceei", "alpha-fair") or case.values[0].name == "alphapf-vds"
]


def proved(mechanism: Mechanism, cluster: Cluster) -> Array:
    """Users' tasks of the exact answer near a computed one."""
    kind = "game" if isinstance(mechanism, GameMechanism) else "global"
    found = mechanism.solve(cluster)
    prices = found.log_prices + np.log(np.where(found.cluster.capacity > 0, found.cluster.capacity, 1.0))
    share = None if kind == "game" else found.criterion.share
    exact = reference(found.cluster, found.criterion.alpha, kind, found.tasks, prices, share)
    return exact.user_tasks


@pytest.mark.parametrize(("mechanism", "cluster", "tasks"), FINITE)
def test_optima_by_hand(mechanism: Mechanism, cluster: Cluster, tasks: Array) -> None:
    np.testing.assert_allclose(proved(mechanism, cluster), tasks.sum(axis=1), rtol=1e-14)


@pytest.mark.parametrize("alpha", [0.2, 0.5, 1, 2, 20, 500])
def test_exact_ties(alpha: float) -> None:
    np.testing.assert_allclose(proved(get("alphapf-vds", alpha=alpha), TIE), 1, rtol=1e-15)


def test_nobody_strays_to_a_small_server() -> None:
    """A part of 1e-10 of the first user's tasks would be a fortieth of the second's: it is put right."""
    prices = get("alphapf-vds", alpha=0.3).solve(STRAY).log_prices + np.log(STRAY.capacity)
    found = reference(STRAY, 0.3, "game", np.array([[1e8, 0.025], [0, 0.975]]), prices)
    assert found.user_tasks[1] == pytest.approx(1, rel=1e-15)


def test_a_user_whose_part_of_welfare_is_next_to_nothing() -> None:
    np.testing.assert_allclose(proved(get("alpha-fair", alpha=50, scope="servers"), SMALL), [0.2, 1], rtol=1e-15)


@pytest.mark.parametrize("seed", range(9))
def test_the_game_at_alpha_1_is_a_global_program(seed: int) -> None:
    cluster = draw("plain", seed, 4, 3, 3).replace(max_tasks=None)
    by_program, by_game = proved(get("ceei", scope="servers"), cluster), proved(get("alphapf-vds", alpha=1), cluster)
    np.testing.assert_allclose(by_program, by_game, rtol=1e-14)


@pytest.mark.parametrize("change", [1e-12, 1e-3])
def test_what_is_off_is_refuted(change: float) -> None:
    """The answer of `SMALL` by hand: user 2 at its limit, user 1 at its own; then somebody a little below."""
    with many_digits():
        of = conditions(SMALL, 50, decimals(np.ones(2)))
        none = np.full((2, 2), NOTHING, dtype=object)
        right = np.array(
            [Decimal(0) if (n, i) == (1, 1) else of.limit[n] for n, i in zip(of.user, of.server, strict=True)]
        )
        assert refuted(of, right, none, Decimal("1e-18")) is None
        for j in np.flatnonzero(right > 0):
            less = right.copy()
            less[j] *= 1 - Decimal(change)
            assert refuted(of, less, none, Decimal("1e-18")) == f"user {of.user[j]} would buy more"


def test_prices_far_below_what_tasks_are_worth() -> None:
    """Alpha 50: user 1 has a tenth of a task where others have one; it pays as much on either server, to all digits."""
    assert proved(get("alpha-fair", alpha=50, scope="servers"), CHEAP)[0] == 0.1
