"""Numbers about an allocation, as plain functions."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from .. import _plugins
from .._libraries import pd
from ..errors import DataError, FairoptError
from ..model import _validate
from ..model._arrays import Array, Mask, ratio, read_only
from ..model._same import different_clusters
from ..model.cluster import Cluster
from .arrays import Answer

Measure = Callable[[Answer], float]
M = TypeVar("M", bound=Callable[..., float])
#: Where entitlements are from: a mechanism, an allocation, or tasks of users; None: DRFH.
Entitled = Any
#: A task is missing, or too much, from this part less of it on; of tasks in fractions this part of what is due.
_NEAR = 1e-3

#: Numbers of every summary, in its order, by name. A measure is registered by being defined.
MEASURES: dict[str, Measure] = {}


def measure(function: M, name: str = "") -> M:
    """Register a function of an answer: an entry of every summary, a column of comparisons and paths, and of sweeps.

    Sweeps store it where an experiment names it: `measures = ["utilization", "my_measure"]`.

    Raises
    ------
    DataError
        The name is taken by another.
    """
    name = name or function.__name__
    taken = {"mechanism", "status", "notes", "alpha", "certificate", "seconds", "steps"}
    if name in taken or name.startswith("use_"):
        raise DataError(f"a measure cannot be called {name!r}, as another column is; rename yours")
    _plugins.distinct("measures", name, MEASURES.get(name), function)
    MEASURES[name] = function
    return function


@measure
def tasks(allocation: Answer) -> float:
    """All tasks."""
    return float(allocation.arrays.user_tasks.sum())


@measure
def min_share(allocation: Answer) -> float:
    """Smallest weighted dominant share `k_n x_n / phi_n` of those who can run anything."""
    return float(_levels(allocation, allocation.cluster.runnable).min(initial=np.inf))


@measure
def max_share(allocation: Answer) -> float:
    """Largest weighted dominant share `k_n x_n / phi_n` of those who can run anything."""
    return float(_levels(allocation, allocation.cluster.runnable).max(initial=0.0))


def utilization(allocation: Answer) -> pd.Series:
    """Used part of the whole capacity per resource, `Allocation.utilization`."""
    return allocation.utilization


def mean_utilization(allocation: Answer) -> float:
    """Mean of `utilization` over the resources that there are, in [0, 1]; NaN if there are none."""
    return _mean(allocation.arrays.utilization)


measure(mean_utilization, "utilization")


def jain_index(values: ArrayLike) -> float:
    """Jain's index `(sum v)^2 / (n sum v^2)`, from 1/n (one has all) to 1 (all equal). Source: Jain et al. 1984."""
    v = np.asarray(values, dtype=float)
    if v.size == 0 or not (np.isfinite(v) & (v >= 0)).all():
        raise DataError("Jain's index needs at least one value, all finite and >= 0")
    top = v.max()
    if top == 0:
        return 1.0
    v = v / top
    return float(v.sum() ** 2 / (v.size * (v**2).sum()))


@measure
def jain(allocation: Answer) -> float:
    """Jain's index of weighted dominant shares of those who can run anything; NaN if nobody can."""
    return _jain(_levels(allocation, allocation.cluster.runnable))


def _jain(levels: Array) -> float:
    return jain_index(levels) if len(levels) else float("nan")


def social_welfare(allocation: Answer) -> float:
    """Sum of dominant shares, `sum_n k_n x_n`: what the utilitarian mechanism maximises."""
    return float(allocation.arrays.dominant_shares.sum())


welfare = measure(social_welfare, "welfare")


def price_of_fairness(allocation: Answer, efficient: Answer) -> float:
    """Relative loss of social welfare against an efficient allocation of the same cluster.

    `1 - W(x)/W(x*)`, W = `social_welfare`; `efficient` is usually `Utilitarian().solve(cluster)`.
    Source: Bertsimas, Farias, Trichakis 2011.

    Raises
    ------
    DataError
        The clusters differ (one may be the pool of the other), or the efficient allocation has no welfare.
    """
    different = different_clusters(allocation.cluster, efficient.cluster)
    if different:
        raise DataError(f"the two allocations are of different clusters: {different}; solve both on the same one")
    best = social_welfare(efficient)
    if not best > 0:
        raise DataError("the efficient allocation has no welfare; is anybody able to run a task?")
    return 1 - social_welfare(allocation) / best


def _mean(values: Array) -> float:
    """Mean of the known values."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _levels(allocation: Answer, some: Mask) -> Array:
    return allocation.arrays.dominant_shares[some] / allocation.cluster.weight[some]


def wanting(allocation: Answer) -> Mask:
    """Users who can run something and have less than they want, (users,)."""
    cluster = allocation.cluster
    return cluster.runnable & (allocation.arrays.user_tasks < cluster.max_tasks * (1 - 1e-6))


@measure
def min_share_wanting(allocation: Answer) -> float:
    """`min_share` among users who want more; NaN where all wants are met."""
    levels = _levels(allocation, wanting(allocation))
    return float(levels.min()) if len(levels) else float("nan")


@measure
def jain_wanting(allocation: Answer) -> float:
    """`jain` among users who want more; NaN where all wants are met."""
    return _jain(_levels(allocation, wanting(allocation)))


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
            drfh = importlib.import_module("fairopt.mechanisms").get("drfh")  # by name: mechanisms stand above results
            try:
                due = drfh.solve(cluster).arrays.user_tasks
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


@measure
def satisfaction(allocation: Answer, by: Entitled = None) -> float:
    """Mean of `min(1, x_n / q_n)` over users who are entitled to anything; NaN where nobody is."""
    return _mean(satisfactions(allocation, by))


@measure
def distance(allocation: Answer, by: Entitled = None) -> float:
    """To the nearest entitled state in dominant shares, `sum_n k_n |x_n - q_n| / 2`; below 1e-9 that is 0."""
    due = entitlement(allocation.cluster, by)
    some = (due > 0) | (allocation.arrays.user_tasks > 0)
    share = allocation.cluster.dominant_share_per_task[some]
    apart = float(share @ np.abs(allocation.arrays.user_tasks - due)[some]) / 2
    return 0.0 if apart < 1e-9 else apart


@measure
def complaints(allocation: Answer, by: Entitled = None) -> float:
    """Pairs of users i and j: i is below its entitlement and j above, on a server that i may use; see `owed`."""
    unknown = np.isnan(entitlement(allocation.cluster, by)).any()
    return float("nan") if unknown else float(complaining(allocation, by).sum())


#: Measures relative to what users are entitled to.
DUE: dict[str, Callable[[Answer, Entitled], float]] = {
    "satisfaction": satisfaction,
    "distance": distance,
    "complaints": complaints,
}
