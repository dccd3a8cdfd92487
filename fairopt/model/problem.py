"""`Problem`: a cluster and what fair means on it, as engines and judges are given them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ._arrays import Array
from .cluster import Cluster
from .criterion import Criterion
from .polytope import Polytope


@dataclass(frozen=True, eq=False)
class Problem:
    """Built once for one solve; what is derived is made when it is first asked for, and kept."""

    cluster: Cluster
    criterion: Criterion

    @cached_property
    def limits(self) -> Array:
        """Most tasks of every user, (users,): its own number and the criterion's cap."""
        return self.criterion.limits(self.cluster)

    @cached_property
    def polytope(self) -> Polytope:
        """The feasible set in scaled coordinates."""
        return Polytope(self.cluster, self.limits)
