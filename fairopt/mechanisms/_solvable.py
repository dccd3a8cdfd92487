"""Interface of mechanisms that the solution procedure requires."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from ..base.errors import FairoptError
from ..certificates import Certificate, certify, certify_problem
from ..core.solution import Solution
from ..model._arrays import Array
from ..model.cluster import Cluster
from ..model.criterion import Criterion
from ..model.merging import Split
from ..model.problem import Problem
from ..result.allocation import Allocation


class Solvable(ABC):
    """Methods of `fairopt.mechanisms.Mechanism` that `_solve` uses, with defaults."""

    default_tol: ClassVar[float] = 1e-6
    #: True if users with proportional demands may be merged.
    merges_users: ClassVar[bool] = False

    @abstractmethod
    def criterion(self, cluster: Cluster) -> Criterion:
        """Criterion on `cluster`, which is the pool for single-pool mechanisms."""

    def check(self, cluster: Cluster) -> None:  # noqa: B027 - most mechanisms are defined everywhere
        """Raise `DataError` with a remedy if the mechanism is not defined on `cluster`."""

    def prepare(self, cluster: Cluster) -> tuple[Cluster, tuple[str, ...]]:
        """Cluster to which the mechanism applies, and notes on changes; single-pool mechanisms pool all servers."""
        return cluster, ()

    @property
    def judged_by_criterion(self) -> bool:
        """True if the certificate depends on the criterion alone; False for a mechanism with its own `certify`."""
        return type(self).certify is Solvable.certify

    @property
    def met_by_criterion(self) -> bool:
        """True if every optimum of `criterion` passes `certify`, as a mechanism with its own `certify` may state."""
        return self.judged_by_criterion

    def tolerance(self, engine: str) -> float:
        """Default tolerance of `solve` with an engine."""
        return self.default_tol

    @abstractmethod
    def engines(self, criterion: Criterion | None = None) -> tuple[str, ...]:
        """Names of the engines that support this mechanism, the default first."""

    @abstractmethod
    def solutions(
        self, problem: Problem, engine: str, tol: float, solver: str | None, warm: object = None
    ) -> Iterator[Solution]:
        """Candidate solutions of an engine."""

    @abstractmethod
    def stand_in(self, problem: Problem, engine: str, tol: float) -> Iterator[Solution] | None:
        """Candidate solutions of a fallback engine; None where it would take too long."""

    def index(self, problem: Problem, tasks: Array, log_prices: Array | None) -> int | None:
        """Index of an equilibrium at certified tasks and prices; None where it is not defined."""
        return None

    def neighbours(self, problem: Problem, tol: float) -> Iterator[Solution]:
        """Candidates for a stable equilibrium near an unstable equilibrium, whose `index` is -1."""
        return iter(())

    def certify(
        self, cluster: Cluster, tasks: Array, log_prices: Array | None = None
    ) -> tuple[Certificate, Array | None]:
        """Certificate of `tasks` on the cluster of `prepare`, and the log prices that prove it, or None."""
        return certify(cluster, tasks, self.criterion(cluster), log_prices)

    def certified(self, problem: Problem, tasks: Split, log_prices: Array | None) -> tuple[Certificate, Array | None]:
        """Certificate of the tasks of a problem, with log prices as in `certify`.

        A mechanism's own `certify` receives an array (users, servers).
        """
        if not self.judged_by_criterion:
            return self.certify(problem.cluster, tasks(), log_prices)
        return certify_problem(problem, tasks, log_prices)

    @abstractmethod
    def complaint(self, best: Allocation, tol: float, tried: tuple[str, ...]) -> FairoptError:
        """Build the error for a best solution whose certificate misses `tol`, after the engines `tried`."""
