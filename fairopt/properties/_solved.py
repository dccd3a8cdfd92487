"""Cases of a mechanism: clusters, their changes, and the tasks of both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ..errors import DataError
from ..many.solve_many import solve_many
from ..mechanisms import Mechanism
from ..model.cluster import Cluster
from ._base import Case, Deviation, Numbers, Property
from ._exact import exact_tasks

#: A cluster that a mechanism sees, and how it changes.
Instance = tuple[Cluster, Deviation | None]


def seen(mechanism: Mechanism, cluster: Cluster) -> Cluster:
    """The cluster that the mechanism shares: the pool, of single-pool mechanisms.

    Raises
    ------
    DataError
        The mechanism is not defined there.
    """
    mechanism.check(cluster)
    return mechanism.prepare(cluster)[0]


def accepted(mechanism: Mechanism, cluster: Cluster) -> bool:
    """Is the mechanism defined on the cluster?"""
    try:
        mechanism.criterion(seen(mechanism, cluster))
    except DataError:
        return False
    return True


def cases(
    mechanism: Mechanism, instances: Sequence[Instance], tol: float, known: dict[int, Numbers | None] | None = None
) -> list[Case | None]:
    """Tasks of all clusters and of their changes at once, `None` where one of both has no answer.

    `known` keeps the tasks of clusters, but for changed ones, by their identity: for the next call.
    """
    known = {} if known is None else known
    clusters: dict[int, Cluster] = {}
    for cluster, deviation in instances:
        clusters[id(cluster)] = cluster
        if deviation is not None:
            clusters[id(deviation.cluster)] = deviation.cluster
    new = {name: cluster for name, cluster in clusters.items() if name not in known}
    tasks = known | dict(zip(new, _tasks(mechanism, list(new.values()), tol), strict=True)) if new else known
    known.update((id(cluster), tasks[id(cluster)]) for cluster, _ in instances)
    found: list[Case | None] = []
    for cluster, deviation in instances:
        own = tasks[id(cluster)]
        changed = None if deviation is None else tasks[id(deviation.cluster)]
        answered = own is not None and (deviation is None or changed is not None)
        found.append(Case(cluster, own, deviation, changed, mechanism) if answered and own is not None else None)
    return found


def _tasks(mechanism: Mechanism, clusters: list[Cluster], tol: float) -> list[Numbers | None]:
    answers = solve_many(mechanism, clusters, tol=tol)
    failed = {failure.problem for failure in answers.failed}
    return [
        None if p in failed else np.maximum(answers.tasks[p, : len(cluster.users), : len(cluster.servers)], 0)
        for p, cluster in enumerate(clusters)
    ]


def solved(mechanism: Mechanism, instance: Instance, tol: float) -> Case:
    """The case by `Mechanism.solve`, each answer certified to `tol`."""
    cluster, deviation = instance
    tasks = mechanism.solve(cluster, tol).tasks
    changed = None if deviation is None else mechanism.solve(deviation.cluster, tol).tasks
    return Case(cluster, tasks, deviation, changed, mechanism)


def exact(mechanism: Mechanism, instance: Instance) -> Case | None:
    """The case without rounding, `None` where `exact_tasks` has no answer."""
    cluster, deviation = instance
    tasks = exact_tasks(mechanism, cluster)
    changed = None if deviation is None else exact_tasks(mechanism, deviation.cluster)
    if tasks is None or (deviation is not None and changed is None):
        return None
    return Case(cluster, tasks, deviation, changed, mechanism)


def speaks_of(prop: Property, instance: Instance) -> bool:
    """Does the property say something about this cluster and this change?"""
    cluster, deviation = instance
    return not prop.domain(cluster) and (deviation is None or prop.admits(cluster, deviation))


def instances(prop: Property, cluster: Cluster, rng: np.random.Generator, most: int) -> Iterable[Instance]:
    """The cluster with up to `most` changes, or on its own for a property that compares with none."""
    if not prop.compares:
        return [(cluster, None)]
    changes = prop.deviations(cluster, rng)
    return [(cluster, change) for _, change in zip(range(most), changes, strict=False)]
