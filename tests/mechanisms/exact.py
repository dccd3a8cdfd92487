"""Lexicographic max-min in exact rational arithmetic: linear programs by a simplex method with fractions.

Nothing of fairopt and no floating point: small clusters of fractions, which doubles are.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

#: Arrays of `Fraction`.
Table = NDArray[np.object_]

fractions = np.vectorize(Fraction, otypes=[object])
#: Above all levels.
TOO_MUCH = Fraction(10) ** 40


def maximise(goal: Table, rows: Table, bounds: Table) -> tuple[Fraction, Table]:
    """`max goal y` over `y >= 0, rows y <= bounds`, bounds >= 0, and the rows' prices. Bland's rule."""
    size, count = rows.shape
    table = np.zeros((size + 1, count + size + 1), dtype=object) + Fraction(0)
    table[:size, :count], table[:size, -1], table[-1, :count] = rows, bounds, -goal
    basis = count + np.arange(size)
    table[np.arange(size), basis] = Fraction(1)
    while len(entering := np.flatnonzero(table[-1, :-1] < 0)):
        j = entering[0]
        i = min((table[i, -1] / table[i, j], basis[i], i) for i in range(size) if table[i, j] > 0)[2]
        table[i] /= table[i, j]
        others = np.flatnonzero((np.arange(size + 1) != i) & (table[:, j] != 0))
        table[others] -= np.outer(table[others, j], table[i])
        basis[i] = j
    return table[-1, -1], table[-1, count:-1]


def leximin(
    capacity: Table, demand: Table, able: NDArray[np.bool_], share: Table, limit: NDArray[np.float64], floor: Table
) -> Table:
    """The lexicographically largest `share_n x_n`, (users,), with `x_n` from the floor to the limit (inf: none).

    `able` (users, servers): who can run a task where. Who can nowhere has 0.

    A level t is too high if no `y` gives every user its target: `max(t, share_n floor_n)`, or what it has finally. Then
    `max lambda` with tasks for `lambda target_n` has prices `q_n` of levels, by which `sum_n q_n share_n x_n <= lambda`
    for all allocations. So t falls until that holds; and who has a price when it can be had rises no more.
    """
    user, server = np.nonzero(able)
    own = fractions(np.arange(len(demand))[:, None] == user)
    uses = [fractions(server == i) * demand[user, r] for i, r in np.ndindex(*capacity.shape)]
    rows = np.vstack([*uses, own[np.isfinite(limit)], -share[:, None] * own])
    above = np.zeros(len(rows) - len(own), dtype=int)
    bounds = np.array([*capacity.ravel(), *fractions(limit[np.isfinite(limit)]), *(0 * share)])
    goal, final, free = fractions(np.arange(len(user) + 1) == len(user)), 0 * share, able.any(axis=1)
    while free.any():
        level, prices = TOO_MUCH, 0 * share
        while True:
            target = np.where(free, np.maximum(level, share * floor), final)
            part, found = maximise(goal, np.column_stack([rows, [*above, *target]]), bounds)
            if part == 1:
                break
            prices = found[len(above) :]
            level -= (1 - part) / prices[free & (level > share * floor)].sum()
        stuck = free & (prices > 0)
        final, free = np.where(stuck, target, final), free & ~stuck
    return np.asarray(final)
