"""Tasks placed anew by a linear program, where prices and totals are right and places are not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairopt as fo
from fairopt.certificates.backward import backward_error
from fairopt.engines import native
from fairopt.engines.augmented import placement, refine
from fairopt.engines.base import Solution
from fairopt.game.equilibrium import equilibria
from fairopt.model.problem import Problem

from .test_welfare import plain

MECHANISMS = [fo.AlphaFair(0.5), fo.AlphaFair(50.0), fo.CEEI(scope="servers"), fo.AlphaPFVDS(3.0)]


def misplaced(
    seed: int, mechanism: fo.mechanisms.Mechanism, part: float = 1e-5, alike: bool = False
) -> tuple[Problem, Solution]:
    """An answer with exact prices and totals, of which a part runs on other servers than it should.

    `alike`: servers differ by .1%, and pairs are a little dear where nobody should run.
    """
    cluster = plain(seed, 8, 4)
    if alike:
        rng = np.random.default_rng(seed)
        cluster = cluster.replace(capacity=cluster.capacity[:1] * rng.uniform(0.999, 1.001, cluster.capacity.shape))
    answer = mechanism.solve(cluster, tol=1e-9)
    elsewhere = np.roll(answer.tasks, 1, axis=1)
    elsewhere *= answer.user_tasks[:, None] / elsewhere.sum(axis=1, keepdims=True)
    tasks = (1 - part) * answer.tasks + part * elsewhere
    problem = Problem(cluster, mechanism.criterion(cluster))
    return problem, Solution(tasks, None, "native", log=answer.log_prices)


def error(problem: Problem, solution: Solution) -> float:
    """The backward error of a candidate, its tasks made feasible."""
    polytope = problem.polytope
    assert solution.log_prices is not None
    tasks = polytope.allocation(polytope.inside(polytope.fractions(solution.tasks)))
    return backward_error(polytope, problem.criterion, tasks, polytope.log_row_prices(solution.log_prices)).error


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.sampled_from(MECHANISMS), st.booleans())
def test_places_are_found_again(seed: int, mechanism: fo.mechanisms.Mechanism, alike: bool) -> None:
    problem, offer = misplaced(seed, mechanism, alike=alike)
    placed = placement.of_solution(problem, offer)
    assert placed is not None
    assert alike or error(problem, offer) > 1e-7
    assert error(problem, placed) < 1e-9
    assert np.allclose(placed.tasks.sum(axis=1), offer.tasks.sum(axis=1), rtol=1e-9)
    assert placed.runs[-1].solver == "HiGHS"


def test_an_engine_that_misplaces_tasks_is_put_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where last digits are not found; a candidate that is further off is not even tried."""
    mechanism = fo.AlphaFair(3.0)
    problem, offer = misplaced(1, mechanism)
    monkeypatch.setattr(refine, "of_solution", lambda *_: None)

    def solutions(*_: Any) -> Iterator[Solution]:
        yield offer

    monkeypatch.setattr(native, "solutions", solutions)
    monkeypatch.setattr(equilibria, "solutions", lambda *_: iter(()))
    found = mechanism.solve(problem.cluster, engine="native")
    assert found.stats.solver == "HiGHS"
    assert found.certificate.residual < 1e-9
    offer = misplaced(1, mechanism, 1e-2)[1]
    monkeypatch.setattr(placement, "of_solution", lambda *_: pytest.fail("so far off it is no matter of places"))
    with pytest.raises(fo.errors.SolverError, match="misses tol"):
        mechanism.solve(problem.cluster, engine="native")
    # A declared program is judged as it is, however near.
    declared = mechanism.solve(problem.cluster, 1e-15, engine="declarative", throw=False)
    assert 1e-15 < declared.certificate.residual < 1e-4


def test_not_for_everything() -> None:
    """Max-min, answers without prices, users without tasks, and the game with task counts: another equilibrium."""
    problem, offer = misplaced(2, fo.CEEI(scope="servers"))
    drfh = fo.DRFH()
    assert placement.of_solution(Problem(problem.cluster, drfh.criterion(problem.cluster)), offer) is None
    assert placement.of_solution(problem, replace(offer, log=None)) is None
    game = fo.AlphaPFVDS(3.0)
    limited = problem.cluster.replace(max_tasks=np.full(len(problem.cluster.users), 1e6))
    for mechanism, never in ((game, True), (fo.CEEI(scope="servers"), False)):
        seen = Problem(limited, mechanism.criterion(limited))
        assert (placement.of_solution(seen, offer) is None) is never
    nothing = offer.tasks.copy()
    nothing[0] = 0.0
    assert placement.of_solution(problem, replace(offer, tasks=nothing)) is None
