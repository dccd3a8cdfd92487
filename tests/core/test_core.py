"""The core: its equations, its judge and its answers, one problem or a stack, on clusters of every family."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from families import FAMILIES, STYLES, draw
from numpy.typing import NDArray

import fairopt as fo
from fairopt.certificates import backward_error, feasibility
from fairopt.core import interior, judge, newton
from fairopt.core.active_set import least
from fairopt.core.solve import finite
from fairopt.core.state import State, measured
from fairopt.core.system import OfLimits, Stack, of_some, stacked
from fairopt.mechanisms import Mechanism
from fairopt.model.problem import Problem

Array = NDArray[np.float64]
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
    monkeypatch.setattr(newton, "WHOLE", whole)
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
    for seed in range(2):
        rng, problem = np.random.default_rng(seed), stated(mechanism, family, seed, 4, 3, 3)
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


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_answers_of_every_family_are_certified(mechanism: Mechanism) -> None:
    problems = [stated(mechanism, family, seed, 8, 6) for family in ALL for seed in range(4)]
    missed = 0
    for problem in problems:
        found = finite([problem], 1e-6, 1e-10)
        with np.errstate(divide="ignore"):
            per_unit = found.log_rows[0] - np.log(problem.cluster.capacity)
        missed += not mechanism.certify(problem.cluster, found.tasks[0], per_unit)[0].passes(1e-6)
    assert missed <= 0.01 * len(problems)


def test_a_stack_has_the_answers_of_its_problems() -> None:
    """Whatever else is in it, finished earlier or later, with limits or without."""
    problems = [
        stated(fo.AlphaPFVDS(3.0), family, seed, 6, 4, 3)
        for family in ("limits", "weights", "zeros", "integers")
        for seed in range(60)
    ]
    shape = max({one.cluster.shape for one in problems}, key=[one.cluster.shape for one in problems].count)
    problems = [one for one in problems if one.cluster.shape == shape]
    assert len(problems) > 3
    together = finite(problems, 1e-9, 1e-11)
    for k, problem in enumerate(problems):
        alone = finite([problem], 1e-9, 1e-11)
        assert max(alone.certificate[0], together.certificate[k]) <= 1e-9
        np.testing.assert_allclose(together.tasks[k].sum(axis=1), alone.tasks[0].sum(axis=1), rtol=1e-6)


def test_a_singular_problem_ends_alone() -> None:
    """Of a stack in which the matrix of one is of no use the others are solved."""
    q = stacked([stated(fo.AlphaFair(2.0), "weights", 0)] * 3)
    at = interior.begun(q, 4.0)
    system = newton.System(q, at, measured(q, at, np.ones(3)))
    system.matrix[1] = 0.0
    d = system.direction(np.full(3, 0.1), None)
    alone = of_some(at, [0])
    expected = newton.System(q.some([0]), alone, measured(q.some([0]), alone, np.ones(1)))
    assert np.isnan(d.b[..., 1]).all()
    np.testing.assert_allclose(d.a[..., 0], expected.direction(np.full(1, 0.1), None).a[..., 0])


def test_the_least_solution_where_one_is_not_determined() -> None:
    found = least(np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([1.0, 1.0]))
    np.testing.assert_allclose(found, [0.5, 0.5])
    assert least(np.array([[np.nan]]), np.ones(1)) is None
