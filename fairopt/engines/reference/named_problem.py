"""A mechanism's problem for people: CVXPY's, with tasks, constraints and prices by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._libraries import cp, sp
from ...errors import DataError, SolverError
from ...model._arrays import Array, Index
from ...model.cluster import Cluster
from ...model.criterion import Criterion
from ...model.polytope import Polytope
from .declarative import maxmin_levels
from .program import ClusterProgram, Formulation, Leximin, Program

if TYPE_CHECKING:
    from ...result.allocation import Allocation


#: From this alpha on shares are measured in max-min levels.
STEEP = 10.0


@dataclass(frozen=True)
class Places:
    """Pairs and rows of a cluster in a program, and tasks (users, servers) fixed outside of it."""

    polytope: Polytope
    pairs: Index
    rows: Index
    others: Array


class NamedProblem(cp.Problem):  # type: ignore[misc]
    """A `cp.Problem`: solve it with any solver that CVXPY has, `problem.solve()`. No certificate comes with the answer.

    Variables are found by name in `var_dict` (CVXPY's), constraints in `named`, duals in `named[...].dual_value`.

    Attributes
    ----------
    cluster : the cluster that the mechanism sees (a pool, for mechanisms of one pool)
    named : dict of str to cp.Constraint
        `capacity`, (rows,): parts of capacities in use, at most 1; `max_tasks` where a limit can bind; `level` for
        max-min; `utility` and `mean` where the objective is written with cones.
    program : what it is written in: `fraction`, `user_tasks`, `share` and `weight` of those who can run anything
    levels : cp.Expression or None
        What max-min compares, `sigma_n / phi_n`. Such a problem maximises the variable `level` under `levels >= level`
        and no more: it is the first of the sequence of programs that lexicographic max-min is. The next ones hold
        those whose `level` row has a positive dual where they are.
    """

    def __init__(
        self,
        cluster: Cluster,
        formulation: Formulation,
        program: Program,
        places: Places,
        levels: cp.Expression | None = None,
    ) -> None:
        self.cluster, self.program, self.levels = cluster, program, levels
        self.named: dict[str, cp.Constraint] = dict(formulation.constraints)
        self._places = places
        super().__init__(formulation.objective, list(self.named.values()))

    @cached_property
    def tasks(self) -> cp.Expression:
        """`x[n,i]`, (users, servers), of all users: `problem.tasks.value` after `problem.solve()`."""
        at, shape = self._places, self.cluster.shape[:2]
        polytope = at.polytope
        cell = polytope.users[polytope.pair_user[at.pairs]] * shape[1] + polytope.pair_server[at.pairs]
        entries = (polytope.gamma[at.pairs], (cell, np.arange(len(cell))))
        spread = sp.csr_matrix(entries, shape=(shape[0] * shape[1], len(cell)))
        return cp.reshape(spread @ self.program.fraction, shape, order="C") + at.others

    @cached_property
    def user_tasks(self) -> cp.Expression:
        """`x_n`, (users,), of all users."""
        return cp.sum(self.tasks, axis=1)

    @property
    def prices(self) -> Array | None:
        """Duals of `capacity` per resource unit, (servers, resources), in the scale of the objective; `None` before."""
        found, at = self.named["capacity"].dual_value, self._places
        if found is None:
            return None
        rows = np.zeros(len(at.polytope.row_server))
        rows[at.rows] = np.maximum(found, 0.0)
        return at.polytope.unit_prices(rows)

    def allocation(self, label: str | Cluster = "problem", *, criterion: Any = None, tol: float = 1e-6) -> Allocation:
        """The tasks that `solve` left, as an allocation; a problem that was not solved is solved first.

        In place of a label the problem's cluster may stand, `problem.allocation(cluster)`, also where this is pooled.

        A changed problem has no criterion: its tasks are certified to be feasible, unless `criterion` is to judge them
        (`Allocation.of`).

        Raises
        ------
        SolverError
            CVXPY's solver found no answer.
        DataError
            The answer is not feasible within `tol`: solve it again with a finer one. Or a cluster is another one.
        """
        from ...result.allocation import Allocation

        if isinstance(label, Cluster) and self.cluster in (label, label.pool()):
            label = "problem"
        if not isinstance(label, str):
            raise DataError("the problem is of another cluster: formulate it on this one")
        if self.status is None:
            self.solve()
        if self.tasks.value is None:
            raise SolverError(f"the problem has no answer, {self.status}: mend its constraints, or try another solver")
        return Allocation.of(self.cluster, np.maximum(self.tasks.value, 0), label, criterion=criterion, tol=tol)

    def adding(self, **constraints: cp.Constraint) -> NamedProblem:
        """The same problem with more constraints, by name: `problem.adding(floor=problem.user_tasks >= 2)`.

        Raises
        ------
        DataError
            A constraint has this name already.
        """
        if taken := [name for name in constraints if name in self.named]:
            raise DataError(f"there is a constraint {taken[0]!r} already; choose another name")
        return self._like(Formulation(self.objective, {**self.named, **constraints}))

    def maximising(self, objective: cp.Expression) -> NamedProblem:
        """The same constraints with another objective: `problem.maximising(cp.sum(problem.user_tasks))`."""
        return self._like(Formulation(cp.Maximize(objective), self.named))

    def _like(self, formulation: Formulation) -> NamedProblem:
        return NamedProblem(self.cluster, formulation, self.program, self._places, self.levels)


def cluster_problem(
    cluster: Cluster, criterion: Criterion, formulate: Callable[[Program], Formulation]
) -> NamedProblem:
    """The problem that a mechanism formulates on a whole cluster.

    Shares are measured in a level that everyone could have, or, from alpha = 10 on, in max-min levels, which takes a
    few linear programs: without that solvers see nobody but the poorest. The objective is that of the mechanism but for
    a constant and a positive factor.
    """
    polytope = Polytope(cluster, criterion.limits(cluster))
    if not len(polytope.users):
        raise DataError("no user can run anything here, so that there is no problem; give somebody a server to run on")
    program = ClusterProgram(polytope, criterion)
    program.unit = program.typical_level * program.weight
    if STEEP <= criterion.alpha < np.inf:
        program.unit = maxmin_levels(polytope, criterion)[0]
    program.scaled_share = cp.multiply(1 / program.unit, program.share)
    everything = np.arange(len(polytope.gamma)), np.arange(len(polytope.row_server))
    places = Places(polytope, *everything, np.zeros(cluster.shape[:2]))
    return named_problem(cluster, formulate(program), program, places)


def named_problem(cluster: Cluster, formulation: Formulation, program: Program, places: Places) -> NamedProblem:
    """A formulation as a problem; for max-min its first program, which maximises the least level."""
    if not isinstance(formulation.objective, Leximin):
        return NamedProblem(cluster, formulation, program, places)
    levels, common = formulation.objective.levels, cp.Variable(name="level")
    least = levels / program.typical_level >= common / program.typical_level
    first = Formulation(cp.Maximize(common), {**formulation.constraints, "level": least})
    return NamedProblem(cluster, first, program, places, levels)
