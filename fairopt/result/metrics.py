"""Numbers about an allocation, as plain functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..base import plugins
from ..base.errors import DataError
from ..base.libraries import pd
from ..model._arrays import Array, Mask
from ..model._same import different_clusters
from .arrays import Answer

Measure = Callable[[Answer], float]
M = TypeVar("M", bound=Callable[..., float])

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
    plugins.distinct("measures", name, MEASURES.get(name), function)
    MEASURES[name] = function
    return function


def named(asked: str | Measure) -> tuple[str, Measure]:
    """A measure and its name, by either.

    Raises
    ------
    DataError
        There is no measure of this name.
    """
    if not isinstance(asked, str):
        return asked.__name__, asked
    if asked not in MEASURES:
        raise DataError(
            f"there is no measure {asked!r}; there are {', '.join(MEASURES)}, and any function of an allocation"
        )
    return asked, MEASURES[asked]


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
    return known_mean(allocation.arrays.utilization)


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


def known_mean(values: Array) -> float:
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
