"""Max-min and the largest sum by vertices: judged as `certificates` does, at right and at wrong tasks and prices."""

from __future__ import annotations

import numpy as np
import pytest
from families import FAMILIES, draw

import fairopt as fo
from fairopt.certificates import backward_error, exploitability
from fairopt.certificates.leximin import proved
from fairopt.core import maxmin
from fairopt.core.judge import backward_errors
from fairopt.core.system import stacked
from fairopt.mechanisms import Mechanism
from fairopt.model.cluster import Cluster
from fairopt.model.problem import Problem


def stated(mechanism: Mechanism, cluster: Cluster) -> Problem:
    seen = mechanism.prepare(cluster)[0]
    return Problem(seen, mechanism.criterion(seen))


def disturbed(rng: np.random.Generator, values: np.ndarray, size: float) -> np.ndarray:
    """Other numbers, some of them none."""
    result = values * np.exp(size * rng.standard_normal(values.shape))
    return np.where(rng.random(values.shape) < 0.1 * (size > 1e-3), 0.0, result)


@pytest.mark.parametrize("family", FAMILIES)
def test_errors_at_alpha_0_are_those_of_one_problem(family: str) -> None:
    for seed in range(4):
        rng, problem = np.random.default_rng(seed), stated(fo.Utilitarian(), draw(family, seed, 6, 4))
        q, polytope = stacked([problem], np.zeros(1)), problem.polytope
        found = maxmin.largest_sum([problem])
        assert found.certificate[0] <= 1e-9
        prices = found.prices[0].sum(axis=0)
        for size in (0.0, 1e-8, 1e-5, 1e-2):
            wrong, other = disturbed(rng, found.tasks, size), prices * np.exp(size * rng.standard_normal(prices.shape))
            with np.errstate(divide="ignore"):
                log_rows = np.log(other)
            rows = log_rows[polytope.row_server, polytope.row_resource]
            known = backward_error(polytope, problem.criterion, wrong[0], rows).error
            ours = backward_errors(q, maxmin.fractions(q, wrong), log_rows.T[:, :, None])[0]
            assert min(ours, 1.0) == pytest.approx(min(known, 1.0), rel=1e-6, abs=1e-9)


def test_the_largest_sum_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where everybody can run something: `solve_many` looks no further."""
    vertices = maxmin._vertices
    monkeypatch.setattr(maxmin, "_vertices", lambda *given: (0.9 * vertices(*given)[0], *vertices(*given)[1:]))
    assert maxmin.largest_sum([stated(fo.Utilitarian(), draw("types", 0))]).certificate[0] > 1e-3


@pytest.mark.parametrize("family", FAMILIES)
def test_what_prices_prove_of_max_min_agrees(family: str) -> None:
    for seed in range(4):
        rng, problem = np.random.default_rng(seed), stated(fo.DRFH(), draw(family, seed, 6, 4))
        polytope, rule = problem.polytope, problem.criterion
        found = maxmin.leximin([problem])
        if len(problem.cluster.servers) == 1 or not len(polytope.users) or not np.isfinite(found.certificate[0]):
            continue
        q, rate = stacked([problem], np.ones(1)), (rule.weight / rule.share)[:, None]
        for size in (0.0, 1e-9, 1e-4, 0.3):
            x = found.tasks * np.exp(size * rng.standard_normal((1, len(rate), 1)))
            sets = found.prices * np.exp(size * rng.standard_normal(found.prices.shape))
            totals = x[0].sum(axis=1)[polytope.users]
            level = rule.restrict(polytope.users).levels(totals)
            with np.errstate(divide="ignore", invalid="ignore"):
                unit = np.where(problem.cluster.capacity > 0, sets[0] / problem.cluster.capacity, 0.0)
            rise, to_limit = proved(polytope, x[0], level, unit).rise, polytope.limit / totals - 1
            held = np.minimum(rise, np.maximum(to_limit, 0.0))
            known = float(held.max())
            assert maxmin.lexicographic_rise(q, rate, x, sets)[0] == pytest.approx(known, rel=1e-6, abs=1e-11)


@pytest.mark.parametrize("mechanism", [fo.PSDSF(), fo.PerServerDRF()], ids=str)
@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "limits"])
def test_exploitabilities_agree(mechanism: Mechanism, family: str) -> None:
    for seed in range(4):
        rng, problem = np.random.default_rng(seed), stated(mechanism, draw(family, seed, 6, 4).replace(max_tasks=None))
        q, rule = stacked([problem], np.ones(1)), problem.criterion
        tasks = rng.random(problem.cluster.gamma.shape) * problem.cluster.gamma / len(problem.cluster.users)
        known = exploitability(problem.polytope, tasks, rule)[0].max(initial=0.0)
        rate = (rule.weight[:, None] / rule.share)[:, :, None]
        found = maxmin.largest_rise(q, rate, tasks[None], rule.scope == "game")[0]
        assert found == pytest.approx(known, rel=1e-9, abs=1e-12)
