"""The exact answer of a global program or of the game near a given one, proved in eighty digits or not given.

Who uses it need not trust where it starts: `refuted` checks what it returns against the conditions.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fairopt.model.cluster import Cluster

from .active import refined
from .conditions import Decimals, conditions, decimals, many_digits, refuted

Array = NDArray[np.float64]
Kind = Literal["global", "game"]

#: To how much relative all conditions hold, and how much the next Newton step may still change anybody's tasks.
WITHIN = Decimal("1e-16")


@dataclass(frozen=True)
class Reference:
    """A proved answer, and by how much a last Newton step to mu = 0 would change anybody's tasks, relative."""

    tasks: Array  # (users, servers), rounded
    user_tasks: Array  # (users,), rounded
    log_prices: Array  # (servers, resources), of whole capacities, -inf for none; on the scale of the marginals
    step: float


def dominant_shares(cluster: Cluster) -> Decimals:
    """`u_n = max_r d_nr / sum_i c_ir`, (users,), not rounded to doubles; 1 for who needs what nobody has."""
    with many_digits():
        pool = decimals(cluster.capacity).sum(axis=0)
        need = decimals(cluster.demand)
        shares = [max((d / c for d, c in zip(row, pool, strict=True) if d > 0 and c > 0), default=1) for row in need]
        return np.array([Decimal(share) for share in shares], dtype=object)


def reference(
    cluster: Cluster, alpha: float, kind: Kind, near: Array, log_prices: Array, share: Decimals | None = None
) -> Reference | None:
    """The exact answer for 0 < alpha < infinity near tasks (users, servers), `None` where none was found or proved.

    `global`: tasks are those of the program with shares per task u_n (default: dominant shares), which are unique by
    user. `game`: an equilibrium; others may exist. `log_prices` (servers, resources), of whole capacities, say which
    rows have a price.
    """
    with many_digits(), np.errstate(all="ignore"):
        u = dominant_shares(cluster) if share is None else np.array([Decimal(s) for s in share], dtype=object)
        of = conditions(cluster, alpha, None if kind == "game" else u)
        if not len(of.user):
            nothing = np.zeros(cluster.shape[:2])
            return Reference(nothing, nothing.sum(axis=1), np.full(cluster.capacity.shape, -np.inf), 0.0)
        root = refined(of, near, log_prices)
        if root is None or root.step > WITHIN:
            return None
        prices = root.log_prices
        if refuted(of, root.tasks, prices, WITHIN) is not None:
            return None
        table = np.zeros(of.shape[:2])
        table[of.user, of.server] = root.tasks.astype(float)
        return Reference(table, of.tasks_of(root.tasks).astype(float), prices.astype(float), float(root.step))
