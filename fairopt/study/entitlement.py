"""What users are entitled to, and how far an allocation is from it.

The entitlement of user n is the tasks `q_n` that a reference mechanism, by default DRFH, gives it. An allocation that
runs `x_n` tasks is compared with it in tasks (`owed`), as a fraction (`satisfaction`), in dominant shares (`distance`)
and by pairs of users (`complaints`).
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from .. import mechanisms
from ..base.errors import FairoptError
from ..model import _validate
from ..model._arrays import Array, Mask, ratio, read_only
from ..model.cluster import Cluster
from ..result.arrays import Answer
from ..result.metrics import known_mean

#: Where entitlements are from: a mechanism, an allocation, or tasks of users; None: DRFH.
Entitled = Any


class Due(Protocol):
    """A measure relative to what users are entitled to."""

    def __call__(self, allocation: Answer, by: Entitled = None) -> float:
        """The measure of an allocation."""


#: A task is missing, or too much, from this part less of it on; of tasks in fractions this part of what is due.
_NEAR = 1e-3


def entitlement(cluster: Cluster, by: Entitled = None) -> Array:
    """Tasks `q_n` that users are entitled to, wants included, (users,).

    Parameters
    ----------
    cluster : what is shared
    by : a mechanism, an allocation, or the tasks themselves, by the names of users or in their order
        By default DRFH, solved once for a cluster; NaN where it has no answer.

    Raises
    ------
    FairoptError
        The mechanism that was named has no answer.
    DataError
        What is given is no number >= 0 for every user.
    """
    if by is None:
        if "entitled" not in vars(cluster):
            try:
                due = mechanisms.get("drfh").solve(cluster).arrays.user_tasks
            except FairoptError:
                due = np.full(len(cluster.users), np.nan)
            vars(cluster)["entitled"] = read_only(due)
        return np.asarray(vars(cluster)["entitled"])
    if hasattr(by, "solve"):
        by = by.solve(cluster)
    if hasattr(by, "arrays"):
        by = by.arrays.user_tasks
    return _validate.per_user(by, "entitlements", cluster.users)


def owed(allocation: Answer, by: Entitled = None) -> tuple[Array, Array]:
    """Tasks that users are below their entitlement, and above it, two arrays (users,).

    Of whole tasks less than one is nothing, as nobody could be given it; of others a part 1e-3 of what is due.
    """
    has, due = allocation.arrays.user_tasks, entitlement(allocation.cluster, by)
    whole = bool((has == np.rint(has)).all())
    seen = 1e-9 / allocation.cluster.dominant_share_per_task  # of what the cluster could run of a user alone
    least = np.full(len(has), 1 - _NEAR) if whole else _NEAR * np.maximum(has, due) + seen
    return np.where(due - has >= least, due - has, 0.0), np.where(has - due >= least, has - due, 0.0)


def satisfactions(allocation: Answer, by: Entitled = None) -> Array:
    """`min(1, x_n / q_n)`, (users,); NaN for who is entitled to nothing."""
    return np.minimum(ratio(allocation.arrays.user_tasks, entitlement(allocation.cluster, by), np.nan), 1.0)


def complaining(allocation: Answer, by: Entitled = None) -> Mask:
    """Complaints of i about j, (users, users): i is below its entitlement, j above, on a server that i may use."""
    below, above = owed(allocation, by)
    found = np.zeros((len(below), len(below)), dtype=bool)
    i, j = np.flatnonzero(below), np.flatnonzero(above)
    if len(i) and len(j):
        runs = allocation.tasks[j] > 1e-9 * allocation.arrays.user_tasks[j, None]
        found[np.ix_(i, j)] = allocation.cluster.usable[i].astype(float) @ runs.T.astype(float) > 0
    return found


def satisfaction(allocation: Answer, by: Entitled = None) -> float:
    """Mean of `min(1, x_n / q_n)` over users who are entitled to anything; NaN where nobody is."""
    return known_mean(satisfactions(allocation, by))


def distance(allocation: Answer, by: Entitled = None) -> float:
    """To the nearest entitled state in dominant shares, `sum_n k_n |x_n - q_n| / 2`; below 1e-9 that is 0."""
    due = entitlement(allocation.cluster, by)
    some = (due > 0) | (allocation.arrays.user_tasks > 0)
    share = allocation.cluster.dominant_share_per_task[some]
    apart = float(share @ np.abs(allocation.arrays.user_tasks - due)[some]) / 2
    return 0.0 if apart < 1e-9 else apart


def complaints(allocation: Answer, by: Entitled = None) -> float:
    """Pairs of users i and j: i is below its entitlement and j above, on a server that i may use; see `owed`."""
    unknown = np.isnan(entitlement(allocation.cluster, by)).any()
    return float("nan") if unknown else float(complaining(allocation, by).sum())


#: Measures relative to what users are entitled to, which cost a solve of the reference mechanism, by name.
DUE: dict[str, Due] = {
    "satisfaction": satisfaction,
    "distance": distance,
    "complaints": complaints,
}
