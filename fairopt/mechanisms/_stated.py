"""What a mechanism states: a criterion, and a convex program that must not say more than the criterion does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from ..engines.reference import expressed
from ..engines.reference.program import ClusterProgram, Formulation, Program
from ..model.cluster import Cluster, expected
from ..model.criterion import Criterion
from ..model.polytope import Polytope
from ..model.problem import Problem

if TYPE_CHECKING:
    from ..engines.reference.named_problem import NamedProblem


class Stated(ABC):
    """The part of `Mechanism` that says what is fair, on which clusters, and in which program."""

    @abstractmethod
    def criterion(self, cluster: Cluster) -> Criterion:
        """What this mechanism means by fair on `cluster` (the pool, for single-pool mechanisms)."""

    @abstractmethod
    def formulate(self, program: Program) -> Formulation:
        """The mechanism as a CVXPY problem over the tasks of `program`."""

    @property
    @abstractmethod
    def judged_by_criterion(self) -> bool:
        """Does the criterion alone decide what is certified? A mechanism with its own `certify` decides itself."""

    def check(self, cluster: Cluster) -> None:  # noqa: B027 - most mechanisms are defined everywhere
        """Raise `DataError` with a remedy if the mechanism is not defined on `cluster`."""

    def prepare(self, cluster: Cluster) -> tuple[Cluster, tuple[str, ...]]:
        """The cluster that the mechanism sees, and notes on what that changed; single-pool mechanisms pool it."""
        return cluster, ()

    def problem(self, cluster: Cluster) -> NamedProblem:
        """The mechanism as a convex program on `cluster`, to change, read duals of, and solve with any solver.

        Tasks and constraints are there by name (`NamedProblem`). Lexicographic max-min is a sequence of programs: this
        is the first of them, which maximises the least level. No server or user is merged.

        Raises
        ------
        DataError
            The mechanism is not defined on this cluster, or nobody can run anything there.
        """
        from ..engines.reference.named_problem import cluster_problem

        self.check(expected(cluster))
        seen, _ = self.prepare(cluster)
        return cluster_problem(seen, self.criterion(seen), self.formulate)

    def formulation(self, program: Program) -> Formulation:
        """`formulate`, and `DataError` for a constraint that nobody would judge: the criterion does not express it."""
        found = self.formulate(program)
        if self.judged_by_criterion:
            expressed.check(program, found, str(self))
        return found

    def check_statement(self, problem: Problem) -> None:
        """The same before an engine answers that reads the criterion alone: at the first solve of this mechanism.

        Not of the package's own: tests check these, and users need not wait for CVXPY.
        """
        own = type(self).__module__.startswith(f"{__package__}.")
        if own or not self.judged_by_criterion or "_stated" in vars(self):
            return
        if len(problem.polytope.users):
            self.formulation(self.program(problem.polytope, problem.criterion))
            vars(self)["_stated"] = True  # no field: nothing that tells mechanisms apart

    def program(self, polytope: Polytope, criterion: Criterion) -> Program:
        """What `formulate` is given on a cluster."""
        return ClusterProgram(polytope, criterion)
