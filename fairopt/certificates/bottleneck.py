"""Max-min on one server: everyone meets a saturated resource shared only with users at or below its level.

User n blocked on resource r could still rise by what is idle plus what users above its level hold there:
`rise_n(r) = (c_r - use_r + sum_{m: level_m > level_n} x_m d[m,r]) / (d[n,r] X_n)`, relative to all tasks `X_n`
that n has (on other servers too, for the per-server game: PF section 3 states this as the condition for PS-DSF).
The certificate is the largest over n of the smallest over r. Levels equal to within t count as equal at the price of t.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def rises(demand: Array, capacity: Array, tasks: Array, levels: Array, totals: Array, limits: Array) -> Array:
    """Relative rise in tasks that each user could get on one server, (users,).

    `demand` (users, resources), `capacity` (resources,), `tasks` here, `levels`, `totals` (tasks everywhere) and
    `limits` (most tasks) all (users,).
    """
    use = tasks[:, None] * demand
    idle = np.maximum(capacity - use.sum(axis=0), 0.0)
    order = np.argsort(levels, kind="stable")
    above = np.zeros_like(use)
    above[order] = use[order][::-1].cumsum(axis=0)[::-1] - use[order]
    # Users above n by a ratio t: their use counts only if that costs less than calling the levels equal. Along the
    # order the ratio grows and their use falls, so that the best compromise is found by bisection.
    level, needs = levels[order], demand[order] > 0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        size = demand[order] * totals[order, None]

        def room(at: NDArray[np.intp]) -> Array:
            each = np.where(needs, (idle + above[order][at]) / size, np.inf)
            return np.asarray(each.min(axis=1))

        low = np.arange(len(tasks))
        high = np.full(len(tasks), len(tasks) - 1)
        while (low < high).any():
            middle = (low + high) // 2
            enough = level[middle] / level - 1 >= room(middle)
            low, high = np.where(enough, low, np.minimum(middle + 1, high)), np.where(enough, middle, high)
        best = np.maximum(level[low] / level - 1, room(low))
        before = np.maximum(low - 1, np.arange(len(tasks)))
        best = np.minimum(best, np.maximum(level[before] / level - 1, room(before)))
        result = np.empty(len(tasks))
        result[order] = best
        blocked = limits / totals - 1
    return np.where(totals > 0, np.minimum(result, np.maximum(blocked, 0.0)), np.inf)
