"""What bundles of others, and bundles of a lie, are worth to a user."""

from __future__ import annotations

import numpy as np

from ..model.cluster import Cluster
from ._base import Case, Numbers


def tasks_per_task(mine: Numbers, others: Numbers) -> Numbers:
    """Tasks with demand `mine[n]` that the bundle of one task with demand `others[m]` runs, (users, others).

    `min_{r: d[n,r] > 0} d[m,r] / d[n,r]`
    """
    ratio = np.full((len(mine), len(others)), np.inf, dtype=others.dtype)
    for r in range(mine.shape[1]):
        needs = mine[:, r] > 0
        ratio[needs] = np.minimum(ratio[needs], others[None, :, r] / mine[needs, r][:, None])
    return ratio


def capped(tasks: Numbers, cluster: Cluster, case: Case) -> Numbers:
    """Nobody wants more tasks than it has to run: `min(x_n, q_n)`."""
    return np.minimum(tasks, case.numbers(cluster.max_tasks))


def true_tasks(case: Case) -> Numbers:
    """Tasks of its true demand that every user runs with what the changed cluster gives it, (users,).

    `min(q_n, sum_{i: e[n,i]} x'[n,i] min_{r: d[n,r] > 0} d'[n,r] / d[n,r])`
    """
    deviation, given = case.changed
    truth, reported = case.numbers(case.cluster.demand), case.numbers(deviation.cluster.demand)
    each = np.diagonal(tasks_per_task(truth, reported))
    usable = (given * case.numbers(case.cluster.eligible.astype(float))).sum(axis=1)
    return capped(np.asarray(each * usable), case.cluster, case)


def only(users: tuple[str, ...], cluster: Cluster, due: Numbers) -> Numbers:
    """`due` of these users, 0 of the others."""
    return np.where(np.isin(cluster.users, users), due, 0 * due)
