"""The conditions of an answer to first order: equations in what may move, and how each datum enters them.

    J s + B dtheta = 0,      d log x_n = sum over n's pairs of s,

unknowns s: `d x_ni / x_n` of pairs with tasks, and log prices and excesses (finite alpha), or levels (max-min).
Conditions that hold with equality although nothing holds them (a pair without tasks that costs no more than others, a
full resource without a price, a limit just reached) have equations, and no unknown: where a datum leaves the equations
solvable these conditions go on to hold either way, and the derivative exists; where it does not, the answer has a kink.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._libraries import csgraph, sp
from ..model.polytope import Polytope

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class Inputs:
    """How data enter the equations: `B`, each (equations, data), of logarithms but for alpha.

    Attributes
    ----------
    alpha : (equations, 1)
    weight : (equations, users)
    demand : (equations, users x resources)
    capacity : (equations, servers x resources), of the merged servers
    limit : (equations, users)
    share : (equations, users), by `log u_n` of the global rules
    tied_demand, tied_capacity : the same shapes, 1 where a tie decides which resource an equation's gamma follows
    """

    alpha: sp.csr_matrix
    weight: sp.csr_matrix
    demand: sp.csr_matrix
    capacity: sp.csr_matrix
    limit: sp.csr_matrix
    share: sp.csr_matrix
    tied_demand: sp.csr_matrix
    tied_capacity: sp.csr_matrix


@dataclass(frozen=True)
class Conditions:
    """An answer's equations; users, servers and data by their number in the polytope's cluster.

    Attributes
    ----------
    matrix : (equations, unknowns), J
    of_users : (all users, unknowns), `d log x_n` of the unknowns
    inputs : how data enter
    words : what each equation says, by number
    kinks : conditions that hold with equality although nothing holds them, in words
    ties : ties of what sets gamma or a share, in words
    tasks : (all users,)
    equation_part, user_part : (equations,), (all users,): what is not connected through servers has another number
    price_columns : unknowns that are prices of an answer at finite alpha
    """

    polytope: Polytope
    matrix: sp.csr_matrix
    of_users: sp.csr_matrix
    inputs: Inputs
    words: tuple[str, ...]
    kinks: tuple[str, ...]
    ties: tuple[str, ...]
    tasks: Array
    equation_part: Index
    user_part: Index
    price_columns: Index


def parts(polytope: Polytope, pairs: Index) -> tuple[Index, Index]:
    """Who is connected with whom through these pairs: numbers of all users, and of servers."""
    users, servers = polytope.cluster.shape[:2]
    edges = polytope.users[polytope.pair_user[pairs]], users + polytope.pair_server[pairs]
    graph = sp.csr_matrix((np.ones(len(pairs)), edges), shape=(users + servers,) * 2)
    part = csgraph.connected_components(graph, directed=False)[1]
    return part[:users], part[users:]


class Entries:
    """Entries of a sparse matrix, collected."""

    def __init__(self) -> None:
        self.rows: list[Index] = []
        self.columns: list[Index] = []
        self.values: list[Array] = []

    def add(self, rows: Index, columns: Index, values: Array | float) -> None:
        """Entries that add up where they meet."""
        some = np.broadcast_to(np.asarray(values, dtype=float), np.shape(rows))
        there = some != 0
        self.rows.append(rows[there])
        self.columns.append(columns[there])
        self.values.append(some[there])

    def matrix(self, shape: tuple[int, int]) -> sp.csr_matrix:
        """What was collected."""
        if not self.rows:
            return sp.csr_matrix(shape)
        joined = [np.concatenate(each) for each in (self.values, self.rows, self.columns)]
        return sp.csr_matrix((joined[0], (joined[1], joined[2])), shape=shape)
