"""Why there is no derivative, in words."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..core.first_order import Equations

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]


def why(equations: Equations, null: Array, stuck: Mask, tied: Index, most: int = 3) -> str:
    """What is in the way: equations, what ties in their parts, and resources that tie.

    Parameters
    ----------
    null : (equations, k), combinations of equations that no unknown moves
    stuck : (parts,), which have no solution
    tied : pairs whose gamma is set by several resources
    """
    name = _Names(equations)
    ties = [name.tie(int(k)) for k in tied[:most]]
    if not stuck.any():
        return "; ".join(ties) if ties else "resources tie for a user's share, or tasks are not determined"
    weight = np.where(stuck[equations.parts[0]], np.abs(null).max(axis=1, initial=0.0), 0.0)
    worst = np.argsort(-weight, kind="stable")[:most]
    where = (
        "; ".join(dict.fromkeys(name.equation(int(k)) for k in worst[weight[worst] > 0])) or "servers that are alike"
    )
    said = [*name.kinks(stuck, most), *ties][:most]
    return f"cannot stay as it is: {where}" + (f" ({'; '.join(said)})" if said else "")


class _Names:
    def __init__(self, equations: Equations) -> None:
        self.equations, self.polytope = equations, equations.active.polytope
        self.cluster = self.polytope.cluster

    def user(self, n: int) -> str:
        return f"user {self.cluster.users[self.polytope.users[n]]!r}"

    def pair(self, k: int) -> str:
        return (
            f"{self.user(self.polytope.pair_user[k])} on server {self.cluster.servers[self.polytope.pair_server[k]]!r}"
        )

    def limit(self, n: int) -> str:
        return f"the task limit of {self.user(n)}"

    def row(self, k: int) -> str:
        server, resource = self.polytope.row_server[k], self.polytope.row_resource[k]
        return f"{self.cluster.resources[resource]!r} of server {self.cluster.servers[server]!r}"

    def equation(self, number: int) -> str:
        """What an equation is about."""
        equations = self.equations
        blocks: list[tuple[Index, Callable[[int], str]]] = [(each, self.pair) for each in equations.cheap]
        blocks += [(equations.rows, self.row), (equations.limits, self.limit), (equations.users, self.user)]
        for members, word in blocks:
            if number < len(members):
                return word(members[number])
            number -= len(members)
        raise IndexError(number)

    def kinks(self, stuck: Mask, most: int) -> list[str]:
        """Weak pairs, beside pairs with tasks, weak rows, limits that are just reached, in parts that are stuck."""
        active, (_, of_users) = self.equations.active, self.equations.parts
        here = stuck[of_users[self.polytope.users]]
        user, server = self.polytope.pair_user, self.polytope.pair_server
        found = []
        for k in np.flatnonzero(active.weak_pairs & here[user])[:most]:
            mine = server[np.flatnonzero(active.pairs & (user == user[k]))][:3]
            has = ", ".join(repr(self.cluster.servers[i]) for i in mine)
            where = repr(self.cluster.servers[server[k]])
            found.append(f"{self.user(user[k])} ties on servers {has} and {where}, with no tasks on the last")
        found += [f"{self.row(k)} is just used up: it has no price" for k in np.flatnonzero(active.weak_rows)[:most]]
        reached = active.weak_limits | (active.limits & active.follows if not self.equations.slope else False)
        return found + [f"{self.user(n)} just reaches its task limit" for n in np.flatnonzero(reached & here)[:most]]

    def tie(self, k: int) -> str:
        close = np.flatnonzero(self.polytope.pair_use[k] >= 1 - 1e-7)
        return f"{' and '.join(repr(self.cluster.resources[r]) for r in close)} tie for gamma of {self.pair(k)}"
