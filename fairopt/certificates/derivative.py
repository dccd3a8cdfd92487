"""The derivative of the optimality conditions on an active set: of kept pairs, priced rows and limits that bind.

    [ (log p_ni - log m_ni) / A + xi_n ]          d (x_ni / x_n)
    [ sum_n x_ni d_nr / c_ir - 1       ]   by     d log (lambda_ir c_ir)
    [ log x_n - log q_n                ]          d xi_n

`m` is what a task is worth, `p` what it costs, A a scale. `condition` bounds its inverse, `fairopt.sensitivity` solves
with it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._libraries import sp
from ..model.polytope import Polytope

Array = NDArray[np.float64]
Index = NDArray[np.intp]


def derivative(
    polytope: Polytope,
    pairs: Index,
    rows: Index,
    full: Index,
    total: Array,
    elasticity: Array,
    scale: float,
    cost: Array,
    log_rows: Array,
    moving: NDArray[np.bool_] | None = None,
) -> sp.csr_matrix:
    """The derivative for these pairs, rows and limits; a row without a price has one in another unit.

    Parameters
    ----------
    pairs, rows, full : of the polytope; users who are served in full, or at their floor
    total : (users,), tasks
    elasticity : (users,) or (users, servers), by how much the log of what a task is worth falls with log tasks
    scale : what equations of pairs are divided by
    cost, log_rows : (pairs,), (rows,), log prices of a task and of whole capacities, -inf for none
    moving : (pairs,), which have unknowns that count: the columns of others are left incomplete; all by default
    """
    user, server = polytope.pair_user[pairs], polytope.pair_server[pairs]
    row_of = np.full(polytope.cluster.capacity.shape, -1)
    row_of[polytope.row_server[rows], polytope.row_resource[rows]] = np.arange(len(rows))
    to = row_of[server]
    at, resource = np.nonzero((to >= 0) & (polytope.pair_use[pairs] > 0))
    to = to[at, resource]
    log_cost = cost[pairs] + np.log(polytope.gamma[pairs])
    relative = np.log(polytope.pair_use[pairs][at, resource]) - log_cost[at]
    log_price = log_rows[rows]
    free = np.flatnonzero(log_price == -np.inf)
    most = np.full(len(rows), -np.inf)
    np.maximum.at(most, to, relative)
    log_price[free] = -np.where(np.isfinite(most[free]), most[free], 0.0)
    share = np.exp(relative + log_price[to])
    use = polytope.pair_use[pairs][at, resource] / polytope.gamma[pairs][at] * total[user[at]]
    number = np.full(len(total), -1)
    number[full] = np.arange(len(full))
    own = number[user]
    served = np.flatnonzero(own >= 0)
    p, r, k = len(pairs), len(rows), len(full)
    same = sp.csr_matrix((np.ones(p), (np.arange(p), user)), shape=(p, len(total)))
    others = same if moving is None else sp.diags(moving.astype(float)) @ same
    entries = [
        (sp.diags(elasticity[user, server] if elasticity.ndim == 2 else elasticity[user]) @ same @ others.T).tocoo(),
        sp.coo_matrix((share / scale, (at, p + to)), shape=(p, p + r + k)),
        sp.coo_matrix((use, (p + to, at)), shape=(p + r, p)),
        sp.coo_matrix((np.ones(len(served)), (served, p + r + own[served])), shape=(p, p + r + k)),
        sp.coo_matrix((np.ones(len(served)), (p + r + own[served], served)), shape=(p + r + k, p)),
    ]
    size = p + r + k
    joined = [np.concatenate([getattr(each, name) for each in entries]) for name in ("data", "row", "col")]
    return sp.csr_matrix((joined[0], (joined[1], joined[2])), shape=(size, size))
