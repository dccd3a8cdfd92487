"""The compiled certificates are those of `certificates`, at right and at wrong tasks and prices."""

from __future__ import annotations

import numpy as np
import pytest
from families import draw

import fairopt as fo
from fairopt.certificates import backward_error, exploitability
from fairopt.certificates.ill_scaled import ill_scaling
from fairopt.certificates.leximin import by_level, proved
from fairopt.engines.small import _efficient, _lexicographic, _leximin, _scaled, _servers
from fairopt.mechanisms import Mechanism
from fairopt.model.cluster import Cluster
from fairopt.model.polytope import Polytope
from fairopt.model.problem import Problem

from .agreement import ALL, MOST


def numbers(problem: Problem) -> _scaled.Cell:
    """What kernels are given."""
    cluster, rule = problem.cluster, problem.criterion
    share = rule.share if rule.share.ndim == 2 else np.repeat(rule.share[:, None], len(cluster.servers), axis=1)
    data = (np.array(cluster.capacity), np.array(cluster.demand), np.array(cluster.eligible))
    return _scaled.cell(rule.alpha, rule.scope == "game", *data, problem.limits, np.array(rule.weight), np.array(share))


def stated(mechanism: Mechanism, cluster: Cluster) -> Problem:
    seen, _ = mechanism.prepare(cluster)
    return Problem(seen, mechanism.criterion(seen))


def disturbed(rng: np.random.Generator, values: np.ndarray, size: float) -> np.ndarray:
    """Other numbers, some of them none."""
    result = values * np.exp(size * rng.standard_normal(values.shape))
    return np.where(rng.random(values.shape) < 0.1 * (size > 1e-3), 0.0, result)


@pytest.mark.parametrize("family", ALL)
def test_errors_at_alpha_0_flatter_nobody(family: str) -> None:
    for seed in range(6):
        rng, problem = np.random.default_rng(seed), stated(fo.Utilitarian(), draw(family, seed, *MOST))
        q, polytope = numbers(problem), problem.polytope
        tasks, prices = np.zeros(q.gamma.shape), np.zeros(q.row.shape)
        assert _efficient.efficient(q, tasks, prices)
        assert _efficient.efficiency_error(q, tasks, prices) <= 1e-9
        for size in (0.0, 1e-8, 1e-5, 1e-2):
            wrong, other = disturbed(rng, tasks, size), prices * np.exp(size * rng.standard_normal(prices.shape))
            with np.errstate(divide="ignore"):
                rows = np.log(other)[polytope.row_server, polytope.row_resource]
            known = backward_error(polytope, problem.criterion, wrong, rows).error
            found = max(_efficient.efficiency_error(q, wrong, other), _scaled.infeasibility(q, wrong))
            assert found >= 1e-3 or found >= known * (1 - 1e-6) - 1e-9  # how large large ones are nobody asks


@pytest.mark.parametrize("family", ALL)
def test_what_prices_prove_of_max_min_agrees(family: str) -> None:
    for seed in range(6):
        rng, problem = np.random.default_rng(seed), stated(fo.DRFH(), draw(family, seed, *MOST))
        q, polytope, rule = numbers(problem), problem.polytope, problem.criterion
        users, servers = q.gamma.shape
        if servers == 1 or not len(polytope.users):
            continue
        tasks, prices = np.zeros((users, servers)), np.zeros((users, *q.row.shape))
        rounds = _leximin.leximin(q, tasks, prices)
        if rounds < 0:
            continue
        for size in (0.0, 1e-9, 1e-4, 0.3):
            x = tasks * np.exp(size * rng.standard_normal((users, 1)))
            sets = prices[:rounds] * np.exp(size * rng.standard_normal(prices[:rounds].shape))
            totals = x.sum(axis=1)[polytope.users]
            level = rule.restrict(polytope.users).levels(totals)
            groups = by_level(level)
            with np.errstate(divide="ignore", invalid="ignore"):
                unit = np.where(problem.cluster.capacity > 0, sets / problem.cluster.capacity, 0.0)
            rise, to_limit = proved(polytope, x, groups, unit).rise, polytope.limit / totals - 1
            held = np.minimum(rise, np.maximum(to_limit, 0.0))
            width = max(level[group].max() / level[group].min() - 1 for group in groups)
            known = max(float(held.max()), width)
            assert _lexicographic.lexicographic_rise(q, x, sets) == pytest.approx(known, rel=1e-6, abs=1e-11)
        assert _lexicographic.ill_scaling(q) == pytest.approx(ill_scaling(polytope, rule)[0], rel=1e-9)


@pytest.mark.parametrize("mechanism", [fo.PSDSF(), fo.PerServerDRF()], ids=str)
@pytest.mark.parametrize("family", [family for family in ALL if family != "limits"])
def test_exploitabilities_agree(mechanism: Mechanism, family: str) -> None:
    game = mechanism.criterion(CLUSTER := draw(family, 0, *MOST)).scope == "game"
    for seed in range(6):
        rng, cluster = np.random.default_rng(seed), draw(family, seed, *MOST) if seed else CLUSTER
        problem = stated(mechanism, cluster.replace(max_tasks=None))
        q = numbers(problem)
        if not (q.gamma > 0).any():
            continue
        tasks = rng.random(q.gamma.shape) * q.gamma / len(q.gamma)
        known = exploitability(problem.polytope, tasks, problem.criterion)[0].max()
        found = _servers.exploitability(q, tasks, game, q.limit)
        assert found == pytest.approx(known, rel=1e-9)


def test_the_polytope_is_the_kernels_one() -> None:
    for seed in range(40):
        problem = stated(fo.DRFH(), draw("nice", seed, *MOST))
        q, polytope = numbers(problem), Polytope(problem.cluster, problem.limits)
        assert sorted(q.gamma[q.gamma > 0]) == sorted(polytope.gamma)
        assert q.row.sum() == len(polytope.row_server)
