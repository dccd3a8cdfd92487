"""Utilities given as functions: powers are alpha-fair, others are right by hand, and what is none is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from numpy.typing import NDArray

import fairopt as fo
from fairopt.engines.reference.utility import UtilitySlope
from fairopt.errors import DataError, NotConverged, SolverError
from fairopt.game.reference import declarative as game
from fairopt.model.concave_welfare import ConcaveWelfare

from .test_statements import SMALL

Array = NDArray[np.float64]
Utility = Callable[[Any], Any]


def power(alpha: float) -> Utility:
    if alpha == 1:
        return cp.log
    return lambda s: cp.power(s, 1 - alpha) / (1 - alpha)


def saturating(s: Any) -> Any:
    return -cp.exp(-3 * s)


def mixed(s: Any) -> Any:
    return cp.log(1 + 2 * s) + cp.sqrt(s)


def drawn(seed: int, decades: float) -> fo.Cluster:
    rng = np.random.default_rng(seed)

    def numbers(*shape: int) -> Array:
        return np.asarray(10 ** rng.uniform(-decades, decades, shape))

    return fo.Cluster(numbers(4, 3), numbers(6, 3), numbers(6), rng.random((6, 4)) < 0.8)


#: Two of its servers are proportional.
TWINS = fo.Cluster([[6, 10], [3, 5], [5, 2]], [[1, 4], [3, 1], [1, 1]], [1, 2, 0.5])
ALPHAS = (0.5, 1.0, 3.0)
#: All three alphas, the last two or the last one of each kind of cluster.
KNOWN = [
    *((fo.ConcaveUtility, fo.AlphaFair, cluster) for cluster in (*SMALL.values(), drawn(0, 0.5), drawn(1, 2))),
    *((fo.ConcaveGame, fo.AlphaPFVDS, cluster) for cluster in (*SMALL.values(), TWINS)),
]


@pytest.mark.parametrize(
    ("own", "known", "cluster", "alpha"), [(*one, alpha) for k, one in enumerate(KNOWN) for alpha in ALPHAS[k % 3 :]]
)
def test_powers_are_the_mechanisms_of_alpha(own: Any, known: Any, cluster: fo.Cluster, alpha: float) -> None:
    right, mechanism, game = known(alpha).solve(cluster), own(power(alpha)), own is fo.ConcaveGame
    found = mechanism.solve(cluster)
    assert found.certificate.passes(1e-6 if game else 1e-9)
    np.testing.assert_allclose(found.arrays.user_tasks, right.arrays.user_tasks, rtol=1e-3 if game else 1e-7)
    # Each judges the other's: A is 1 here, so that errors count up to alpha times as much.
    judged = mechanism.certify(cluster, right.tasks, right.log_prices)[0]
    assert judged.passes(1e-6)
    less = 0.99 * right.tasks
    here, there = (one.certify(cluster, less, right.log_prices)[0].optimality for one in (known(alpha), mechanism))
    assert 0.5 * here <= there <= 2 * max(alpha, 1) * here
    if alpha <= 1 and right.certificate.condition < 1e6:
        np.testing.assert_allclose(judged.conditions, right.certificate.conditions, rtol=0.1)


UTILITIES = (cp.log1p, saturating, mixed)


@pytest.mark.parametrize(
    ("cluster", "utility"),
    [
        *zip([*SMALL.values(), drawn(3, 0.5), drawn(4, 1)], (*UTILITIES, *UTILITIES), strict=False),
        (SMALL["placement and limits"], cp.log1p),
        (SMALL["placement and limits"], saturating),
    ],
)
def test_engines_agree(cluster: fo.Cluster, utility: Utility) -> None:
    mechanism = fo.ConcaveUtility(utility)
    native = mechanism.solve(cluster)
    assert native.stats.engine == "native"
    declared = mechanism.solve(cluster, engine="declarative")
    np.testing.assert_allclose(
        declared.arrays.user_tasks, native.arrays.user_tasks, rtol=1e-5, atol=1e-5 * native.arrays.user_tasks.max()
    )


def test_by_hand() -> None:
    """One resource, log1p: `u/(1 + u x)` is the price for those who have tasks, and at most that for the others."""
    cluster = fo.Cluster([[1]], [[1], [1]])
    both = fo.ConcaveUtility(cp.log1p, share=(1, 3)).solve(cluster)
    np.testing.assert_allclose(both.arrays.user_tasks, [1 / 6, 5 / 6], rtol=1e-9)
    one = fo.ConcaveUtility(cp.log1p, share=(0.5, 100)).solve(cluster)
    np.testing.assert_allclose(one.arrays.user_tasks, [0, 1], atol=1e-5)
    assert one.certificate.passes()
    # With nothing at all for the first user it is an answer too; with the halves changed it is none.
    mechanism = fo.ConcaveUtility(cp.log1p, share=(0.5, 100))
    assert mechanism.certify(cluster, np.array([[0.0], [1.0]]))[0].passes(1e-9)
    assert mechanism.certify(cluster, np.array([[1.0], [0.0]]))[0].optimality > 0.1
    assert mechanism.certify(cluster, np.array([[0.1], [0.9]]))[0].optimality > 0.05
    # Exponential: U' = exp(-t), so that t_1 - t_2 = log(u_1/u_2).
    found = fo.ConcaveUtility(lambda s: -cp.exp(-s), share=(2, 3)).solve(cluster).arrays.user_tasks
    assert 2 * found[0] - 3 * found[1] == pytest.approx(np.log(2 / 3))


@pytest.mark.parametrize("utility", [cp.log1p, saturating, mixed])
def test_the_error_is_that_of_the_data(utility: Utility) -> None:
    """Answers of data that differ by delta show an error of about delta on these, and one percent shows as one."""
    cluster, mechanism = SMALL["two servers, weights"], fo.ConcaveUtility(utility)
    rng = np.random.default_rng(0)
    for delta in (1e-7, 1e-5, 1e-3):
        changed = cluster.replace(
            demand=cluster.demand * np.exp(delta * rng.uniform(-1, 1, cluster.demand.shape)),
            capacity=cluster.capacity * np.exp(delta * rng.uniform(-1, 1, cluster.capacity.shape)),
        )
        found = mechanism.solve(changed)
        judged = mechanism.certify(cluster, found.tasks, found.log_prices)[0]
        assert 0.02 * delta < judged.residual < 6 * delta
    right = mechanism.solve(cluster)
    assert mechanism.certify(cluster, right.tasks * 0.99, right.log_prices)[0].optimality > 5e-3


@pytest.mark.parametrize("utility", [cp.log1p, saturating, mixed, cp.log])
def test_the_welfare_gap_is_a_bound(utility: Utility) -> None:
    """`bregman` is at least what is missing, by a search over a grid, and near an optimum at most four times it."""
    cluster = fo.Cluster([[1]], [[1]] * 4)
    rule = fo.ConcaveUtility(utility).criterion(cluster)
    assert isinstance(rule, ConcaveWelfare)
    tasks, high = np.array([0.1, 0.2, 0.5, 0.9]), np.full(4, 3.0)
    worth = rule.log_marginal(tasks)
    for factor in (0.3, 0.9, 0.999, 1.0, 1.001, 1.1, 4.0):
        price = factor * np.exp(worth)
        found = rule.bregman(tasks, worth, price, np.zeros(4), high)
        for n in range(4):
            grid = np.append(np.linspace(1e-6, 3, 40_001), tasks[n])
            level = cp.Constant(grid * rule.share[n] / rule.weight[n])
            value = rule.weight[n] * utility(level).value - price[n] * grid
            missing = value.max() - value[-1]
            assert missing <= found[n] * (1 + 1e-9) + 1e-12
            assert not 0.9 <= factor <= 1.1 or found[n] <= 4.3 * missing + 1e-7


def test_elasticities_and_measures() -> None:
    cluster = fo.Cluster([[1]], [[1]] * 3)
    tasks, reach = np.array([0.0, 0.1, 0.6]), np.ones(3)
    for utility, alpha in ((power(3.0), 3.0), (cp.sqrt, 0.5)):
        rule = fo.ConcaveUtility(utility).criterion(cluster)
        assert not rule.starves
        np.testing.assert_allclose(rule.elasticity(tasks), [0, alpha, alpha], rtol=1e-6)
        np.testing.assert_array_equal(rule.measure(tasks, reach), tasks)
    rule = fo.ConcaveUtility(lambda s: cp.log1p(4 * s)).criterion(cluster)
    assert rule.starves
    np.testing.assert_allclose(rule.elasticity(tasks), 4 * tasks / (1 + 4 * tasks), rtol=1e-6)
    np.testing.assert_allclose(rule.measure(tasks, reach), [0.25, 0.35, 0.85], rtol=1e-4)


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
        asked = mechanism(favouring(place, factor))
        with pytest.raises(DataError, match="Tell users apart by their weights"):
            asked.solve(LEFT_OUT)
        with pytest.raises(DataError, match="one function for all users"):
            asked.certify(LEFT_OUT, np.ones((4, 2)))
    head = fo.ConcaveUtility(lambda s: cp.hstack([cp.log1p(20 * s[0]), cp.log1p(s[1:])]))
    with pytest.raises(DataError, match="one function for all users"):
        head.solve(LEFT_OUT)


def test_no_place_is_too_far_back() -> None:
    many = fo.Cluster([[1]], [[1]] * 200)
    with pytest.raises(DataError, match="one function for all users"):
        fo.ConcaveUtility(favouring(190, 2)).criterion(many)


@pytest.mark.parametrize("utility", [cp.log1p, cp.log, cp.sqrt, saturating, mixed, lambda s: s - cp.square(s) / 1e3])
def test_one_function_for_all_is_taken(utility: Utility) -> None:
    for seed in range(5):
        for scale in (1e-6, 1.0, 30.0):
            cluster = drawn(seed, 1)
            fo.ConcaveUtility(utility, share=tuple(scale * cluster.dominant_share_per_task)).criterion(cluster)


WEIGHTED = fo.Cluster([[9, 18], [4, 4]], [[1, 4], [3, 1], [1, 1]], weight=[1, 2, 1])


@pytest.mark.parametrize("mechanism", [fo.ConcaveUtility, fo.ConcaveGame])
def test_an_error_names_the_kink(mechanism: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(game, "solutions", partial(game.solutions, max_rounds=2))
    with pytest.raises((SolverError, NotConverged), match=r"a kink at 0\.05, near .* user 'user3'.* differentiable"):
        mechanism(lambda s: cp.minimum(2 * s, s + 0.05)).solve(WEIGHTED, solver="CLARABEL")
    smooth = mechanism(mixed)  # of which nothing of the kind is said
    assert "kink" not in str(smooth.complaint(smooth.solve(WEIGHTED), 1e-30, ("declarative",)))


@pytest.mark.parametrize("mechanism", [fo.ConcaveUtility, fo.ConcaveGame])
def test_slow_and_large_and_composed_ones_are_solved(mechanism: Any) -> None:
    """Sums of parts without a derivative at 0 among them, of which CVXPY makes an error."""
    flat: list[Utility] = [
        lambda s: cp.log(cp.log1p(s)),
        lambda s: cp.sqrt(s) + cp.log(s),
        lambda s: 1e6 * cp.log1p(1e-3 * s),
        lambda s: 1e-6 * cp.power(s, 0.05),
    ]
    for utility in flat:
        found = mechanism(utility).solve(WEIGHTED, tol=1e-6)
        level = found.criterion.levels(found.arrays.user_tasks)
        runs = np.isfinite(level) & (level > 0)
        less, more = (utility(cp.Constant(level[runs] * step)).value for step in (1 - 1e-4, 1 + 1e-4))
        slope = np.log((more - less) / (2e-4 * level[runs]) * found.criterion.share[runs])  # not CVXPY's derivative
        np.testing.assert_allclose(found.criterion.log_marginal(found.arrays.user_tasks)[runs], slope, atol=1e-4)


@pytest.mark.parametrize("mechanism", [fo.ConcaveUtility, fo.ConcaveGame])
def test_an_error_names_what_is_too_steep(mechanism: Any) -> None:
    steep = mechanism(lambda s: -cp.exp(-2000 * s))
    tasks = fo.DRFH().solve(WEIGHTED).tasks
    answer = replace(
        mechanism(saturating).solve(WEIGHTED), tasks=tasks, criterion=steep.criterion(WEIGHTED), judge=steep.certify
    )
    said = str(steep.complaint(answer, 1e-6, ()))
    assert re.search(r"user 'user\d' the utility is as steep as that of alpha = \d+, .*flatter", said)
    assert "steep" not in str(mechanism(saturating).complaint(mechanism(saturating).solve(WEIGHTED), 1e-30, ()))


def test_the_game_says_where_numbers_span_too_much() -> None:
    wide = WEIGHTED.replace(weight=np.geomspace(1e-9, 1, len(WEIGHTED.users)))
    game_of = fo.ConcaveGame(saturating)
    answer = replace(game_of.solve(WEIGHTED), cluster=wide, criterion=game_of.criterion(wide))
    assert re.search(r"spans (9|10) decades here.*closer together", str(game_of.complaint(answer, 1e-30, ())))
    assert "decades" not in str(game_of.complaint(game_of.solve(WEIGHTED), 1e-30, ()))


def test_kinks() -> None:
    levels = np.geomspace(1e-6, 10, 400)
    for utility in (lambda s: cp.minimum(2 * s, s + 0.05), lambda s: cp.log1p(s) + cp.minimum(0.02 * s, 0.001)):
        near = np.abs(np.log(levels / 0.05)) < np.log(1.25)
        found = UtilitySlope(utility).kinks(levels)
        np.testing.assert_allclose(found[near], 0.05)
        assert np.isnan(found[~near]).all()
    smooth: list[Utility] = [cp.log1p, cp.log, cp.sqrt, saturating, mixed, power(5), power(50), lambda s: 3 * s]
    for utility in [*smooth, lambda s: -cp.exp(-5000 * s), lambda s: -cp.square(20 - s)]:
        assert np.isnan(UtilitySlope(utility).kinks(levels)).all()


def test_linear_is_utilitarian() -> None:
    cluster = fo.Cluster([[9, 18]], [[1, 4], [3, 1]])
    own = fo.ConcaveUtility(lambda s: 2 * s).solve(cluster)
    assert own.certificate.passes()
    share = cluster.dominant_share_per_task
    assert own.arrays.user_tasks @ share == pytest.approx(
        fo.Utilitarian().solve(cluster).arrays.user_tasks @ share, rel=1e-6
    )


def test_label_and_files(tmp_path: Path) -> None:
    assert str(fo.ConcaveUtility()) == "concave utility(utility=log1p)"
    assert str(fo.ConcaveUtility(saturating, scope="pool")) == "concave utility(utility=saturating, scope=pool)"
    answer = fo.ConcaveUtility().solve(SMALL["one pool"])
    with pytest.raises(DataError, match="files hold no ConcaveWelfare, whose utility is a function: save the cluster"):
        answer.save(tmp_path / "answer.json")
