"""An answer where Newton steps jam: linear programs say which factors are 0, and how little can be wrong then.

Where users and servers tie exactly, or one price is e^20 times another, both factors of many products become the root
of a small number on every path to an answer, and the equations are nearly singular. The two linear programs here,
`bilinear` and `least_error`, take turns, from a candidate that is nearly an answer; the judge's own arithmetic says
which of the places that they come to is best.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ... import _clock
from ...model.criterion import Criterion
from ...model.problem import Problem
from ..base import Run, Solution
from . import bilinear, least_error
from .conditions import Conditions, Place
from .refine import in_units_of_worth


@dataclass(frozen=True)
class JammedOptions:
    """How programs take turns."""

    #: Most vertices before the first turn, each with at most the part `halved` of what was wrong before it.
    vertices: int = 4
    halved: float = 0.5
    #: Most turns. All ends where the judge finds less than the part `accepted` of the tolerance.
    turns: int = 6
    accepted: float = 0.9
    #: A vertex with more than `worse` times what was wrong is not taken.
    worse: float = 10.0
    #: Programs of the least error in one turn, the first with totals and costs that change by at most `delta`.
    programs: int = 3
    delta: float = 1e-3
    #: Where what is wrong is below `met` times what was foreseen, they may change by twice as much, at most by
    #: `longest`; else by the part `shorter`.
    met: float = 2.0
    longest: float = 0.03
    shorter: float = 0.25
    #: One that leaves more than this part of what was wrong ends a turn, and such a turn is the last.
    closer: float = 0.7


#: What is used unless a caller says otherwise.
OPTIONS = JammedOptions()


def solutions(problem: Problem, solution: Solution, tol: float, options: JammedOptions = OPTIONS) -> Iterator[Solution]:
    """Candidates from one that is nearly an answer, ever better ones; none where that is not for this method.

    First what vertices alone lead to, from where last digits may be found.
    """
    polytope, criterion = problem.polytope, problem.criterion
    log_prices = solution.log_prices
    finite = type(criterion) is Criterion and 0 < criterion.alpha < np.inf and not criterion.floor.any()
    # Where task counts bind the game has a continuum of equilibria, and this would lead to another.
    many = criterion.scope == "game" and bool(np.isfinite(polytope.limit).any())
    if log_prices is None or not finite or many or not len(polytope.users):
        return
    begun = _clock.now()
    tasks, log_rows, log_marginal, _ = in_units_of_worth(problem, solution, log_prices)
    if not (np.add.reduceat(tasks, polytope.start[:-1]) > 0).all():
        return
    conditions = Conditions(problem, log_marginal)
    start = conditions.fitted(tasks, log_rows)
    turns = _Turns(conditions, start, options.accepted * tol, options)
    for taken in (turns.vertices, turns.turns):
        if not turns.reached and taken():
            run = Run("HiGHS", "solved" if turns.reached else "not solved", 0.0, _clock.now() - begun, turns.error)
            yield replace(
                solution,
                tasks=polytope.allocation(polytope.inside(turns.best.tasks / polytope.gamma)),
                prices=None,
                log=polytope.log_unit_prices(turns.best.log_rows),
                runs=(*solution.runs, run),
            )


class _Turns:
    """The place where programs are, and the best one that they have come to."""

    def __init__(self, conditions: Conditions, start: Place, aim: float, options: JammedOptions) -> None:
        self.conditions, self.here, self.aim, self.options = conditions, start, aim, options
        self.best, self.error, self.delta = start, conditions.judged(start), options.delta

    @property
    def reached(self) -> bool:
        """Is the best place good enough?"""
        return self.error <= self.aim

    def vertices(self) -> bool:
        """Vertices alone, while each leaves half of what was wrong; is any of them better?"""
        start, error = self.here, self.error
        for _ in range(self.options.vertices):
            before = self.here.error
            if not self._vertex() or self.reached or self.here.error > self.options.halved * before:
                break
        self.here = start
        return self.error < error

    def turns(self) -> bool:
        """Which factors are 0, then the least error, in turn; has it come to a better place?"""
        before, least = self.error, np.inf
        for _ in range(self.options.turns):
            self._vertex()
            self._least()
            if self.reached or self.here.error > self.options.closer * least:
                break
            least = self.here.error
        return self.error < before

    def _vertex(self) -> bool:
        vertex = bilinear.step(self.conditions, self.here)
        if vertex is None:
            return False
        self._judged(vertex)
        if vertex.error < self.options.worse * self.here.error:
            self.here = vertex
        return True

    def _least(self) -> None:
        for _ in range(self.options.programs):
            if self.reached:
                break
            found = least_error.step(self.conditions, self.here, self.delta)
            if found is None:
                self.delta *= self.options.shorter
                continue
            there, foreseen = found
            self._judged(there)
            if there.error >= self.options.met * foreseen:
                self.delta *= self.options.shorter
                continue
            before, self.here = self.here, there
            if there.error > self.options.closer * before.error:
                break
            self.delta = min(2 * self.delta, self.options.longest)

    def _judged(self, place: Place) -> None:
        error = self.conditions.judged(place)
        if error < self.error:
            self.best, self.error = place, error
