r"""Certificate of max-min on a pool with a sparse demand, by prices of single resources.

Let users be in the order of their levels :math:`\ell`, and let the users of resource r up to user m keep their tasks.
The tasks of user n of r, with n up to m, increase by at most the fraction

.. math:: \max\Big(\frac{\ell_m}{\ell_n} - 1,\ \frac{1 - \sum_{k \le m} x_k u_{kr}}{x_n u_{nr}}\Big)

where :math:`u_{nr}` is the fraction of the resource per task. User m is the last of a chain of users with nearly the
same level as n. The bound holds for arbitrary tasks, and does not rely on how they were computed.
"""

from __future__ import annotations

import numpy as np

from ..base.loops import compiled
from ..model._arrays import Array, Index, ratio
from ..model.cluster import SparseCluster
from ..model.criterion import Criterion

#: Relative difference below which successive levels count as equal.
_SAME = 1e-10


@compiled
def bounds(begin: Index, user: Index, part: Array, level: Array, x: Array) -> Array:
    """Least bound of each user over its resources, (users,), infinite without tasks; users are in the order of levels.

    `begin`, `user` and `part` are the compressed sparse columns of the shares :math:`u_{nr}`.
    """
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
    """Bounds, (users,), on the relative increase of each user's tasks x at no loss to users at or below its level.

    They are 0 for users that cannot run tasks, and infinite for other users without tasks.
    """
    runs = np.flatnonzero(cluster.runnable)
    if not len(runs):
        return np.zeros(len(x))
    level = criterion.restrict(runs).levels(x[runs])
    order = np.argsort(level, kind="stable")
    columns = cluster.share_per_task[runs[order]].tocsc()  # with users ordered by level
    bound = np.full(len(x), np.inf)
    bound[runs[order]] = bounds(columns.indptr, columns.indices, columns.data, level[order], x[runs[order]])
    to_limit = np.where(x > 0, np.maximum(ratio(limits, x, np.inf) - 1, 0.0), np.inf)
    return np.where(cluster.runnable, np.minimum(bound, to_limit), 0.0)
