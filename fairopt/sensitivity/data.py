"""How data enter the equations of an answer: `J s + B dtheta = 0`, B by logarithms of the data and by alpha.

With `theta_nir` the part of r in what a task of n costs on i, and A = max(alpha, 1), or 1 in max-min, B has

    by alpha          log(x_n / (phi_n s_n(i))) / A                    of pairs
    by log phi_n      -alpha / A                                       of pairs (max-min: -1 of users)
    by log d_nr       theta_nir / A,  x_ni d_nr / c_ir                 of pairs, rows
    by log c_ir       -theta_nir / A,  -1                              of pairs, rows
    by log q_n        -1                                               of limits
    by log s_n(i)     (1 - alpha) / A                                  of pairs (max-min: -1 of users)

where `s_n = 1/u_n` is a share's, and in the game `s_n(i) = gamma_ni` falls with the demand for, and rises with the
capacity of, the resource that sets gamma.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._libraries import sp
from ..core.first_order import Equations
from .shares import TIED, apportioned

Array = NDArray[np.float64]
Index = NDArray[np.intp]


class Entries(list[tuple[Any, Any, Any]]):
    """Entries of a sparse matrix, collected: rows, columns and values, which add up where they meet."""

    def matrix(self, *shape: int) -> sp.csr_matrix:
        """What was collected."""
        every = [np.broadcast_arrays(*each) for each in self]
        row, column, value = (np.concatenate([np.zeros(0), *(each[k].ravel() for each in every)]) for k in range(3))
        there = value != 0
        return sp.csr_matrix((value[there], (row[there].astype(np.intp), column[there].astype(np.intp))), shape=shape)


def inputs(equations: Equations) -> list[dict[str, sp.csr_matrix]]:
    """B, by name of the data (equations, data), of servers as they are in the polytope; `share`: by `log u_n`.

    In two ways where several resources set gamma, the second at random.
    """
    active, scale = equations.active, equations.scale
    polytope, criterion = active.polytope, active.criterion
    users, servers, resources = polytope.cluster.shape
    found = {name: Entries() for name in ("alpha", "weight", "demand", "capacity", "limit", "share")}
    ways = [found]
    whose = polytope.users[equations.user] * resources
    cells = polytope.row_server * resources + polytope.row_resource
    used = (equations.uses(equations.pairs) @ sp.diags(active.part[equations.pairs])).tocoo()
    of = polytope.row_resource[equations.rows][used.row]
    found["demand"].append((equations.of_rows[used.row], whose[equations.pairs[used.col]] + of, used.data))
    found["capacity"].append((equations.of_rows, cells[equations.rows], -1.0))
    found["limit"].append((equations.of_limits, polytope.users[equations.limits], -1.0))
    if not equations.slope:
        who = polytope.users[equations.users]
        found["weight"].append((equations.of_users, who, -1.0))
        found["share"].append((equations.of_users, who, 1.0))
    for k, (pairs, equation) in enumerate(zip(equations.cheap, equations.of_pairs, strict=True)):
        share = equations.shares(k)
        of, value = polytope.row_resource[share.col], share.data / scale
        found["demand"].append((equation[share.row], whose[pairs[share.row]] + of, value))
        found["capacity"].append((equation[share.row], cells[share.col], -value))
        if not equations.slope:
            continue
        user, host = equations.user[pairs], equations.server[pairs]
        who, power = polytope.users[user], (1 - criterion.alpha) / scale
        game = criterion.scope == "game"
        own = criterion.share[who, host] if game else criterion.share[who]
        found["alpha"].append((equation, 0, np.log(active.total[user] * own / criterion.weight[who]) / scale))
        found["weight"].append((equation, who, -equations.slope))
        if not game:
            found["share"].append((equation, who, -power))
        elif power:
            of = np.arange(resources)
            sets = apportioned(polytope.pair_use[pairs] >= 1 - TIED)
            ways = [{name: Entries(entries) for name, entries in found.items()} for _ in sets]
            for way, value in zip(ways, sets, strict=True):
                way["demand"].append((equation[:, None], whose[pairs, None] + of, -power * value))
                way["capacity"].append((equation[:, None], host[:, None] * resources + of, power * value))
    columns = {"alpha": 1, "demand": users * resources, "capacity": servers * resources}
    return [{name: each.matrix(equations.size, columns.get(name, users)) for name, each in way.items()} for way in ways]
