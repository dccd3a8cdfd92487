"""Fairness claims of mechanisms, as data; tests search for violations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from ..base.errors import DataError
from ..model.cluster import Cluster

#: What a claim may ask of a cluster, by name.
CONDITIONS: Mapping[str, Callable[[Cluster], bool]] = MappingProxyType(
    {
        "positive demands": lambda cluster: bool((cluster.demand > 0).all()),
        "no task counts": lambda cluster: bool(np.isinf(cluster.max_tasks).all()),
        "no placement constraints": lambda cluster: not cluster.constrained,
        "equal weights": lambda cluster: bool((cluster.weight == cluster.weight[0]).all()),
        "one server": lambda cluster: len(cluster.servers) == 1,
        "one resource": lambda cluster: len(cluster.resources) == 1,
    }
)


@dataclass(frozen=True)
class Claim:
    """A property that a mechanism has, or has not, and where that stands.

    Attributes
    ----------
    property : str
        By its name in `fairopt.properties`, such as `envy-freeness`.
    holds : bool
        False: there is a counterexample among the clusters that meet the conditions.
    conditions : tuple of str
        What clusters must be like, names of `CONDITIONS`.
    parameters : mapping of str to (low, high) or None
        The mechanism's parameters for which this is claimed: both ends included, or `None` itself.
    source : str
        A proof or a counterexample: a paper and a section, or a page of docs.
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
        """True if this is claimed of a mechanism with these parameters."""
        for name, interval in self.parameters.items():
            value = getattr(mechanism, name)
            if (value is None) != (interval is None) or (interval is not None and not _within(value, *interval)):
                return False
        return True

    def met(self, cluster: Cluster) -> bool:
        """True if a cluster meets the conditions."""
        return all(CONDITIONS[name](cluster) for name in self.conditions)


def _within(value: float, low: float, high: float) -> bool:
    return low <= value <= high


def claim(
    *properties: str,
    holds: bool = True,
    conditions: tuple[str, ...] = (),
    source: str = "",
    **parameters: tuple[float, float] | None,
) -> tuple[Claim, ...]:
    """The same claim about several properties."""
    return tuple(Claim(name, holds, conditions, MappingProxyType(parameters), source) for name in properties)
