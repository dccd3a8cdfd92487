r"""Certificate of max-min on a pool with a sparse demand, by prices of single resources.

With a price on resource r alone, let the users at or below a level m keep their tasks. Tasks of user n, whose level is
at most m, increase by at most the fraction

.. math:: \max\Big(\frac{level_m}{level_n} - 1,\ \frac{1 - \sum_{k \le m} x_k u_{kr}}{x_n u_{nr}}\Big)

where u are fractions of the resource per task, and the sum is over the users of r up to level m. The level m is the
highest of a chain of levels about as high as that of n. The bound holds for all tasks; no filling is trusted.
"""

from __future__ import annotations

import numpy as np

from ..base.loops import compiled
from ..model._arrays import Array, Index, ratio
from ..model.cluster import SparseCluster
from ..model.criterion import Criterion

#: Levels whose difference is less than this fraction of the larger level count as equal.
_SAME = 1e-10


@compiled
def bounds(begin: Index, user: Index, part: Array, level: Array, x: Array) -> Array:
    """Least bound of each user over its resources, (users,), by compressed columns with users in order of level."""
    found = np.full(len(x), np.inf)
    for r in range(len(begin) - 1):
        kept, lost, first = 0.0, 0.0, begin[r]  # a sum with compensated rounding (Kahan)
        for k in range(begin[r], begin[r + 1]):
            spent = part[k] * x[user[k]] - lost
            total = kept + spent
            kept, lost = total, (total - kept) - spent
            top = level[user[k]]
            if k + 1 < begin[r + 1] and level[user[k + 1]] <= top * (1 + _SAME):
                continue
            left = max(1 - kept, 0.0)
            for j in range(first, k + 1):
                n = user[j]
                if x[n] > 0:
                    found[n] = min(found[n], max(top / level[n] - 1, left / (part[j] * x[n])))
            first = k + 1
    return found


def rise(cluster: SparseCluster, x: Array, criterion: Criterion, limits: Array) -> Array:
    """Bounds on the relative increase of each user's tasks x at no loss to users at or below its level, (users,)."""
    runs = np.flatnonzero(cluster.runnable)
    if not len(runs):
        return np.zeros(len(x))
    level = criterion.restrict(runs).levels(x[runs])
    order = np.argsort(level, kind="stable")
    columns = cluster.share_per_task[runs[order]].tocsc()  # users by level, in each
    bound = np.full(len(x), np.inf)
    bound[runs[order]] = bounds(columns.indptr, columns.indices, columns.data, level[order], x[runs[order]])
    to_limit = np.where(x > 0, np.maximum(ratio(limits, x, np.inf) - 1, 0.0), np.inf)
    return np.where(cluster.runnable, np.minimum(bound, to_limit), 0.0)
