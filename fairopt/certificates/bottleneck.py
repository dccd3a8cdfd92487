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
    """Relative rise in tasks that each user could get on one server, (users,): `min_r rise_n(r)`, over r that n needs.

        rise_n(r) = (c_r - use_r + sum_{m: level_m > level_n} (x_m - floor_m) d[m,r]) / (d[n,r] X_n)

    and at most `limit_n/X_n - 1`. Levels within a factor of 1 + t count as equal at the price of t. Infinite for
    whoever has no tasks.

    Parameters
    ----------
    demand : (users, resources), per task
    capacity : (resources,)
    tasks : (users,), `x_n`, on this server
    levels : (users,), what max-min compares, as `Criterion.levels`
    totals : (users,), `X_n`, on all servers
    limits : (users,), the most tasks of each on all servers, infinite for no limit
    floor : (users,), the least that others must leave; by default none

    Source: Khamse-Ashari et al., arXiv 1712.10114 (PF), section 3, the condition that defines PS-DSF.
    """
    from . import _kernels

    idle = np.maximum(capacity - tasks @ demand, 0.0)
    spare = tasks if floor is None else np.maximum(tasks - floor, 0.0)
    return np.asarray(_kernels.rises(demand, idle, spare, levels, totals, limits))
