"""The last digits of lexicographic max-min: every user exactly at its level, everything with a price exactly used up.

A level's interior point keeps to the levels before it as well as its gap asks for. That is enough to see who rises and
who stands still, and too little for users whose tasks cost next to nothing beside the others': what others leave idle
by rounding may be a large part of theirs. So, once all levels y_n are known, y is moved as little as possible,

    minimise sum_ni delta_ni^2 / y_ni   s.t.   sum_i (y + delta)_ni = level_n,   sum_n use_nir (y + delta)_ni = 1

over pairs with tasks and rows (i, r) with a price in some level: one linear system in a multiplier per user and row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._libraries import sp, sparse_linalg
from .levels import Levels
from .options import RESTORATION, RestorationOptions

Array = NDArray[np.float64]


def restored(levels: Levels, options: RestorationOptions = RESTORATION) -> Array | None:
    """The tasks (all users, servers) of levels with their last digits; None if no small change gives them."""
    polytope, level = levels.polytope, levels.level
    amounts = levels.amounts()
    pairs = np.flatnonzero(amounts > options.nothing * level[polytope.pair_user])
    user, amount, use = polytope.pair_user[pairs], amounts[pairs], levels.use[pairs]
    shape = polytope.cluster.capacity.shape
    row = (polytope.pair_server[pairs][:, None] * shape[1] + np.arange(shape[1])).ravel()
    of_row = sp.csr_matrix(
        (use.ravel(), (row, np.repeat(np.arange(len(pairs)), shape[1]))), (shape[0] * shape[1], len(pairs))
    )
    of_user = sp.csr_matrix((1 / level[user], (user, np.arange(len(pairs)))), (len(level), len(pairs)))
    full, priced = np.abs(of_row @ amount - 1) < options.full, np.zeros(shape, dtype=bool)
    for stage in levels.stages:
        priced[stage.servers] |= stage.prices > options.priced * stage.prices.sum()
    full &= priced.ravel()
    equations = sp.vstack([of_user, of_row[np.flatnonzero(full)]], format="csr")
    moved = _moved(equations, amount, options)
    if moved is None:
        return None
    fractions = np.zeros(len(amounts))
    fractions[pairs] = moved * levels.tasks_per_level[user] / polytope.gamma[pairs]
    return polytope.allocation(polytope.inside(fractions))


def _moved(equations: sp.csr_matrix, amount: Array, options: RestorationOptions) -> Array | None:
    """The nearest amounts with which all equations come to 1; None if some would have to move far."""
    weighted = equations @ sp.diags(amount)
    matrix = sp.csc_matrix(weighted @ equations.T)
    size = matrix.diagonal()
    if not (size > 0).all():
        return None
    try:
        factors = sparse_linalg.splu(sp.csc_matrix(matrix + sp.diags(options.regular * size)))
    except RuntimeError:
        return None
    moved = amount
    for _ in range(options.rounds):
        moved = moved + amount * (equations.T @ factors.solve(1 - equations @ moved))
    far = np.abs(moved / amount - 1).max(initial=0.0)
    return np.asarray(moved) if far < options.far else None
