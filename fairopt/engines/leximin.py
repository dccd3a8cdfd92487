"""Lexicographic max-min by successive linear programs: raise the common level, freeze whom prices hold, go on.

Round: `maximise t` with `level_n >= t` for the free and `level_n >= frozen level` for the rest. The dual of a free
user's row is the part of the bottleneck's price that falls on it; where it is positive, the level is final, since
`sum_n dual_n level_n` cannot grow. Every round freezes somebody, and what later rounds prove anew in a smaller
company is not guessed from small duals in a larger one.
"""

from __future__ import annotations

from collections.abc import Callable
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


@dataclass
class LeximinProblem:
    """A compiled round, re-solved as its parameters change (and as parameters of the levels change)."""

    formulation: Formulation
    unit: float = 1.0  # what levels are measured in while solving
    runs: list[convex.Run] = field(default_factory=list)

    def __post_init__(self) -> None:
        assert isinstance(self.formulation.objective, Leximin)
        self.levels = self.formulation.objective.levels / self.unit
        count = self.levels.shape[0]
        constraints = list(self.formulation.constraints.values())
        self._common = cp.Variable(name="level")
        self._free = cp.Parameter(count, nonneg=True)
        self._floor = cp.Parameter(count)
        self._held = self.levels >= cp.multiply(self._free, self._common) + self._floor
        self._round = cp.Problem(cp.Maximize(self._common), [*constraints, self._held])

    def solve(
        self, solver: str | None = None, base: Array | None = None, cost: Callable[[], Array] | None = None
    ) -> Array:
        """The lexicographically largest levels; the variables hold an allocation that has them.

        `base` are levels that users have in any case, and `cost` gives what raising each level costs at the present
        prices. A user above the common level meets no row that binds, but whoever would have to pay cannot rise.
        """
        free = np.ones(self.levels.shape[0], dtype=bool)
        floor = np.zeros(len(free))
        for _ in range(len(free)):
            self._free.value, self._floor.value = free.astype(float), np.where(free, 0.0, floor)
            self.runs.append(convex.first_success(self._round, solver))
            common = float(self._common.value)
            price = np.where(free, np.abs(self._held.dual_value) if cost is None else cost(), 0.0)
            if not price.max() > 0:
                raise SolverError("the linear program of a max-min round has no prices; try another solver")
            frozen = free & (price >= _POSITIVE * price.max())
            floor[frozen] = common if base is None else np.maximum(common, base[frozen] / self.unit)
            free &= ~frozen
            if not free.any():
                break
        return floor * self.unit
