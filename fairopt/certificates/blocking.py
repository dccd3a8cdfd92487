"""Bottlenecks of lexicographic max-min: the exhausted (server, resource) that bounds each user, or its task limit.

Prices prove bounds on the increase of a user's tasks (`leximin.proved`); on one server the price of a single resource
suffices. Take the prices with the least bound for user n, and the server on which a task of n costs least (among ties,
the server on which n runs most tasks). The bottleneck of n is the resource with the largest share in this cost. The
share is at least 1/M for M resources. By the inequality of `proved`, the slack of the bottleneck, relative to the use
by n, is therefore at most M times the bound for n.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..base.errors import DataError, SolverError
from ..model import polytope as polytopes
from ..model._arrays import Array, Index, Mask
from ..model.cluster import Cluster
from ..model.criterion import Criterion
from ..model.merging import Split
from ..model.polytope import Polytope
from .leximin import SAME_LEVEL, check_levels, distances, held, hints, proofs, starved
from .rational import leximin


@dataclass(frozen=True)
class Blocking:
    r"""Bottlenecks of users.

    Attributes
    ----------
    level : (users,)
        :math:`\sigma_n / \phi_n`, dimensionless.
    bound : (users,)
        Proved bound on the relative increase of a user's tasks at no loss to users at or below its level.
    held_by : (users,)
        What bounds the user: `capacity`, `task limit`, or `nowhere to run`; `unproved` if `bound` exceeds the
        tolerance.
    server, resource : (users,)
        Indices of the bottleneck, -1 unless the user is bound by `capacity`.

    >>> import fairopt as fo
    >>> cluster = fo.Cluster([[9, 18]], [[1, 4], [3, 1]])
    >>> found, rule = fo.DRF().solve(cluster), fo.DRF().criterion(cluster)
    >>> found = fo.certificates.blocking(cluster, found.tasks, rule, None, 1e-6)
    >>> found.held_by.tolist(), found.resource.tolist()
    (['capacity', 'capacity'], [0, 0])
    """

    level: Array
    bound: Array
    held_by: NDArray[np.str_]
    server: Index
    resource: Index


def blocking(
    cluster: Cluster, tasks: Array | Split, criterion: Criterion, prices: Array | None, tol: float
) -> Blocking:
    """Find and prove the bottleneck of every user of a feasible lexicographic max-min allocation.

    Linear programs are solved for users whose bounds at the given prices exceed the tolerance. Proportional servers are
    exhausted together, and the first of them represents them.

    Parameters
    ----------
    cluster : Cluster
    tasks : (users, servers)
        An array, or tasks split over merged servers.
    criterion : Criterion
        Lexicographic max-min (alpha infinite) in the scope `pool` or `servers`.
    prices : (levels, servers, resources) or None
        Prices per unit of resource.
    tol : float
        Relative increase of tasks that counts as zero.

    Returns
    -------
    Blocking
        Users whose bound exceeds `tol` are `unproved`, and have no bottleneck.

    Raises
    ------
    DataError
        The criterion is not lexicographic max-min over a pool or servers, a user that can run tasks has none, or task
        limits can bind for users whose rates differ.
    SolverError
        No prices are given, and there are too many pairs for linear programs.

    Source: defined here; the bound is proved in the docstring of `fairopt.certificates.leximin.proved`.

    >>> import fairopt as fo
    >>> cluster = fo.Cluster([[9, 18]], [[1, 4], [3, 1]], max_tasks=[1, float("inf")])
    >>> found, rule = fo.DRF().solve(cluster), fo.DRF().criterion(cluster)
    >>> found = fo.certificates.blocking(cluster, found.tasks, rule, None, 1e-6)
    >>> found.held_by.tolist()
    ['task limit', 'capacity']
    """
    check_levels(criterion)
    split, limits = Split.from_answer(cluster, tasks), criterion.limits(cluster)
    first = split.merging.first_server
    polytope = Polytope(split.merging.cluster, limits)
    users, totals = polytope.users, split.work
    if len(polytope.timed):
        raise DataError("limiting resources are not determined if task limits of users with different rates can bind")
    if (none := starved(polytope, totals[users])).any():
        n = users[int(none.argmax())]
        raise DataError(f"user {cluster.users[n]!r} has no tasks, although it could run some: this is not max-min")
    count = len(cluster.users)
    held_by = np.where(limits > 0, "nowhere to run", "task limit")
    level, bound = np.zeros(count), np.zeros(count)
    server, resource = np.full(count, -1), np.full(count, -1)
    own, x = criterion.restrict(users), totals[users]
    level[users] = own.levels(x)
    to_limit = np.maximum(polytope.limit / x - 1, 0.0)
    hint = hints(polytope.cluster, None if prices is None else prices[..., first, :])
    if hint is not None and polytope.cluster.shape[1] == 1:
        full = polytope.by_server(polytope.used(split.merged))[0] >= 1 - tol
        # The sum comes first, so that among several exhausted resources the largest share decides.
        hint = np.append(hint[full].sum(axis=0, keepdims=True), hint, axis=0)
    free = to_limit > SAME_LEVEL
    rise, at, what = _by_prices(polytope, split.merged, own.floor, level[users], free, hint, tol)
    if (np.minimum(rise, to_limit) > tol).any():
        rise, at, what = _without_rounding(polytope, split.merged, criterion, rise, at, what, tol)
    limited = (to_limit <= SAME_LEVEL) | ((to_limit <= tol) & (to_limit < rise))
    by_capacity = ~limited & (rise <= tol)
    bound[users] = np.minimum(rise, to_limit)
    held_by[users] = np.where(limited, "task limit", np.where(by_capacity, "capacity", "unproved"))
    server[users[by_capacity]], resource[users[by_capacity]] = first[at[by_capacity]], what[by_capacity]
    return Blocking(level, bound, held_by, server, resource)


def _by_prices(
    polytope: Polytope,
    tasks: Array,
    floor: Array,
    level: Array,
    free: Mask,
    prices: Array | None,
    tol: float,
) -> tuple[Array, Index, Index]:
    """Bounds on relative increases, (users,), and server and resource of each user's bottleneck, -1 without a proof.

    Linear programs are solved for users who are not at their limits (mask `free`) and not bound at the given prices.
    Raises `SolverError` if no prices are given and there are too many pairs for linear programs.
    """
    if len(polytope.gamma) > polytopes.LARGE and prices is None:
        raise SolverError(
            "this allocation has no prices, and it is too large to search for them: engine='native' gives them"
        )
    sets, (rise, which, _) = held(polytope, tasks, level, floor, free, prices, tol)
    server, resource = np.full(len(level), -1), np.full(len(level), -1)
    for s in np.unique(which[which >= 0]):
        bottleneck = _bottleneck(polytope, tasks, polytope.row_prices(np.maximum(sets[s], 0.0)))
        mine = np.flatnonzero(which == s)
        server[mine], resource[mine] = bottleneck[0][mine], bottleneck[1][mine]
    return rise, server, resource


def _without_rounding(
    polytope: Polytope, tasks: Array, criterion: Criterion, rise: Array, server: Index, resource: Index, tol: float
) -> tuple[Array, Index, Index]:
    """Replace bounds above `tol` by the distance of tasks from the exact optimum, which exact prices prove.

    Bounds and bottlenecks are returned unchanged if the optimum is not computed or proved, or the distance exceeds
    `tol`.
    """
    limits = criterion.limits(polytope.cluster)
    found = leximin(polytope.cluster, criterion, limits)
    by = None if found is None else proofs(found, polytope.cluster, criterion, limits)
    apart = float(distances(polytope.cluster, tasks, criterion, limits, np.array([True]))[0][0])
    if found is None or by is None or apart > tol:
        return rise, server, resource
    for k in np.unique(by[by >= 0]):
        prices = found.prices[k] / found.prices[k].max()
        bottleneck = _bottleneck(polytope, tasks, polytope.row_prices(prices.astype(float)))
        mine = (by[polytope.users] == k) & (rise > tol)
        server[mine], resource[mine], rise[mine] = bottleneck[0][mine], bottleneck[1][mine], apart
    return rise, server, resource


def _bottleneck(polytope: Polytope, tasks: Array, rows: Array) -> tuple[Index, Index]:
    """Cheapest server of every user, and the resource with the largest cost of its tasks there, at prices (rows,)."""
    start = polytope.start[:-1]
    cost = polytope.price_per_task(rows)
    cheap = cost <= np.minimum.reduceat(cost, start)[polytope.pair_user] * (1 + 1e-6)
    mine = np.where(cheap, polytope.work(tasks), -1.0)
    most = np.flatnonzero(mine == np.maximum.reduceat(mine, start)[polytope.pair_user])
    pair = most[np.unique(polytope.pair_user[most], return_index=True)[1]]
    server = polytope.pair_server[pair]
    return server, (polytope.by_server(rows)[server] * polytope.pair_use[pair]).argmax(axis=1)
