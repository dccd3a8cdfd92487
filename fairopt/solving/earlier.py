"""What one solve leaves to the next on the same cluster."""

from __future__ import annotations

from dataclasses import dataclass

from ..model.cluster import Cluster
from ..model.merging import Merging, merge


@dataclass(frozen=True)
class Earlier:
    """What an allocation offers to the next solve: its cluster merged, and where the engine may start."""

    merging: Merging
    users: bool  # were users merged
    engine: object

    def merged(self, cluster: Cluster, users: bool) -> Merging:
        """`cluster` merged: as before if it is the same."""
        known = self.merging.original is cluster and self.users == users
        return self.merging if known else merge(cluster, users=users)
