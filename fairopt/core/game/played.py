"""Engine `best-response`: rounds of elastic best responses (`elastic`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...base import clock
from ...model.problem import Problem
from ..solution import Solution
from .elastic import elastic
from .equilibrium_system import EquilibriumSystem, suppress_fp_warnings
from .rounds import LARGEST_ALPHA, SETTLED, Sweeps, settle

#: Largest number of rounds between two candidates; the number begins at 1 and is doubled.
_MOST_BETWEEN = 256
#: Default number of rounds.
_MOST_ROUNDS = 5000


@suppress_fp_warnings
def solutions(problem: Problem, tol: float, most: int = _MOST_ROUNDS) -> Iterator[Solution]:
    """Candidates from the states of elastic best responses, at intervals of 1, 2, 4, ..., 256, 256, ... rounds.

    The game ends after about `most` rounds; the certificate decides which candidate is an equilibrium.
    """
    begun = clock.cpu()
    criterion, polytope = problem.criterion, problem.polytope
    method = EquilibriumSystem(polytope, criterion.weight[polytope.users], min(criterion.alpha, LARGEST_ALPHA))
    sweeps = Sweeps(method, criterion.alpha, curve=criterion.curve)
    state = sweeps.start(method.begin())
    game, rounds, interval = elastic(sweeps, state), 0, 1
    while rounds < most:
        rounds += settle(game, interval, SETTLED * tol)
        interval = min(2 * interval, _MOST_BETWEEN)
        found = sweeps.solution(state, "best responses", rounds, clock.cpu() - begun, tol)
        yield replace(found, engine="best-response")
