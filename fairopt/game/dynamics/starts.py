"""Starts of the distributed game: a neutral one, given tasks, or the end of another game."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DataError
from ...model import _intake
from ...model._arrays import Array
from ...model._names import short
from ...model._same import other_names
from ...model.cluster import Cluster
from ...model.polytope import Polytope
from ...result.allocation import Allocation, Trace
from ..model.equilibrium_system import EquilibriumSystem


def fair(polytope: Polytope, method: EquilibriumSystem, least_alpha: float = 0.3) -> Array:
    """Starting tasks of pairs: smoothed choices at equal prices.

    As for `max(alpha, least_alpha)`: for smaller alpha a user could be left without a task.
    """
    begun = method.at(max(method.alpha, least_alpha)).begin(0.3)
    return np.asarray(polytope.inside(begun / method.gamma) * method.gamma)


def given(cluster: Cluster, start: Any) -> Array:
    """Tasks (users, servers) of an allocation or a table to start from."""
    shape = cluster.shape[:2]
    rule = f"an allocation or tasks >= 0 of shape {shape} (users, servers)"
    if isinstance(start, Allocation) and (different := other_names(start.cluster, cluster)):
        raise DataError(f"start is of another cluster: {different}; it must be {rule}")
    try:
        tasks = start.tasks if isinstance(start, Allocation) else _intake.plain(start, "start")
    except DataError:
        raise DataError(f"start is {short(start)}; it must be {rule}") from None
    if tasks.shape != shape or not np.isfinite(tasks).all() or (tasks < 0).any():
        fault = f"a table of shape {tasks.shape}" if tasks.shape != shape else "a table with other numbers"
        raise DataError(f"start is {fault}; it must be {rule}")
    return tasks


def of_pairs(polytope: Polytope, method: EquilibriumSystem, tasks: Array) -> Array:
    """Tasks of pairs, cut back to capacities."""
    return np.asarray(polytope.inside(polytope.fractions(tasks)) * method.gamma)


def continued(start: Any, cluster: Cluster, alpha: float, order: str) -> Trace | None:
    """Trace to be continued from a start: of the same game, played in the same order."""
    if not isinstance(start, Allocation) or start.trace is None:
        return None
    same = start.criterion.alpha == alpha and start.trace.order == order and start.cluster == cluster
    return start.trace if same else None
