"""Which pairs take part in the interior point of a level of max-min: cheap ones come in, dear ones leave."""

from __future__ import annotations

import numpy as np

from ..welfare.screening import FAR, LEAST_FAR, LITTLE, WORTHWHILE, pays
from .level_point import Point

#: A pair comes in when it would carry more than about one part in so many of its user's level, at most so many of a
#: user at once. Above the gap _LOOSE its product is at least _LEAST of the average, even where there is no room for it.
_NEAR, _ENTERING, _LEAST, _LOOSE = 30.0, 8, 0.1, 0.1
_TINY = 1e-300


def drop_columns(point: Point, gap: float) -> None:
    """Dear pairs that carry next to nothing take no part any more."""
    if not pays(len(point.at), len(point.p), point.problem.use.shape[1]) or not np.isfinite(gap):
        return
    dear = point.z > (max(FAR * gap, LEAST_FAR) * point.p)[point.user]
    kept = ~(dear & (point.y < (LITTLE * point.have)[point.user]))
    kept |= ~np.logical_or.reduceat(kept, point.start[:-1])[point.user]  # nobody loses all pairs
    if np.count_nonzero(kept) > (1 - WORTHWHILE) * len(kept):
        return
    point.screened_out[point.at[~kept]] += point.y[~kept]
    point.active[point.at[~kept]] = False
    point.y, point.z = point.y[kept], point.z[kept]
    point.select()
    point.residuals()


def add_columns(point: Point, gap: float) -> None:
    """Cheap pairs that were left out come in with little, in a way that keeps the equations."""
    from ..linalg import _pairs
    from . import _columns

    q, mu = point.problem, point.mu
    near = _NEAR * mu / np.maximum(point.have, _TINY)
    if not _columns.enter(q.start, q.server, q.use, point.lam, point.p + near, _ENTERING, point.active):
        return
    old, y, z = point.at, point.y, point.z
    point.select()
    place = np.searchsorted(point.at, old)
    new = np.ones(len(point.at), dtype=bool)
    new[place] = False
    new = np.flatnonzero(new)
    user, server, use = point.user[new], point.server[new], point.use[new]
    # A user's worth falls below what its new pairs cost.
    cost = point.cost(point.lam)
    user_price = point.p.copy()
    np.minimum.at(user_price, user, cost[new] - 0.1 * near[user])
    user_price = np.maximum(user_price, 0.5 * np.minimum.reduceat(cost, point.start[:-1]))
    point.z = np.empty(len(point.at))
    point.z[place] = z + (point.p - user_price)[point.user[place]]
    point.z[new] = np.maximum(cost[new] - user_price[user], _TINY)
    point.p = user_price
    more = np.minimum(mu / point.z[new], 0.1 * point.have[user])
    taken = np.zeros(point.row.shape)
    _pairs.used(server, use, more, taken)
    room = np.minimum(1.0, 0.3 * point.w / np.maximum(taken, _TINY))
    more *= np.where(use > 0, room[server], 1.0).min(axis=1)
    point.y = np.empty(len(point.at))
    point.y[place] = y * (1 - np.bincount(user, more, len(user_price)) / point.have)[point.user[place]]
    point.y[new] = more
    point.w = np.where(point.row, point.w + point.take - point.priced(point.y), 1.0)
    if gap > _LOOSE:
        point.y[new] += np.maximum(_LEAST * mu / point.z[new] - more, 0.0)
    point.residuals()
