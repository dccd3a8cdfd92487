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

from dataclasses import dataclass
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


@dataclass(frozen=True)
class Inputs:
    """B, by name of the data (equations, data), of servers as they are in the polytope; `share`: by `log u_n`.

    `ties`: `demand` and `capacity` less the same where ties of what sets gamma are broken in another way, at random.
    `tied`: pairs whose gamma is set by several resources.
    """

    by: dict[str, sp.csr_matrix]
    ties: dict[str, sp.csr_matrix]
    tied: Index


def inputs(equations: Equations) -> Inputs:
    """How data enter."""
    active, scale = equations.active, equations.scale
    polytope, criterion = active.polytope, active.criterion
    users, servers, resources = polytope.cluster.shape
    found = {name: Entries() for name in ("alpha", "weight", "demand", "capacity", "limit", "share")}
    ties = {name: Entries() for name in ("demand", "capacity")}
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
    tied = np.zeros(0, dtype=np.intp)
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
            sets, other = apportioned(polytope.pair_use[pairs] >= 1 - TIED)
            tied = pairs[(sets != other).any(axis=1)]
            for entries, value in ((found, sets), (ties, sets - other)):
                where = np.arange(resources) + whose[pairs, None]
                entries["demand"].append((equation[:, None], where, -power * value))
                where = np.arange(resources) + host[:, None] * resources
                entries["capacity"].append((equation[:, None], where, power * value))
    of_users = dict.fromkeys(("weight", "limit", "share"), users)
    columns = {"alpha": 1, "demand": users * resources, "capacity": servers * resources} | of_users
    b, apart = (
        {name: each.matrix(equations.size, columns[name]) for name, each in some.items()} for some in (found, ties)
    )
    return Inputs(b, apart, tied)
