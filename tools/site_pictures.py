"""Pictures of the site: what two users can have, and what a mechanism gives them."""

from __future__ import annotations

import dataclasses

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import fairopt as fo
from fairopt.mechanisms import Mechanism

#: One server for mechanisms of one pool; two that differ for all others.
POOL = fo.Cluster([[9, 18]], [[1, 4], [3, 1]], resources=["CPU", "RAM"], users=["A", "B"])
SERVERS = fo.Cluster([[9, 6], [4, 18]], [[1, 2], [2, 1]], resources=["CPU", "RAM"], users=["A", "B"])
#: One resource: demands end at task counts; who may run where.
ONE = fo.Cluster([[15]], [[1], [1]], resources=["CPU"], users=["A", "B"], max_tasks=[5, 13])
PLACED = fo.Cluster([[6], [9]], [[1], [1]], resources=["CPU"], users=["A", "B"], eligible=[[True, False], [True, True]])
#: Where mechanisms with an alpha go as it rises.
ALPHAS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0, 50.0, np.inf)
CAPTION = "*The shaded area is what the two users can have; the mark is what the mechanism gives them. {cluster}*"


def two_users(mechanism: Mechanism) -> tuple[Figure, str]:
    """The picture and its caption; DRF, as the usual point of comparison, is on the pictures of others."""
    cluster, other = _shown(mechanism)
    answers = [mechanism.solve(cluster)]
    if other is not None and type(mechanism) is not type(other):
        answers.append(other.solve(cluster))
    servers = " and ".join(_written(row) for row in cluster.capacity)
    demands = " and ".join(_written(row) for row in cluster.demand)
    said = f"Capacities {servers}, demands per task {demands}, of {' and '.join(cluster.resources)}."
    if cluster.constrained:
        said += " A may use the first server only."
    if np.isfinite(cluster.max_tasks).all():
        said += f" A wants at most {cluster.max_tasks[0]:g} tasks, B {cluster.max_tasks[1]:g}."
    path = []
    if "alpha" in {field.name for field in dataclasses.fields(mechanism)}:
        path = [dataclasses.replace(mechanism, alpha=alpha).solve(cluster) for alpha in ALPHAS]
        said += " The line is the path of alpha from 0 to infinity."
    return fo.plot.two_users(*answers, path=path), CAPTION.format(cluster=said)


def _shown(mechanism: Mechanism) -> tuple[fo.Cluster, Mechanism | None]:
    """A cluster that shows what the mechanism does, and the usual point of comparison there."""
    if isinstance(mechanism, fo.MaxMin):
        return ONE, None
    if isinstance(mechanism, fo.CMMF):
        return PLACED, None
    pool = mechanism.prepare(SERVERS)[0] is not SERVERS
    return (POOL, fo.DRF()) if pool else (SERVERS, fo.DRFH())


def _written(row: NDArray[np.float64]) -> str:
    return f"({', '.join(f'{value:g}' for value in row)})" if len(row) > 1 else f"{row[0]:g}"
