"""Newton's equations of one level: what steps leave wrong, with good factors and with poor ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fairopt as fo
from fairopt.engines.maxmin import level_interior, level_newton, level_point
from fairopt.engines.maxmin.level import Level
from fairopt.engines.maxmin.options import OPTIONS
from fairopt.model.polytope import Polytope


def begun(steps: int, seed: int = 0) -> level_point.LevelPoint:
    """An interior point of 30 users on 8 servers after so many steps."""
    rng = np.random.default_rng(seed)
    cluster = fo.Cluster(np.exp(0.5 * rng.standard_normal((8, 3))), np.exp(0.5 * rng.standard_normal((30, 3))))
    polytope = Polytope(cluster, np.full(30, np.inf))
    count = len(polytope.users)
    use = polytope.pair_use / polytope.gamma[:, None]
    start = np.searchsorted(polytope.pair_user, np.arange(count + 1))
    problem = Level(start, polytope.pair_server, use, 8, np.ones(count, bool), np.zeros(count), np.full(count, np.inf))
    point = level_point.LevelPoint(problem, rng)
    for _ in range(steps):
        level_interior.advance(point, 1.0)
    return point


def predictor(newton: level_newton.LevelNewton) -> level_newton.Steps:
    """The predictor: products to zero."""
    at = newton.at
    return newton.direction(-at.y * at.z, np.where(at.row, -at.lam * at.w, 0.0), -at.p * at.v)


@pytest.mark.parametrize("rough", [False, True])
@pytest.mark.parametrize("taken", [0, 3, 6])
def test_steps_solve_the_linear_equations(taken: int, rough: bool) -> None:
    newton = level_newton.LevelNewton(begun(taken), rough)
    at, steps = newton.at, newton.refined(predictor(newton), 1e-12)
    lam = np.where(at.row, steps.lam, 0.0)
    residuals = (
        at.z * steps.y + at.y * steps.z + at.y * at.z,
        at.dual + at.cost(lam) - steps.p[at.user] - steps.z,
        at.short + np.add.reduceat(steps.y, at.start[:-1]) - at.tau * steps.t - steps.v,
        np.where(at.row, at.excess - at.priced(steps.y) - steps.w, 0.0),
        at.sum - at.tau @ steps.p,
        np.where(at.row, at.w * steps.lam + at.lam * steps.w + at.lam * at.w, 0.0),
        at.p * steps.v + at.v * steps.p + at.p * at.v,
    )
    for equation in residuals:
        assert np.abs(equation).max() < 1e-11


def test_wrong_directions_of_the_factors_cost_a_correction_each() -> None:
    """A damping far above what the matrix has in some directions: corrections alone would take hundreds."""
    options = replace(OPTIONS.newton, factors=replace(OPTIONS.newton.factors, dampings=(0.1,)))
    newton = level_newton.LevelNewton(begun(6, seed=2), rough=False, options=options)
    eigenvalues = np.linalg.eigvalsh(np.triu(newton.factors.upper).T @ np.triu(newton.factors.upper))
    assert eigenvalues[0] < 0.15  # the damping is more than the matrix itself has there
    steps = predictor(newton)
    before = np.abs(newton.left(steps)).max()
    plain = steps
    for _ in range(options.refinement.most):
        plain = level_newton.plus(plain, newton.undone(newton.left(plain)))
    refined = newton.refined(steps, 0.0)
    assert np.abs(newton.left(refined)).max() < 1e-3 * before
    assert np.abs(newton.left(refined)).max() < 0.1 * np.abs(newton.left(plain)).max()


def test_rough_factors_are_given_up_where_they_do_not_do() -> None:
    refinement = replace(OPTIONS.newton.refinement, closer=1e-4)
    options = replace(OPTIONS.newton, least_weight=1.0, refinement=refinement)  # nothing off the diagonal blocks
    newton = level_newton.LevelNewton(begun(6), rough=True, options=options)
    steps = newton.refined(predictor(newton), 1e-10)
    assert not newton.rough
    assert np.abs(newton.left(steps)).max() < 1e-10
