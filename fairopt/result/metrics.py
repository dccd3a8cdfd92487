"""Measures: functions of an allocation that return a number."""

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

#: Measures in every summary, in order, by name; `measure` registers further measures.
MEASURES: dict[str, Measure] = {}


def measure(function: M, name: str = "") -> M:
    """Register a function of an allocation as a measure: an entry of summaries, a column of comparisons and paths.

    The function is returned, so that `measure` is also a decorator. The default name is the name of the function.
    Sweeps store a measure if the experiment lists it: `measures = ["utilization", "my_measure"]`.

    Raises
    ------
    DataError
        Another measure or column has the same name.

    >>> import fairopt as fo
    >>> @fo.metrics.measure
    ... def most_tasks(allocation):
    ...     return allocation.user_tasks.max()
    >>> fo.DRF().solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]])).summary(["most_tasks"])["most_tasks"]
    3.0
    """
    name = name or function.__name__
    taken = {"mechanism", "status", "notes", "alpha", "certificate", "seconds", "steps"}
    if name in taken or name.startswith("use_"):
        raise DataError(f"a measure cannot be called {name!r}, as another column is; rename yours")
    plugins.distinct("measures", name, MEASURES.get(name), function)
    MEASURES[name] = function
    return function


def named(asked: str | Measure) -> tuple[str, Measure]:
    """Name and function of a measure that is given by name or as a function.

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
    r"""Total number of tasks, :math:`\sum_n x_n`.

    >>> import fairopt as fo
    >>> round(fo.metrics.tasks(fo.DRF().solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]))), 6)
    5.0
    """
    return float(allocation.arrays.user_tasks.sum())


@measure
def min_share(allocation: Answer) -> float:
    r"""Smallest weighted dominant share of users that can run tasks, dimensionless; infinite without such users.

    .. math:: \min_n k_n x_n / \phi_n, \qquad k_n = \max_r d_{nr} / C_r

    >>> import fairopt as fo
    >>> round(fo.metrics.min_share(fo.CEEI().solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]))), 3)
    0.545
    """
    return float(_levels(allocation, allocation.cluster.runnable).min(initial=np.inf))


@measure
def max_share(allocation: Answer) -> float:
    r"""Largest weighted dominant share of users that can run tasks, dimensionless; 0 without such users.

    .. math:: \max_n k_n x_n / \phi_n, \qquad k_n = \max_r d_{nr} / C_r

    >>> import fairopt as fo
    >>> round(fo.metrics.max_share(fo.CEEI().solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]))), 3)
    0.909
    """
    return float(_levels(allocation, allocation.cluster.runnable).max(initial=0.0))


def utilization(allocation: Answer) -> pd.Series:
    r"""Used fraction of the total capacity by resource, NaN where the capacity is 0 (`Allocation.utilization`).

    .. math:: \frac{1}{C_r} \sum_n x_n d_{nr}

    >>> import fairopt as fo
    >>> fo.metrics.utilization(fo.DRF().solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]))).round(3).tolist()
    [1.0, 0.778]
    """
    return allocation.utilization


def mean_utilization(allocation: Answer) -> float:
    r"""Mean utilization over the R resources with capacity, in [0, 1]; NaN if R = 0.

    .. math:: \frac{1}{R} \sum_r \frac{1}{C_r} \sum_n x_n d_{nr}

    >>> import fairopt as fo
    >>> round(fo.metrics.mean_utilization(fo.DRF().solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]))), 3)
    0.889
    """
    return known_mean(allocation.arrays.utilization)


measure(mean_utilization, "utilization")


def jain_index(values: ArrayLike) -> float:
    r"""Jain's index of n values v, from 1/n (a single positive value) to 1 (all values equal).

    .. math:: \frac{(\sum_k v_k)^2}{n \sum_k v_k^2}

    Raises
    ------
    DataError
        There are no values, or a value is negative or not finite.

    Source: Jain, Chiu, Hawe, "A quantitative measure of fairness", DEC-TR-301, 1984 (arXiv:cs/9809099).

    >>> import fairopt as fo
    >>> round(fo.metrics.jain_index([1, 1, 2]), 3)
    0.889
    """
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
    r"""Jain's index of the weighted dominant shares :math:`l_n` of the N users that can run tasks; NaN if N = 0.

    .. math:: \frac{(\sum_n l_n)^2}{N \sum_n l_n^2}, \qquad l_n = k_n x_n / \phi_n, \qquad k_n = \max_r d_{nr} / C_r

    Source: Jain, Chiu, Hawe, 1984 (`jain_index`).

    >>> import fairopt as fo
    >>> round(fo.metrics.jain(fo.CEEI().solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]))), 3)
    0.941
    """
    return _jain(_levels(allocation, allocation.cluster.runnable))


def _jain(levels: Array) -> float:
    return jain_index(levels) if len(levels) else float("nan")


def social_welfare(allocation: Answer) -> float:
    r"""Sum of dominant shares, the objective of the utilitarian mechanism.

    .. math:: W(x) = \sum_n k_n x_n, \qquad k_n = \max_r d_{nr} / C_r

    >>> import fairopt as fo
    >>> round(fo.metrics.social_welfare(fo.DRF().solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]))), 3)
    1.333
    """
    return float(allocation.arrays.dominant_shares.sum())


welfare = measure(social_welfare, "welfare")


def price_of_fairness(allocation: Answer, efficient: Answer) -> float:
    r"""Price of fairness: relative loss of welfare W (`social_welfare`) compared with an efficient allocation.

    .. math:: 1 - W(x) / W(x^*)

    Parameters
    ----------
    allocation : Allocation
        Tasks x.
    efficient : Allocation
        Tasks :math:`x^*`, usually of `Utilitarian().solve(cluster)`.

    Raises
    ------
    DataError
        The clusters differ (one may be the pool of the other), or the efficient allocation has no welfare.

    Source: Bertsimas, Farias, Trichakis, "The price of fairness", Operations Research 59(1), 2011
    (doi:10.1287/opre.1100.0865).

    >>> import fairopt as fo
    >>> cluster = fo.Cluster([[9, 18]], [[1, 4], [3, 1]])
    >>> round(fo.metrics.price_of_fairness(fo.DRF().solve(cluster), fo.Utilitarian().solve(cluster)), 3)
    0.083
    """
    different = different_clusters(allocation.cluster, efficient.cluster)
    if different:
        raise DataError(f"the two allocations are of different clusters: {different}; solve both on the same one")
    best = social_welfare(efficient)
    if not best > 0:
        raise DataError("the efficient allocation has no welfare; is anybody able to run a task?")
    return 1 - social_welfare(allocation) / best


def known_mean(values: Array) -> float:
    """Mean of the values that are not NaN; NaN if there are no such values."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _levels(allocation: Answer, some: Mask) -> Array:
    shares = np.where(allocation.arrays.nothing, 0.0, allocation.arrays.dominant_shares)
    return np.asarray(shares[some] / allocation.cluster.weight[some])


def wanting(allocation: Answer) -> Mask:
    r"""Mask (users,) of users that can run tasks and have fewer tasks :math:`x_n` than their task limits :math:`q_n`.

    .. math:: x_n < q_n (1 - 10^{-6})

    >>> import fairopt as fo
    >>> cluster = fo.Cluster([[9, 18]], [[1, 4], [3, 1]], max_tasks=[1, float("inf")])
    >>> fo.metrics.wanting(fo.DRF().solve(cluster)).tolist()
    [False, True]
    """
    cluster = allocation.cluster
    return cluster.runnable & (allocation.arrays.user_tasks < cluster.max_tasks * (1 - 1e-6))


@measure
def min_share_wanting(allocation: Answer) -> float:
    r"""Smallest weighted dominant share of users with fewer tasks than their limits (`wanting`); NaN if there are none.

    .. math:: \min_{n : x_n < q_n} k_n x_n / \phi_n, \qquad k_n = \max_r d_{nr} / C_r

    >>> import fairopt as fo
    >>> cluster = fo.Cluster([[9, 18]], [[1, 4], [3, 1]], max_tasks=[1, float("inf")])
    >>> round(fo.metrics.min_share_wanting(fo.DRF().solve(cluster)), 3)
    0.889
    """
    levels = _levels(allocation, wanting(allocation))
    return float(levels.min()) if len(levels) else float("nan")


@measure
def jain_wanting(allocation: Answer) -> float:
    r"""Jain's index of the weighted dominant shares :math:`l_n` of the set W of `wanting` users; NaN if W is empty.

    .. math:: \frac{(\sum_{n \in W} l_n)^2}{|W| \sum_{n \in W} l_n^2}, \qquad l_n = k_n x_n / \phi_n, \qquad
        k_n = \max_r d_{nr} / C_r

    >>> import fairopt as fo
    >>> cluster = fo.Cluster([[9, 18]], [[1, 4], [3, 1]], max_tasks=[1, float("inf")])
    >>> fo.metrics.jain_wanting(fo.DRF().solve(cluster))
    1.0
    """
    return _jain(_levels(allocation, wanting(allocation)))
