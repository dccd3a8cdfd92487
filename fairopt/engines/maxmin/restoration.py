"""The last digits of lexicographic max-min: every user exactly at its level, everything with a price exactly used up.

A level's interior point keeps to the levels before it as well as its gap asks for. That is enough to see who rises and
who stands still, and too little for users whose tasks cost next to nothing beside the others': what others leave idle
by rounding may be a large part of theirs. So, once all levels y_n are known, y is moved as little as possible,

    minimise sum_ni delta_ni^2 / y_ni   s.t.   sum_i (y + delta)_ni = level_n,   sum_n use_nir (y + delta)_ni = 1

over pairs with tasks and rows (i, r) with a price in some level: one linear system in a multiplier per user and row.
"""

from __future__ import annotations

import numpy as np

from ..._libraries import sp, sparse_linalg
from ...core.leximin import Leximin
from ...model._arrays import Array

#: Pairs with less than this part of a user's level have none; rows are full that are used up to within the second, and
#: have the third of the prices of some level.
_NOTHING, _FULL, _PRICED = 1e-14, 1e-6, 1e-12
#: Added to the diagonal, relatively: equations may depend on each other. Parts may move by less than the second.
_REGULAR, _FAR = 1e-12, 0.5


def restored(levels: Leximin) -> Array | None:
    """The tasks (all users, servers) of levels with their last digits; None if no small change gives them."""
    polytope, level = levels.polytope, levels.level
    amounts = levels.amounts()
    pairs = np.flatnonzero(amounts > _NOTHING * level[polytope.pair_user])
    user, amount, of_row = polytope.pair_user[pairs], amounts[pairs], levels.pairs.matrix[pairs].T
    of_user = sp.csr_matrix((1 / level[user], (user, np.arange(len(pairs)))), (len(level), len(pairs)))
    full, priced = np.abs(of_row @ amount - 1) < _FULL, np.zeros(levels.inverse.shape, dtype=bool)
    for stage in levels.stages:
        priced[stage.servers] |= stage.prices > _PRICED * np.abs(stage.prices).sum()
    equations = sp.vstack([of_user, of_row.tocsr()[np.flatnonzero(full & priced.ravel())]], format="csr")
    matrix = sp.csc_matrix(equations @ sp.diags(amount) @ equations.T)
    try:
        factors = sparse_linalg.splu((matrix + sp.diags(_REGULAR * matrix.diagonal())).tocsc())
    except (RuntimeError, MemoryError):
        return None
    moved = amount
    for _ in range(4):
        moved = moved + amount * (equations.T @ factors.solve(1 - equations @ moved))
    if not np.abs(moved / amount - 1).max(initial=0.0) < _FAR:
        return None
    fractions = np.zeros(len(amounts))
    fractions[pairs] = moved * levels.tasks_per_level[user] / polytope.gamma[pairs]
    return polytope.allocation(polytope.inside(fractions))
