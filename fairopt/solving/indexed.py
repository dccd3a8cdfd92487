"""The index of the equilibrium that candidates ended at; one of index -1 is left for another.

On large clusters the index is found when it is first read; then an answer of index -1 has been given.
"""

from __future__ import annotations

from functools import partial

from ..engines.base import Solution
from ..errors import SolverError
from ..model._frozen import deferred
from ..model.problem import Problem
from .candidates import Candidates
from .solvable import Solvable

_LEFT = "the engine came to an equilibrium of index -1, which best responses leave: another, of index +1, was taken"
_STAYS = "an equilibrium of index -1: best responses leave it, and there are at least two others (fo.game.equilibria)"
_LOOSE = "index 0: users' tasks are not locally unique here, as equilibria are a continuum or two of them meet"


def indexed(mechanism: Solvable, problem: Problem, found: Candidates, leave: bool) -> tuple[Solution, int | None]:
    """The answer, perhaps a stable neighbour of the one that was found, and its index, perhaps deferred."""
    assert found.best is not None
    assert found.verdict is not None
    best, verdict = found.best, found.verdict
    # Tasks that are less certain than this have no index.
    if problem.criterion.scope != "game" or verdict[0].residual > 1e-7:
        return best, None
    # Up to this number of usable pairs (user, server) an answer has its index at once.
    if found.eligible > 500:
        return best, deferred(partial(mechanism.index, problem, best.tasks, verdict[1]))
    index = mechanism.index(problem, best.tasks, verdict[1])
    if index == -1 and leave and _left(mechanism, problem, found):
        found.notes += (_LEFT,)
        return found.best, 1
    if index == -1:
        found.notes += (_STAYS,)
    elif index == 0:
        found.notes += (_LOOSE,)
    return best, index


def _left(mechanism: Solvable, problem: Problem, found: Candidates) -> bool:
    """Is there a neighbour of index +1 that reaches the tolerance? It is the best candidate then, and says its way."""
    for offer in mechanism.neighbours(problem, found.tol):
        other = Candidates(mechanism, problem, found.tol)
        try:
            reached = other.reaches(offer, found.answered)
        except SolverError:
            continue
        if not reached or other.best is None or other.verdict is None:
            continue
        if mechanism.index(problem, other.best.tasks, other.verdict[1]) == 1:
            found.best, found.verdict = other.best, other.verdict
            return True
    return False
