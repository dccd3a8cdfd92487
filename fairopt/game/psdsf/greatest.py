"""The greatest PS-DSF allocation for positive demands: exact, by linear programs on the ties of a point nearby.

With positive demands an allocation is PS-DSF iff every server has a level `l_i`, users have `U_n = max_i phi_n gamma_ni
l_i` tasks, all on servers where that maximum is attained (their *ties*), and every server is full. Among these levels
there is a greatest, best for every user at once, and alphaPF-VDS tends to it (docs/psdsf.md has the proofs).

Servers connected by ties rise together. For each such group: the most by which it can rise, which is a linear program
over who sits where. Where a group meets the level of a user outside, they join; servers without a price in the
program have room left and leave, with their users. When neither happens, prices prove that no level can rise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._libraries import csgraph, optimize, sp
from ..model.equilibrium_system import EquilibriumSystem
from .options import OPTIONS, GreatestOptions

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Greatest:
    """Tasks of the pairs, and whether prices prove that no greater allocation is PS-DSF."""

    tasks: Array
    proved: bool
    programs: int


def greatest(
    q: EquilibriumSystem, log_price: Array, part: Array, tau: float, options: GreatestOptions = OPTIONS.greatest
) -> Greatest | None:
    """From log prices of servers (servers,) and parts of pairs within about `tau` of a PS-DSF allocation."""
    user = q.polytope.pair_user
    level = q.log_gain - log_price[q.server]
    best = np.maximum.reduceat(level, q.start[:-1])
    tied = level > (best - options.tied * tau)[user]
    price = _exact(q, log_price, np.flatnonzero(tied), part)
    servers = len(price)
    fixed = np.zeros(len(user), dtype=bool)  # ties that have been given up, as the user's other servers rise
    fresh = np.ones(servers, dtype=bool)  # servers whose groups have changed
    log_rise, value, tasks = np.zeros(servers), np.zeros(servers), np.zeros(len(user))
    for programs in range(1, options.programs + 1):
        level = q.log_gain - price[q.server]
        best = np.maximum.reduceat(np.where(fixed, -np.inf, level), q.start[:-1])
        pairs = np.flatnonzero((level > best[user] - options.same) & ~fixed)
        group = _groups(q, pairs, servers)
        again = np.isin(group, group[fresh])
        solved = _program(q, pairs[again[q.server[pairs]]], group, np.exp(best), options.far)
        if solved is None:
            return None
        log_rise[again], value[again] = np.log(solved[0])[group[again]], solved[2][again]
        tasks = np.where(again[q.server], solved[1], tasks)
        met, step = _meeting(q, price, price - log_rise, group, pairs, options.same)
        # A group that has come a part of the way has the rest before it.
        price, log_rise = price - step * log_rise, (1 - step) * log_rise
        if met >= 0:  # this pair and the user's own servers are of one level from now on
            n = user[met]
            own = pairs[np.searchsorted(pairs, q.start[n])]
            joined = group == group[q.server[met]]
            price[joined] += (q.log_gain[met] - price[q.server[met]]) - (q.log_gain[own] - price[q.server[own]])
            fixed[q.start[n] : q.start[n + 1]] = False
            fresh = joined | (group == group[q.server[own]])
            continue
        # Servers that nobody can use have no price either.
        free = (value < options.free / np.bincount(group)[group]) & q.row.any(axis=1)
        at_free = np.zeros(len(best), dtype=bool)
        at_free[user[pairs[free[q.server[pairs]]]]] = True
        leaving = pairs[at_free[user[pairs]] & ~free[q.server[pairs]]]
        if not len(leaving):
            return Greatest(tasks, not free.any(), programs)
        fixed[leaving] = True
        fresh = np.isin(group, group[q.server[leaving]])
    return Greatest(tasks, False, options.programs)


def _exact(q: EquilibriumSystem, log_price: Array, pairs: Index, part: Array) -> Array:
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


def _groups(q: EquilibriumSystem, pairs: Index, servers: int) -> Index:
    """Which servers are connected by ties, (servers,)."""
    user, server = q.polytope.pair_user[pairs], q.server[pairs]
    nodes = servers + len(q.start) - 1
    graph = sp.csr_matrix((np.ones(len(pairs)), (server, servers + user)), shape=(nodes, nodes))
    return np.asarray(csgraph.connected_components(graph, directed=False)[1][:servers])


def _program(
    q: EquilibriumSystem, pairs: Index, group: Index, total: Array, far: float
) -> tuple[Array, Array, Array] | None:
    """Largest rise of every group, at most `far`, tasks of the pairs at it, and prices of servers.

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
    uses = sp.hstack([whole, parts], format="csr")
    rows = np.flatnonzero(np.diff(uses.indptr))
    answer = optimize.linprog(
        np.concatenate([-np.ones(groups), np.zeros(count)]),
        A_ub=uses[rows],
        b_ub=np.ones(len(rows)),
        A_eq=sp.hstack([rise, sums], format="csr") if count else None,
        b_eq=np.zeros(len(split)) if count else None,
        bounds=np.column_stack([np.zeros(groups + count), np.repeat([far, np.inf], [groups, count])]),
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


def _meeting(
    q: EquilibriumSystem, price: Array, risen: Array, group: Index, pairs: Index, same: float
) -> tuple[int, float]:
    """The first pair to become a user's best as prices go to `risen`, and the part of the way; -1 and 1 if none."""
    user = q.polytope.pair_user
    own = np.zeros(len(q.start) - 1, dtype=np.intp)
    own[user[pairs]] = pairs
    before, after = (q.log_gain - at[q.server] for at in (price, risen))
    room, over = before[own][user] - before, after - after[own][user]
    residual = np.flatnonzero((over > same) & (group[q.server] != group[q.server[own]][user]))
    if not len(residual):
        return -1, 1.0
    parts = np.maximum(room[residual], 0.0) / (over[residual] + np.maximum(room[residual], 0.0))
    return int(residual[int(parts.argmin())]), float(parts.min())
