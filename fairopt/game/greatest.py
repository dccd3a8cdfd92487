"""The greatest PS-DSF allocation for positive demands: exact, by linear programs on the ties of a point nearby.

With positive demands an allocation is PS-DSF iff every server has a level `l_i`, users have `U_n = max_i phi_n gamma_ni
l_i` tasks, all on servers where that maximum is attained (their *ties*), and every server is full. Among these levels
there is a greatest, best for every user at once, and alphaPF-VDS tends to it (docs/game.md has the proofs).

Servers connected by ties rise together. For each such group: the most by which it can rise, which is a linear program
over who sits where. Where a group meets the level of a user outside, they join; servers without a price in the
program have room left and leave, with their users. When neither happens, prices prove that no level can rise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse.csgraph import connected_components

from .equations import Equations

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

#: Levels equal to within this, in logs, are the same.
_SAME = 1e-11
#: More than any group can rise.
_FAR = 1e3
#: A server whose prices are less than this part of the average has none.
_FREE = 1e-9
_ROUNDS = 60


@dataclass(frozen=True)
class Greatest:
    """Tasks of the pairs, and whether prices prove that no greater allocation is PS-DSF."""

    tasks: Array
    proved: bool
    programs: int


def greatest(q: Equations, log_price: Array, part: Array, tau: float) -> Greatest | None:
    """From log prices of servers (servers,) and parts of pairs within about `tau` of a PS-DSF allocation."""
    user = q.polytope.pair_user
    level = q.log_gain - log_price[q.server]
    best = np.maximum.reduceat(level, q.start[:-1])
    tied = level > (best - 15 * tau)[user]
    price = _exact(q, log_price, np.flatnonzero(tied), part)
    group = np.zeros(len(price), dtype=np.intp)
    last: Array | None = None
    held = np.zeros(len(user), dtype=bool)  # ties that have been given up, as the user's other servers rise
    for programs in range(1, _ROUNDS + 1):
        level = q.log_gain - price[q.server]
        best = np.maximum.reduceat(np.where(held, -np.inf, level), q.start[:-1])
        pairs = np.flatnonzero((level > best[user] - _SAME) & ~held)
        group = _groups(q, pairs, len(price))
        solved = _program(q, pairs, group, np.exp(best))
        if solved is None:
            return None
        rise, tasks, value = solved
        risen = price - np.log(rise)[group]
        met, step = _meeting(q, price, risen, group, pairs, held)
        price = price + step * (risen - price)
        last = tasks
        if met >= 0:  # this pair and the user's own servers are of one level from now on
            n = user[met]
            own = pairs[np.searchsorted(pairs, q.start[n])]
            joined = group == group[q.server[met]]
            price[joined] += (q.log_gain[met] - price[q.server[met]]) - (q.log_gain[own] - price[q.server[own]])
            held[q.start[n] : q.start[n + 1]] = False
            continue
        used = np.bincount(group, minlength=len(value))
        free = (value < _FREE / used[group]) & q.row.any(axis=1)  # servers that nobody can use have no price either
        at_free = np.zeros(len(best), dtype=bool)
        at_free[user[pairs[free[q.server[pairs]]]]] = True
        leaving = pairs[at_free[user[pairs]] & ~free[q.server[pairs]]]
        if not len(leaving):
            return Greatest(tasks, not free.any(), programs)
        held[leaving] = True
    return None if last is None else Greatest(last, False, _ROUNDS)


def _exact(q: Equations, log_price: Array, pairs: Index, part: Array) -> Array:
    """Prices at which ties are exact, those shared by most tasks first, as far as they do not contradict each other."""
    user, server = q.polytope.pair_user[pairs], q.server[pairs]
    order = np.lexsort((-part[pairs], user))
    home = order[np.searchsorted(user[order], np.arange(len(q.start) - 1))][user]
    other = np.flatnonzero(home != np.arange(len(pairs)))
    i, j = server[home[other]], server[other]
    gap = q.log_gain[pairs[other]] - q.log_gain[pairs[home[other]]]  # price_j - price_i
    i, j, gap = np.where(i < j, i, j), np.where(i < j, j, i), np.where(i < j, gap, -gap)
    distinct, member, of = np.unique(
        np.column_stack([i, j, np.round(gap, 9)]), axis=0, return_index=True, return_inverse=True
    )
    mass = np.bincount(of.ravel(), part[pairs[other]], len(distinct))
    price, group = log_price.copy(), np.arange(len(log_price))
    for k in member[np.argsort(-mass, kind="stable")]:
        a, b = i[k], j[k]
        if group[a] != group[b]:
            joining = group == group[b]
            price[joining] += price[a] + gap[k] - price[b]
            group[joining] = group[a]
    return price


def _groups(q: Equations, pairs: Index, servers: int) -> Index:
    """Which servers are connected by ties, (servers,)."""
    user, server = q.polytope.pair_user[pairs], q.server[pairs]
    graph = sp.csr_matrix((np.ones(len(pairs)), (user, server)), shape=(len(q.start) - 1, servers))
    return np.asarray(connected_components(graph.T @ graph, directed=False)[1])


def _program(q: Equations, pairs: Index, group: Index, total: Array) -> tuple[Array, Array, Array] | None:
    """Largest rise of every group, tasks of the pairs at it, and prices of servers.

    max sum_g s_g over s and parts f of the ties, where sum_i f_ni = s_g(n), sum_n f_ni X_n a_nir <= 1.
    """
    user, server = q.polytope.pair_user[pairs], q.server[pairs]
    servers, size = q.row.shape
    groups = int(group.max()) + 1
    several = (np.bincount(user, minlength=len(total)) > 1)[user]
    per = q.per_task[pairs] * total[user][:, None]
    row = server[:, None] * size + np.arange(size)
    single = ~several
    whole = sp.csr_matrix(
        (per[single].ravel(), (row[single].ravel(), np.repeat(group[server[single]], size))),
        shape=(servers * size, groups),
    )
    count = int(several.sum())
    parts = sp.csr_matrix(
        (per[several].ravel(), (row[several].ravel(), np.repeat(np.arange(count), size))),
        shape=(servers * size, count),
    )
    split, number = np.unique(user[several], return_inverse=True)
    sums = sp.csr_matrix((np.ones(count), (number, np.arange(count))), shape=(len(split), count))
    of_group = np.zeros(len(split), dtype=np.intp)
    of_group[number] = group[server[several]]
    rise = sp.csr_matrix((-np.ones(len(split)), (np.arange(len(split)), of_group)), shape=(len(split), groups))
    rows = np.flatnonzero(q.row.ravel())
    answer = linprog(
        np.concatenate([-np.ones(groups), np.zeros(count)]),
        A_ub=sp.hstack([whole, parts], format="csr")[rows],
        b_ub=np.ones(len(rows)),
        A_eq=sp.hstack([rise, sums], format="csr") if count else None,
        b_eq=np.zeros(len(split)) if count else None,
        bounds=np.column_stack([np.zeros(groups + count), np.repeat([_FAR, np.inf], [groups, count])]),
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if answer.status != 0:
        return None
    s, f = answer.x[:groups], np.maximum(answer.x[groups:], 0.0)
    tasks = np.zeros(len(q.server))
    tasks[pairs[single]] = total[user[single]] * s[group[server[single]]]
    f = f * (s[of_group] / np.maximum(np.bincount(number, f, len(split)), 1e-300))[number] if count else f
    tasks[pairs[several]] = total[user[several]] * f
    value = np.zeros(servers * size)
    value[rows] = -answer.ineqlin.marginals
    return s, tasks, value.reshape(servers, size).sum(axis=1)


def _meeting(q: Equations, price: Array, risen: Array, group: Index, pairs: Index, held: Mask) -> tuple[int, float]:
    """The first pair to become a user's best as prices go to `risen`, and the part of the way; -1 and 1 if none."""
    user = q.polytope.pair_user
    before, after = q.log_gain - price[q.server], q.log_gain - risen[q.server]
    free = np.where(held, -np.inf, 0.0)
    own = np.zeros(len(q.start) - 1, dtype=np.intp)
    own[user[pairs]] = pairs
    room = (before[own][user] - before) * 1.0
    over = after - after[own][user]
    apart = group[q.server] != group[q.server[own]][user]
    wrong = np.flatnonzero((over > _SAME) & apart & (free > -1))
    # A tie given up may not be violated either.
    wrong = np.union1d(wrong, np.flatnonzero((over > _SAME) & apart & held))
    if not len(wrong):
        return -1, 1.0
    parts = np.maximum(room[wrong], 0.0) / (over[wrong] + np.maximum(room[wrong], 0.0))
    return int(wrong[int(parts.argmin())]), float(parts.min())
