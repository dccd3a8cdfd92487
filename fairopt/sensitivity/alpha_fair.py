"""The conditions of an answer at finite alpha, global or of the game, and how the data enter them.

With `A = max(alpha, 1)`, prices `L_ir = log(lambda_ir c_ir)` of whole capacities and `s_n(i) = 1/u_n` (game:
`gamma[n,i]`), the equations of pairs with tasks, of priced rows and of binding limits are

    F_ni = (log sum_r lambda_ir d_nr - alpha log phi_n - (alpha - 1) log s_n(i) + alpha log x_n) / A + xi_n = 0
    F_ir = sum_n x_ni d_nr / c_ir - 1 = 0,            F_n = log x_n - log q_n = 0

and their derivatives by the data, unknowns held, with `theta_nir` the part of r in what a task of n costs on i,

    by alpha          log(x_n / (phi_n s_n(i))) / A                    of F_ni
    by log phi_n      -alpha / A                                       of F_ni
    by log d_nr       theta_nir / A,  x_ni d_nr / c_ir                 of F_ni, F_ir
    by log c_ir       -theta_nir / A,  -1                              of F_ni, F_ir
    by log q_n        -1                                               of F_n
    by log s_n(i)     (1 - alpha) / A                                  of F_ni

where in the game `s` falls with the demand for, and rises with the capacity of, the resource that sets gamma.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._libraries import sp
from ..certificates.derivative import derivative
from ..model.criterion import Criterion
from ..model.polytope import Polytope
from ._words import Words
from .active_set import ActiveSet
from .conditions import Conditions, Entries, Inputs, parts, representative
from .shares import OPTIONS as TIES

Array = NDArray[np.float64]
Index = NDArray[np.intp]


def conditions(polytope: Polytope, criterion: Criterion, found: ActiveSet) -> Conditions:
    """The equations of an active set."""
    own, scale = criterion.restrict(polytope.users), criterion.stiffness
    sets = (found.pairs, found.weak_pairs), (found.rows, found.weak_rows), (found.full, found.weak_full)
    pairs, rows, full = (np.concatenate([np.flatnonzero(each) for each in both]) for both in sets)
    strict = np.concatenate([np.arange(len(a)) < b.sum() for a, (b, _) in zip((pairs, rows, full), sets, strict=True)])
    total = np.add.reduceat(found.tasks, polytope.start[:-1])
    args = pairs, rows, full, total, own.elasticity(total) / scale, scale, found.cost, found.log_rows
    free, users = np.flatnonzero(found.pairs), polytope.cluster.shape[0]
    # Who is served in full where nothing has a price follows its limit alone: no equations of pairs, no excess.
    idle = np.zeros(len(total), dtype=bool)
    idle[polytope.pair_user[found.free & found.pairs]] = True
    holds = np.concatenate([~found.free[pairs], np.ones(len(rows) + len(full), dtype=bool)])
    some = np.zeros(len(pairs), dtype=bool)
    some[: len(free)] = representative(polytope, free, found.tasks[free] / total[polytope.pair_user[free]])
    moves = strict & np.concatenate([some, np.ones(len(rows), dtype=bool), ~idle[full]])
    main = np.concatenate([some, np.ones(len(rows) + len(full), dtype=bool)])
    main &= strict  # weak ones follow, or have no solution
    matrix = derivative(polytope, *args, moving=some)[:, np.flatnonzero(moves)].tocsr()
    matrix = (sp.diags(holds.astype(float)) @ matrix).tocsr()
    free = free[some[: len(free)]]
    who = polytope.users[polytope.pair_user[free]]
    of_users = sp.csr_matrix((np.ones(len(free)), (who, np.arange(len(free)))), shape=(users, matrix.shape[1]))
    x = np.zeros(users)
    x[polytope.users] = total
    names = Words(polytope)
    inputs, ties = _inputs(polytope, criterion, found, (pairs, rows, full), total, holds)
    # Where equations have no solution prices jump, and who could use the server may come: not only who does.
    of_user, of_server = parts(polytope, np.arange(len(polytope.gamma)))
    part = np.concatenate(
        [of_server[polytope.pair_server[pairs]], of_server[polytope.row_server[rows]], of_user[polytope.users[full]]]
    )
    prices = len(free) + np.arange(int(found.rows.sum()))

    def kinks(most: int) -> list[str]:
        return names.kinks(most, (found.pairs, found.weak_pairs), found.weak_rows, found.weak_full)

    text = (
        lambda number: names.equation(number, pairs, rows, full),
        kinks,
        lambda most: [names.tie(*each) for each in ties[:most]],
    )
    return Conditions(polytope, matrix, of_users, inputs, *text, x, part, of_user, prices, main)


def _inputs(
    polytope: Polytope,
    criterion: Criterion,
    found: ActiveSet,
    active: tuple[Index, Index, Index],
    total: Array,
    holds: NDArray[np.bool_],
) -> tuple[Inputs, list[tuple[int, Index]]]:
    """How data enter, and pairs whose gamma is set by several resources."""
    pairs, rows, full = active
    p, r, cluster = len(pairs), len(rows), polytope.cluster
    users, servers, resources = cluster.shape
    size, scale, alpha = p + r + len(full), criterion.stiffness, criterion.alpha
    server, at = polytope.pair_server[pairs], np.arange(p)
    who = polytope.users[polytope.pair_user[pairs]]
    entries = {name: Entries() for name in Inputs.__dataclass_fields__}
    game = criterion.scope == "game"
    share = criterion.share[who, server] if game else criterion.share[who]
    level = np.log(total[polytope.pair_user[pairs]] * share / criterion.weight[who])
    entries["alpha"].add(at, np.zeros(p, dtype=np.intp), level / scale)
    entries["weight"].add(at, who, -alpha / scale)
    log_cost = found.cost[pairs] + np.log(polytope.gamma[pairs])
    log_price = polytope.by_server(found.log_rows, unused=-np.inf)
    row_of = np.full(cluster.capacity.shape, -1)
    row_of[polytope.row_server[rows], polytope.row_resource[rows]] = p + np.arange(r)
    power, ties = (1 - alpha) / scale, []
    for k in range(resources):
        use = polytope.pair_use[pairs, k]
        with np.errstate(divide="ignore"):
            part = np.exp(np.log(use) + log_price[server, k] - log_cost)
        entries["demand"].add(at, who * resources + k, part / scale)
        entries["capacity"].add(at, server * resources + k, -part / scale)
        row = row_of[server, k]
        there = np.flatnonzero((row >= 0) & (use > 0))
        used = (use / polytope.gamma[pairs] * found.tasks[pairs])[there]
        entries["demand"].add(row[there], who[there] * resources + k, used)
    entries["capacity"].add(p + np.arange(r), polytope.row_server[rows] * resources + polytope.row_resource[rows], -1.0)
    entries["limit"].add(p + r + np.arange(len(full)), polytope.users[full], -1.0)
    if game and alpha != 1:
        sets = polytope.pair_use[pairs].argmax(axis=1)
        entries["demand"].add(at, who * resources + sets, -power)
        entries["capacity"].add(at, server * resources + sets, power)
        close = polytope.pair_use[pairs] >= 1 - TIES.tied
        several = np.flatnonzero(close.sum(axis=1) > 1)
        ties = [(int(pairs[e]), np.flatnonzero(close[e])) for e in several]
        for e in several:
            tied = np.flatnonzero(close[e])
            equation = np.full(len(tied), e)
            entries["tied_demand"].add(equation, who[e] * resources + tied, 1.0)
            entries["tied_capacity"].add(equation, server[e] * resources + tied, 1.0)
    elif not game:
        entries["share"].add(at, who, -power)
    columns = {"alpha": 1, "weight": users, "limit": users, "share": users}
    columns |= {"demand": users * resources, "tied_demand": users * resources}
    columns |= {"capacity": servers * resources, "tied_capacity": servers * resources}
    keep = sp.diags(holds.astype(float))
    return Inputs(**{name: keep @ each.matrix((size, columns[name])) for name, each in entries.items()}), ties
