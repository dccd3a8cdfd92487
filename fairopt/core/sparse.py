r"""Sparse Schur complements: elimination in minimum-degree order, with a dense trailing matrix.

Users and servers form a bipartite graph. Eliminating one side, with members g, leaves a matrix over the other side,

.. math::
    S_{jk} = \delta_{jk} - \sum_g l_{gj} \cdot r_{gk},

with vectors l and r for each edge. Two unknowns j and k are adjacent if both are connected with some g. Unknowns of
small degree are eliminated in order of their degrees, in sparse lists; once the remaining matrix is nearly dense (after
about half of the unknowns in random graphs), it is factored by LAPACK.

Source: George, Liu, "The evolution of the minimum degree ordering algorithm", SIAM Review 31 (1989).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..base.libraries import blas
from ..base.loops import compiled
from ..model._arrays import Array, Index
from .accuracy import NEWTON_ROUNDING
from .factors import factored

#: Number of flops up to which dense products take less time than loading the compiled loops over sparse lists.
DENSE_FLOPS = 3e8
#: Number of unknowns up to which no order is computed (`_UNORDERED`), and least degree, as a fraction of the remaining
#: unknowns, above which the remaining matrix is treated as dense (`_DENSE_DEGREE`).
_UNORDERED, _DENSE_DEGREE = 250, 0.25
#: Pivots up to this value, for a diagonal of 1, count as rounding errors, and are replaced by 1, which decouples the
#: unknown.
_ROUNDED = NEWTON_ROUNDING


class Order(NamedTuple):
    """Elimination order of the unknowns, and sparsity pattern of the columns that are eliminated sparsely ("early").

    Attributes
    ----------
    place : (unknowns,), positions in the order
    start, member : (groups + 1,), (members,), members of each group in compressed form, sorted by position
    group, at, host : (members,), group and position of the unknown of each member; members with the same host
        contribute no product
    column : (members,), indices of members in the order of their nodes
    pointer, later : (early + 1,), (entries,), later neighbours of early unknowns in compressed form, as positions
    """

    place: Index
    start: Index
    member: Index
    group: Index
    at: Index
    host: Index
    column: Index
    pointer: Index
    later: Index


def ordered(group: Index, node: Index, nodes: int, size: int = 1) -> Order:
    """Order nodes, each of `size` adjacent unknowns, given the group and the node of each member, both (members,).

    Members of the same node contribute no product.
    """
    groups, unknowns = int(group.max(initial=-1)) + 1, np.arange(size)
    order, member = np.arange(nodes), np.argsort(group, kind="stable")
    pointer, later = np.zeros((2, 1), dtype=np.intp)
    if nodes * size > _UNORDERED:
        pointer, later = _least_degrees(np.searchsorted(group[member], np.arange(groups + 1)), node[member], order)
    place = np.argsort(order)
    # Positions of adjacent unknowns: unknowns of adjacent nodes, and of the same node.
    early = len(pointer) - 1
    k, j = np.repeat(np.arange(early), np.diff(pointer)), place[later[: pointer[-1]]]
    first, second = (
        each.ravel()
        for each in np.broadcast_arrays(k[:, None, None] * size + unknowns[:, None], j[:, None, None] * size + unknowns)
    )
    first, second = first[second > first], second[second > first]
    later = second[np.lexsort((second, first))]
    pointer = np.searchsorted(np.sort(first), np.arange(early * size + 1))

    def each(values: Index) -> Index:
        return np.asarray((values[:, None] * size + unknowns).ravel())

    member = np.lexsort((place[node], group))
    start, at = np.searchsorted(group[member], np.arange(groups + 1)) * size, each(place[node[member]])
    member_group, host = (np.repeat(values[member], size) for values in (group, node))
    column = np.argsort(np.repeat(place[node[member]], size), kind="stable")
    return Order(each(place), start, each(member), member_group, at, host, column, pointer, later)


@compiled
def _least_degrees(start, node, order):  # type: ignore[no-untyped-def]
    """Symbolic elimination of nodes of least degree while this degree is small; `order` is permuted in place.

    Nodes of a group, `node[start[g]:start[g + 1]]`, are adjacent. Returns the later neighbours of eliminated nodes and
    the nodes themselves, in compressed form: pointers (eliminated + 1,), and nodes.
    """
    count = len(order)
    adjacent = np.zeros((count, count), dtype=np.bool_)
    for g in range(len(start) - 1):
        for a in range(start[g], start[g + 1]):
            for b in range(start[g], start[g + 1]):
                adjacent[node[a], node[b]] = True
    degree = np.zeros(count, dtype=np.int64)
    for v in range(count):
        adjacent[v, v] = True
        degree[v] = adjacent[v].sum() - 1
    pointer, later = np.zeros(count + 1, dtype=np.int64), np.empty(count, dtype=np.int64)
    for early in range(count):
        least = early
        for k in range(early, count):
            if degree[order[k]] < degree[order[least]]:
                least = k
        v = order[least]
        if degree[v] > _DENSE_DEGREE * (count - early):
            return pointer[: early + 1], later
        order[least], order[early] = order[early], v
        begin = pointer[early]
        stop = begin + degree[v] + 1
        if stop > len(later):
            later = np.append(later, np.empty(stop, dtype=np.int64))
        later[begin] = v
        stop = begin + 1
        for k in range(early + 1, count):
            if adjacent[v, order[k]]:
                later[stop] = order[k]
                stop += 1
        pointer[early + 1] = stop
        for a in range(begin + 1, stop):
            j = later[a]
            degree[j] -= 1
            for b in range(begin + 1, stop):
                if not adjacent[j, later[b]]:
                    adjacent[j, later[b]] = True
                    degree[j] += 1
    return pointer, later


class Factors:
    """Factors of a Schur complement with unit diagonal, plus the rank-one matrix `along along'`.

    Parameters
    ----------
    left, right : (members, k), in the order `order.member`; products `left . right` within a group are subtracted
    others : rows, columns and values of additional off-diagonal entries
    along : (unknowns,), given if S is symmetric: then `right` equals `left`, and `others` has the lower triangle
    single : factor the dense trailing matrix in single precision
    """

    def __init__(
        self, order: Order, left: Array, right: Array, others: tuple[Index, Index, Array] | None = None,
        along: Array | None = None, single: bool = False,
    ) -> None:  # fmt: skip
        self.order, self.symmetric = order, along is not None
        symmetric, along = self.symmetric, np.zeros(len(order.place)) if along is None else along
        early = self.early = len(order.pointer) - 1
        self.diagonal = np.ones(early)
        self.low, self.up = np.zeros((2, len(order.later)))
        end = np.zeros((len(along) - early,) * 2, order="F")
        np.einsum("ii->i", end)[:] = 1.0
        lists = order.pointer, order.later, self.diagonal, self.low, self.up, end
        if others is not None:
            _add_entries(order.place[others[0]], order.place[others[1]], others[2], *lists)
        _subtract_all(order.start, order.group, order.at, order.column, order.host, left, right, *lists, symmetric)
        _eliminate(*lists, symmetric)
        # The rank-one term is a bordering row and column, eliminated last, with -1 on the diagonal.
        self.along = np.empty(len(along))
        self.along[order.place] = along
        _forward_substitute(order.pointer, order.later, self.low, self.along)
        self.last = 1 + float(self.along[:early] ** 2 @ (1 / self.diagonal))
        if along.any():
            end = blas.dsyr(1 / self.last, self.along[early:], a=end, lower=1, overwrite_a=1)
        diagonal = end.diagonal()
        self.scale = 1 / np.sqrt(np.where(diagonal > _ROUNDED, diagonal, 1.0))
        end = end.astype(np.float32) if single else end
        scale = self.scale.astype(end.dtype)
        end *= scale
        end *= scale[:, None]
        np.einsum("ii->i", end)[:] = 1.0
        self.factor = factored(end, symmetric)

    def solve(self, given: Array) -> Array:
        """Solve for a right-hand side (unknowns,): substitution in the early unknowns, and the dense factors."""
        early, pointer, later, x = self.early, self.order.pointer, self.order.later, np.empty(len(given))
        x[self.order.place] = given
        _forward_substitute(pointer, later, self.low, x)
        along, end = self.along[:early], self.along[early:]
        last = -float(along @ (x[:early] / self.diagonal))
        x[early:] = self.factor((x[early:] + end * (last / self.last)) * self.scale) * self.scale
        x[:early] -= along * ((float(end @ x[early:]) - last) / self.last)
        _back_substitute(pointer, later, self.diagonal, self.low if self.symmetric else self.up, self.symmetric, x)
        return x[self.order.place]


@compiled(inner=True)
def _subtract(i, j, value, pointer, later, diagonal, low, up, end):  # type: ignore[no-untyped-def]
    """Subtract a value from the entry (i, j) of the matrix, in place.

    The unknowns i and j are positions in the elimination order. Entries are in `end` if both unknowns belong to the
    dense trailing matrix. Other entries are in `diagonal` (i = j), `low` (i > j) or `up` (i < j); the last two have an
    entry for each of the `later` neighbours of every early unknown.
    """
    early = len(pointer) - 1
    if i >= early and j >= early:
        end[i - early, j - early] -= value
    elif i == j:
        diagonal[i] -= value
    else:
        first, last = min(i, j), max(i, j)
        begin, stop = pointer[first], pointer[first + 1]
        k = begin + np.searchsorted(later[begin:stop], last)
        if i > j:
            low[k] -= value
        else:
            up[k] -= value


@compiled
def _add_entries(i, j, value, pointer, later, diagonal, low, up, end):  # type: ignore[no-untyped-def]
    """Add entries, triplets of positions i, j and values, to the matrix."""
    for k in range(len(value)):
        _subtract(i[k], j[k], -value[k], pointer, later, diagonal, low, up, end)


@compiled
def _subtract_all(start, group, at, column, host, left, right, pointer, later, diagonal, low, up, end, symmetric):  # type: ignore[no-untyped-def]
    """Subtract the products `left . right` of all pairs of members of each group with different hosts.

    A symmetric matrix is processed group after group. Otherwise columns of one node after the other are processed, as
    they stay in the cache, while each group has products in both triangles.
    """
    early, width = len(pointer) - 1, left.shape[1]
    for place in range(len(at)):
        f = place if symmetric else column[place]
        j, own, factor = at[f], host[f], right[f, 0]
        first, stop = f + 1 if symmetric else start[group[f]], start[group[f] + 1]
        if width == 1 and j >= early and (symmetric or at[first] >= early):  # the innermost loop for large groups
            for e in range(first, stop):
                if host[e] != own:
                    end[at[e] - early, j - early] -= left[e, 0] * factor
            continue
        for e in range(first, stop):
            if host[e] == own:
                continue
            i, value = at[e], 0.0
            for k in range(width):
                value += left[e, k] * right[f, k]
            if i >= early and j >= early:
                end[i - early, j - early] -= value
            else:
                _subtract(i, j, value, pointer, later, diagonal, low, up, end)


@compiled
def _eliminate(pointer, later, diagonal, low, up, end, symmetric):  # type: ignore[no-untyped-def]
    """Eliminate the early unknowns in place: an LU factorisation, or LDL' of the lower triangle if symmetric.

    On return `diagonal` has the pivots, `low` the unit lower and `up` the upper factor; products are subtracted from
    the trailing matrix `end`. Pivots that are due to rounding are replaced by 1.
    """
    early = len(pointer) - 1
    for v in range(early):
        diagonal[v] = diagonal[v] if diagonal[v] > _ROUNDED else 1.0
        begin, stop = pointer[v], pointer[v + 1]
        for b in range(begin, stop):
            j, other = later[b], (low[b] if symmetric else up[b]) / diagonal[v]
            if other == 0:
                continue
            for a in range(b if symmetric else begin, stop):
                value = low[a] * other
                if j >= early and later[a] >= early:
                    end[later[a] - early, j - early] -= value
                else:
                    _subtract(later[a], j, value, pointer, later, diagonal, low, up, end)
        for b in range(begin, stop):
            low[b] /= diagonal[v]


@compiled
def _forward_substitute(pointer, later, low, x):  # type: ignore[no-untyped-def]
    """Solve with the unit lower triangle of early unknowns, in place."""
    for v in range(len(pointer) - 1):
        for a in range(pointer[v], pointer[v + 1]):
            x[later[a]] -= low[a] * x[v]


@compiled
def _back_substitute(pointer, later, diagonal, up, symmetric, x):  # type: ignore[no-untyped-def]
    """Solve with the diagonal and the upper triangle of early unknowns, in place."""
    for v in range(len(pointer) - 2, -1, -1):
        total = 0.0
        for a in range(pointer[v], pointer[v + 1]):
            total += up[a] * x[later[a]]
        x[v] = x[v] / diagonal[v] - total if symmetric else (x[v] - total) / diagonal[v]
