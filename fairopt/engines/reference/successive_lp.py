"""Lexicographic max-min by successive linear programs: raise the common level, freeze whom prices hold, go on.

Round: `maximise t` with `level_n >= t` for the free and `level_n >= frozen level` for the rest. The dual of a free
user's row is the part of the bottleneck's price that falls on it; where it is positive, the level is final, since
`sum_n dual_n level_n` cannot grow. Every round freezes somebody, and what later rounds prove anew in a smaller
company is not guessed from small duals in a larger one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..._libraries import cp
from ...errors import SolverError
from ...model._arrays import Array
from ..base import Run
from . import solvers
from .program import Formulation, Leximin

#: A level's row counts as priced from this part of the largest dual on.
_POSITIVE = 1e-3
#: A user's tasks count as priced from this part of the largest price of a whole capacity on.
_COSTS = 1e-9


@dataclass
class LeximinProblem:
    """A compiled round, re-solved as its parameters change (and as parameters of the levels change).

    `cost` gives, at the present prices, what each user would pay at least for all of a server, relative to the largest
    price of a whole capacity: whoever has to pay cannot rise. It tells users with a tiny part of a bottleneck, whose
    row has a tiny dual, from those who are free.
    """

    formulation: Formulation
    cost: Callable[[], Array]
    unit: Array | float = 1.0  # what each level is measured in while solving
    runs: list[Run] = field(default_factory=list)

    def __post_init__(self) -> None:
        assert isinstance(self.formulation.objective, Leximin)
        count = self.formulation.objective.levels.shape[0]
        self._unit: Array = np.broadcast_to(np.asarray(self.unit, dtype=float), (count,))
        self.levels = cp.multiply(1 / self._unit, self.formulation.objective.levels)
        self._common = cp.Variable(name="level")
        self._rising = cp.Parameter(count, nonneg=True)
        self._floor = cp.Parameter(count, nonneg=True)
        self._fixed = self.levels >= cp.multiply(self._rising, self._common) + self._floor
        self._round = cp.Problem(cp.Maximize(self._common), [*self.formulation.constraints.values(), self._fixed])

    def solve(self, solver: str | None = None) -> Array:
        """The lexicographically largest levels; the variables hold an allocation that has them.

        Of users who have more in any case, by a floor or from elsewhere, it is the common level that they exceed.
        """
        free = np.ones(len(self._unit), dtype=bool)
        levels = np.zeros(len(free))
        for _ in range(len(free)):
            here = self._unit[free].min()
            self._rising.value = np.where(free, here / self._unit, 0.0)
            self._floor.value = np.where(free, 0.0, levels / self._unit)
            self.runs.append(solvers.first_success(self._round, solver))
            common = float(self._common.value) * here
            price = np.where(free, np.abs(self._fixed.dual_value), 0.0)
            frozen = free & ((price >= _POSITIVE * price.max()) | (self.cost() > _COSTS))
            if not frozen.any():
                raise SolverError("the linear program of a max-min round has no prices; try another solver")
            levels[frozen] = common
            free &= ~frozen
            if not free.any():
                break
        return levels
