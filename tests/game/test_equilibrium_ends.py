"""Equilibria: warm starts, task counts, both ends of alpha, and what notes say."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

import fairopt as fo
from fairopt.engines.base import Solution
from fairopt.errors import NotConverged
from fairopt.game.equilibrium import equilibria
from fairopt.game.model.equilibrium_system import EquilibriumSystem
from fairopt.game.psdsf import continuation
from fairopt.game.responses import played
from fairopt.game.selection import MAYBE_OTHERS
from fairopt.model.problem import Problem

from .test_equilibrium import cluster, solve

Array = NDArray[np.float64]


@pytest.mark.parametrize("alpha", [0.5, 2.0, 8.0])
def test_warm_starts_change_nothing(alpha: float) -> None:
    for seed in range(5):
        shared = cluster(seed, 6, 4, 3)
        near, far = solve(shared, 0.9 * alpha), solve(shared, 5 * alpha)
        expected = solve(shared, alpha, 1e-8).arrays.user_tasks
        for start in (near, far):
            answer = fo.AlphaPFVDS(alpha).solve(shared, 1e-8, start=start)
            np.testing.assert_allclose(answer.arrays.user_tasks, expected, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0, 8.0, math.inf])
def test_everybody_has_a_limit(alpha: float) -> None:
    rng, tol = np.random.default_rng(0), 1e-6 if np.isinf(alpha) else 1e-9
    bound = 0
    for seed in range(10):
        shared = cluster(seed, 5, 3, 2)
        free = solve(shared, alpha, tol).arrays.user_tasks
        limits = free * rng.choice([0.0, 0.3, 0.9, 1.5], 5)
        answer = solve(shared.replace(max_tasks=limits), alpha)
        assert (answer.arrays.user_tasks <= limits * (1 + 1e-9)).all()
        bound += int((answer.arrays.user_tasks >= limits * (1 - 1e-6)).sum())
        loose = solve(shared.replace(max_tasks=10 * shared.gamma.sum(axis=1)), alpha, tol)
        np.testing.assert_allclose(loose.arrays.user_tasks, free, rtol=1e-6)
    assert bound > 10


@pytest.mark.parametrize("alpha", [0.01, 500.0])
def test_ends_of_alpha_are_certified_or_refused(alpha: float) -> None:
    certified = 0
    for seed in range(5):
        try:
            answer = solve(cluster(seed, 5, 3, 2), alpha)
        except NotConverged:
            continue
        assert answer.certify().passes(1e-6)
        certified += 1
    assert certified >= 3


def test_ps_dsf_says_when_it_is_not_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = cluster(3, 4, 2, 2)
    shared = plain.replace(demand=plain.demand * [[1, 1], [1, 1], [0, 1], [1, 0]])  # positive ones need no path
    assert not any("limit" in note for note in fo.PSDSF().solve(shared).notes)
    monkeypatch.setattr(continuation, "solved", lambda *_: None)
    assert any("not shown to be the limit" in note for note in fo.PSDSF().solve(shared).notes)


def test_engines_leave_the_callers_warnings_alone() -> None:
    shared = cluster(0, 5, 3, 2)
    criterion = fo.AlphaPFVDS(8.0).criterion(shared)
    before = np.geterr()
    problem = Problem(shared, criterion)
    for answers in (equilibria.solutions(problem, 1e-9), played.solutions(problem, 1e-9)):
        next(answers)
        assert np.geterr() == before


@pytest.mark.parametrize("alpha", [0.0, 1.0, 8.0])
def test_no_note_of_a_failure_that_was_none(alpha: float) -> None:
    """alpha = 0 is answered by linear programs, alpha = 1 by another engine's program: neither is a failure."""
    assert fo.AlphaPFVDS(alpha).solve(cluster(0, 5, 3, 2)).notes in ((), (MAYBE_OTHERS,))


def test_who_solved_it_is_said() -> None:
    """`stats.solver` names what found the answer, not what was tried first."""
    shared = cluster(3, 5, 3, 2)
    assert solve(shared, 2.0).stats.solver == "interior point"
    assert solve(shared, math.inf).stats.solver == "linear programs"
    assert solve(shared, 2.0, engine="best-response").stats.solver == "best responses"
    problem = Problem(shared, fo.AlphaPFVDS(16.0).criterion(shared))
    method = EquilibriumSystem.of(problem.polytope, problem.criterion)
    *smoothed, last = (found.runs[-1].solver for found in equilibria._smoothed(method, 1e-6))
    assert {*smoothed} == {"smoothed path"}
    assert last == "best responses"
    assert {found.runs[-1].solver for found in equilibria._homotopy(method, 1e-6)} == {"entropy homotopy"}


def test_small_alpha_is_solved_or_the_remedy_is_named() -> None:
    """At alpha = 1e-4 tasks that differ like 1e300 are the rule, and what numbers hold is solved."""
    paper = fo.Cluster([[12, 4, 75], [8, 16, 0]], [[1, 1, 5], [1, 1 / 3, 5], [0.25, 1, 0], [1, 0.5, 0]])
    for alpha in (1e-2, 1e-3, 1e-4):
        assert solve(paper, alpha).certify().passes(1e-6)
    missed = []
    for seed in range(20):
        try:
            assert solve(cluster(seed, 6, 3, 3), 1e-4).certify().passes(1e-6)
        except NotConverged as error:
            missed.append(str(error))
    assert len(missed) <= 10
    assert all("take alpha=0" in text for text in missed)


def test_the_remedy_at_small_alpha(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether or not an engine ever misses the tolerance there."""

    def nothing(self: object, problem: Problem, *_: object, **__: object) -> Iterator[Solution]:
        yield Solution(np.full(problem.cluster.shape[:2], 1e-9), None, "nothing")

    monkeypatch.setattr(fo.AlphaPFVDS, "solutions", nothing)
    monkeypatch.setattr(fo.AlphaPFVDS, "stand_in", lambda *_: None)
    with pytest.raises(NotConverged, match=r"take alpha=0, or one from 0.01 on"):
        solve(cluster(0, 6, 3, 3), 1e-4)
