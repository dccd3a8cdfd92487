"""The last digits of lexicographic max-min: every user exactly at its level, everything with a price exactly used up.

A level's interior point keeps to the levels before it as well as its gap asks for. That is enough to see who rises and
who stands still, and too little for users whose tasks cost next to nothing beside the others': what others leave idle
by rounding may be a large part of theirs. So, once all levels y_n are known, y is moved as little as possible,

    minimise sum_ni delta_ni^2 / y_ni + sum_k h_k^2 / rise
    s.t.     sum_i (y + delta)_ni = level_n (1 + h_k),   sum_n use_nir (y + delta)_ni = 1

over pairs with tasks and rows (i, r) with a price in some level: one linear system in a multiplier per user and row.
Levels k are known to rounding only. Equations depend on each other, and so a level that is off by 1e-12 would leave
that much of a row idle; h_k, which nobody at its limit takes part in, puts it right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._libraries import sp, sparse_linalg
from ...core.leximin import Leximin

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RestorationOptions:
    """Last digits once all levels are known (`settled`)."""

    #: Pairs with less than the part `nothing` of a user's level have none.
    nothing: float = 1e-14
    #: Rows are full that are used up to within `full` and have the part `priced` of the prices of some level.
    full: float = 1e-6
    priced: float = 1e-12
    #: Added to the diagonal, relatively: equations may depend on each other. Refined this many times.
    regular: float = 1e-12
    rounds: int = 4
    #: Levels are known to rounding, and may move too: the square of the part counts `1/rise`.
    rise: float = 1e-6
    #: Nobody's part on a server may move by more than this, relatively.
    far: float = 0.5


#: What is used unless a caller says otherwise.
RESTORATION = RestorationOptions()


def restored(levels: Leximin, options: RestorationOptions = RESTORATION) -> Array | None:
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
        priced[stage.servers] |= stage.prices > options.priced * np.abs(stage.prices).sum()
    full &= priced.ravel()
    equations = sp.vstack([of_user, of_row[np.flatnonzero(full)]], format="csr")
    moved = _moved(equations, _common(levels, equations.shape[0]), amount, options)
    if moved is None:
        return None
    fractions = np.zeros(len(amounts))
    fractions[pairs] = moved * levels.tasks_per_level[user] / polytope.gamma[pairs]
    return polytope.allocation(polytope.inside(fractions))


def _common(levels: Leximin, equations: int) -> sp.csr_matrix:
    """By what a rise of each common level changes what users' equations ask for, (equations, levels).

    Users with tasks as their limit says stay there.
    """
    _, group = np.unique(levels.level, return_inverse=True)
    users = np.flatnonzero(levels.level < levels.cap)
    shape = equations, int(group.max(initial=-1)) + 1
    return sp.csr_matrix((np.ones(len(users)), (users, group[users])), shape)


def _moved(equations: sp.csr_matrix, common: sp.csr_matrix, amount: Array, options: RestorationOptions) -> Array | None:
    """The nearest amounts with which all equations come to 1, or to 1 and what levels rise; None if some move far."""
    weighted = equations @ sp.diags(amount)
    matrix = sp.csc_matrix(weighted @ equations.T)
    size = matrix.diagonal()
    if not (size > 0).all():
        return None
    # Bordered: `rise common common'` would tie all users of a level to each other.
    border = np.sqrt(options.rise) * common
    whole = sp.bmat([[matrix + sp.diags(options.regular * size), border], [border.T, -sp.eye(common.shape[1])]], "csc")
    try:
        factors = sparse_linalg.splu(whole)
    except (RuntimeError, MemoryError):
        return None
    moved, rise = amount, np.zeros(common.shape[1])
    for _ in range(options.rounds):
        short = 1 + common @ rise - equations @ moved
        step = factors.solve(np.concatenate([short, np.zeros(common.shape[1])]))[: len(size)]
        moved, rise = moved + amount * (equations.T @ step), rise - options.rise * (common.T @ step)
    far = np.abs(moved / amount - 1).max(initial=0.0)
    return np.asarray(moved) if far < options.far else None
