r"""Certificate of max-min on a pool with a sparse demand, by prices of single resources.

With a price on resource r alone, let the users at or below a level m keep their tasks. User n, at or below it, rises by
at most

.. math:: \max\Big(\frac{level_m}{level_n} - 1,\ \frac{1 - \sum_{k \le m} x_k u_{kr}}{x_n u_{nr}}\Big)

where u are fractions of the resource per task, and the sum is over the users of r up to level m. The level m is the
highest of a chain of levels about as high as that of n. The bound holds for all tasks; no filling is trusted.
"""

from __future__ import annotations

import numpy as np

from ..model._arrays import Array, ratio
from ..model.cluster import SparseCluster
from ..model.criterion import Criterion

#: Levels closer than this count as one, in units of the larger.
_SAME = 1e-10


def rise(cluster: SparseCluster, x: Array, criterion: Criterion, limits: Array) -> Array:
    """Bounds on the relative rise of each user's tasks x at no loss to users at or below its level, (users,)."""
    runs = np.flatnonzero(cluster.runnable)
    if not len(runs):
        return np.zeros(len(x))
    level = criterion.restrict(runs).levels(x[runs])
    order = np.argsort(level, kind="stable")
    columns = cluster.share_per_task[runs[order]].tocsc()  # users by level, in each
    level, user, begin = level[order][columns.indices], runs[order][columns.indices], columns.indptr
    spent = columns.data * x[user]
    kept = np.append(0.0, np.cumsum(spent, dtype=np.longdouble))  # over all resources
    last = np.append(level[1:] > level[:-1] * (1 + _SAME), True)
    last[begin[1:][np.diff(begin) > 0] - 1] = True
    ends = np.flatnonzero(last)  # of chains
    since = begin[np.searchsorted(begin, ends, "right") - 1]
    gap = np.maximum(1 - (kept[ends + 1] - kept[since]).astype(float), 0.0)
    size = np.diff(ends, prepend=-1)
    bound = np.maximum(
        ratio(np.repeat(level[ends], size), level, np.inf) - 1, ratio(np.repeat(gap, size), spent, np.inf)
    )
    found = np.full(len(x), np.inf)
    np.minimum.at(found, user, bound)
    found = np.minimum(found, np.where(x > 0, np.maximum(ratio(limits, x, np.inf) - 1, 0.0), np.inf))
    return np.where(cluster.runnable, found, 0.0)
