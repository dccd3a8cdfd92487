"""The conditions of an answer to first order: equations in what may move, and how each datum enters them.

    J s + B dtheta = 0,      d log x_n = sum over n's pairs of s,

unknowns s: `d x_ni / x_n` of pairs with tasks, and log prices and excesses (finite alpha), or levels (max-min).
Conditions that hold with equality although nothing holds them (a pair without tasks that costs no more than others, a
full resource without a price, a limit just reached) have equations, and no unknown: where a datum leaves the equations
solvable these conditions go on to hold either way, and the derivative exists; where it does not, the answer has a kink.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._libraries import csgraph, sp
from ..model.polytope import Polytope

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class RepresentativeOptions:
    """How many pairs stand for all."""

    #: With more than `many` pairs per user and row some stand for all:
    many: int = 3
    #: `of_user` of a user,
    of_user: int = 2
    #: and `M + of_server` of a server.
    of_server: int = 2


#: What is used unless a caller says otherwise.
OPTIONS = RepresentativeOptions()


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
    word : what an equation is about, by its number
    kinks : makes the conditions that hold with equality although nothing holds them, in words, at most so many
    ties : the same for ties of what sets gamma
    tasks : (all users,)
    equation_part, user_part : (equations,), (all users,): what is not connected through servers has another number
    price_columns : unknowns that are prices of an answer at finite alpha
    main : (equations,), those that determine all; the others follow, or have no solution
    """

    polytope: Polytope
    matrix: sp.csr_matrix
    of_users: sp.csr_matrix
    inputs: Inputs
    word: Callable[[int], str]
    kinks: Callable[[int], list[str]]
    ties: Callable[[int], list[str]]
    tasks: Array
    equation_part: Index
    user_part: Index
    price_columns: Index
    main: Mask


def parts(polytope: Polytope, pairs: Index) -> tuple[Index, Index]:
    """Who is connected with whom through these pairs: numbers of all users, and of servers."""
    users, servers = polytope.cluster.shape[:2]
    edges = polytope.users[polytope.pair_user[pairs]], users + polytope.pair_server[pairs]
    graph = sp.csr_matrix((np.ones(len(pairs)), edges), shape=(users + servers,) * 2)
    part = csgraph.connected_components(graph, directed=False)[1]
    return part[:users], part[users:]


def crowded(polytope: Polytope, pairs: int) -> bool:
    """Are there so many pairs, for its users and rows, that some stand for all?"""
    servers, resources = polytope.cluster.shape[1:]
    return pairs > OPTIONS.many * (len(polytope.users) + servers * resources)


def representative(polytope: Polytope, pairs: Index, part: Array) -> Mask:
    """Of pairs (k,) with `part` (k,) of their users' tasks, enough to reach whatever all of them can, (k,).

    Where servers are as good as each other, every user may have tasks on all of them. The largest parts of a user, and
    the largest uses of a server, are then enough.
    """
    user, server = polytope.pair_user[pairs], polytope.pair_server[pairs]
    resources = polytope.cluster.shape[2]
    if not crowded(polytope, len(pairs)):
        return np.ones(len(pairs), dtype=bool)
    use = polytope.pair_use[pairs].max(axis=1) / polytope.gamma[pairs] * part
    return _first_of(user, part, OPTIONS.of_user) | _first_of(server, use, resources + OPTIONS.of_server)


def _first_of(group: Index, size: Array, most: int) -> Mask:
    """The largest of every group, (k,)."""
    order = np.lexsort((-size, group))
    first = np.flatnonzero(np.diff(group[order], prepend=-1))
    rank = np.empty(len(group), dtype=np.intp)
    rank[order] = np.arange(len(group)) - np.repeat(first, np.diff(np.append(first, len(group))))
    return np.asarray(rank < most)


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
