"""The problem of a mechanism as a CVXPY problem with tasks, constraints and prices by name, for users to modify."""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.errors import DataError, SolverError
from ...base.libraries import cp
from ...model._arrays import Array
from ...model.cluster import Cluster
from ...model.criterion import Criterion
from ...model.polytope import Polytope
from .declarative import LeximinProblem, maxmin_levels
from .expressions import Named, definitions, readable
from .program import Leximin, Program, Statement, Textbook
from .scaled import ClusterProgram

if TYPE_CHECKING:
    from ...result.allocation import Allocation


#: Powers of shares are ill-conditioned for alpha from `STEEP` on, and for alpha that differs from 1 by less than
#: `NEAR_ONE`: the scaled form is the default for these alphas.
STEEP, NEAR_ONE = 5.0, 1e-2


class NamedProblem(cp.Problem):  # type: ignore[misc]
    r"""A `cp.Problem` with named parts. `problem.solve()` uses any CVXPY solver, and its solution is not certified.

    `print(problem)` displays it in the notation of the papers. Variables are accessible by name in CVXPY's `var_dict`,
    parameters in `param_dict`, constraints in `named`, duals in `named[...].dual_value`.

    Attributes
    ----------
    cluster : the cluster on which the mechanism is defined (the pool, for single-pool mechanisms)
    named : dict of str to cp.Constraint
        `capacity`, (servers, resources); `placement`, `max_tasks` and `min_tasks` where applicable; `level` for
        max-min. In a scaled problem `capacity` is (rows,), relative to the capacities, and cone constraints are added.
    program : variables and expressions (`fairopt.mechanisms.reference.program.Program`)
    levels : cp.Expression or None
        Levels :math:`\sigma_n / \phi_n` if the objective is max-min. The problem then maximises the variable `level`
        subject to `levels >= level`; it is the first program of the sequence that defines lexicographic max-min, and
        `lexicographic` solves them all.
    formula : str
        LaTeX of the mechanism's definition, or ''.
    """

    def __init__(
        self,
        program: Program,
        stated: Statement,
        levels: cp.Expression | None = None,
        formula: str = "",
        welfare: bool = True,
    ) -> None:
        self.cluster, self.program, self.levels, self.formula = program.cluster, program, levels, formula
        self.named: dict[str, cp.Constraint] = dict(stated.constraints)
        self._welfare, self._answered = welfare, False
        super().__init__(stated.objective, list(self.named.values()))

    def __str__(self) -> str:
        lines = [f"maximize {readable(self.objective.args[0].name())}"]
        width = max(map(len, self.named))
        rows = [f"{name + ':':{width + 2}}{readable(str(rule))}" for name, rule in self.named.items()]
        lines += ["subject to", *(f"  {row}" for row in rows)]
        of = definitions([self.objective.args[0], *(part for rule in self.named.values() for part in rule.args)])
        shown = [f"  {name} = {text}" for name, text in of.items() if not name.startswith("x[")]
        lines += ["where", *shown] if shown else []
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        formula = f"<div>\\[{html.escape(self.formula)}\\]</div>" if self.formula else ""
        return f"{formula}<pre>{html.escape(str(self))}</pre>"

    @cached_property
    def tasks(self) -> cp.Expression:
        """Tasks :math:`x_{ni}`, (users, servers), as an expression, with entries such as `problem.tasks["ann", "s2"]`.

        Its `.value` is an array after a solve, and None before.
        """
        return Named(self.program.tasks, "tasks", (tuple(self.cluster.users), tuple(self.cluster.servers)))

    @cached_property
    def user_tasks(self) -> cp.Expression:
        """Tasks :math:`x_n` on all servers, (users,), as an expression, with entries such as `user_tasks["ann"]`."""
        return Named(cp.sum(self.program.tasks, axis=1), "user_tasks", (tuple(self.cluster.users),))

    @property
    def prices(self) -> Array | None:
        """Prices, (servers, resources): duals of `capacity`, in units of the objective per unit of the resource.

        Prices of a scaled problem are in units of the mechanism's welfare. None before a solve.
        """
        dual = self.named["capacity"].dual_value
        unit = math.exp(self.program.log_unit) if self._welfare else 1.0
        return None if dual is None else self.program.prices(dual) * unit

    def allocation(self, label: str | Cluster = "problem", *, criterion: Any = None, tol: float = 1e-6) -> Allocation:
        """Return the solution as an allocation, after solving the problem if necessary.

        Tasks are certified for feasibility only, or also for optimality under `criterion` if it is given
        (`Allocation.of`). Instead of a label, the problem's cluster may be given, pooled or not.

        Raises
        ------
        SolverError
            CVXPY's solver found no solution.
        DataError
            The solution is infeasible beyond `tol`, so that a smaller solver tolerance is needed; or the given cluster
            is not the problem's cluster.
        """
        from ...result.allocation import Allocation

        if isinstance(label, Cluster) and self.cluster in (label, label.pool()):
            label = "problem"
        if not isinstance(label, str):
            raise DataError("the problem is of another cluster: formulate it on this one")
        if self.status is None and not self._answered:
            self.solve()
        if self.tasks.value is None:
            raise SolverError(f"the problem has no answer, {self.status}: mend its constraints, or try another solver")
        return Allocation.of(self.cluster, np.maximum(self.tasks.value, 0), label, criterion=criterion, tol=tol)

    def lexicographic(self, solver: str | None = None) -> Array:
        """Solve the whole sequence of programs of lexicographic max-min, each with the constraints that were added.

        Returns
        -------
        Array (levels,)
            Levels in the order of `levels`; `tasks` has the value of an allocation that attains them.

        Raises
        ------
        DataError
            The objective is not max-min.
        SolverError
            No solver solves one of the programs.
        """
        if self.levels is None or "level" not in self.named:
            raise DataError("the objective is no max-min, so that it is one program: call solve()")
        rules = {name: rule for name, rule in self.named.items() if name != "level"}
        levels = self.levels
        problem = LeximinProblem(Statement(Leximin(levels), rules), lambda: np.zeros(levels.shape[0]))
        found = problem.solve(solver)
        self._answered = True
        return found

    def adding(self, **constraints: cp.Constraint) -> NamedProblem:
        """Return a new problem with named constraints, as `problem.adding(floor=problem.user_tasks["ann"] >= 2)`.

        Raises
        ------
        DataError
            A constraint of this name exists.
        """
        if taken := [name for name in constraints if name in self.named]:
            raise DataError(f"there is a constraint {taken[0]!r} already; choose another name")
        stated = Statement(self.objective, {**self.named, **constraints})
        return NamedProblem(self.program, stated, self.levels, self.formula, self._welfare)

    def maximising(self, objective: cp.Expression) -> NamedProblem:
        """Return a new problem with another objective, as `problem.maximising(cp.sum(problem.user_tasks))`."""
        return NamedProblem(self.program, Statement(cp.Maximize(objective), self.named), welfare=False)


def scaled_by_default(criterion: Criterion) -> bool:
    """True if the printed form is ill-conditioned: for large alpha, and for alpha near but not equal to 1."""
    alpha = criterion.alpha
    return STEEP <= alpha < math.inf or 0 < abs(alpha - 1) < NEAR_ONE


def cluster_problem(
    cluster: Cluster,
    criterion: Criterion,
    state: Callable[[Program], Statement],
    state_scaled: Callable[[Program], Statement],
    formula: str = "",
    *,
    scaled: bool | None = None,
    parameters: bool = False,
) -> NamedProblem:
    """Problem of a mechanism on a whole cluster, in printed or scaled form (`Mechanism.problem`).

    Raises `DataError` if no user can run a task, or if both `scaled` and `parameters` are true.
    """
    if parameters and scaled:
        raise DataError("units of the scaled form follow from the data, which parameters are to change: choose one")
    if parameters or not (scaled_by_default(criterion) if scaled is None else scaled):
        program = Textbook(cluster, criterion, parameters=parameters)
        return named_problem(program, state(program), formula)
    Textbook(cluster, criterion)  # raises if no user can run a task
    polytope = Polytope(cluster, criterion.limits(cluster))
    inside = ClusterProgram(polytope, criterion)
    unit = inside.typical_level * inside.weight
    if STEEP <= criterion.alpha < np.inf:
        unit = maxmin_levels(polytope, criterion)[0]
    inside = ClusterProgram(polytope, criterion, unit)
    return named_problem(inside, state_scaled(inside), formula)


def named_problem(program: Program, stated: Statement, formula: str = "") -> NamedProblem:
    """Turn a statement into a problem; max-min becomes its first program, which maximises the least level."""
    if not isinstance(stated.objective, Leximin):
        return NamedProblem(program, stated, formula=formula)
    levels, common = stated.objective.levels, cp.Variable(name="level")
    typical = getattr(program, "typical_level", 1.0)
    least = levels >= common if typical == 1 else levels / typical >= common / typical
    first = Statement(cp.Maximize(common), {**stated.constraints, "level": least})
    return NamedProblem(program, first, levels, formula)
