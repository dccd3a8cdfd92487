"""What equations and kinks say."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..model.polytope import Polytope

Index = NDArray[np.intp]
Mask = NDArray[np.bool_]


class Words:
    """Pairs, rows and users of a polytope by name."""

    def __init__(self, polytope: Polytope) -> None:
        self.polytope, self.cluster = polytope, polytope.cluster

    def user(self, n: int) -> str:
        return repr(self.cluster.users[self.polytope.users[n]])

    def _server(self, i: int) -> str:
        return repr(self.cluster.servers[i])

    def pair(self, k: int) -> str:
        return f"user {self.user(self.polytope.pair_user[k])} on server {self._server(self.polytope.pair_server[k])}"

    def row(self, k: int) -> str:
        name = self.cluster.resources[self.polytope.row_resource[k]]
        return f"{name!r} of server {self._server(self.polytope.row_server[k])}"

    def limit(self, n: int) -> str:
        return f"the task limit of user {self.user(n)}"

    def weak_pair(self, k: int, pairs: Mask) -> str:
        mine = np.flatnonzero(pairs & (self.polytope.pair_user == self.polytope.pair_user[k]))
        has = ", ".join(self._server(i) for i in self.polytope.pair_server[mine][:3])
        here = self._server(self.polytope.pair_server[k])
        return (
            f"user {self.user(self.polytope.pair_user[k])} ties on servers {has} and {here}, with no tasks on the last"
        )

    def weak_row(self, k: int) -> str:
        return f"{self.row(k)} is just used up: it has no price"

    def tie(self, k: int, resources: Index) -> str:
        names = " and ".join(repr(self.cluster.resources[r]) for r in resources)
        return f"{names} tie for gamma of {self.pair(k)}"

    def kinks(self, most: int, pairs: tuple[Mask, Mask], rows: Mask, full: Mask) -> list[str]:
        """Weak pairs, beside pairs with tasks, weak rows, limits that are just reached; at most so many."""
        found = [self.weak_pair(k, pairs[0]) for k in np.flatnonzero(pairs[1])[:most]]
        found += [self.weak_row(k) for k in np.flatnonzero(rows)[:most]]
        found += [f"user {self.user(n)} just reaches its task limit" for n in np.flatnonzero(full)[:most]]
        return found[:most]

    def equation(self, number: int, pairs: Index, rows: Index, full: Index) -> str:
        """What an equation is about: pairs first, then rows and limits."""
        if number < len(pairs):
            return self.pair(pairs[number])
        number -= len(pairs)
        return self.row(rows[number]) if number < len(rows) else self.limit(full[number - len(rows)])
