"""The tasks of an allocation's mechanism where one datum is another: for differences of certified solves."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..model.cluster import Cluster
from ..model.merging import merge

Array = NDArray[np.float64]
#: Tasks (users,) where a datum (kind, of whom, resource) is larger by a step in its logarithm.
Solve = Callable[[tuple[str, str, str], float], Array]


@dataclasses.dataclass(frozen=True)
class DifferenceOptions:
    """What is asked of solves that are compared."""

    #: What differences of solves ask of them.
    tol: float = 1e-9


#: What is used unless a caller says otherwise.
OPTIONS = DifferenceOptions()


def solve_of(judge: object, seen: Cluster) -> Solve | None:
    """Solves of the mechanism whose `certify` judges; `None` if that is nobody's, as of an allocation from a file."""
    mechanism: Any = getattr(judge, "__self__", None)
    if not hasattr(mechanism, "solve"):
        return None

    def solved(label: tuple[str, str, str], step: float) -> Array:
        by, of, resource = label
        cluster, rule = seen, mechanism
        if by == "alpha":
            rule = dataclasses.replace(mechanism, alpha=mechanism.alpha + step)
        else:
            cluster = changed(seen, by, of, resource, step)
        return np.asarray(rule.solve(cluster, OPTIONS.tol, start=None).user_tasks)

    return solved


def changed(cluster: Cluster, by: str, of: str, resource: str, step: float) -> Cluster:
    """The cluster with one datum times `exp(step)`; `counts` change all capacities of a type."""
    name = {"weights": "weight", "demands": "demand", "capacities": "capacity", "max_tasks": "max_tasks"}.get(
        by, "capacity"
    )
    values = np.array(getattr(cluster, name))
    at: Any
    if by == "counts":
        merging = merge(cluster, users=False)
        at = np.flatnonzero(merging.server_of == merging.cluster.servers.index(of))
    elif by == "capacities":
        at = (cluster.servers.index(of), cluster.resources.index(resource))
    elif by == "demands":
        at = (cluster.users.index(of), cluster.resources.index(resource))
    else:
        at = cluster.users.index(of)
    values[at] *= np.exp(step)
    return cluster.replace(**{name: values})
