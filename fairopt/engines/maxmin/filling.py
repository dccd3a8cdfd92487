"""Max-min of one pool, or of every server on its own: water filling, exact, with no solver at all.

All levels rise together; a user stops at its limit or where a resource that it needs is used up, and comes in where the
level reaches its floor, which is set aside for it from the beginning. Every round uses up a resource, so that there are
at most as many rounds as resources, each over users sorted once: O(M N log N).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...model._pointers import by_group
from ...model.criterion import Criterion
from ...model.polytope import Polytope

Array = NDArray[np.float64]


def filled(polytope: Polytope, criterion: Criterion) -> Array:
    """The lexicographic maximum on every server on its own, (all users, servers), in tasks.

    Limits are kept where there is one server; in the scope `each` servers keep none but zero.
    """
    from . import _filling

    cluster, users = polytope.cluster, polytope.users
    result = np.zeros(cluster.shape[:2])
    order, ends = by_group(polytope.pair_server, cluster.shape[1])
    for i in range(cluster.shape[1]):
        pairs = order[ends[i] : ends[i + 1]]
        if not len(pairs):
            continue
        mine = polytope.pair_user[pairs]
        share = criterion.share[users[mine]] if criterion.share.ndim == 1 else criterion.share[users[mine], i]
        # In parts of what each user could run here alone, so that all numbers are of one size.
        alone = polytope.gamma[pairs]
        gain = criterion.weight[users[mine]] / share / alone
        room = np.full(len(mine), np.inf) if criterion.scope == "per_server" else polytope.limit[mine] / alone
        part, q, use = np.zeros(len(mine)), np.empty(cluster.shape[2]), polytope.pair_use[pairs]
        floor = criterion.floor[users[mine]] / alone
        left = np.maximum(1 - floor @ use, 0.0)
        room = np.where(((use > 0) & (left == 0)).any(axis=1), 0.0, np.maximum(room - floor, 0.0))
        use = np.divide(use, left, out=np.zeros(use.shape), where=left > 0)
        _filling.fill(gain, use, floor, room, q, part)
        result[users[mine], i] = (floor + part) * alone
    return result
