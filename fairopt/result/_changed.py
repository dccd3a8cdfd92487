"""The tasks of an allocation's mechanism where one datum is another: for differences of certified solves."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .allocation import Allocation
    from .sensitivity import Solve

Array = NDArray[np.float64]

#: What differences of solves ask of them.
_TOL = 1e-9


def solve_of(allocation: Allocation) -> Solve | None:
    """A function of a label (kind, of whom, resource) and a step in its logarithm; `None` if nobody can solve again."""
    mechanism: Any = getattr(allocation.judge, "__self__", None)
    if not hasattr(mechanism, "solve"):
        return None

    def solved(label: tuple[str, str, str], step: float) -> Array:
        by, of, resource = label
        cluster, rule = allocation.cluster, mechanism
        if by == "alpha":
            rule = dataclasses.replace(mechanism, alpha=mechanism.alpha + step)
        else:
            cluster = changed(allocation, by, of, resource, step)
        return np.asarray(rule.solve(cluster, _TOL, start=None).user_tasks)

    return solved


def changed(allocation: Allocation, by: str, of: str, resource: str, step: float) -> Any:
    """The cluster with one datum times `exp(step)`; `counts` change all capacities of a type."""
    from ..model.merging import merge

    cluster = allocation.cluster
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
