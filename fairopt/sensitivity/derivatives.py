"""Derivatives of numbers by all data, by adjoints: one solve a number, however many data there are.

With `J s + B dtheta = 0` and a number that moves by `g' s`, an adjoint `J' w = g` gives all of its derivatives at
once, `-w' B`. A datum `theta` that leaves the equations without a solution (`v' B != 0` for some `v' J = 0`) has none
there, nor has one that a tie lets act through either of two resources: these are NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .._libraries import sp
from ..model.criterion import Criterion
from ..model.merging import Merging
from .conditions import Conditions
from .linear import LeastSquares
from .pooling import Pooling
from .shares import ShareDerivative, share_derivative

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class DerivativeOptions:
    """Which derivatives are determined."""

    #: Vectors of the left null space are multiplied with data to this.
    free: float = 1e-6
    #: Adjoints that are missed by more than this have no number to give.
    determined: float = 1e-6
    #: Shares that tie count from this part of a derivative on.
    counts: float = 1e-9


#: What is used unless a caller says otherwise.
OPTIONS = DerivativeOptions()


@dataclass(frozen=True)
class ByData:
    """Something for each of k numbers, by every datum: `alpha` (1, k), `weight` (users, k), ..., NaN where undefined.

    Attributes
    ----------
    demand : (users, resources, k); capacity : (servers, resources, k), of servers as they are
    limit : (users, k), by `log q_n`
    count : (merged servers, k), by the log of how many servers there are of a type: all capacities of it
    """

    alpha: Array
    weight: Array
    demand: Array
    capacity: Array
    limit: Array
    count: Array

    def items(self) -> Iterator[tuple[str, Array]]:
        """Names and arrays, the last axis k."""
        for name in ByData.__dataclass_fields__:
            yield name, getattr(self, name)


class Derivatives:
    """Derivatives at one answer."""

    def __init__(self, conditions: Conditions, criterion: Criterion, merging: Merging, pooling: Pooling) -> None:
        self.conditions, self.criterion, self.merging, self.pooling = conditions, criterion, merging, pooling
        self.linear = LeastSquares(conditions.matrix, conditions.main)
        self.cluster = merging.cluster
        self.finite = bool(np.isfinite(criterion.alpha))
        #: Does anything follow shares of users?
        self.by_share = criterion.scope != "game" and criterion.alpha != 1

    @cached_property
    def shares(self) -> ShareDerivative:
        """How shares follow from the data."""
        return share_derivative(self.cluster, self.criterion.share_rule if self.by_share else "constant")

    def of_tasks(self, gradient: Array) -> ByData:
        """Derivatives of numbers that move by `gradient' d log x_n`; gradient (all users, k)."""
        given = self.conditions.of_users.T @ gradient
        adjoint, missed = self.linear.adjoint(given)
        found = self._pulled(-adjoint)
        where = gradient != 0
        result = {}
        for name, values in found.items():
            values = values.copy()
            values[self._undefined(name, where)] = np.nan
            values[..., missed > OPTIONS.determined] = np.nan
            result[name] = values
        for name, mask in self._tied(adjoint).items():
            result[name][mask] = np.nan
        if not self.finite:
            result["alpha"][:] = np.nan
        if self.by_share and not self.shares.known:
            for name in ("demand", "capacity", "count"):
                result[name][:] = np.nan
        return ByData(**result)

    def residual(self, name: str, row: tuple[int, ...]) -> Array:
        """(equations,): by what the equations cannot be met, to first order, as one datum changes."""
        inputs, resources = self.conditions.inputs, self.cluster.shape[2]
        if name in ("alpha", "weight", "limit"):
            column = getattr(inputs, name)[:, row[0]].toarray()
            return np.abs(self.linear.residual(column))[:, 0]
        if name == "demand":
            column = inputs.demand[:, row[0] * resources + row[1]].toarray()
            by = self.shares.by_demand[row[0], row[1]]
            column += by * inputs.share[:, row[0]].toarray()
        else:
            server = int(self.merging.server_of[row[0]]) if name == "capacity" else row[0]
            cells = [row[1]] if name == "capacity" else list(range(resources))
            column = np.asarray(sum(self._by_capacity(server, r) for r in cells))
            column /= max(float(np.abs(column).max(initial=0.0)), np.finfo(float).tiny)  # a small part of a pool
        return np.abs(self.linear.residual(np.asarray(column)))[:, 0]

    def _by_capacity(self, server: int, resource: int) -> Array:
        inputs, resources = self.conditions.inputs, self.cluster.shape[2]
        pool, part = self.pooling.pool_of[server], self.pooling.part[server, resource]
        column = inputs.capacity[:, pool * resources + resource].toarray() * part
        by = self.shares.by_pool[:, resource] * self._pool_part[server, resource]
        if self.shares.by_server is not None:
            by = by + self.shares.by_server[:, server, resource]
        return np.asarray(column + (inputs.share @ by)[:, None])

    @property
    def _pool_part(self) -> Array:
        """`c_ir / C_r`, (merged servers, resources)."""
        whole = self.cluster.pooled_capacity
        return np.divide(self.cluster.capacity, whole, out=np.zeros(self.cluster.capacity.shape), where=whole > 0)

    def _pulled(self, w: Array) -> ByData:
        """`w' B` by every datum, shares included; of w (equations, k)."""
        inputs, k = self.conditions.inputs, w.shape[1]
        users, _, resources = self.cluster.shape
        demand = (inputs.demand.T @ w).reshape(users, resources, k)
        merged = self.pooling.spread((inputs.capacity.T @ w).reshape(-1, resources, k))
        if self.by_share:
            share, rule = inputs.share.T @ w, self.shares
            demand = demand + rule.by_demand[:, :, None] * share[:, None, :]
            pool = np.einsum("nr,nk->rk", rule.by_pool, share)
            merged = merged + self._pool_part[:, :, None] * pool[None]
            if rule.by_server is not None:
                merged = merged + np.einsum("nir,nk->irk", rule.by_server, share)
        return ByData(
            inputs.alpha.T @ w,
            inputs.weight.T @ w,
            demand,
            self.of_servers(merged),
            inputs.limit.T @ w,
            merged.sum(axis=1),
        )

    def of_servers(self, merged: Array) -> Array:
        """Of merged servers to those of servers, in proportion to capacity."""
        part = self.merging.server_part.reshape((-1,) + (1,) * (merged.ndim - 1))
        return np.asarray(merged[self.merging.server_of] * part)

    @cached_property
    def _inconsistent(self) -> dict[str, Array]:
        """By datum, (..., parts): do the equations of this part have no solution as the datum changes?"""
        part, null = self.conditions.equation_part, self.linear.null
        count = int(max(part.max(initial=-1), self.conditions.user_part.max(initial=-1))) + 1
        found: dict[str, list[Array]] = {}
        part_of = self.pooling.part
        size = {"count": part_of.max(axis=1), "capacity": self.of_servers(part_of)}  # what is a small part does little
        if null.shape[1]:
            for c in np.unique(part):
                mine = np.where((part == c)[:, None], null, 0.0)
                either = self._tied(mine, OPTIONS.free)
                for name, values in self._pulled(mine).items():
                    undetermined = np.abs(values).max(axis=-1) > OPTIONS.free * size.get(name, 1.0)
                    undetermined |= either[name].any(axis=-1) if name in either else False
                    found.setdefault(name, []).append(undetermined)
            which = np.unique(part)
        result = {}
        empty = self._pulled(np.zeros((len(part), 1)))
        for name, values in empty.items():
            mask = np.zeros((*values.shape[:-1], count), dtype=bool)
            if found:
                mask[..., which] = np.stack(found[name], axis=-1)
            result[name] = mask
        if self.finite:
            self._apart(result["capacity"])
        return result

    def _apart(self, capacity: Mask) -> None:
        """Where one server of a type changes it is of another type, and in the game its users may take sides."""
        if self.criterion.scope != "game" or self.merging.trivial or self.criterion.alpha == 1:
            return
        sizes = np.bincount(self.merging.server_of)
        conditions, resources = self.conditions, self.cluster.shape[2]
        polytope = conditions.polytope
        for s in np.flatnonzero(sizes > 1):
            sets = polytope.pair_use[polytope.pair_server == s].argmax(axis=1)
            if len(np.unique(sets)) <= 1:
                continue
            members = np.flatnonzero(self.merging.server_of == s)
            part = np.unique(conditions.equation_part[self._equations_of(int(s))])
            for r in range(resources):
                if not self._follows(int(s), r):
                    capacity[np.ix_(members, np.array([r]), part)] = True

    def _equations_of(self, server: int) -> NDArray[np.intp]:
        """Equations of pairs on a merged server."""
        resources = self.cluster.shape[2]
        cells = self.conditions.inputs.capacity[:, server * resources : (server + 1) * resources]
        touched = np.diff(cells.tocsr().indptr) > 0
        pairs = np.diff(self.conditions.inputs.weight.indptr) > 0
        return np.flatnonzero(touched & pairs)

    def _follows(self, server: int, resource: int) -> bool:
        """Can prices of one server of a type make up for a change of gamma there alone?"""
        conditions, resources = self.conditions, self.cluster.shape[2]
        rows = self._equations_of(server)
        cells = conditions.inputs.capacity[rows][:, server * resources : (server + 1) * resources].toarray()
        # What capacities do to costs prices can undo; what is left is what they do to gamma, and not.
        block = conditions.matrix[rows][:, conditions.price_columns].toarray()
        given = cells[:, [resource]]
        left = given - block @ np.linalg.lstsq(block, given, rcond=1e-10)[0]
        return bool(np.abs(left).max(initial=0.0) <= OPTIONS.free)

    def _undefined(self, name: str, where: Mask) -> Mask:
        """(..., k): is a datum without a derivative for the users that count, `where` (users, k)?"""
        mask = self._inconsistent[name]
        count = mask.shape[-1]
        user_part = sp.csr_matrix(
            (np.ones(len(where)), (self.conditions.user_part, np.arange(len(where)))), shape=(count, len(where))
        )
        concerned = (user_part @ where.astype(float)) > 0
        return np.asarray(mask.astype(float) @ concerned.astype(float) > 0)

    def _tied(self, adjoint: Array, least: float = OPTIONS.counts) -> dict[str, Mask]:
        """Data that act through either of several resources, by name, (..., k)."""
        inputs, k = self.conditions.inputs, adjoint.shape[1]
        users, servers, resources = self.cluster.shape
        result: dict[str, Mask] = {}
        if inputs.tied_demand.nnz:
            weighted = np.abs(adjoint)
            result["demand"] = (inputs.tied_demand.T @ weighted).reshape(users, resources, k) > least
            merged = (inputs.tied_capacity.T @ weighted).reshape(servers, resources, k) > least
            result["capacity"] = merged[self.merging.server_of]
        if self.by_share and self.shares.tied.any():
            share = np.abs(inputs.share.T @ adjoint) > least
            result["demand"] = self.shares.tied[:, :, None] & share[:, None, :]
            of_pool = (self.shares.tied.T.astype(float) @ share.astype(float)) > 0
            there = self.cluster.capacity[:, :, None] > 0
            merged = there & of_pool[None]
            result["capacity"] = merged[self.merging.server_of]
            if len(self.cluster.servers) > 1:
                result["count"] = merged.any(axis=1)
        return result
