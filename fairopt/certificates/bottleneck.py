"""Max-min on one server: everyone meets a saturated resource shared only with users at or below its level.

User n blocked on resource r could still rise by what is idle plus what users above its level hold there:
`rise_n(r) = (c_r - use_r + sum_{m: level_m > level_n} (x_m - floor_m) d[m,r]) / (d[n,r] X_n)`, relative to all tasks
`X_n` that n has (on other servers too, for the per-server game: PF section 3 states this as the condition for PS-DSF).
The certificate is the largest over n of the smallest over r. Levels equal to within t count as equal at the price of t.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def rises(
    demand: Array,
    capacity: Array,
    tasks: Array,
    levels: Array,
    totals: Array,
    limits: Array,
    floor: Array | None = None,
) -> Array:
    """Relative rise in tasks that each user could get on one server, (users,).

    `demand` (users, resources), `capacity` (resources,), `tasks` here, `levels`, `totals` (tasks everywhere) and
    `limits` (most tasks) and `floor` (the least that others must leave) all (users,).
    """
    from . import _kernels

    idle = np.maximum(capacity - tasks @ demand, 0.0)
    spare = tasks if floor is None else np.maximum(tasks - floor, 0.0)
    return np.asarray(_kernels.rises(demand, idle, spare, levels, totals, limits))
