"""Lexicographic max-min by successive linear programs: raise the common level, freeze whom prices hold, go on.

Round: `maximise t` with `level_n >= t` for the free and `level_n >= frozen level` for the rest. The dual of a free
user's row is the part of the bottleneck's price that falls on it; where it is positive, the level is final, since
`sum_n dual_n level_n` cannot grow. Every round freezes somebody, and what later rounds prove anew in a smaller
company is not guessed from small duals in a larger one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

from ..errors import SolverError
from . import convex
from .program import Formulation, Leximin

Array = NDArray[np.float64]

#: A dual counts as positive from this part of the largest one on.
_POSITIVE = 1e-3


#: Levels that could rise by less than this part, all free users together, are final.
_NOTHING = 1e-11


@dataclass
class LeximinProblem:
    """A compiled round, re-solved as its parameters change (and as parameters of the levels change)."""

    formulation: Formulation
    runs: list[convex.Run] = field(default_factory=list)

    def __post_init__(self) -> None:
        assert isinstance(self.formulation.objective, Leximin)
        self.levels = self.formulation.objective.levels
        count = self.levels.shape[0]
        constraints = list(self.formulation.constraints.values())
        self._common = cp.Variable(name="level")
        self._free = cp.Parameter(count, nonneg=True)
        self._floor = cp.Parameter(count)
        self._held = self.levels >= cp.multiply(self._free, self._common) + self._floor
        self._round = cp.Problem(cp.Maximize(self._common), [*constraints, self._held])
        excess = cp.sum(cp.multiply(self._free, self.levels - self._floor))
        self._rest = cp.Problem(cp.Maximize(excess), [*constraints, self.levels >= self._floor])

    def solve(self, solver: str | None = None, base: Array | None = None) -> Array:
        """The lexicographically largest levels; the variables hold an allocation that has them.

        `base` are levels that users have in any case. Users far above the others would each need a round only to
        find that they cannot rise: with `base`, one program after every round looks whether anybody still can.
        """
        free = np.ones(self.levels.shape[0], dtype=bool)
        floor = np.zeros(len(free))
        for _ in range(len(free)):
            self._free.value, self._floor.value = free.astype(float), np.where(free, 0.0, floor)
            self._run(self._round, solver)
            common = float(self._common.value)
            price = np.where(free, np.abs(self._held.dual_value), 0.0)
            if not price.max() > 0:
                raise SolverError("the linear program of a max-min round has no prices; try another solver")
            frozen = free & (price >= _POSITIVE * price.max())
            floor[frozen] = common
            free &= ~frozen
            if free.any() and base is not None:
                reached = np.where(free, np.maximum(common, base), floor)
                self._free.value, self._floor.value = free.astype(float), reached
                if self._run(self._rest, solver).value <= _NOTHING * float(reached[free].sum()):
                    return reached
            if not free.any():
                break
        return floor

    def _run(self, problem: cp.Problem, solver: str | None) -> convex.Run:
        self.runs.append(convex.first_success(problem, solver))
        return self.runs[-1]
