"""The core: its equations, its judge and its answers, one problem or a stack, on clusters of every family."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from families import FAMILIES, STYLES, draw

import fairopt as fo
from fairopt.certificates import backward_error, feasibility
from fairopt.core import interior, judge, newton
from fairopt.core.state import State, measured
from fairopt.core.system import OfLimits, Stack, stacked
from fairopt.mechanisms import Mechanism
from fairopt.model._arrays import Array
from fairopt.model.problem import Problem

ALL = [*FAMILIES, *STYLES]
MECHANISMS = [fo.AlphaFair(0.5), fo.CEEI(scope="servers"), fo.AlphaFair(7.0), fo.AlphaPFVDS(0.5), fo.AlphaPFVDS(20.0)]


@pytest.fixture(autouse=True)
def as_in_runs() -> Iterator[None]:
    """Pairs that cannot be used divide by zero, and nobody reads what comes of it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        yield


def stated(mechanism: Mechanism, family: str, seed: int, *most: int) -> Problem:
    seen, _ = mechanism.prepare(draw(family, seed, *most))
    return Problem(seen, mechanism.criterion(seen))


def random_state(q: Stack, rng: np.random.Generator) -> State:
    """Numbers over six decades, where pairs are kept and others eliminated."""

    def amounts(like: Array, there: Array) -> Array:
        return np.where(there, 10 ** rng.uniform(-6, 0, like.shape), 1.0)

    limited = q.limited
    return State(
        np.where(q.usable, 10 ** rng.uniform(-6, 0, q.gamma.shape), 0.0),
        amounts(q.gamma, q.usable),
        amounts(q.rows, q.rows),
        amounts(q.rows, q.rows),
        None if limited is None else np.where(limited, rng.uniform(0.1, 2, limited.shape), 0.0),
        None if limited is None else amounts(limited, limited),
        rng.uniform(-1, 1, q.rows.shape),
        q.power,
    )


@pytest.mark.parametrize("family", ALL)
@pytest.mark.parametrize("whole", [0, 1000])
def test_a_direction_solves_the_equations_whatever_is_eliminated(
    family: str, whole: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newton, "UNREDUCED", whole)
    rng = np.random.default_rng(3)
    for seed in range(3):
        q = stacked([stated(fo.AlphaPFVDS(2.0), family, seed, 8, 6, 3)])
        if not q.usable.any():
            continue
        at = random_state(q, rng)
        now = measured(q, at, np.ones(1))
        now.mu = np.full(1, 1e-6)
        system = newton.System(q, at, now)
        f, g = rng.standard_normal(now.slack.shape) * q.usable, rng.standard_normal(now.idle.shape) * q.rows
        h: OfLimits = None if at.xi is None else rng.standard_normal(at.xi.shape) * q.limited
        a, b, n = system._solved(f, g, h)
        for left, right in zip(system.product(a, b, n), (f, g, h), strict=True):
            if right is not None:
                size = max(1.0, *(float(np.abs(one).max()) for one in (a, b)))
                assert np.abs(np.where(right == 0, 0, left - right)).max() < 1e-9 * size


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_the_matrix_has_the_derivatives_of_the_conditions(mechanism: Mechanism) -> None:
    rng, small = np.random.default_rng(1), 1e-6
    q = stacked([stated(mechanism, "limits", 2, 4, 3, 2)])
    at = random_state(q, rng)
    at.z = np.where(q.usable, rng.uniform(0.1, 1, at.z.shape), 0.0)
    now = measured(q, at, np.ones(1))
    a, b = rng.standard_normal(at.z.shape) * q.usable, rng.standard_normal(at.m.shape) * q.rows
    n: OfLimits = None if at.xi is None else rng.standard_normal(at.xi.shape) * q.limited
    f, g, _ = newton.System(q, at, now).product(a, b, n)

    def conditions(by: float) -> tuple[Array, Array]:
        xi = None if at.xi is None else at.xi * (1 + by * n)
        m = at.m * np.exp(by * b)
        moved = State(at.z * np.exp(by * a), at.s, m, at.w, xi, at.left, at.log_unit, at.norm)
        return q.slacks(moved.z, moved.log_v(q), xi)[1], q.used(moved.z)

    (up, used), (down, less) = conditions(small), conditions(-small)
    np.testing.assert_allclose(((up - down) / (2 * small) - (f - at.s * a))[q.usable], 0, atol=1e-6)
    np.testing.assert_allclose((used - less) / (2 * small), g + at.w * b, atol=1e-6)


@pytest.mark.parametrize("mechanism", [*MECHANISMS, fo.AlphaPFVDS(1.0)], ids=str)
@pytest.mark.parametrize("family", ALL)
def test_the_judge_is_that_of_one_problem(mechanism: Mechanism, family: str) -> None:
    """At right and at wrong tasks and prices."""
    rng, problem = np.random.default_rng(0), stated(mechanism, family, 0, 4, 3, 3)
    q, polytope = stacked([problem]), problem.polytope
    found = interior.solved(q, 1e-8, 1e-10)
    for size in (0.0, 1e-11, 1e-8, 1e-5, 1e-2, 1.0):
        z = found.z * np.exp(size * rng.standard_normal(found.z.shape))
        z = np.where(rng.random(z.shape) < 0.1 * (size > 1e-3), 0.0, z)
        rows = found.log_rows + size * rng.standard_normal(found.log_rows.shape)
        known = backward_error(
            polytope, problem.criterion, q.tasks(z)[0], rows[polytope.row_resource, polytope.row_server, 0]
        ).error
        assert judge.backward_errors(q, z, rows)[0] == pytest.approx(known, rel=1e-6, abs=1e-14)
        infeasible = feasibility(problem.cluster, q.tasks(z)[0], problem.limits)[0]
        assert judge.infeasibility(q, z)[0] == pytest.approx(infeasible, rel=1e-9, abs=1e-15)
