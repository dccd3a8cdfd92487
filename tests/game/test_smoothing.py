"""The smoothing continuation: its tangent, and that it ends at equilibria where ties abound."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.engines.base import Solution
from fairopt.game.equilibrium import interior, smoothing
from fairopt.game.model.candidate import log_unit_prices
from fairopt.game.model.equilibrium_system import EquilibriumSystem
from fairopt.model.merging import merge
from fairopt.model.polytope import Polytope
from fairopt.model.problem import Problem
from fairopt.solving import candidates


def tied(seed: int, limits: bool = False) -> fo.Cluster:
    """Small integers, many zero demands: users and servers that tie exactly."""
    rng = np.random.default_rng(seed)
    demand = rng.integers(0, 3, (10, 3)).astype(float)
    demand[~demand.any(axis=1), 0] = 1.0
    counts = rng.choice([0.5, 5.0, np.inf], 10) if limits else None
    return fo.Cluster(rng.integers(1, 4, (5, 3)).astype(float), demand, rng.integers(1, 3, 10), max_tasks=counts)


def equations(cluster: fo.Cluster, alpha: float) -> EquilibriumSystem:
    merged = merge(cluster).cluster
    polytope = Polytope(merged, merged.max_tasks)
    return EquilibriumSystem(polytope, merged.weight[polytope.users], alpha)


@pytest.mark.parametrize("limits", [False, True])
@pytest.mark.parametrize("alpha", [0.5, 2.0, 16.0])
def test_the_tangent_is_the_derivative(alpha: float, limits: bool) -> None:
    """A step h along the curve leaves the equations wrong by h^2 only; units are those of the place."""
    problem = equations(tied(0, limits), alpha)
    here = smoothing.start_of_curve(problem, 1.0, 1e-9).here
    assert here is not None
    tangent = here.tangent
    residual = [smoothing.SmoothedSystem(problem, here.at.moved(tangent, h), here.units).merit for h in (1e-3, 1e-4)]
    assert here.merit < 1e-8
    assert residual[1] < 0.03 * residual[0] + 1e-8
    sideways = smoothing.SmoothedSystem(problem, here.at.moved((*tangent[:3], 0.0), 1e-4), here.units).merit
    assert sideways > 10 * residual[1]


@pytest.mark.parametrize("alpha", [0.5, 3.0, 8.0, 16.0, 64.0])
def test_it_ends_at_an_equilibrium(alpha: float) -> None:
    mechanism, tol = fo.AlphaPFVDS(alpha), 3e-9
    for seed in range(8):
        shared = merge(tied(seed)).cluster
        problem = equations(shared, alpha)
        with np.errstate(all="ignore"):
            points = list(smoothing.follow(problem, tol))
        best = min(points, key=lambda point: point.error)
        assert best.error <= tol, f"seed {seed}"
        polytope = problem.polytope
        tasks = polytope.allocation(polytope.inside(best.point.tasks / problem.gamma))
        found = Solution(tasks, None, "equilibrium", log=log_unit_prices(problem, best.point.log_price))
        better = candidates.with_last_digits(Problem(shared, mechanism.criterion(shared)), found)
        assert better is not None
        assert mechanism.certify(shared, better.tasks, better.log)[0].residual <= 1e-6
        if alpha <= 3:  # with ties and large alpha tasks answer strongly to what is left to exploit
            solved = mechanism.solve(shared, 1e-8)
            np.testing.assert_allclose(tasks.sum(axis=1), solved.user_tasks, rtol=1e-4)


@pytest.mark.parametrize("alpha", [8.0, 64.0])
def test_ties_are_solved(alpha: float) -> None:
    """Whole clusters of ties, through the mechanism: interior point or path, whichever ends."""
    for seed in range(10):
        assert fo.AlphaPFVDS(alpha).solve(tied(seed, limits=True)).certify().residual <= 1e-6


def test_a_budget_is_kept() -> None:
    problem = equations(tied(1), 16.0)
    with np.errstate(all="ignore"):
        points = list(smoothing.follow(problem, 0.0, budget=30))
    assert points
    assert all(point.steps <= 40 for point in points)


@pytest.mark.parametrize("alpha", [8.0, 64.0])
def test_it_starts_where_the_interior_point_is(alpha: float) -> None:
    """From a point of the interior point the same curve, by fewer systems."""
    steps = []
    for seed in range(8):
        problem = equations(tied(seed), alpha)
        with np.errstate(all="ignore"):
            *_, last = interior.run(problem, interior.FIRST, 0.0)
            assert last.midway is not None
            assert last.midway.mu <= 1e-3
            short = list(smoothing.follow(problem, 3e-7, last.midway.mu, start=last.midway))
            *_, whole = smoothing.follow(problem, 3e-7)
        assert whole.error <= 3e-7
        if short:  # else it was too far from the curve
            assert short[-1].error <= 3e-7
            steps.append((short[-1].steps, whole.steps))
    assert len(steps) >= 6
    less, more = np.sum(steps, axis=0)
    assert less < more
