"""Entitlements of users, and measures of the distance of an allocation from entitlements.

The entitlement `e_n` of user n is its number of tasks under a reference mechanism, by default DRFH. An allocation of
`x_n` tasks is compared with the entitlement in tasks (`owed`), as a fraction (`satisfaction`), in dominant shares
(`distance`), and in pairs of users (`complaints`).
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from .. import mechanisms
from ..base.errors import FairoptError
from ..model import _validate
from ..model._arrays import Array, Mask, ratio, read_only
from ..model.cluster import Cluster, expected
from ..result.arrays import Answer
from ..result.metrics import known_mean

#: Reference of entitlements: a mechanism, an allocation, or tasks (users,); None: DRFH.
Entitled = Any


class Due(Protocol):
    """A measure of an allocation relative to entitlements."""

    def __call__(self, allocation: Answer, by: Entitled = None) -> float:
        """Evaluate the measure."""


#: Tolerance of `owed`: by which a difference may fall short of one task if all tasks are whole; otherwise relative.
_NEAR = 1e-3


def entitlement(cluster: Cluster, by: Entitled = None) -> Array:
    r"""Entitlements of users, in tasks (users,): the allocation of a reference mechanism M.

    .. math:: e_n = \sum_i x^M_{ni}

    Parameters
    ----------
    cluster : Cluster
    by : Mechanism, Allocation, or tasks (users,), optional
        Tasks by the names of users or in their order. Default: DRFH, solved once per cluster; NaN if the solve fails.

    Raises
    ------
    FairoptError
        The given mechanism cannot be solved.
    DataError
        The tasks are not one number >= 0 for every user.

    >>> import fairopt as fo
    >>> fo.metrics.entitlement(fo.Cluster([[9, 18]], [[1, 4], [3, 1]])).round(3).tolist()
    [3.0, 2.0]
    """
    if by is None:
        if "entitled" not in vars(cluster):
            try:
                due = mechanisms.get("drfh").solve(cluster).arrays.user_tasks
            except FairoptError:
                due = np.full(len(cluster.users), np.nan)
            vars(cluster)["entitled"] = read_only(due)
        return np.asarray(vars(cluster)["entitled"])
    expected(cluster, "entitlements")
    if hasattr(by, "solve"):
        by = by.solve(cluster)
    if hasattr(by, "arrays"):
        by = by.arrays.user_tasks
    return _validate.per_user(by, "entitlements", cluster.users)


def owed(allocation: Answer, by: Entitled = None, whole: bool | None = None) -> tuple[Array, Array]:
    r"""Shortfalls of tasks x from entitlements e, and excesses over entitlements: two arrays (users,).

    .. math:: (e_n - x_n)^+, \qquad (x_n - e_n)^+

    If tasks are `whole` (by default if all tasks of the allocation are integers), differences of less than one task are
    0, since a part of a task cannot be allocated; otherwise differences of less than 1e-3 :math:`\max(x_n, e_n)` are 0.
    `by` is the reference of entitlements (`entitlement`).

    >>> import fairopt as fo
    >>> given = fo.Allocation.of(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]), [[4], [1]])
    >>> [tasks.round(3).tolist() for tasks in fo.metrics.owed(given)]
    [[0.0, 1.0], [1.0, 0.0]]
    """
    has, due = allocation.arrays.user_tasks, entitlement(allocation.cluster, by)
    whole = bool((has == np.rint(has)).all()) if whole is None else whole
    seen = 1e-9 / allocation.cluster.dominant_share_per_task  # 1e-9 of the user's monopoly tasks
    least = np.full(len(has), 1 - _NEAR) if whole else _NEAR * np.maximum(has, due) + seen
    return np.where(due - has >= least, due - has, 0.0), np.where(has - due >= least, has - due, 0.0)


def satisfactions(allocation: Answer, by: Entitled = None) -> Array:
    r"""Satisfied fractions of entitlements e by tasks x, (users,); NaN for users with an entitlement of 0.

    .. math:: \min(1, x_n / e_n)

    `by` is the reference of entitlements (`entitlement`).

    >>> import fairopt as fo
    >>> given = fo.Allocation.of(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]), [[4], [1]])
    >>> fo.metrics.satisfactions(given).round(3).tolist()
    [1.0, 0.5]
    """
    return np.minimum(ratio(allocation.arrays.user_tasks, entitlement(allocation.cluster, by), np.nan), 1.0)


def complaining(allocation: Answer, by: Entitled = None, whole: bool | None = None) -> Mask:
    r"""Mask (users, users) of complaints of user m about user n; `by` and `whole` are the arguments of `owed`.

    .. math:: x_m < e_m, \qquad x_n > e_n, \qquad x_{ni} > 0 \text{ on some server i that m can use}

    >>> import fairopt as fo
    >>> given = fo.Allocation.of(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]), [[4], [1]])
    >>> fo.metrics.complaining(given).tolist()
    [[False, False], [True, False]]
    """
    below, above = owed(allocation, by, whole)
    found = np.zeros((len(below), len(below)), dtype=bool)
    i, j = np.flatnonzero(below), np.flatnonzero(above)
    if len(i) and len(j):
        runs = allocation.tasks[j] > 1e-9 * allocation.arrays.user_tasks[j, None]
        found[np.ix_(i, j)] = allocation.cluster.usable[i].astype(float) @ runs.T.astype(float) > 0
    return found


def satisfaction(allocation: Answer, by: Entitled = None) -> float:
    r"""Mean satisfied fraction over the set E of users with an entitlement > 0; NaN if E is empty.

    .. math:: \frac{1}{|E|} \sum_{n \in E} \min(1, x_n / e_n)

    `by` is the reference of entitlements (`entitlement`).

    >>> import fairopt as fo
    >>> given = fo.Allocation.of(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]), [[4], [1]])
    >>> fo.metrics.satisfaction(given)
    0.75
    """
    return known_mean(satisfactions(allocation, by))


def distance(allocation: Answer, by: Entitled = None) -> float:
    r"""Distance of tasks x from entitlements e in dominant shares.

    .. math:: \frac12 \sum_n k_n |x_n - e_n|, \qquad k_n = \max_r d_{nr} / C_r

    The distance is 0 if it is at most the residual of the certificate (clipped to [1e-9, 1e-6]), the accuracy of tasks.
    It is NaN if the entitlement of a user with tasks is unknown. `by` is the reference of entitlements (`entitlement`).

    >>> import fairopt as fo
    >>> given = fo.Allocation.of(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]), [[4], [1]])
    >>> round(fo.metrics.distance(given), 3)
    0.278
    """
    due = entitlement(allocation.cluster, by)
    some = (due > 0) | (allocation.arrays.user_tasks > 0)
    share = allocation.cluster.dominant_share_per_task[some]
    apart = float(share @ np.abs(allocation.arrays.user_tasks - due)[some]) / 2
    return 0.0 if apart <= min(max(allocation.certificate.residual, 1e-9), 1e-6) else apart


def complaints(allocation: Answer, by: Entitled = None) -> float:
    r"""Number of complaints, ordered pairs of users (`complaining`); NaN if an entitlement is unknown.

    .. math:: \#\{(m, n) : x_m < e_m,\ x_n > e_n,\ x_{ni} > 0 \text{ on some server i that m can use}\}

    `by` is the reference of entitlements (`entitlement`).

    >>> import fairopt as fo
    >>> given = fo.Allocation.of(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]), [[4], [1]])
    >>> fo.metrics.complaints(given)
    1.0
    """
    unknown = np.isnan(entitlement(allocation.cluster, by)).any()
    return float("nan") if unknown else float(complaining(allocation, by).sum())


#: Measures relative to entitlements, by name; they require a solve of the reference mechanism.
DUE: dict[str, Due] = {
    "satisfaction": satisfaction,
    "distance": distance,
    "complaints": complaints,
}
