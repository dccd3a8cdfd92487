"""Mechanisms of the per-server game: a formulation of one server's problem, and its equilibrium."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from ..allocation import Allocation
from ..cluster import Cluster
from ..criteria import Criterion, criterion
from ..engines.declarative import Solution
from ..errors import FairoptError, NotConverged
from ..game import declarative
from ._base import Mechanism


@dataclasses.dataclass(frozen=True)
class GameMechanism(Mechanism):
    """`formulate` states what one server maximises; an allocation is fair when no server would change its own.

    Finite task counts bind all servers together (a generalised Nash equilibrium): server i may serve n up to what
    others leave of `q_n`.
    """

    default_tol: ClassVar[float] = 1e-4

    def game(self, cluster: Cluster, alpha: float) -> Criterion:
        """The criterion: virtual dominant shares `x_n / gamma[n,i]` at every server."""
        with np.errstate(divide="ignore"):
            return criterion(cluster, 1 / cluster.gamma, alpha, "game")

    def solutions(
        self, cluster: Cluster, criterion: Criterion, engine: str, tol: float, solver: str | None
    ) -> Iterator[Solution]:
        return declarative.solutions(cluster, criterion, self.formulate, tol, solver)

    def complaint(self, best: Allocation, tol: float) -> FairoptError:
        return NotConverged(
            f"{self}: after {best.stats.rounds} solves {best.certificate} misses tol={tol:g}. Relax tol (the "
            "declarative engine of the game is a reference for small clusters at 1e-4), or take the answer flagged "
            "with throw=False"
        )
