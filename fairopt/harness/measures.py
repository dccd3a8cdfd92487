"""The long tables of a cell: use by class of servers, curves of convergence, tasks. Lists of rows, as the store has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..errors import DataError, SolverError
from ..game.curve.two_sided import equilibrium_curve
from ..mechanisms import Mechanism
from ..mechanisms.alphapf_vds import AlphaPFVDS
from ..model.cluster import Cluster
from ..result import metrics
from ..result.allocation import Allocation, Trace
from ._values import MEASURES

Rows = list[dict[str, Any]]

#: What `violations` is about, and how many lies it tries.
VIOLATED = (
    "strategy-proofness",
    "pareto-optimality",
    "population-monotonicity",
    "sharing-incentive",
    "envy-freeness",
)
LIES = 60
#: `crossings` sees folds that begin before this many times alpha (below 1: after alpha divided by it).
BEYOND = 2.0
#: More classes than this are not classes.
_MOST_CLASSES = 64
#: Larger tables of tasks are not kept.
_MOST_TASKS = 10_000


def use(found: Allocation, classes: bool = True) -> Rows:
    """Used part per resource: class `all`, and each class of servers with the same capacities, which name it.

    Classes are left out where there are more than 64. `capacity` is that of one server, and for `all` of the cluster.
    """
    capacity, resources = found.cluster.capacity, found.cluster.resources
    frame = found.utilization.to_numpy()
    rows = [_use("all", len(capacity), name, total, part)
            for name, total, part in zip(resources, capacity.sum(axis=0), frame[-1], strict=True)]  # fmt: skip
    kinds, first, inverse = np.unique(capacity, axis=0, return_index=True, return_inverse=True)
    if not classes or len(kinds) > _MOST_CLASSES:
        return rows
    for k in np.argsort(first):
        of = np.flatnonzero(inverse.ravel() == k)
        name = " x ".join(f"{amount:.10g}" for amount in kinds[k])  # the same in every draw
        part = frame[of].mean(axis=0)  # servers of a class are equally large
        rows += [_use(name, len(of), *each)
                 for each in zip(resources, kinds[k], part, strict=True)]  # fmt: skip
    return rows


def _use(name: str, servers: int, resource: str, capacity: float, part: float) -> dict[str, Any]:
    used = float(part) if part == part else None
    return dict(zip(("class", "servers", "resource", "capacity", "utilization"),
                    (name, servers, resource, float(capacity), used), strict=True))  # fmt: skip


def curve(trace: Trace) -> Rows:
    """Every round of a game."""
    return list(trace.frame.reset_index().to_dict("records"))


def reached(trace: Trace, levels: tuple[float, ...]) -> Rows:
    """Rounds, messages and seconds until the residual stays at or below each level; None where it does not."""
    rows: Rows = []
    for level in levels:
        rounds = trace.rounds_to(level)
        row: dict[str, Any] = {"level": level, "rounds": rounds, "messages": None, "seconds": None}
        if rounds is not None:
            at = trace.frame.loc[rounds]
            row |= {"messages": float(at["messages"]), "seconds": float(at["seconds"])}
        rows.append(row)
    return rows


def measured(requested: Iterable[str], found: Allocation) -> Rows:
    """Measures of plug-ins that an experiment asks for, `NAME` or `NAME@DIGEST`."""
    names = [text.partition("@")[0] for text in requested]
    return [{"measure": name, "value": float(metrics.MEASURES[name](found))}
            for name in names if name not in MEASURES and name in metrics.MEASURES]  # fmt: skip


def violations(mechanism: Mechanism, cluster: Cluster, rng: np.random.Generator) -> Rows:
    """How much of what is due is missing, by property; largest over `LIES` lies, and over users who leave."""
    from ..properties import report  # imports much that other cells do without

    frame = report(mechanism, cluster, VIOLATED, changes=LIES, rng=rng)
    return [{"measure": name, "value": float(value)} for name, value in frame["violation"].items()]


def crossings(mechanism: Mechanism, cluster: Cluster) -> Rows:
    """Every time that the curve of equilibria through alpha = 1 has this alpha: tasks of users, and the index.

    The first is where a path from alpha = 1 comes to, the last where one comes to that begins beyond (`BEYOND`). Where
    they differ there is hysteresis.
    """
    alpha = mechanism.alpha if isinstance(mechanism, AlphaPFVDS) else np.nan
    if not 0 < alpha < np.inf or alpha == 1:
        raise DataError(
            f"{mechanism} has no crossings: they are those of alphaPF-VDS at finite alpha other than 0 and 1"
        )
    found = equilibrium_curve(cluster, [alpha, alpha * BEYOND if alpha > 1 else alpha / BEYOND])
    if found.missing:
        raise SolverError(f"the curve of equilibria was {found.missing[0]}")
    rows: Rows = []
    for k, one in enumerate(found.crossings(alpha), 1):
        tasks = zip(cluster.users, found.user_tasks(one.user_tasks), strict=True)
        rows += [{"measure": f"crossing {k}: tasks of {user}", "value": float(value)} for user, value in tasks]
        rows.append({"measure": f"crossing {k}: index", "value": float(one.index)})
    return rows


def allocated(found: Allocation) -> Rows:
    """Tasks of every user on every server; of large clusters per user only, as server `all`."""
    users, servers = found.cluster.users, found.cluster.servers
    if len(users) * len(servers) > _MOST_TASKS:
        return [{"user": user, "server": "all", "tasks": float(tasks)}
                for user, tasks in zip(users, found.user_tasks, strict=True)]  # fmt: skip
    return [
        {"user": user, "server": server, "tasks": float(found.tasks[n, i])}
        for n, user in enumerate(users)
        for i, server in enumerate(servers)
    ]
