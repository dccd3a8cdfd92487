"""What solving asks of a mechanism."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from ..certificates import Certificate
from ..engines.base import Solution
from ..errors import FairoptError
from ..model._arrays import Array
from ..model.cluster import Cluster
from ..model.criterion import Criterion
from ..model.problem import Problem
from ..model.split import Split
from ..result.allocation import Allocation


class Solvable(Protocol):
    """See `fairopt.mechanisms.Mechanism` for what each of these is."""

    @property
    def merges_users(self) -> bool:
        """May users with proportional demands be merged?"""

    @property
    def judged_by_criterion(self) -> bool:
        """Does the certificate know the criterion alone?"""

    @property
    def met_by_criterion(self) -> bool:
        """Does every optimum of the criterion pass the certificate?"""

    def check(self, cluster: Cluster) -> None:
        """Is it defined on this cluster?"""

    def prepare(self, cluster: Cluster) -> tuple[Cluster, tuple[str, ...]]:
        """The cluster that it sees."""

    def criterion(self, cluster: Cluster) -> Criterion:
        """What fair means."""

    def engines(self, criterion: Criterion | None = None) -> tuple[str, ...]:
        """Names, the default first."""

    def tolerance(self, engine: str) -> float:
        """The default."""

    def solutions(
        self, problem: Problem, engine: str, tol: float, solver: str | None, warm: object = None
    ) -> Iterator[Solution]:
        """Candidates of an engine."""

    def stand_in(self, problem: Problem, engine: str, tol: float) -> Iterator[Solution] | None:
        """Candidates of an engine that nobody asked for."""

    def certify(
        self, cluster: Cluster, tasks: Array, log_prices: Array | None = None
    ) -> tuple[Certificate, Array | None]:
        """The certificate of any tasks."""

    def certified(self, problem: Problem, tasks: Split, log_prices: Array | None) -> tuple[Certificate, Array | None]:
        """The certificate of tasks of a problem."""

    def index(self, problem: Problem, tasks: Array, log_prices: Array | None) -> int | None:
        """The index of an equilibrium; None where there is none."""

    def neighbours(self, problem: Problem, tol: float) -> Iterator[Solution]:
        """Candidates for another equilibrium than one that is unstable."""

    def complaint(self, best: Allocation, tol: float, tried: tuple[str, ...]) -> FairoptError:
        """The error for a best answer that is not good enough."""
