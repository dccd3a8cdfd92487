"""Derivatives of numbers by all data, by adjoints: one solve a number, however many data there are.

With `J s + B dtheta = 0` and a number that moves by `g' s`, an adjoint `J' w = g` gives all of its derivatives at
once, `-w' B`. A datum `theta` that leaves the equations without a solution (`v' B != 0` for some `v' J = 0`) has none
there, nor has one that a tie lets act through either of two resources: these are NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ..core.first_order import Active, Equations, Factors, summed
from ..model.merging import Merging
from . import words
from .data import inputs
from .pooling import Pooling
from .shares import share_derivatives

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
#: What equations and adjoints are missed by, relative, in rounding.
ROUNDING = 1e-6


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
        yield from vars(self).items()


class Derivatives:
    """Derivatives at one answer."""

    def __init__(self, active: Active, merging: Merging, pooling: Pooling) -> None:
        self.equations, self.criterion = Equations(active), active.criterion
        self.merging, self.pooling, self.cluster = merging, pooling, merging.cluster
        self.linear = Factors(self.equations.matrix, self.equations.main)
        self.finite = bool(np.isfinite(self.criterion.alpha))
        #: Does anything follow shares of users, and does somebody know how?
        self._by_share = self.criterion.scope != "game" and self.criterion.alpha != 1
        rule = self.criterion.share_rule if self._by_share else "constant"
        self._known = rule != "unknown"
        #: How data enter; several ways where ties decide.
        self._ways = list(product(inputs(self.equations), share_derivatives(self.cluster, rule)))

    def of_tasks(self, gradient: Array) -> ByData:
        """Derivatives of numbers that move by `gradient' d log x_n`; gradient (all users, k)."""
        equations = self.equations
        whose = equations.active.polytope.users[equations.user[equations.standing]]
        given = np.zeros((self.linear.matrix.shape[1], gradient.shape[1]))
        given[: len(whose)] = gradient[whose]
        adjoint, missed = self.linear.adjoint(given)
        found, *others = self._pulled(adjoint)
        part = equations.parts[1]
        concerned = summed(part, int(part.max()) + 1) @ (gradient != 0).astype(float) > 0
        for name, values in found.items():
            undefined = self._inconsistent[name].astype(float) @ concerned.astype(float) > 0
            for other in others:
                undefined |= np.abs(values - getattr(other, name)) > 1e-9
            values[undefined | (missed > ROUNDING)] = np.nan
        if not self.finite:
            found.alpha[:] = np.nan
        if not self._known:
            for values in (found.demand, found.capacity, found.count):
                values[:] = np.nan
        return found

    def why(self, name: str, at: tuple[int, ...]) -> str:
        """What is in the way of a derivative by one datum, in words."""
        if not self._known and name in ("demand", "capacity", "count"):
            return "the mechanism does not say how shares follow from the data"
        return words.why(self.equations, self.linear.null, self._inconsistent[name][at])

    def _pulled(self, w: Array) -> list[ByData]:
        """`-w' B` by every datum, shares included, of w (equations, k); in every way."""
        users, _, resources = self.cluster.shape
        whole, members, found = self.cluster.pooled_capacity, self.merging.server_of, []
        for b, rule in self._ways:
            by = {name: 0.0 - each.T @ w for name, each in b.items()}
            demand, share = by["demand"].reshape(users, resources, -1), by["share"]
            merged = self.pooling.spread(by["capacity"].reshape(-1, *demand.shape[1:]))
            if self._by_share:
                demand = demand + rule.by_demand[:, :, None] * share[:, None, :]
                part = self.cluster.capacity / np.where(whole > 0, whole, 1.0)
                merged = merged + part[:, :, None] * (rule.by_pool.T @ share)[None]
                if rule.by_server is not None:
                    merged = merged + np.einsum("nir,nk->irk", rule.by_server, share)
            capacity = merged[members] * self.merging.server_part[:, None, None]
            found.append(ByData(by["alpha"], by["weight"], demand, capacity, by["limit"], merged.sum(axis=1)))
        return found

    @cached_property
    def _inconsistent(self) -> dict[str, Mask]:
        """By datum, (..., parts): do the equations of this part have no solution as the datum changes?"""
        part, null, pools = self.equations.parts[0], self.linear.null, self.pooling.part
        members, count = self.merging.server_of, int(self.equations.parts[1].max()) + 1
        # What is a small part of a pool does little.
        size = {"count": pools.max(axis=1), "capacity": pools[members] * self.merging.server_part[:, None]}
        empty = self._pulled(np.zeros((len(part), 1)))[0]
        result = {name: np.zeros((*values.shape[:-1], count), dtype=bool) for name, values in empty.items()}
        for c in np.unique(part[np.abs(null).max(axis=1, initial=0.0) > 0]):
            for found in self._pulled(np.where((part == c)[:, None], null, 0.0)):
                for name, values in found.items():
                    result[name][..., c] |= np.abs(values).max(axis=-1) > ROUNDING * size.get(name, 1.0)
        if self.finite:
            self._apart(result["capacity"])
        return result

    def _apart(self, capacity: Mask) -> None:
        """Where one server of a type changes it is of another type, and in the game its users may take sides: unless
        its prices can make up for a change of gamma there alone. What capacities do to costs, prices can undo."""
        equations, sizes = self.equations, np.bincount(self.merging.server_of)
        if self.criterion.scope != "game" or self.criterion.alpha == 1:
            return
        pairs, share = equations.cheap[0], equations.shares(0).tocsr()
        use = equations.active.polytope.pair_use[pairs]
        for s in np.flatnonzero(sizes > 1):
            mine = np.flatnonzero(equations.server[pairs] == s)
            sets = np.eye(use.shape[1])[use[mine].argmax(axis=1)]
            by_price = share[mine].toarray()
            left = sets - by_price @ np.linalg.lstsq(by_price, sets, rcond=1e-10)[0]
            parts = np.unique(equations.parts[0][equations.of_pairs[0][mine]])
            moved = np.flatnonzero(np.abs(left).max(axis=0, initial=0.0) > ROUNDING)
            capacity[np.ix_(np.flatnonzero(self.merging.server_of == s), moved, parts)] = True
