"""What equations and kinks say."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..model.polytope import Polytope

Index = NDArray[np.intp]


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

    def weak_pair(self, k: int, pairs: NDArray[np.bool_]) -> str:
        mine = np.flatnonzero(pairs & (self.polytope.pair_user == self.polytope.pair_user[k]))
        has = ", ".join(self._server(i) for i in self.polytope.pair_server[mine][:3])
        here = self._server(self.polytope.pair_server[k])
        return f"user {self.user(self.polytope.pair_user[k])} ties on servers {has} and {here}, with no tasks on the last"

    def weak_row(self, k: int) -> str:
        return f"{self.row(k)} is just used up: it has no price"

    def tie(self, k: int, resources: Index) -> str:
        names = " and ".join(repr(self.cluster.resources[r]) for r in resources)
        return f"{names} tie for gamma of {self.pair(k)}"
