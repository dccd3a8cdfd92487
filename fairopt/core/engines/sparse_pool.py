"""Max-min of a pool with a sparse demand matrix, by the levels at which progressive filling stops each user."""

from __future__ import annotations

import numpy as np

from ...model._arrays import Array, ratio
from ...model.cluster import SparseCluster
from ...model.criterion import Criterion
from ..filling import stopping_levels


def filled(cluster: SparseCluster, criterion: Criterion, limits: Array) -> Array:
    """Lexicographic max-min tasks, (users,), within `limits` (users,); 0 for users that cannot run tasks."""
    runs = np.flatnonzero(cluster.runnable)
    gain = ratio(criterion.weight, criterion.share)[runs]  # tasks per unit of level
    rows = cluster.share_per_task[runs]
    rate_of = rows.data * np.repeat(gain, np.diff(rows.indptr))
    columns, limit = rows.tocsc(), limits[runs] / gain
    order = np.argsort(limit, kind="stable")[: np.count_nonzero(np.isfinite(limit))]
    levels = stopping_levels(rows.indptr, rows.indices, rate_of, columns.indptr, columns.indices, limit, order)
    tasks = np.zeros(len(limits))
    tasks[runs] = np.minimum(levels * gain, limits[runs])
    return tasks
