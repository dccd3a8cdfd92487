"""The condition of max-min: by hand, against exact optima of data that changed, and where a certificate is blind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from families import EXAMPLE, draw
from numpy.testing import assert_allclose

import fairopt as fo
from fairopt.certificates import certify, feasibility, rational
from fairopt.certificates.leximin import lexicographic_rise, maxmin_condition
from fairopt.errors import DataError
from fairopt.model._arrays import Array
from fairopt.model.polytope import Polytope


def leftover(much: float, few: float = 1e-8) -> tuple[fo.Cluster, Array, Array]:
    """40 users, 12 servers whose first resource alone binds, one user of small weight; its tasks times `much`.

    The exact optimum divides the first resource by weights; what the user has too many the others give up evenly.
    """
    rng = np.random.default_rng(0)
    demand = np.hstack([np.ones((40, 1)), rng.uniform(0.1, 0.9, (40, 2))])
    capacity = np.hstack([rng.uniform(0.5, 2, (12, 1)), rng.uniform(10, 20, (12, 2))])
    weight = np.append(few, np.ones(39))
    tasks = np.outer(weight / weight.sum(), capacity[:, 0])
    tasks[1:] *= 1 - (much - 1) * few / 39
    tasks[0] *= much
    prices = np.zeros((1, 12, 3))
    prices[0, :, 0] = 1.0
    return fo.Cluster(capacity, demand, weight), tasks, prices


def logs(prices: np.ndarray) -> np.ndarray:
    """As judges want them."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(prices))


@pytest.mark.parametrize("few", [1e-7, 1e-8])
def test_who_lives_on_rounding_is_named_where_the_certificate_is_blind(few: float) -> None:
    """49% too many tasks cost the others 1e-8: the rise of all is below 1e-6."""
    shared, tasks, prices = leftover(1.49, few)
    rule = fo.DRFH().criterion(shared)
    certificate = certify(shared, tasks, rule, logs(prices))[0]
    assert certificate.passes(1e-6)
    found = maxmin_condition(shared, tasks, rule, prices)
    assert found[0] > 1 / few
    assert_allclose(found[1:], 1, rtol=1e-6)
    assert (found * max(certificate.residual, 1e-15) > 1e-3).tolist() == [True] + [False] * (len(found) - 1)
    right = leftover(1.0, few)[1]
    fine = maxmin_condition(shared, right, rule, prices)
    assert_allclose(fine, 1, rtol=1e-6)
    assert certify(shared, right, rule, logs(prices))[0].residual < 1e-3


@pytest.mark.parametrize("servers", [1, 2])
def test_what_others_leave_by_hand(servers: int) -> None:
    """A uses up 1 of resource1 and 1 of the 1.001 of resource2; B, of small weight, has the rest of that."""
    whole = np.array([[1.0, 1.001]])
    shared = fo.Cluster(np.repeat(whole, servers, axis=0) * [[1.0], [2.0]][:servers], [[1, 1], [0, 1]], [1, 1e-4])
    solved = fo.DRFH().solve(shared)
    found = maxmin_condition(shared, solved.tasks, solved.criterion, solved.arrays.prices)
    assert_allclose(found, [1, 1001], rtol=1e-5)
    richer = shared.replace(capacity=shared.capacity * [1, 1 + 1e-5])
    moved = fo.DRFH().solve(richer).arrays.user_tasks / solved.arrays.user_tasks - 1
    assert_allclose(moved, [0, 1001e-5], rtol=1e-3, atol=1e-9)


def on_the_rest(seed: int) -> fo.Cluster:
    """A random cluster with one more user, of small weight, who needs the resource of which the others leave little."""
    rng = np.random.default_rng(seed)
    users, servers = int(rng.integers(2, 7)), int(rng.integers(1, 4))
    demand, capacity = rng.uniform(0.3, 3, (users, 2)), rng.uniform(0.5, 5, (servers, 2))
    capacity[:, 1] *= 100
    used = fo.DRFH().solve(fo.Cluster(capacity, demand)).tasks.T @ demand
    left = 10 ** rng.uniform(-4, -0.5)
    capacity[:, 1] = used[:, 1] * (1 + left)
    return fo.Cluster(capacity, np.vstack([demand, [0, rng.uniform(0.3, 3)]]), np.append(np.ones(users), 1e-2 * left))


@pytest.mark.parametrize("style", ["plain", "nice", "wide", "rest"])
def test_errors_in_tasks_are_below_e_times_the_condition(style: str) -> None:
    """Exact optima of weights that differ by 1e-9 to 3e-8 against that of these, user by user.

    Then nothing idles: levels are apart by what the weights are, and who lives on the rest has more or less of it,
    which no rise shows. Levels further apart are no longer one to the judge, who lets the lower take all of the higher.
    """
    count, far, largest = 0, 0, 0.0
    for seed in range(150 if style == "rest" else 70):
        shared = on_the_rest(seed) if style == "rest" else draw(style, seed, 8, 4, 3)
        rng = np.random.default_rng(seed)
        weight = shared.weight * (1 + 10 ** rng.uniform(-9, -7.5) * rng.uniform(-1, 1, len(shared.users)))
        rule = fo.DRFH().criterion(shared)
        limits = rule.limits(shared)
        exact, near = (rational.leximin(shared, each, limits) for each in (rule, replace(rule, weight=weight)))
        if exact is None or near is None or not shared.runnable.any():
            continue
        tasks, prices = near.tasks.astype(float), near.prices.astype(float)
        rise = lexicographic_rise(Polytope(shared, limits), tasks, rule, prices)[0]
        error = max(rise, feasibility(shared, tasks)[0])
        if error > 1e-3:
            continue
        best, conditions = exact.tasks.sum(axis=1).astype(float), maxmin_condition(shared, tasks, rule, prices)
        runs = (best > 0) & (best < limits * (1 - 1e-4))
        apart = np.abs(tasks.sum(axis=1)[runs] / best[runs] - 1)
        assert (apart <= 10 * error * conditions[runs] + 1e-14).all(), seed
        assert (conditions >= 1 - 1e-9).all()
        count, far = count + 1, far + bool((apart > 2 * error).any())
        largest = max(largest, float((apart / error).max(initial=0.0)) if error > 0 else 0.0)
    assert count >= 40
    if style == "rest":  # without the condition it would not hold
        assert far > 20
        assert largest > 10


def test_limits_nowhere_and_nothing_proved() -> None:
    shared = fo.Cluster([[9, 18, 0]], [[1, 4, 0], [3, 1, 0], [1, 1, 1], [1, 1, 0]], max_tasks=[np.inf, np.inf, 5, 0.5])
    solved = fo.DRF().solve(shared)
    found = maxmin_condition(shared, solved.tasks, solved.criterion)
    assert found[2:].tolist() == [1, 1]
    assert np.isfinite(found).all()
    half = maxmin_condition(shared, solved.tasks / 2, solved.criterion)
    assert np.isinf(half[[0, 1, 3]]).all()
    assert np.isinf(maxmin_condition(shared, solved.tasks * 0, solved.criterion)[[0, 1, 3]]).all()


def test_only_max_min_has_one() -> None:
    for mechanism in (fo.CEEI(), fo.PSDSF(), fo.PerServerDRF()):
        with pytest.raises(DataError, match="only lexicographic max-min"):
            maxmin_condition(EXAMPLE, np.ones((2, 1)), mechanism.criterion(EXAMPLE))


@pytest.mark.parametrize("above", [5e-8, 1e-9])
def test_a_limit_just_above_what_capacity_leaves_holds_nobody(above: float) -> None:
    cluster = fo.Cluster([[9, 18], [4, 4]], [[1, 4], [3, 1], [1, 1]], eligible=[[1, 1], [1, 0], [0, 1]])
    free = fo.DRFH().solve(cluster, tol=1e-9)

    def limited(part: float) -> fo.Cluster:
        return cluster.replace(max_tasks=[part * free.arrays.user_tasks[0], np.inf, np.inf])

    def first(found: fo.Allocation) -> float:
        return float(maxmin_condition(found.cluster, found.tasks, found.criterion, found.arrays.prices)[0])

    assert first(free) > 1.01
    assert first(replace(free, cluster=limited(1 + above))) == pytest.approx(first(free), rel=1e-6)
    assert first(fo.DRFH().solve(limited(0.9))) == 1


@pytest.mark.parametrize("mechanism", [fo.DRFH(), fo.TSF(), fo.PSDSF()], ids=str)
@pytest.mark.parametrize(("users", "servers", "powers"), [(8, 3, range(6, 16)), (30, 10, (8, 11, 14))])
def test_who_needs_little_of_what_holds_others_has_their_level_or_is_uncertain(
    mechanism: fo.mechanisms.Mechanism, users: int, servers: int, powers: Iterable[int]
) -> None:
    """Its level is that of others (PS-DSF: on some server), however little it needs, or no certificate claims it."""
    for power in powers:
        rng = np.random.default_rng(power)
        capacity = np.column_stack([rng.uniform(1, 2, servers), rng.uniform(50, 60, servers)])
        demand = np.column_stack([rng.uniform(0.5, 1.5, users), rng.uniform(0.05, 0.1, users)])
        demand[-1] = 10.0**-power, 1
        allocation = mechanism.solve(fo.Cluster(capacity, demand), throw=False)
        levels = allocation.criterion.levels(allocation.arrays.user_tasks).reshape(users, -1)
        right = (np.abs(levels[-1] / levels[0] - 1) < 1e-4).any()
        assert right or allocation.flagged or f"user{users}" in allocation.uncertain()


@pytest.mark.parametrize("little", [1e-7, 1e-10, 1e-13])
def test_psdsf_of_who_needs_little_of_what_holds_others(little: float) -> None:
    allocation = fo.PSDSF().solve(fo.Cluster([[1, 1]], [[1, 0.1], [1, 0.1], [little, 1]]), throw=False)
    assert allocation.arrays.user_tasks[2] == pytest.approx(0.5, rel=1e-3) or "user3" in allocation.uncertain()
