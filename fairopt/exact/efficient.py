"""The largest sum of shares (alpha = 0) without rounding: an optimal basis of its linear program in integers."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from ..model.cluster import Cluster
from .rational import Numbers
from .simplex import Dictionary, TooMuch, whole

#: How many words of integers may be computed: about a second.
_WORK = 1e7


def unique_optimum(cluster: Cluster, share: Mapping[int, Fraction], limits: Mapping[int, Fraction]) -> Numbers | None:
    """`x[n,i]` that maximise `sum_n share_n x_n`, (users, servers); `None` if others do too, or it takes too much.

    Parameters
    ----------
    share : of every user who can run, by number
    limits : of those who have one
    """
    runs = cluster.usable & np.array([limits.get(n, 1) > 0 for n in range(len(cluster.users))])[:, None]
    pairs = [(int(n), int(i)) for n, i in np.argwhere(runs)]
    tasks = np.full(runs.shape, Fraction(0), dtype=object)
    if not pairs:
        return tasks
    total = len(pairs)  # the column of the sum
    rows = []
    for (i, r), most in np.ndenumerate(cluster.capacity):
        used = {k: Fraction(cluster.demand[n, r]) for k, (n, j) in enumerate(pairs) if j == i and cluster.demand[n, r]}
        rows.append((used, Fraction(most)))
    for n, limit in limits.items():
        rows.append(({k: Fraction(1) for k, (m, _) in enumerate(pairs) if m == n}, limit))
    gain = {k: -share[n] for k, (n, _) in enumerate(pairs)}
    rows.append((gain | {total: Fraction(1)}, Fraction(0)))
    integers = [whole(*row, width=total + 1) for row in rows if row[0]]
    program = Dictionary([entries for entries, _ in integers], [bound for _, bound in integers], _WORK)
    try:
        program.maximise(total)
        values = program.values()
        if not program.unique():
            return None
    except TooMuch:
        return None
    for k, pair in enumerate(pairs):
        tasks[pair] = values.get(k, Fraction(0))
    return tasks
