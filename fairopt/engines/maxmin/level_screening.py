"""Which pairs take part in the interior point of a level of max-min: cheap ones come in, dear ones leave."""

from __future__ import annotations

import numpy as np

from ..linalg import _pairs
from ..linalg import column_screening as rule
from ..linalg.column_screening import ScreeningOptions
from .level_point import LevelPoint
from .options import OPTIONS, EnteringOptions

_TINY = 1e-300


def drop_columns(point: LevelPoint, gap: float, options: ScreeningOptions = rule.OPTIONS) -> None:
    """Dear pairs that carry next to nothing take no part any more."""
    if not rule.applies(len(point.at), point.problem.use.shape[1], len(point.p), gap, options):
        return
    dear = point.z > (rule.far(gap, options) * point.p)[point.user]
    kept = rule.staying(dear & (point.y < (options.little * point.have)[point.user]), point.start, point.user)
    if not rule.worthwhile(kept, options):
        return
    point.screened_out[point.at[~kept]] += point.y[~kept]
    point.active[point.at[~kept]] = False
    point.y, point.z = point.y[kept], point.z[kept]
    point.select()
    point.residuals()


def add_columns(point: LevelPoint, gap: float, options: EnteringOptions = OPTIONS.entering) -> None:
    """Cheap pairs that were left out come in with little, in a way that keeps the equations."""
    from . import _columns

    q, mu = point.problem, point.mu
    near = options.near * mu / np.maximum(point.have, _TINY)
    if not _columns.enter(q.start, q.server, q.use, point.lam, point.p + near, options.most, point.active):
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
    if gap > options.loose:
        point.y[new] += np.maximum(options.least * mu / point.z[new] - more, 0.0)
    point.residuals()
