"""From an answer to its derivatives: cluster, criterion, tasks and log prices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..core.settled import settled
from ..errors import DataError
from ..model.cluster import Cluster
from ..model.criterion import Criterion, virtual_share_per_task
from ..model.merging import merge, unmerged
from ..model.polytope import Polytope
from ..model.split import Split
from .derivatives import Derivatives
from .maxmin import leximin
from .pooling import pooling

Array = NDArray[np.float64]

_SUPPORTED = (
    "derivatives are for the per-server game at finite alpha > 0 (alphaPF-VDS), alpha-fair programs (AlphaFair, CEEI) "
    "and lexicographic max-min over a pool or over servers (DRF, DRFH, TSF, asset fairness, ...)"
)


def derivatives(cluster: Cluster, criterion: Criterion, tasks: Array | Split, log_prices: Array | None) -> Derivatives:
    """The derivatives of `tasks` (users, servers) under `criterion`; log prices as an allocation has them.

    Raises
    ------
    DataError
        There are no formulae for such a criterion.
    SolverError
        Tasks and prices are not near enough to an exact answer.
    """
    _check(cluster, criterion)
    split = tasks if isinstance(tasks, Split) else Split.from_table(merge(cluster, users=False), tasks)
    if not isinstance(tasks, Split) and not split.matches(tasks, 1e-9):
        split = Split.from_table(unmerged(cluster), tasks)
    merging, table = split.merging, split.merged
    first = np.unique(merging.server_of, return_index=True)[1]
    if criterion.scope == "game" and not merging.trivial:
        criterion = replace(criterion, share=virtual_share_per_task(merging.cluster))
    prices = None if log_prices is None else log_prices[..., first, :]
    pools = pooling(merging.cluster, criterion, table, prices)
    if prices is not None:
        prices = prices[..., pools.first, :]
    polytope, table = Polytope(pools.cluster, criterion.limits(cluster)), pools.pooled(table)
    if not len(polytope.users):
        raise DataError("no user can run anything: there is nothing to move")
    if np.isinf(criterion.alpha):
        active = leximin(polytope, criterion, table, _hint(pools.cluster, prices))
    else:
        if prices is None:
            raise DataError("this allocation came without prices: certify it (allocation.certify()) or solve again")
        with np.errstate(divide="ignore"):
            rows = polytope.log_row_prices(prices)
        active = settled(polytope, criterion, table, rows)
    return Derivatives(active, merging, pools)


def _hint(cluster: Cluster, log_prices: Array | None) -> Array | None:
    """Prices (levels, servers, resources) that may prove levels; on one server each resource alone may."""
    if cluster.shape[1] == 1:
        capacity = cluster.capacity[0]
        unit = np.divide(1.0, capacity, out=np.zeros(len(capacity)), where=capacity > 0)
        return np.asarray(np.diag(unit)[:, None, :])
    if log_prices is None:
        return None
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(log_prices.reshape(-1, *cluster.capacity.shape)))


def _check(cluster: Cluster, criterion: Criterion) -> None:
    what = "PS-DSF" if criterion.scope == "game" else "servers that do not coordinate"
    steep = criterion.scope == "per_server" or (criterion.scope == "game" and np.isinf(criterion.alpha))
    for wrong, text in (
        (type(criterion) is not Criterion, f"; not for {type(criterion).__name__}. Differences of two solves are"),
        (steep, f"; not for {what}: take a large finite alpha, such as AlphaPFVDS(64)"),
        (criterion.alpha == 0, "; at alpha = 0 tasks move by jumps: take a small alpha, such as 0.1"),
        (criterion.floor.any(), "; not with floors, which depend on the data in their own way"),
        (
            (criterion.cap < cluster.max_tasks).any(),
            "; not with a mechanism's own caps (MQDRF), which depend on the data",
        ),
        (
            not np.array_equal(criterion.weight, cluster.weight),
            ", where the criterion's weights are those of the cluster",
        ),
    ):
        if wrong:
            raise DataError(_SUPPORTED + text)
