"""The reference engine: solve a mechanism's program in CVXPY, scaled as its criterion allows (`scaled`).

`Leximin` objectives go to successive linear programs; concave ones to cones, with every share measured in its
max-min level. Users whose welfare is too small to be seen beside the largest are settled afterwards, one scale at a
time, while the others keep their tasks.

Successive linear programs raise the common level, freeze whom prices hold, and go on. Round: `maximise t` with `level_n
>= t` for the free and `level_n >= frozen level` for the rest. The dual of a free user's row is the part of the
bottleneck's price that falls on it; where it is positive, the level is final, since `sum_n dual_n level_n` cannot grow.
Every round freezes somebody, and what later rounds prove anew in a smaller company is not guessed from small duals in a
larger one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from ...base import clock
from ...base.errors import SolverError
from ...base.libraries import cp
from ...core.solution import Run, Solution
from ...model._arrays import Array
from ...model.criterion import Criterion
from ...model.polytope import Polytope
from ...model.problem import Problem
from . import solvers
from .program import Leximin, Program, Statement
from .scaled import ClusterProgram, statement

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

    statement: Statement
    cost: Callable[[], Array]
    unit: Array | float = 1.0  # what each level is measured in while solving
    runs: list[Run] = field(default_factory=list)

    def __post_init__(self) -> None:
        assert isinstance(self.statement.objective, Leximin)
        count = self.statement.objective.levels.shape[0]
        self._unit: Array = np.broadcast_to(np.asarray(self.unit, dtype=float), (count,))
        self.levels = cp.multiply(1 / self._unit, self.statement.objective.levels)
        self._common = cp.Variable(name="level")
        self._rising = cp.Parameter(count, nonneg=True)
        self._floor = cp.Parameter(count, nonneg=True)
        self._fixed = self.levels >= cp.multiply(self._rising, self._common) + self._floor
        self._round = cp.Problem(cp.Maximize(self._common), [*self.statement.constraints.values(), self._fixed])

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


State = Callable[[Program], Statement]


#: Users whose welfare at the margin is below this part of the largest are settled in a later solve.
_VISIBLE = 1e-7
#: Solves per solver, each measuring shares in those of the one before.
_RESCALINGS = 3


def solutions(problem: Problem, solver: str | None = None, state: State = statement) -> Iterator[Solution]:
    """Answers to a program, one per solver that fits, for a judge to take the first good one.

    `state` makes it of the unknowns; by default it is the criterion's.
    """
    criterion, polytope = problem.criterion, problem.polytope
    stated = state(ClusterProgram(polytope, criterion))
    if isinstance(stated.objective, Leximin):
        yield from _leximin(polytope, criterion, state, solver)
        return
    levels, runs = maxmin_levels(polytope, criterion)
    fits = solvers.solvers_for(cp.Problem(stated.objective, list(stated.constraints.values())), solver)
    failure: SolverError | None = None
    for name in fits:
        unit = levels
        try:
            for _ in range(_RESCALINGS):
                solution = _concave(polytope, criterion, state, unit, name, runs)
                yield solution
                # Not good enough, if we are asked on: measure shares in those just found.
                share = (solution.tasks.sum(axis=1) * criterion.share)[polytope.users]
                unit = np.maximum(share, 1e-9 * levels)
        except SolverError as error:
            failure = failure or error
    if failure is not None:
        raise failure


def _leximin(polytope: Polytope, criterion: Criterion, state: State, solver: str | None) -> Iterator[Solution]:
    """Max-min answers; if the first is not good enough, the next measure levels and tasks in those found."""
    tasks, unit = None, None
    for _ in range(_RESCALINGS):
        start = clock.now()
        program = ClusterProgram(polytope, criterion, tasks=tasks)
        problem = LeximinProblem(state(program), program.cost, program.typical_level if unit is None else unit)
        build = clock.now() - start
        levels = problem.solve(solver)
        yield _solution(polytope, program, None, problem.runs, build)
        unit = np.maximum(levels, 1e-9 * levels.max())
        if criterion.scope != "per_server":
            tasks = polytope.tasks @ polytope.inside(program.fraction.value)


def maxmin_levels(polytope: Polytope, criterion: Criterion) -> tuple[Array, list[Run]]:
    """The share of every user under max-min, (users,): the unit in which shares are near 1."""
    program = ClusterProgram(polytope, replace(criterion, alpha=np.inf))
    problem = LeximinProblem(
        Statement(Leximin(program.sigma / program.weight), program.constraints), program.cost, program.typical_level
    )
    levels = problem.solve()
    # Floors may leave nothing.
    return np.where(levels > 0, levels, program.typical_level) * program.weight, problem.runs


def _concave(
    polytope: Polytope, criterion: Criterion, state: State, unit: Array, solver: str, before: list[Run]
) -> Solution:
    fixed = np.zeros(len(polytope.users))
    runs, build, prices = list(before), 0.0, None
    own = criterion.restrict(polytope.users)
    while True:
        start = clock.now()
        program = ClusterProgram(polytope, criterion, unit, fixed, tasks=unit / own.share)
        stated = state(program)
        problem = cp.Problem(stated.objective, list(stated.constraints.values()))
        build += clock.now() - start
        runs.append(solvers.solve(problem, solver))
        if prices is None:
            prices = polytope.unit_prices(np.maximum(stated.constraints["capacity"].dual_value, 0.0))
        tasks = polytope.tasks @ polytope.inside(program.fraction.value)
        if not (tasks > 0).all():
            # alpha = 0, where nobody's welfare is too small to be seen; or an answer for the judge to reject.
            return _solution(polytope, program, prices, runs, build)
        marginal = own.log_marginal(tasks) + np.log(tasks)
        waiting = fixed == 0
        seen = waiting & (marginal >= marginal[waiting].max() + np.log(_VISIBLE))
        if not seen.any() or (waiting == seen).all():
            return _solution(polytope, program, prices, runs, build)
        fixed = np.where(seen, tasks, fixed)


def _solution(
    polytope: Polytope, program: ClusterProgram, prices: Array | None, runs: list[Run], build: float
) -> Solution:
    tasks = polytope.allocation(polytope.inside(program.fraction.value))
    return Solution(tasks, prices, "declarative", tuple(runs), build, len(runs), runs[-1].status)
