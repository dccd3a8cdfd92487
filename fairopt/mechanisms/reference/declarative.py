"""The reference engine: solve a mechanism's program in CVXPY, scaled as its criterion allows (`scaled`).

`Leximin` objectives are solved by successive linear programs, concave objectives by conic programs in which every share
is divided by the user's share under max-min. The marginal welfare of a user is `x U'(x)` at its tasks x. Users whose
marginal welfare is negligible beside the largest are optimised afterwards, one scale at a time, with the tasks of the
others fixed.

Each round of max-min maximises t subject to `level_n >= t` for free users and `level_n >= fixed level` for fixed users.
If the dual of a free user's constraint is positive, its level is final, since `sum_n dual_n level_n` cannot increase.
At least one user is fixed per round. Users with small duals stay free, since a later round with fewer free users
determines reliably whether they are limited.
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

#: Duals of level constraints count as positive above this fraction of the largest dual.
_POSITIVE = 1e-3
#: A user's cost of a whole server counts as positive above this fraction of the largest price of a whole capacity.
_COSTS = 1e-9


@dataclass
class LeximinProblem:
    """Linear program of a round of max-min, compiled once and solved in every round with other values of parameters.

    `cost` returns each user's least cost of a whole server at the present prices, (levels,), relative to the largest
    price of a whole capacity. The level of a user with a positive cost cannot increase. The cost distinguishes users
    that use little of a bottleneck, whose constraints have small duals, from users that do not use the bottleneck.
    """

    statement: Statement
    cost: Callable[[], Array]
    unit: Array | float = 1.0  # normalisation of levels
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
        """Compute the lexicographically largest levels, (levels,); the variables have the values that attain them.

        For a user that exceeds the common level of its round because of a floor, or of tasks on other servers, the
        result is the common level. Raises `SolverError` if a program is not solved, or has no prices.
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


#: Fraction of the largest marginal welfare below which a user is optimised in a later solve.
_VISIBLE = 1e-7
#: Number of solves per solver, each normalised by the shares of the previous solve.
_RESCALINGS = 3


def solutions(problem: Problem, solver: str | None = None, state: State = statement) -> Iterator[Solution]:
    """Candidate solutions of a problem's convex program, from each applicable solver in turn.

    `state` formulates the program in the variables of a `Program`; by default it is derived from the criterion. If a
    solver fails, its `SolverError` is raised once all other solvers have been tried.
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
                # Another candidate is requested only if the certificate of `solution` misses the tolerance: normalise
                # by the present shares.
                share = (polytope.cluster.work(solution.tasks) * criterion.share)[polytope.users]
                unit = np.maximum(share, 1e-9 * levels)
        except SolverError as error:
            failure = failure or error
    if failure is not None:
        raise failure


def _leximin(polytope: Polytope, criterion: Criterion, state: State, solver: str | None) -> Iterator[Solution]:
    """Candidate solutions of max-min, each normalised by the levels and tasks of the previous candidate."""
    tasks, unit = None, None
    for _ in range(_RESCALINGS):
        start = clock.cpu()
        program = ClusterProgram(polytope, criterion, tasks=tasks)
        problem = LeximinProblem(state(program), program.cost, program.typical_level if unit is None else unit)
        build = clock.cpu() - start
        levels = problem.solve(solver)
        yield _solution(polytope, program, None, problem.runs, build)
        unit = np.maximum(levels, 1e-9 * levels.max())
        if criterion.scope != "per_server":
            tasks = polytope.tasks @ polytope.inside(program.fraction.value)


def maxmin_levels(polytope: Polytope, criterion: Criterion) -> tuple[Array, list[Run]]:
    """Shares of users under max-min, (users,), by which shares are normalised, and the runs that computed them.

    A level of 0, which floors may leave to a user, is replaced by the typical level.
    """
    program = ClusterProgram(polytope, replace(criterion, alpha=np.inf))
    problem = LeximinProblem(
        Statement(Leximin(program.sigma / program.weight), program.constraints), program.cost, program.typical_level
    )
    levels = problem.solve()
    # Floors may exhaust the capacity of free users, whose level is then 0.
    return np.where(levels > 0, levels, program.typical_level) * program.weight, problem.runs


def _concave(
    polytope: Polytope, criterion: Criterion, state: State, unit: Array, solver: str, before: list[Run]
) -> Solution:
    fixed = np.zeros(len(polytope.users))
    runs, build, prices = list(before), 0.0, None
    own = criterion.restrict(polytope.users)
    while True:
        start = clock.cpu()
        program = ClusterProgram(polytope, criterion, unit, fixed, tasks=unit / own.share)
        stated = state(program)
        problem = cp.Problem(stated.objective, list(stated.constraints.values()))
        build += clock.cpu() - start
        runs.append(solvers.solve(problem, solver))
        if prices is None:
            prices = polytope.unit_prices(np.maximum(stated.constraints["capacity"].dual_value, 0.0))
        tasks = polytope.tasks @ polytope.inside(program.fraction.value)
        if not (tasks > 0).all():
            # Zero tasks are optimal only at alpha = 0, where marginal utilities are constant and all users are solved
            # at once; for other alphas the certificate rejects zero tasks.
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
