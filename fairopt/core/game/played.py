"""The engine `best-response`: rounds of elastic responses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from ...base import clock
from ...model.problem import Problem
from ..solution import Solution
from .elastic import elastic
from .equilibrium_system import EquilibriumSystem, suppress_fp_warnings
from .rounds import Sweeps

#: Rounds between two looks of the judge double up to this number.
_LONGEST = 256


@suppress_fp_warnings
def solutions(problem: Problem, tol: float, most: int = 5000) -> Iterator[Solution]:
    """Candidates from the game as played, offered now and then."""
    begun = clock.now()
    criterion, polytope = problem.criterion, problem.polytope
    method = EquilibriumSystem(polytope, criterion.weight[polytope.users], min(criterion.alpha, 1e6))
    sweeps = Sweeps(method, criterion.alpha)
    state = sweeps.start(method.begin(0.3))
    game, rounds, wait = elastic(sweeps, state), 0, 1
    while rounds < most:
        for change, *_ in islice(game, wait):
            rounds += 1
            if change <= 3e-4 * tol:
                break
        wait = min(2 * wait, _LONGEST)
        found = sweeps.solution(state, "best responses", rounds, clock.now() - begun, tol)
        yield replace(found, engine="best-response")
