"""Alpha-fair programs with few prices and many users: what the engine computes, and where it is asked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fairopt as fo
from fairopt.engines.welfare.few_prices import _demand, engine
from fairopt.engines.welfare.few_prices.options import OPTIONS
from fairopt.engines.welfare.few_prices.step import FewPricesStep
from fairopt.model.cluster import Cluster
from fairopt.model.merging import merge
from fairopt.model.problem import Problem
from fairopt.workloads import alibaba_like, google_like

ALPHAS = [0.5, 1.0, 3.0, 8.0]


def gpus(users: int, seed: int = 0) -> Cluster:
    """Nodes with and without GPUs, about half of the users at their limits."""
    return alibaba_like(np.random.default_rng(seed), users, 300, max_tasks=True).cluster


def drawn(seed: int) -> Cluster:
    """120 users on 4 servers: weights, placement, zero demands, limits from half to twice what they would have."""
    rng = np.random.default_rng(seed)
    demand = rng.uniform(0.2, 2.0, (120, 3)) * (rng.random((120, 3)) < 0.9)
    demand[:, 0] += 0.1
    eligible = rng.random((120, 4)) < 0.7
    eligible[np.arange(120), rng.integers(4, size=120)] = True
    cluster = Cluster(rng.uniform(80, 240, (4, 3)), demand, weight=10 ** rng.uniform(-1, 1, 120), eligible=eligible)
    limit = fo.AlphaFair(1).solve(cluster).user_tasks * rng.uniform(0.5, 2.0, 120)
    limit[rng.random(120) < 0.3] = np.inf
    return Cluster(cluster.capacity, demand, weight=cluster.weight, eligible=eligible, max_tasks=limit)


def problem_of(cluster: Cluster, alpha: float) -> Problem:
    return Problem(cluster, fo.AlphaFair(alpha).criterion(cluster))


@pytest.mark.parametrize("alpha", ALPHAS)
def test_it_is_the_engine_of_many_users_with_limits(alpha: float) -> None:
    """The interior point was stopped by users at their limits, at alpha = 8 up to where another engine took over."""
    cluster = gpus(600)
    found = fo.AlphaFair(alpha).solve(cluster)
    assert found.stats.solver == "few prices"
    assert found.stats.rounds <= 45
    assert found.certify().residual <= 1e-6
    at_limit = found.user_tasks >= cluster.max_tasks * (1 - 1e-9)
    assert 0.2 < at_limit.mean() < 1


@pytest.mark.parametrize("alpha", [8.0, 16.0])
def test_large_alpha_needs_no_limits(alpha: float) -> None:
    """Two users of the 1000 need no memory or no CPU; prices of servers differ by many decades."""
    found = fo.AlphaFair(alpha).solve(google_like(np.random.default_rng(0), 1000, 1_258).cluster)
    assert found.stats.solver == "few prices"
    assert found.certify().residual <= 1e-6


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("seed", range(4))
def test_tasks_are_those_of_other_engines(monkeypatch: pytest.MonkeyPatch, seed: int, alpha: float) -> None:
    """At last digits, where there is one answer."""
    cluster = drawn(seed)
    problem = problem_of(cluster, alpha)
    found = engine.run(problem, 1e-8)
    assert found.error <= 1e-8
    tasks = problem.polytope.allocation(found.fractions)
    certificate, _ = fo.AlphaFair(alpha).certify(cluster, tasks, problem.polytope.log_unit_prices(found.log_rows))
    assert certificate.residual <= 1e-8
    monkeypatch.setattr(engine, "applies", lambda problem, options: False)
    other = fo.AlphaFair(alpha).solve(cluster, 1e-8)
    assert other.stats.solver != "few prices"
    assert tasks.sum(axis=1) == pytest.approx(other.user_tasks, rel=1e-5)


def test_prices_are_in_the_unit_of_worth() -> None:
    """Not shifted: users below their limits pay what a task is worth to them."""
    cluster = drawn(0)
    problem = problem_of(cluster, 3.0)
    found = engine.run(problem, 1e-8)
    polytope = problem.polytope
    tasks = polytope.user_tasks(found.fractions)
    user_price = np.full(len(tasks), np.inf)
    np.minimum.at(user_price, polytope.pair_user, polytope.price_per_task(np.exp(found.log_rows)))
    below = tasks < polytope.limit * (1 - 1e-3)
    log_marginal = problem.criterion.restrict(polytope.users).log_marginal(tasks)
    assert below.sum() >= 3
    assert np.log(user_price[below]) == pytest.approx(log_marginal[below], abs=1e-6)


def test_it_is_asked_where_users_are_many_and_prices_few() -> None:
    assert engine.applies(problem_of(merge(gpus(600)).cluster, 3.0))
    few = drawn(0)
    few = few.select(few.users[:60], few.servers)
    assert engine.applies(problem_of(drawn(0), 3.0))
    assert not engine.applies(problem_of(few, 3.0))  # few users
    assert not engine.applies(problem_of(gpus(600), 3.0))  # 300 servers, not merged
    free = merge(google_like(np.random.default_rng(0), 600, 1_258).cluster).cluster
    assert not engine.applies(problem_of(free, 3.0))  # no limits: the interior point takes a dozen steps
    assert engine.applies(problem_of(free, 8.0))
    for alpha in (0.0, 64.0):
        assert not engine.applies(problem_of(merge(gpus(600)).cluster, alpha))
    rule = fo.AlphaFair(3.0).criterion(free)
    assert not engine.applies(Problem(free, replace(rule, alpha=8.0, floor=np.full(len(rule.floor), 1e-9))))


def test_where_it_gives_up_the_interior_point_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    short = replace(OPTIONS, steps=2)
    asked = engine.solutions
    monkeypatch.setattr(engine, "solutions", lambda problem, tol: asked(problem, tol, short))
    found = fo.AlphaFair(1.0).solve(gpus(400))
    assert found.stats.solver == "interior point"
    assert found.certificate.residual <= 1e-6


@pytest.mark.parametrize("limit", [np.inf, 1.5, -2.0])
def test_demand_is_smooth_and_right_at_both_ends(limit: float) -> None:
    """`min(limit, worth less alpha logs of pay)`, off by the width at most; its slope is that of its values."""
    log_marginal, alpha, width = 2.0, 3.0, 0.1
    for log_pay in np.linspace(-12, 12, 49):
        exact = min(limit, (log_marginal - log_pay) / alpha)
        value, part = _demand.bought(log_marginal, alpha, limit, width, np.exp(log_pay))
        assert exact - width - 1e-12 <= value <= exact + 1e-12
        h = 1e-5
        up, down = (_demand.bought(log_marginal, alpha, limit, width, np.exp(log_pay + d))[0] for d in (h, -h))
        assert -(up - down) / (2 * h) == pytest.approx(part / alpha, abs=1e-6)
    if np.isfinite(limit):
        assert _demand.bought(log_marginal, alpha, limit, width, -1.0) == (limit, 0.0)


@pytest.mark.parametrize("width", [1e-6, 0.3])
def test_a_user_in_order_buys_what_it_wants_at_equal_products(width: float) -> None:
    rng = np.random.default_rng(0)
    start, users = np.arange(0, 101, 5), 20
    cost, weight = rng.uniform(1, 3, 100), 10 ** rng.uniform(-6, -1, users)
    log_marginal, limit = rng.normal(size=users), np.where(rng.random(users) < 0.5, np.inf, rng.normal(-1, 1, users))
    tasks, slack, user_price = np.full(100, np.nan), np.full(100, np.nan), np.full(users, np.nan)
    chosen = np.arange(users) != 7
    _demand.ordered(start, cost, weight, log_marginal, 2.0, limit, width, chosen, tasks, slack, user_price)
    assert np.isnan(tasks[35:40]).all()
    assert np.isnan(user_price[7])
    for n in np.flatnonzero(chosen):
        own = slice(5 * n, 5 * n + 5)
        assert tasks[own] * slack[own] == pytest.approx(np.full(5, weight[n]), rel=1e-12)
        assert (slack[own] > 0).all()
        assert cost[own] - slack[own] == pytest.approx(np.full(5, user_price[n]), abs=1e-12)
        wanted = np.exp(_demand.bought(log_marginal[n], 2.0, limit[n], width, user_price[n])[0])
        assert tasks[own].sum() == pytest.approx(wanted, rel=1e-9)


def test_a_step_solves_its_equations(monkeypatch: pytest.MonkeyPatch) -> None:
    """The predictor, put into the linearised equations, on a real way down: what is left is rounding."""
    seen = []
    taken = FewPricesStep.taken

    def checked(self: FewPricesStep) -> object:
        there = taken(self)
        market, at = self.market, self.at
        pair, price = -at.tasks * at.slack, -at.price * at.idle
        step = self._direction(pair, price)
        d_cost = market.cost(step.price)
        left = [
            self.off_cost + d_cost - step.slack - step.user_price[market.user],
            (at.slack * step.tasks + at.tasks * step.slack - pair) / self.of_pair,
            (self.off_tasks + market.summed(step.tasks) + self.extra * step.user_price) / self.demand,
            np.where(market.row, self.off_use + market.used(step.tasks) + step.idle, 0.0),
            np.where(market.row, at.idle * step.price + at.price * step.idle - price, 0.0) / self.weights.price,
        ]
        left[0] = left[0] / self.cost
        seen.append(max(float(np.abs(each).max()) for each in left))
        return there

    monkeypatch.setattr(FewPricesStep, "taken", checked)
    engine.run(problem_of(drawn(1), 3.0), 1e-3)
    assert len(seen) > 5
    assert max(seen) <= 1e-8
