"""Warm starts: results of a solve that later solves on the same cluster or servers reuse."""

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
    """Allocation as a warm start for other users on the same servers: `solve(..., start=OtherUsers(answer))`.

    It applies to engines that start from prices of servers (PS-DSF); data of users are ignored.
    """

    answer: Allocation

    @property
    def earlier(self) -> Earlier | None:
        """Reusable parts, if the engine's warm start consists of prices of servers; otherwise None."""
        warm = self.answer.warm
        return warm if isinstance(warm, Earlier) and isinstance(warm.engine, ServerStart) else None


@dataclass(frozen=True)
class OtherAlphas(OtherUsers):
    """Allocation as a warm start for other alphas on the same cluster; `together` solves small problems jointly.

    If `refine` is False, candidates of small residual are accepted without refinement.
    """

    together: Together
    refine: bool = True

    @property
    def earlier(self) -> Earlier | None:
        """Reusable parts of the allocation; None if it has none.

        `together` is the warm start if the engine returned no warm start.
        """
        warm = self.answer.warm
        return replace(warm, engine=warm.engine or self.together) if isinstance(warm, Earlier) else None


@dataclass(frozen=True)
class Earlier:
    """Reusable parts of an allocation: the merged cluster, and a warm start of the engine."""

    merging: Merging
    users: bool  # True if users were merged as well as servers
    engine: object
    order: Order | None = None  # canonical order in which the engine received the problem

    def merged(self, cluster: Cluster, users: bool) -> Merging:
        """Merge `cluster`, or return the earlier merging if `cluster` is the same object as the earlier cluster."""
        known = self.merging.original is cluster and self.users == users
        return self.merging if known else merge(cluster, users=users)
