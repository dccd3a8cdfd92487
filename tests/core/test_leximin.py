"""All levels by faces: few steps a level, whatever there is more of, with proofs that need no linear program."""

from __future__ import annotations

import numpy as np
import pytest

from fairopt.certificates import _linear, certify, rational
from fairopt.certificates.leximin import lexicographic_rise
from fairopt.core import leximin
from fairopt.core.algebra import Pairs
from fairopt.core.filling import filled
from fairopt.core.leximin import Leximin
from fairopt.mechanisms import get
from fairopt.model.cluster import Cluster
from fairopt.model.problem import Problem
from fairopt.workloads import open_source


def spread(users: int, servers: int, seed: int, zeros: float = 0.0, placed: float = 1.0) -> Cluster:
    """No two servers alike, some demands zero, placement."""
    rng = np.random.default_rng(seed)
    demand = np.exp(0.5 * rng.standard_normal((users, 3))) * (rng.random((users, 3)) >= zeros)
    demand[~demand.any(axis=1), 0] = 1.0
    eligible = rng.random((users, servers)) < placed
    eligible[np.arange(users), rng.integers(servers, size=users)] = True
    return Cluster(100 * np.exp(0.5 * rng.standard_normal((servers, 3))), demand, eligible=eligible)


def chain(length: int) -> Cluster:
    """User n on servers n and n + 1, each richer than the one before: a level for every user."""
    eligible = np.eye(length, dtype=bool) | np.eye(length, k=1, dtype=bool)
    return Cluster(np.outer(3.0 ** np.arange(length), [1.0, 2.0]), np.ones((length, 2)), eligible=eligible)


CLUSTERS = {
    "few users": spread(6, 400, 0),
    "few servers": spread(400, 6, 0),
    "zeros": spread(60, 20, 0, zeros=0.4),
    "three servers a user": spread(200, 60, 0, placed=0.05),
    "zeros and placement": spread(80, 30, 1, zeros=0.4, placed=0.3),
    "zeros, two servers a user": spread(60, 40, 0, zeros=0.4, placed=0.03),
    "zeros, a server a user": spread(200, 40, 0, zeros=0.4, placed=0.0),
    "chain": chain(12),
    "components of a few users": spread(60, 60, 3, placed=0.02),
    "more servers than users": spread(30, 50, 2, placed=0.06),
    "more servers, early limits": spread(30, 50, 14, placed=0.06),
}


@pytest.mark.parametrize("name", CLUSTERS)
@pytest.mark.parametrize("limited", [False, True])
def test_certified_by_arithmetic_alone(name: str, limited: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("the prices did not prove it")

    monkeypatch.setattr(_linear, "maximise", never)
    cluster, rng = CLUSTERS[name], np.random.default_rng(7)
    if limited:
        plain = get("drfh").solve(cluster).arrays.user_tasks
        cluster = cluster.replace(max_tasks=np.where(rng.random(len(plain)) < 0.4, plain * rng.uniform(0.2, 2), np.inf))
    for mechanism in ("drfh", "tsf"):
        found = get(mechanism).solve(cluster, engine="native")
        assert found.stats.solver != "rational simplex"
        assert found.certificate.residual < 1e-9


@pytest.mark.parametrize("name", ["zeros", "zeros and placement", "chain"])
def test_later_levels_take_few_steps(name: str) -> None:
    """The state that one level ends in starts the next, also where frozen users stay among those who rise."""
    problem = Problem(CLUSTERS[name], get("drfh").criterion(CLUSTERS[name]))
    found = Leximin(problem.polytope, problem.criterion)
    assert len(found.stages) > 1
    assert found.steps <= 15 + 9 * (len(found.stages) - 1)


def test_components_of_a_few_users_keep_their_limits() -> None:
    """Fifty clusters beside each other, without fallbacks: tasks are those of each alone, at limits that bind."""
    rng, parts = np.random.default_rng(5), []
    for _ in range(50):
        capacity, demand = rng.gamma(4, 0.25, (2, 2)) + 0.05, rng.gamma(2, 0.5, (3, 2)) + 0.05
        plain = get("task-maxmin").solve(Cluster(capacity, demand)).arrays.user_tasks
        parts.append(Cluster(capacity, demand, max_tasks=np.where(rng.random(3) < 0.5, rng.random(3) * plain, np.inf)))
    whole = Cluster(
        np.vstack([one.capacity for one in parts]),
        np.vstack([one.demand for one in parts]),
        max_tasks=np.concatenate([one.max_tasks for one in parts]),
        eligible=np.kron(np.eye(50), np.ones((3, 2))).astype(bool),
    )
    problem = Problem(whole, get("task-maxmin").criterion(whole))
    found = Leximin(problem.polytope, problem.criterion)
    tasks = np.concatenate([get("task-maxmin").solve(one).arrays.user_tasks for one in parts])
    assert np.count_nonzero(np.isclose(tasks, whole.max_tasks)) > 40
    assert found.level == pytest.approx(tasks, rel=1e-9)


def test_what_equations_determine_is_no_unknown() -> None:
    """Frozen users stay connected to rising ones by zero demands, and have nearly as many equations as pairs."""
    cluster = spread(160, 160, 2, zeros=0.4, placed=0.01)
    problem = Problem(cluster, get("drfh").criterion(cluster))
    found = Leximin(problem.polytope, problem.criterion)
    assert found.steps <= 15 + 5 * (len(found.stages) - 1)
    assert certify(cluster, found.tasks(), problem.criterion, found.prices())[0].residual < 1e-9


def test_equations_of_many_levels_stay_consistent() -> None:
    """Weights of pairs differ by many decades: regularized too much, full rows were missed by 6e-6 after 30 levels."""
    rng = np.random.default_rng([4, 200, 200])
    eligible = np.zeros((200, 200), dtype=bool)
    for row in eligible:
        row[rng.choice(200, 4, replace=False)] = True
    demand = rng.lognormal(0, 0.5, (200, 4)) * (rng.random((200, 4)) >= 0.6)
    demand[~demand.any(axis=1), 0] = 1.0
    cluster = Cluster(rng.lognormal(0, 0.5, (200, 4)) * 10, demand, eligible=eligible)
    problem = Problem(cluster, get("tsf").criterion(cluster))
    found = Leximin(problem.polytope, problem.criterion)
    assert certify(cluster, found.tasks(), problem.criterion, found.prices())[0].residual < 1e-9


@pytest.mark.parametrize(
    "name", ["three servers a user", "chain", "more servers than users", "more servers, early limits"]
)
@pytest.mark.parametrize("limited", [False, True])
def test_what_seems_likely_need_not_be_right(name: str, limited: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are told apart by half of the pairs, drawn: levels and proofs are those without."""
    monkeypatch.setattr("fairopt.core.algebra.DENSE_FLOPS", 0.0)
    monkeypatch.setattr("fairopt.core.algebra._LIST_COST", 0.0)
    monkeypatch.setattr("fairopt.core.leximin._LEVELS_FIRST", 1)
    cluster, asked = CLUSTERS[name], []
    problem = Problem(cluster, get("drfh").criterion(cluster))
    plain = Leximin(problem.polytope, problem.criterion)
    for seed in range(2):
        rng = np.random.default_rng(seed)
        if limited:
            tasks, users = plain.level * plain.tasks_per_level, len(plain.level)
            most = np.where(rng.random(users) < 0.3, tasks * rng.uniform(0.5, 1.5, users), np.inf)
            problem = Problem(other := cluster.replace(max_tasks=most), get("drfh").criterion(other))
        polytope, rule = problem.polytope, problem.criterion
        likely = rng.random(len(polytope.gamma)) < 0.5
        found = Leximin(polytope, rule, lambda likely=likely: asked.append(likely) or likely)
        np.testing.assert_allclose(found.level, (Leximin(polytope, rule) if limited else plain).level, rtol=1e-9)
        rise, prices, _ = lexicographic_rise(polytope, found.tasks(), rule, found.prices())
        assert rise < 1e-9
        assert prices is not None, "prices do not prove the levels without a linear program"
    assert asked


@pytest.mark.parametrize("off", [1e-6, 1e-8, 1e-9, 1e-10])
def test_levels_that_nearly_tie(off: float) -> None:
    """Half of the users have a server each, the others all of them, no two alike: levels as without rounding."""
    rng = np.random.default_rng(3)
    capacity, demand = (1 + off * rng.uniform(-1, 1, shape) for shape in ((8, 1), (8, 1)))
    cluster = Cluster(capacity, demand, eligible=np.eye(8, dtype=bool) | (np.arange(8) % 2 > 0)[:, None])
    rule = get("task-maxmin").criterion(cluster)
    found = get("task-maxmin").solve(cluster, 1e-9)
    exact = rational.leximin(cluster, rule, cluster.max_tasks)
    np.testing.assert_allclose(found.arrays.user_tasks, exact.tasks.astype(float).sum(axis=1), rtol=1e-9)


@pytest.mark.parametrize("off", [1e-8, 1e-7, 1e-6, 1e-5])
@pytest.mark.parametrize(("users", "more"), [(2, 0), (30, 0), (120, 0), (2, 1), (30, 1), (2, -1), (12, -1)])
def test_levels_next_to_each_other_are_no_single_level(users: int, more: int, off: float) -> None:
    """Each above the last by `off`, on servers of their own, one or two, or whom the next below may not follow."""
    level = (1 + off) ** np.arange(users)
    eligible = np.repeat(np.eye(users, dtype=bool), 1 + max(more, 0), axis=1)
    eligible |= np.eye(users, k=more, dtype=bool) if more < 0 else False
    capacity = np.repeat(level, 1 + max(more, 0))[:, None] * [1.0, 2.0]
    cluster = Cluster(capacity, np.ones((users, 2)), eligible=eligible)
    found = get("drfh").solve(cluster, 1e-9)
    np.testing.assert_allclose(found.arrays.user_tasks, level * (1 + max(more, 0)), rtol=1e-9)
    if users <= 30:  # by linear programs
        assert get("drfh").certify(cluster, found.tasks)[0].residual <= 1e-6


def test_parts_are_raised_one_after_the_other() -> None:
    """Twenty clusters in one that share nothing: levels of each, in no more steps than alone."""
    one = spread(12, 6, 2)
    capacity, demand = np.tile(one.capacity, (20, 1)), np.tile(one.demand, (20, 1))
    demand *= np.random.default_rng(0).uniform(0.8, 1.2, demand.shape)
    apart = Cluster(capacity, demand, eligible=np.kron(np.eye(20, dtype=bool), np.ones((12, 6), dtype=bool)))
    first, rule = Cluster(one.capacity, demand[:12]), get("task-maxmin").criterion
    found, alone = (Leximin(p.polytope, p.criterion) for p in (Problem(c, rule(c)) for c in (apart, first)))
    assert len(found.stages) >= 20
    assert found.steps <= 20 * 12
    np.testing.assert_allclose(found.level[:12], alone.level, rtol=1e-9)


def test_parts_of_one_server_are_filled_progressively() -> None:
    """Tasks, some of them limited, of users who may use one server each are those of every server alone."""
    cluster = spread(60, 12, 3, zeros=0.4, placed=0.0)
    cluster = cluster.replace(max_tasks=np.where(np.arange(60) % 2, np.inf, np.linspace(1, 60, 60)))
    rule = get("task-maxmin").criterion(cluster)
    per_task = cluster.demand / cluster.capacity[:, None]
    room = np.where(cluster.eligible.T, cluster.max_tasks, 0.0)
    tasks = filled(np.ones((12, 60)), per_task, np.zeros((12, 60)), room).sum(axis=0)
    np.testing.assert_allclose(Leximin(Problem(cluster, rule).polytope, rule).level, tasks, rtol=1e-12)


@pytest.mark.parametrize("seed", [0, 4])
def test_users_held_far_below_the_last_level_keep_it(seed: int) -> None:
    """Nine decades between two levels: tasks of the lower one are next to nothing beside the higher, and stay."""
    rng = np.random.default_rng(seed)
    demand = np.exp(2 * rng.standard_normal((40, 2)))
    demand[0] = [0, 1e-6]
    cluster = Cluster(100 * np.exp(rng.standard_normal((9, 2))), demand)
    problem = Problem(cluster, get("task-maxmin").criterion(cluster))
    found = Leximin(problem.polytope, problem.criterion)
    assert found.level.max() > 1e8 * found.level.min()
    assert np.bincount(problem.polytope.pair_user, found.amounts()) == pytest.approx(found.level, rel=1e-9)
    assert get("task-maxmin").solve(cluster, engine="native").certificate.residual < 1e-9


@pytest.mark.parametrize(
    ("users", "servers", "seed", "zeros"), [(60, 20, 2, 0.2), (100, 40, 0, 0.2), (100, 40, 2, 0.0)]
)
@pytest.mark.parametrize(("part", "most"), [(0.5, 0.95), (0.9, 1.05), (1.0, 1.5)])
def test_who_has_enough_is_held_early(
    users: int, servers: int, seed: int, zeros: float, part: float, most: float
) -> None:
    """Task counts about the level: a bound of it is known from the first steps, so that they stop nobody late."""
    cluster, rng = spread(users, servers, seed, zeros), np.random.default_rng(seed)
    plain = get("drfh").solve(cluster).arrays.user_tasks
    enough = np.where(rng.random(users) < part, plain * rng.uniform(0.3, most, users), np.inf)
    problem = Problem(cluster := cluster.replace(max_tasks=enough), get("drfh").criterion(cluster))
    found = Leximin(problem.polytope, problem.criterion)
    assert found.steps <= 15 + 9 * max(len(found.stages) - 1, 0)
    assert get("drfh").solve(cluster, engine="native").certificate.residual < 1e-9


def test_hundreds_who_stop_at_their_task_counts_at_once_are_no_dead_end() -> None:
    """As long as one of them misses its level nothing is proved from below, however close all is."""
    source = "alibaba-like?users=1000&servers=1500&max_tasks=true"
    cluster = open_source(source, rng=np.random.default_rng(8)).cluster
    allocation = get("task-maxmin").solve(cluster, engine="native")
    assert allocation.certificate.residual < 1e-6


@pytest.mark.parametrize(("off", "most"), [(1e-9, 1e-15), (0.1, 0.2)])
def test_prices_are_levelled_unless_they_are_far_from_level(off: float, most: float) -> None:
    """Users on two servers each, in a chain, pay the same on both; prices that are off by more than rounding stay."""
    user, server = np.repeat(np.arange(9), 2), np.repeat(np.arange(9), 2) + np.tile([0, 1], 9)
    rng = np.random.default_rng(0)
    pairs = Pairs(user, server, rng.lognormal(0, 1, (9, 2)), np.ones((10, 2)))
    given = np.outer(1 + off * rng.standard_normal(10), [1.0, 3.0])
    found = leximin._levelled(pairs, np.ones(18, dtype=bool), given)
    cost = pairs.cost(found).reshape(9, 2)
    assert np.abs(np.log(cost[:, 0] / cost[:, 1])).max() <= most
    assert np.array_equal(found, given) == (off > 1e-6)
