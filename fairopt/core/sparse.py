r"""Sparse Schur complements: minimum degree as long as little fills in, and a dense end.

Users and servers are a bipartite graph. Eliminating one side leaves a matrix over the other,

.. math::
    S_{jk} = \delta_{jk} - \sum_g l_{gj} \cdot r_{gk},

in which two unknowns meet if they share a member g of the eliminated side. Unknowns with few neighbours are eliminated
in order of their degrees, in lists; what is left is nearly full from some point on (of random graphs about half of the
unknowns), and LAPACK's.

Source: George, Liu, "The evolution of the minimum degree ordering algorithm", SIAM Review 31 (1989).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..base.libraries import sp
from ..base.loops import compiled
from ..model._arrays import Array, Index
from .factors import factored

#: Operations of products of tables below which these are quicker than it takes to compile loops over lists.
TABLES = 3e8
#: So few unknowns are not worth an order, and no more are eliminated from lists once one has that part of the others
#: for neighbours.
_FEW, _FULL = 250, 0.25
#: What is left of a diagonal of 1 that may be rounding: such an unknown is held where it is, or nearly.
_LOST = 1e-13


class Order(NamedTuple):
    """Members of groups, and lists of those who are eliminated one by one.

    Attributes
    ----------
    place : (unknowns,), when each is eliminated
    start, member : (groups + 1,), (members,), those of each eliminated group by place
    at, host : (members,), places of unknowns; members of one host do not meet in groups
    pointer, later : (early + 1,) and lists of places, those with which each early unknown meets
    """

    place: Index
    start: Index
    member: Index
    at: Index
    host: Index
    pointer: Index
    later: Index


def ordered(group: Index, node: Index, nodes: int, size: int = 1, host: Index | None = None) -> Order:
    """Order nodes of `size` unknowns each that meet in groups, (members,) of both; unknowns of a node are together.

    Members of one node, or of one `host` (members,), do not meet.
    """
    groups, unknowns = int(group.max(initial=-1)) + 1, np.arange(size)
    order, near = np.arange(nodes), np.zeros((0, nodes), dtype=bool)
    if nodes * size > _FEW:
        incidence = sp.csr_matrix((np.ones(len(node), dtype=np.int32), (group, node)), (groups, nodes))
        near = np.eye(nodes, dtype=bool)
        near[(incidence.T @ incidence).nonzero()] = True
        early = _least_degrees(near, order)
        near = near[order[:early]][:, order]
    place = np.argsort(order)
    # Places of unknowns of nodes that meet; those of one node do.
    k, j = (each[:, None, None] * size for each in np.nonzero(near))
    first, second = (each.ravel() for each in np.broadcast_arrays(k + unknowns[:, None], j + unknowns))
    first, second = first[second > first], second[second > first]
    later = second[np.lexsort((second, first))]
    pointer = np.searchsorted(np.sort(first), np.arange(len(near) * size + 1))

    def each(values: Index) -> Index:
        return np.asarray((values[:, None] * size + unknowns).ravel())

    member = np.lexsort((place[node], group))
    start = np.searchsorted(group[member], np.arange(groups + 1)) * size
    apart = np.repeat((node if host is None else host)[member], size)
    return Order(each(place), start, each(member), each(place[node[member]]), apart, pointer, later)


@compiled
def _least_degrees(near, order):  # type: ignore[no-untyped-def]
    """Eliminate nodes of least degree while that is small; how many, with `order` permuted.

    `near` (nodes, nodes) becomes a row of each eliminated node of those left with which it meets, and of itself.
    """
    count = len(order)
    degree = np.zeros(count, dtype=np.int64)
    some = np.empty(count, dtype=np.int64)
    for v in range(count):
        degree[v] = near[v].sum() - 1
    for early in range(count):
        best = early
        for k in range(early, count):
            if degree[order[k]] < degree[order[best]]:
                best = k
        v = order[best]
        if degree[v] > _FULL * (count - early):
            return early
        order[best], order[early] = order[early], v
        size = 0
        for k in range(early + 1, count):
            if near[v, order[k]]:
                some[size] = order[k]
                size += 1
        for a in range(size):
            j = some[a]
            near[j, v] = False
            degree[j] -= 1
            for b in range(size):
                if not near[j, some[b]]:
                    near[j, some[b]] = True
                    degree[j] += 1
    return count


class Factors:
    """A Schur complement of unit diagonal, plus `along along'`, factored.

    Parameters
    ----------
    left, right : (members, k), what is subtracted being `left . right` of two members of a group; by `order.member`
    others : rows, columns and values of more entries beside the diagonal
    along : (unknowns,), if S is symmetric: `right` is as good as `left`, and of `others` one of two is given, that in
        the later row
    single : the end may be in single precision
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
        diagonal = np.einsum("ii->i", end)
        diagonal += 1.0
        lists = order.pointer, order.later, self.diagonal, self.low, self.up, end
        if others is not None:
            _added(order.place[others[0]], order.place[others[1]], others[2], *lists)
        _joined(order.start, order.at, order.host, left, right, *lists, symmetric)
        _eliminated(*lists, symmetric)
        # The unknown of `along` comes last, with -1 on the diagonal.
        self.along = np.empty(len(along))
        self.along[order.place] = along
        _forward(order.pointer, order.later, self.low, self.along)
        self.last = 1 + float(self.along[:early] ** 2 @ (1 / self.diagonal))
        if along.any():
            end += np.outer(self.along[early:], self.along[early:] / self.last)
        self.scale = 1 / np.sqrt(np.where(diagonal > _LOST, diagonal, 1.0))
        end *= self.scale
        end *= self.scale[:, None]
        diagonal[:] = 1.0
        self.factor = factored(end.astype(np.float32) if single else end, symmetric)

    def solve(self, given: Array) -> Array:
        """Solve for given numbers, (unknowns,)."""
        early, pointer, later, x = self.early, self.order.pointer, self.order.later, np.empty(len(given))
        x[self.order.place] = given
        _forward(pointer, later, self.low, x)
        along, end = self.along[:early], self.along[early:]
        last = -float(along @ (x[:early] / self.diagonal))
        x[early:] = self.factor((x[early:] + end * (last / self.last)) * self.scale) * self.scale
        x[:early] -= along * ((float(end @ x[early:]) - last) / self.last)
        _backward(pointer, later, self.diagonal, self.low if self.symmetric else self.up, self.symmetric, x)
        return x[self.order.place]


@compiled(inner=True)
def _subtract(i, j, value, pointer, later, diagonal, low, up, end):  # type: ignore[no-untyped-def]
    """Subtract a value from an entry of S; above the diagonal from `up`."""
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
def _added(i, j, value, pointer, later, diagonal, low, up, end):  # type: ignore[no-untyped-def]
    for k in range(len(value)):
        _subtract(i[k], j[k], -value[k], pointer, later, diagonal, low, up, end)


@compiled
def _joined(start, at, host, left, right, pointer, later, diagonal, low, up, end, symmetric):  # type: ignore[no-untyped-def]
    """Subtract products of members of groups."""
    early, width = len(pointer) - 1, left.shape[1]
    for g in range(len(start) - 1):
        for f in range(start[g], start[g + 1]):
            j = at[f]
            if symmetric and width == 1 and j >= early:  # most of the time where groups are large
                for e in range(f + 1, start[g + 1]):
                    if host[e] != host[f]:
                        end[at[e] - early, j - early] -= left[e, 0] * right[f, 0]
                continue
            for e in range(f + 1, start[g + 1]):
                if host[e] == host[f]:
                    continue
                i, value, other = at[e], 0.0, 0.0
                for k in range(width):
                    value += left[e, k] * right[f, k]
                    other += left[f, k] * right[e, k]
                if j >= early:
                    end[i - early, j - early] -= value
                else:
                    _subtract(i, j, value, pointer, later, diagonal, low, up, end)
                if not symmetric:
                    _subtract(j, i, other, pointer, later, diagonal, low, up, end)


@compiled
def _eliminated(pointer, later, diagonal, low, up, end, symmetric):  # type: ignore[no-untyped-def]
    """Eliminate early unknowns; `low` is divided by pivots."""
    early = len(pointer) - 1
    for v in range(early):
        diagonal[v] = diagonal[v] if diagonal[v] > _LOST else 1.0
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
def _forward(pointer, later, low, x):  # type: ignore[no-untyped-def]
    for v in range(len(pointer) - 1):
        for a in range(pointer[v], pointer[v + 1]):
            x[later[a]] -= low[a] * x[v]


@compiled
def _backward(pointer, later, diagonal, up, symmetric, x):  # type: ignore[no-untyped-def]
    for v in range(len(pointer) - 2, -1, -1):
        known = 0.0
        for a in range(pointer[v], pointer[v + 1]):
            known += up[a] * x[later[a]]
        x[v] = x[v] / diagonal[v] - known if symmetric else (x[v] - known) / diagonal[v]
