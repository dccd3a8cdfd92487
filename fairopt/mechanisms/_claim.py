"""Claims that a mechanism has a fairness property, as data; tests search for violations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from ..base.errors import DataError
from ..model.cluster import Cluster

#: Conditions on clusters under which claims are made, by name.
CONDITIONS: Mapping[str, Callable[[Cluster], bool]] = MappingProxyType(
    {
        "positive demands": lambda cluster: bool((cluster.demand > 0).all()),
        "no task counts": lambda cluster: bool(np.isinf(cluster.max_tasks).all()),
        "no placement constraints": lambda cluster: not cluster.constrained,
        "equal weights": lambda cluster: bool((cluster.weight == cluster.weight[0]).all()),
        "one server": lambda cluster: len(cluster.servers) == 1,
        "one resource": lambda cluster: len(cluster.resources) == 1,
        "rates": lambda cluster: cluster.rated,
        "own time": lambda cluster: cluster.rated and bool(np.isfinite(cluster.max_tasks).all()),
    }
)


@dataclass(frozen=True)
class Claim:
    """Statement that a mechanism has, or lacks, a property, with the statement's source.

    Attributes
    ----------
    property : str
        Name in `fairopt.properties`, such as `envy-freeness`.
    holds : bool
        False: a counterexample exists among the clusters that satisfy the conditions.
    conditions : tuple of str
        Conditions on clusters, keys of `CONDITIONS`.
    parameters : mapping of str to (low, high) or None
        Range of the mechanism's parameters for which the claim is made, both ends included, or the value None.
    source : str
        Proof or counterexample: a paper and a section, or a page of docs.
    """

    property: str
    holds: bool = True
    conditions: tuple[str, ...] = ()
    parameters: Mapping[str, tuple[float, float] | None] = field(default_factory=lambda: MappingProxyType({}))
    source: str = ""

    def __post_init__(self) -> None:
        if unknown := [name for name in self.conditions if name not in CONDITIONS]:
            raise DataError(f"there is no condition {unknown[0]!r}; known: {', '.join(CONDITIONS)}")

    def about(self, mechanism: object) -> bool:
        """True if the parameters of a mechanism are in the range of the claim."""
        for name, interval in self.parameters.items():
            value = getattr(mechanism, name)
            if (value is None) != (interval is None) or (interval is not None and not _within(value, *interval)):
                return False
        return True

    def met(self, cluster: Cluster) -> bool:
        """True if a cluster satisfies the conditions; clusters with rates need a condition on rates for that."""
        return all(CONDITIONS[name](cluster) for name in self.conditions) and (
            not cluster.rated or not {"rates", "own time"}.isdisjoint(self.conditions)
        )


def _within(value: float, low: float, high: float) -> bool:
    return low <= value <= high


def claim(
    *properties: str,
    holds: bool = True,
    conditions: tuple[str, ...] = (),
    source: str = "",
    **parameters: tuple[float, float] | None,
) -> tuple[Claim, ...]:
    """One `Claim` per property, with the same conditions, source and ranges of `parameters`."""
    return tuple(Claim(name, holds, conditions, MappingProxyType(parameters), source) for name in properties)
