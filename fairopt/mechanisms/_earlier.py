"""Warm starts: what one solve leaves to the next on the same cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..core.engines.small import Together
from ..core.solution import ServerStart
from ..model.cluster import Cluster
from ..model.merging import Merging, merge
from ..result.allocation import Allocation
from ._order import Order


@dataclass(frozen=True)
class OtherUsers:
    """An allocation as a start for other users on the same servers: `Mechanism.solve(..., start=OtherUsers(answer))`.

    Engines whose starts are prices of servers take it (PS-DSF); what they know by user is left out.
    """

    answer: Allocation

    @property
    def earlier(self) -> Earlier | None:
        """Reusable parts that are still alive; None if there are none."""
        warm = self.answer.warm
        return warm if isinstance(warm, Earlier) and isinstance(warm.engine, ServerStart) else None


@dataclass(frozen=True)
class OtherAlphas(OtherUsers):
    """An allocation as a start for other alphas on the same cluster, those of small problems answered at once."""

    together: Together

    @property
    def earlier(self) -> Earlier | None:
        """Reusable parts of the allocation, or else the stack."""
        warm = self.answer.warm
        return replace(warm, engine=warm.engine or self.together) if isinstance(warm, Earlier) else None


@dataclass(frozen=True)
class Earlier:
    """Reusable parts of an allocation: its merged cluster, and a warm start of the engine."""

    merging: Merging
    users: bool  # were users merged
    engine: object
    order: Order | None = None  # in which the engine saw it

    def merged(self, cluster: Cluster, users: bool) -> Merging:
        """`cluster` merged: as before if it is the same."""
        known = self.merging.original is cluster and self.users == users
        return self.merging if known else merge(cluster, users=users)
