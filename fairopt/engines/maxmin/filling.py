"""Max-min of one pool, or of every server on its own: water filling, exact, with no solver at all.

All levels rise together (`core.filling`); a user comes in where the level reaches its floor, which is set aside for it
from the beginning.
"""

from __future__ import annotations

import numpy as np

from ...core import filling as core
from ...model._arrays import Array
from ...model._pointers import by_group, in_tables
from ...model.criterion import Criterion
from ...model.polytope import Polytope

#: Users on servers that are filled together.
_TABLE = 20_000


def filled(polytope: Polytope, criterion: Criterion) -> Array:
    """The lexicographic maximum on every server on its own, (all users, servers), in tasks.

    Limits are kept where there is one server; in the scope `each` servers keep none but zero.
    """
    cluster, users = polytope.cluster, polytope.users
    result = np.zeros(cluster.shape[:2])
    order, ends = by_group(polytope.pair_server, cluster.shape[1])
    for servers, pairs, there in in_tables(order, ends, _TABLE):
        member = polytope.pair_user[pairs]
        who = users[member]
        share = criterion.share[who] if criterion.share.ndim == 1 else criterion.share[who, servers[:, None]]
        # In parts of what each user could run here alone, so that all numbers are of one size.
        alone = polytope.gamma[pairs]
        gain = criterion.weight[who] / share / alone
        room = np.full(alone.shape, np.inf) if criterion.scope == "per_server" else polytope.limit[member] / alone
        use = polytope.pair_use[pairs] * there[:, :, None]
        floor = np.where(there, criterion.floor[who] / alone, 0.0)
        left = np.maximum(1 - np.matmul(floor[:, None], use)[:, 0], 0.0)[:, None]
        room = np.where(((use > 0) & (left == 0)).any(axis=2) | ~there, 0.0, np.maximum(room - floor, 0.0))
        use = np.divide(use, left, out=np.zeros(use.shape), where=left > 0)
        tasks = (floor + core.filled(gain, use, floor, room)) * alone
        result[who[there], np.broadcast_to(servers[:, None], who.shape)[there]] = tasks[there]
    return result
