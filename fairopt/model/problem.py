"""`Problem`: a cluster and a criterion, the input of engines and certificates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ._arrays import Array
from .cluster import Cluster
from .criterion import Criterion
from .polytope import Polytope


@dataclass(frozen=True, eq=False)
class Problem:
    """A cluster and a criterion, with cached derived data."""

    cluster: Cluster
    criterion: Criterion

    @cached_property
    def limits(self) -> Array:
        """Task limits, (users,), by the cluster and the criterion's caps."""
        return self.criterion.limits(self.cluster)

    @cached_property
    def polytope(self) -> Polytope:
        """Feasible set in normalised coordinates."""
        return Polytope(self.cluster, self.limits)
