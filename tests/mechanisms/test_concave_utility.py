"""Utilities given as functions: powers are alpha-fair, others are right by hand, and what is none is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from families import draw
from numpy.testing import assert_allclose

import fairopt as fo
from fairopt.errors import DataError, SolverError

from .test_statements import SMALL

Utility = Callable[[Any], Any]


def power(alpha: float) -> Utility:
    if alpha == 1:
        return cp.log
    return lambda s: cp.power(s, 1 - alpha) / (1 - alpha)


def saturating(s: Any) -> Any:
    return -cp.exp(-3 * s)


def mixed(s: Any) -> Any:
    return cp.log(1 + 2 * s) + cp.sqrt(s)


#: Two of its servers are proportional.
TWINS = fo.Cluster([[6, 10], [3, 5], [5, 2]], [[1, 4], [3, 1], [1, 1]], [1, 2, 0.5])
#: Weights over six decades, and placement.
WEIGHTED_WIDELY = draw("weights", 0), draw("weights", 1)
ALPHAS = (0.5, 1.0, 3.0)
#: All three alphas, the last two or the last one of each kind of cluster.
KNOWN = [
    *((fo.ConcaveUtility, fo.AlphaFair, cluster) for cluster in (*SMALL.values(), *WEIGHTED_WIDELY)),
    *((fo.ConcaveGame, fo.AlphaPFVDS, cluster) for cluster in (*SMALL.values(), TWINS)),
]


@pytest.mark.parametrize(
    ("own", "known", "cluster", "alpha"), [(*one, alpha) for k, one in enumerate(KNOWN) for alpha in ALPHAS[k % 3 :]]
)
def test_powers_are_the_mechanisms_of_alpha(own: Any, known: Any, cluster: fo.Cluster, alpha: float) -> None:
    right, mechanism, game = known(alpha).solve(cluster), own(power(alpha)), own is fo.ConcaveGame
    found = mechanism.solve(cluster)
    assert found.certificate.passes(1e-6 if game else 1e-9)
    assert_allclose(found.arrays.user_tasks, right.arrays.user_tasks, rtol=1e-3 if game else 1e-7)
    # Each judges the other's: A is 1 here, so that errors count up to alpha times as much.
    judged = mechanism.certify(cluster, right.tasks, right.log_prices)[0]
    assert judged.passes(1e-6)
    less = 0.99 * right.tasks
    here, there = (one.certify(cluster, less, right.log_prices)[0].optimality for one in (known(alpha), mechanism))
    assert 0.5 * here <= there <= 2 * max(alpha, 1) * here
    if alpha <= 1 and right.certificate.condition < 1e6:
        assert_allclose(judged.conditions, right.certificate.conditions, rtol=0.1)


def test_by_hand() -> None:
    """One resource, log1p: `u/(1 + u x)` is the price for those who have tasks, and at most that for the others."""
    cluster = fo.Cluster([[1]], [[1], [1]])
    both = fo.ConcaveUtility(cp.log1p, share=(1, 3)).solve(cluster)
    assert_allclose(both.arrays.user_tasks, [1 / 6, 5 / 6], rtol=1e-9)
    mechanism = fo.ConcaveUtility(cp.log1p, share=(0.5, 100))
    # With nothing at all for the first user it is an answer too; with the halves changed it is none.
    nothing = np.array([[0.0], [1.0]])
    assert_allclose(mechanism.solve(cluster).tasks, nothing, atol=1e-5)
    assert mechanism.certify(cluster, nothing)[0].passes(1e-9)
    assert mechanism.certify(cluster, 1 - nothing)[0].optimality > 0.1
    assert mechanism.certify(cluster, 0.8 * nothing + 0.1)[0].optimality > 0.05


@pytest.mark.parametrize("utility", [cp.log1p, saturating])
def test_the_error_is_that_of_the_data(utility: Utility) -> None:
    """Answers of data that differ by delta show an error of about delta on these, and one percent shows as one."""
    cluster, mechanism = SMALL["two servers, weights"], fo.ConcaveUtility(utility)
    noise = np.random.default_rng(0).uniform(-1, 1, cluster.demand.shape)
    for delta in (1e-7, 1e-3):
        found = mechanism.solve(cluster.replace(demand=cluster.demand * np.exp(delta * noise)))
        assert 0.02 * delta < mechanism.certify(cluster, found.tasks, found.log_prices)[0].residual < 6 * delta
    assert mechanism.certify(cluster, found.tasks * 0.99, found.log_prices)[0].optimality > 5e-3


@pytest.mark.parametrize("utility", [saturating, mixed, cp.log])
def test_the_welfare_gap_is_a_bound(utility: Utility) -> None:
    """`bregman` is at least what is missing, by a search over a grid, and near an optimum at most four times it."""
    rule = fo.ConcaveUtility(utility).criterion(fo.Cluster([[1]], [[1]] * 4))
    tasks, grid = np.array([0.1, 0.2, 0.5, 0.9]), np.linspace(1e-6, 3, 40_001)
    worth = rule.log_marginal(tasks)
    gained = [utility(cp.Constant(one)).value for one in (grid, tasks)]
    for factor in (0.3, 0.999, 1.001, 1.1, 4.0):
        price = factor * np.exp(worth)
        found = rule.bregman(tasks, worth, price, np.zeros(4), np.full(4, 3.0))
        missing = (gained[0] - price[:, None] * grid).max(axis=1) - (gained[1] - price * tasks)
        assert (missing <= found * (1 + 1e-9) + 1e-12).all()
        assert not 0.9 <= factor <= 1.1 or (found <= 4.3 * missing + 1e-7).all()


def test_last_digits_are_found_by_the_engine() -> None:
    """Nobody else looks for those of users without tasks."""
    assert fo.mechanisms.one("concave-utility").solve(draw("plain", 0, 20, 10)).certificate.residual <= 1e-11


@pytest.mark.parametrize("mechanism", [fo.ConcaveUtility, fo.ConcaveGame])
@pytest.mark.parametrize("utility", [power(3.0), cp.log1p, saturating])
def test_elasticities_are_derivatives(mechanism: Any, utility: Utility) -> None:
    rule, tasks, step = mechanism(utility).criterion(TWINS), np.array([0.1, 0.6, 1.2]), 1e-5
    less, more = (np.asarray(rule.log_marginal(tasks * np.exp(way))) for way in (-step, step))
    assert_allclose(rule.elasticity(tasks), (less - more) / (2 * step), rtol=1e-4)
    assert rule.starves == (utility in (cp.log1p, saturating))


@pytest.mark.parametrize(
    ("utility", "message"),
    [
        (3.0, "utility is 3.0; it must be a function"),
        (cp.square, "not concave by CVXPY's rules; give one that is"),
        (lambda s: -s, "the utility must increase"),
        (lambda s: s - cp.square(2 * s), "the utility must increase, and ever more slowly"),
        (cp.sum, "of the shape that it is given"),
        (lambda s: 1.0, "must return a CVXPY expression"),
        (cp.cumsum, "must take every share by itself"),
        (lambda s: s.nonsense, "must be a function of a CVXPY expression.*nonsense"),
        (lambda s: cp.log1p(s * s.size), "one function for all users"),
    ],
)
@pytest.mark.parametrize("mechanism", [fo.ConcaveUtility, fo.ConcaveGame])
def test_what_is_no_utility(mechanism: Any, utility: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        mechanism(utility).solve(SMALL["one pool"])


def favouring(place: int, factor: float) -> Utility:
    def utility(s: Any) -> Any:
        here = (np.arange(s.size) == place).astype(float)
        return cp.multiply(1 - here, cp.log1p(s)) + cp.multiply(here, cp.log1p(factor * s))

    return utility


#: The first user can run nowhere: engines never see it, and place 0 is the second user's.
LEFT_OUT = fo.Cluster(
    [[9, 18, 1], [4, 4, 0]], [[0, 0, 1], [1, 4, 0], [3, 1, 0], [1, 1, 0]], eligible=[[0, 1]] + 3 * [[1, 1]]
)


@pytest.mark.parametrize("place", [0, 1, 3])
@pytest.mark.parametrize("factor", [20, 1.001, 0.1])
def test_a_utility_is_one_function_for_all_users(place: int, factor: float) -> None:
    for mechanism in (fo.ConcaveUtility, fo.ConcaveGame):
        for asked in (lambda one: one.solve(LEFT_OUT), lambda one: one.certify(LEFT_OUT, np.ones((4, 2)))):
            with pytest.raises(DataError, match=r"one function for all users.*Tell users apart by their weights"):
                asked(mechanism(favouring(place, factor)))


def test_no_place_is_too_far_back() -> None:
    with pytest.raises(DataError, match="one function for all users"):
        fo.ConcaveUtility(favouring(190, 2)).criterion(fo.Cluster([[1]], [[1]] * 200))


@pytest.mark.parametrize("utility", [cp.log1p, cp.log, cp.sqrt, saturating, mixed, lambda s: s - cp.square(s) / 1e3])
def test_one_function_for_all_is_taken(utility: Utility) -> None:
    for scale in (1e-6, 1.0, 30.0):
        cluster = WEIGHTED_WIDELY[0]
        fo.ConcaveUtility(utility, share=tuple(scale * cluster.dominant_share_per_task)).criterion(cluster)


WEIGHTED = fo.Cluster([[9, 18], [4, 4]], [[1, 4], [3, 1], [1, 1]], weight=[1, 2, 1])


@pytest.mark.parametrize("mechanism", [fo.ConcaveUtility, fo.ConcaveGame])
@pytest.mark.parametrize(
    "utility",
    [
        lambda s: cp.log(cp.log1p(s)),
        lambda s: cp.sqrt(s) + cp.log(s),
        lambda s: 1e6 * cp.log1p(1e-3 * s),
        lambda s: 1e-6 * cp.power(s, 0.05),
    ],
)
def test_slow_and_large_and_composed_ones_are_solved(mechanism: Any, utility: Utility) -> None:
    """Sums of parts without a derivative at 0 among them, of which CVXPY makes an error."""
    found = mechanism(utility).solve(WEIGHTED, tol=1e-6)
    level = found.criterion.levels(found.arrays.user_tasks)
    less, more = (utility(cp.Constant(level * step)).value for step in (1 - 1e-4, 1 + 1e-4))
    some = level > 0  # a user may have no tasks
    assert some.sum() > some.size / 2
    slope = np.log(((more - less) * found.criterion.share)[some] / (2e-4 * level[some]))  # not CVXPY's derivative
    assert_allclose(found.criterion.log_marginal(found.arrays.user_tasks)[some], slope, atol=1e-4)


@pytest.mark.parametrize(
    ("utility", "message"),
    [
        (lambda s: cp.minimum(2 * s, s + 0.3), "a kink near a user's share.* differentiable"),
        (lambda s: -cp.exp(-2000 * s), r"user 'user\d' the utility is as steep as that of alpha = \d+, .*flatter"),
        (saturating, r"span (9|10) decades here.*closer together"),
    ],
)
@pytest.mark.parametrize("mechanism", [fo.ConcaveUtility, fo.ConcaveGame])
def test_errors_say_what_may_be_difficult(mechanism: Any, utility: Utility, message: str) -> None:
    """A kink, steepness and, of a game, numbers that span too much; of others the last two are not said."""
    asked, wide, answer = mechanism(utility), WEIGHTED, fo.DRFH().solve(WEIGHTED)
    if utility is saturating:
        for fine in (asked, mechanism(mixed)):
            judged = replace(answer, criterion=fine.criterion(WEIGHTED))
            assert not re.search("steep|decades", str(fine.complaint(judged, 1e-30, ())))
        wide = WEIGHTED.replace(weight=np.geomspace(1e-9, 1, len(WEIGHTED.users)))
    said = str(asked.complaint(replace(answer, cluster=wide, criterion=asked.criterion(wide)), 1e-30, ()))
    assert bool(re.search(message, said)) == (utility is not saturating or mechanism is fo.ConcaveGame)


def test_linear_is_utilitarian() -> None:
    own = fo.ConcaveUtility(lambda s: 2 * s).solve(SMALL["one pool"])
    assert own.certificate.passes()
    assert fo.Utilitarian().certify(own.cluster, own.tasks)[0].passes()


def test_flat_where_users_are() -> None:
    with pytest.raises(SolverError, match=r"reports 'optimal'.* a kink near a user's share"):
        fo.ConcaveUtility(lambda s: cp.minimum(s, 0.3)).solve(SMALL["one pool"])
    with pytest.raises(SolverError, match=r"user 'user1', whose marginal utility is 0 or below.*is flat"):
        fo.ConcaveUtility(lambda s: -cp.square(cp.pos(0.1 - s))).solve(SMALL["one pool"])


def test_label_and_files(tmp_path: Path) -> None:
    assert str(fo.ConcaveUtility()) == "concave utility(utility=log1p)"
    assert str(fo.ConcaveUtility(saturating, scope="pool")) == "concave utility(utility=saturating, scope=pool)"
    answer = fo.ConcaveUtility().solve(SMALL["one pool"])
    with pytest.raises(DataError, match="files hold no ConcaveWelfare, whose utility is a function: save the cluster"):
        answer.save(tmp_path / "answer.json")
