"""Why there is no derivative, in words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..core.first_order import Equations
from .shares import TIED

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def why(equations: Equations, null: Array, stuck: Mask, most: int = 3) -> str:
    """What is in the way: whose tasks, what ties in their parts, and resources that tie.

    Parameters
    ----------
    null : (equations, k), combinations of equations that no unknown moves
    stuck : (parts,), which have no solution
    """
    users = [*(equations.user[each] for each in equations.cheap), equations.limits, equations.users]
    of = np.concatenate([*equations.of_pairs, equations.of_limits, equations.of_users])
    ties = _ties(equations, most)
    if not stuck.any():
        return "; ".join(ties) if ties else "resources tie for a user's share, or tasks are not determined"
    weight = np.where(stuck[equations.parts[0]], np.abs(null).max(axis=1, initial=0.0), 0.0)[of]
    whose = np.concatenate(users)[np.argsort(-weight, kind="stable")[: (weight > 0).sum()]]
    names = list(dict.fromkeys(_user(equations, n) for n in whose))[:most] or ["servers that are alike"]
    said = [*_kinks(equations, stuck, most), *ties][:most]
    return f"cannot stay as it is: {', '.join(names)}" + (f" ({'; '.join(said)})" if said else "")


def _user(equations: Equations, n: int) -> str:
    polytope = equations.active.polytope
    return f"user {polytope.cluster.users[polytope.users[n]]!r}"


def _kinks(equations: Equations, stuck: Mask, most: int) -> list[str]:
    """Weak pairs, beside pairs with tasks, weak rows, limits that are just reached, in parts that are stuck."""
    active, polytope = equations.active, equations.active.polytope
    here, cluster = stuck[equations.parts[1][polytope.users]], polytope.cluster
    user, server = equations.user, equations.server
    found = []
    for k in np.flatnonzero(active.weak_pairs & here[user])[:most]:
        mine = server[np.flatnonzero(active.pairs & (user == user[k]))][:3]
        has = ", ".join(repr(cluster.servers[i]) for i in mine)
        where = repr(cluster.servers[server[k]])
        found.append(f"{_user(equations, user[k])} ties on servers {has} and {where}, with no tasks on the last")
    for k in np.flatnonzero(active.weak_rows)[:most]:
        resource, host = cluster.resources[polytope.row_resource[k]], cluster.servers[polytope.row_server[k]]
        found.append(f"{resource!r} of server {host!r} is just used up: it has no price")
    reached = (active.weak_limits | (active.limits & active.follows)) & here
    return found + [f"{_user(equations, n)} just reaches its task limit" for n in np.flatnonzero(reached)[:most]]


def _ties(equations: Equations, most: int) -> list[str]:
    """In the game, what sets gamma together."""
    criterion, polytope = equations.active.criterion, equations.active.polytope
    if criterion.scope != "game" or criterion.alpha == 1:
        return []
    found, cluster = [], polytope.cluster
    for k in equations.cheap[0]:
        close = np.flatnonzero(polytope.pair_use[k] >= 1 - TIED)
        if len(close) > 1:
            names = " and ".join(repr(cluster.resources[r]) for r in close)
            where = f"{_user(equations, equations.user[k])} on server {cluster.servers[equations.server[k]]!r}"
            found.append(f"{names} tie for gamma of {where}")
    return found[:most]
