"""The equations of an equilibrium at finite alpha on an active set: pairs with tasks, priced rows, binding limits.

Users in units of their largest gamma (`EquilibriumSystem`), prices in levels, `v = (lambda c)^(1/alpha)`. Unknowns z
are tasks x_p of the active pairs, log v of the active rows, and the excess xi >= 0 of users who are served in full:

    F_p = log X_n + log norm_p - log(phi_n gamma_p) + xi_n = 0,   norm_p = (sum_r D_pr v_r^alpha)^(1/alpha)     (pairs)
    F_r = sum_p x_p D_pr / gamma_p - 1 = 0                                                                     (rows)
    F_n = X_n / q_n - 1 = 0                                                                                    (limits)

Derivatives: of F_p `1/X_n` by tasks of the same user, the part of row r in what the pair pays by log v_r, and
`sum_r share_r (log share_r - log D_pr) / alpha` by log alpha. With `D_pr v_r^alpha = share_r norm_p^alpha` nothing here
overflows at large alpha. In the game `phi gamma` does not depend on alpha, so that one set serves for all of them; for
the equations of a global program (`EquilibriumSystem.of`) alpha must be that of the system.

A solution is an equilibrium if tasks and excess are >= 0 and `outside` finds nothing: no pair outside is cheaper than
its task is worth, no row outside is overused. With task counts it is a normalised generalised equilibrium: all servers
see the same excess of a user.

Source: equilibria as a mixed complementarity problem, Facchinei and Pang, "Finite-Dimensional Variational Inequalities
and Complementarity Problems" (2003), sections 1.4 and 2.6 (degree of regular solutions).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._libraries import sp
from .equilibrium_system import EquilibriumSystem

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class ActiveSetOptions:
    """Which matrices are dense."""

    #: Up to this number of unknowns matrices are dense.
    dense: int = 300


#: What is used unless a caller says otherwise.
OPTIONS = ActiveSetOptions()


class Outside(NamedTuple):
    """What an equilibrium asks of pairs and rows that are not in the set; the least of each is `worst`."""

    slack: Array  # (pairs of the system,): by how much log levels are dearer than worth, >= 0; NaN inside
    idle: Array  # (servers, resources): idle part of a capacity, >= 0; NaN inside and where there is no row

    @property
    def worst(self) -> float:
        """The largest violation, 0 for none."""
        least = [np.nanmin(each, initial=np.inf) for each in (self.slack, self.idle)]
        return float(max(-min(least), 0.0))


@dataclass(frozen=True, eq=False)
class ActiveSet:
    """Pairs, rows and limits that take part. Unknowns `z` stand in this order.

    Attributes
    ----------
    system : the game; its alpha is not read, except where none is given
    pairs : (pairs,), numbers of pairs of the system, sorted; every user has at least one
    rows : (rows,), numbers `server * resources + resource`, sorted
    limits : (limits,), users who are served in full, sorted
    """

    system: EquilibriumSystem
    pairs: Index
    rows: Index
    limits: Index

    # -- structure -------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Unknowns."""
        return len(self.pairs) + len(self.rows) + len(self.limits)

    @cached_property
    def user(self) -> Index:
        """(pairs,): whose."""
        return np.asarray(self.system.user[self.pairs])

    @cached_property
    def _server(self) -> Index:
        return np.asarray(self.system.server[self.pairs])

    @cached_property
    def _links(self) -> tuple[Index, Index, Index]:
        """Active pairs and rows that meet: pair, row (numbers in the set), resource."""
        resources = self.system.row.shape[1]
        number = np.full(self.system.row.size, -1)
        number[self.rows] = np.arange(len(self.rows))
        of = number.reshape(-1, resources)[self._server]
        at, resource = np.nonzero((of >= 0) & (self.system.use[self.pairs] > 0))
        return at, of[at, resource], resource

    @cached_property
    def _twins(self) -> tuple[Index, Index]:
        """Every two active pairs of one user (pairs are sorted by user)."""
        count = np.bincount(self.user, minlength=len(self.system.weight))
        first = np.cumsum(count) - count
        many = count[self.user]
        left = np.repeat(np.arange(len(self.pairs)), many)
        offset = np.arange(len(left)) - np.repeat(np.cumsum(many) - many, many)
        return left, np.repeat(first[self.user], many) + offset

    @cached_property
    def _served(self) -> tuple[Index, Index]:
        """Active pairs of users at their limit, and the number of the limit."""
        number = np.full(len(self.system.weight), -1)
        number[self.limits] = np.arange(len(self.limits))
        of = number[self.user]
        pair = np.flatnonzero(of >= 0)
        return pair, of[pair]

    def split(self, z: Array) -> tuple[Array, Array, Array]:
        """Tasks (pairs,), log level prices (rows,), excess (limits,)."""
        p, r = len(self.pairs), len(self.rows)
        return z[:p], z[p : p + r], z[p + r :]

    def whole(self, z: Array) -> tuple[Array, Array]:
        """Tasks of all pairs (pairs of the system,), and log level prices (servers, resources), -inf for none."""
        tasks, prices, _ = self.split(z)
        every = np.zeros(len(self.system.user))
        every[self.pairs] = tasks
        log_price = np.full(self.system.row.shape, -np.inf)
        log_price.reshape(-1)[self.rows] = prices
        return every, log_price

    def totals(self, z: Array) -> Array:
        """X (users,), in units of the largest gamma."""
        return np.bincount(self.user, z[: len(self.pairs)], len(self.system.weight)).astype(float)

    def user_tasks(self, z: Array) -> Array:
        """X (users of the polytope,), in tasks."""
        return np.asarray(self.totals(z) * self.system.largest)

    # -- equations -------------------------------------------------------------------------------

    def residual(self, z: Array, alpha: float | None = None) -> Array:
        """F (unknowns,) at z."""
        tasks, prices, excess = self.split(z)
        total = self.totals(z)
        log_norm, _ = self._priced(prices, self._alpha(alpha))
        with np.errstate(invalid="ignore", divide="ignore"):
            of_pairs = np.log(total)[self.user] + log_norm - self.system.log_gain[self.pairs]
        served, limit = self._served
        of_pairs[served] += excess[limit]
        at, to, resource = self._links
        use = self.system.per_task[self.pairs[at], resource] * tasks[at]
        of_rows = np.bincount(to, use, len(self.rows)) - 1
        of_limits = total[self.limits] / self.system.limit[self.limits] - 1
        return np.concatenate([of_pairs, of_rows, of_limits])

    def jacobian(self, z: Array, alpha: float | None = None) -> Array | sp.csc_matrix:
        """The derivative of F by z, (unknowns, unknowns); dense up to `OPTIONS.dense` unknowns."""
        value, row, column = self.entries(z, alpha)
        if self.size > OPTIONS.dense:
            return sp.csc_matrix((value, (row, column)), shape=(self.size, self.size))
        matrix = np.zeros((self.size, self.size))
        matrix[row, column] = value  # each stands once
        return matrix

    def _alpha(self, alpha: float | None) -> float:
        return self.system.alpha if alpha is None else alpha

    def _priced(self, prices: Array, alpha: float) -> tuple[Array, Array]:
        """log norm (pairs,), and the part of each row in what a pair pays, along `_links`."""
        at, to, resource = self._links
        power = np.log(self.system.use[self.pairs[at], resource]) + alpha * prices[to]
        top = np.full(len(self.pairs), -np.inf)
        np.maximum.at(top, at, power)
        paid = np.exp(power - top[at])
        total = np.bincount(at, paid, len(self.pairs))
        with np.errstate(divide="ignore"):
            return (top + np.log(total)) / alpha, paid / total[at]

    def entries(self, z: Array, alpha: float | None = None) -> tuple[Array, Index, Index]:
        """Values of the derivative, their rows and columns; each place stands once."""
        p, r = len(self.pairs), len(self.rows)
        at, to, resource = self._links
        left, right = self._twins
        served, limit = self._served
        share = self._priced(self.split(z)[1], self._alpha(alpha))[1]
        use = self.system.per_task[self.pairs[at], resource]
        value = np.concatenate(
            [
                (1 / self.totals(z))[self.user[left]],
                share,
                use,
                np.ones(len(served)),
                1 / self.system.limit[self.user[served]],
            ]
        )
        row = np.concatenate([left, at, p + to, served, p + r + limit])
        column = np.concatenate([right, p + to, at, p + r + limit, served])
        return value, row, column

    def scale(self, z: Array, alpha: float | None = None) -> Array:
        """Units of the unknowns (unknowns,): a user's tasks; one over the largest part of a row in a price; 1."""
        largest = np.zeros(len(self.rows))
        _, to, _ = self._links
        np.maximum.at(largest, to, self._priced(self.split(z)[1], self._alpha(alpha))[1])
        of_rows = 1 / np.where(largest > 0, largest, 1.0)
        return np.concatenate([self.totals(z)[self.user], of_rows, np.ones(len(self.limits))])

    # -- what is outside -------------------------------------------------------------------------

    def outside(self, z: Array, alpha: float | None = None) -> Outside:
        """Slacks of pairs and idle parts of rows that are not in the set."""
        alpha, system = self._alpha(alpha), self.system
        tasks, log_price = self.whole(z)
        with np.errstate(divide="ignore", invalid="ignore"):
            power = np.log(system.use) + alpha * log_price[system.server]
            top = power.max(axis=1)
            top = np.where(np.isfinite(top), top, 0.0)
            log_norm = (top + np.log(np.exp(power - top[:, None]).sum(axis=1))) / alpha
            slack = np.log(self.totals(z))[system.user] + log_norm - system.log_gain
        excess = np.zeros(len(system.weight))
        excess[self.limits] = self.split(z)[2]
        slack = slack + excess[system.user]
        slack[self.pairs] = np.nan
        idle = np.where(system.row, 1 - system.used(tasks), np.nan)
        idle.reshape(-1)[self.rows] = np.nan
        return Outside(slack, idle)

    def over_limit(self, z: Array) -> Array:
        """What users have beyond their limit, relative, (users,); at most 0 where it fits."""
        return np.asarray(self.totals(z) / self.system.limit - 1)

    # -- other sets ------------------------------------------------------------------------------

    def changed(
        self, z: Array, pairs: Index, rows: Index, limits: Index | None = None, free: float = -1.0
    ) -> tuple[ActiveSet, Array]:
        """The set with these members, and z there: new pairs without tasks, new rows at `free` below the least price.

        What is known of members that stay is kept.
        """
        limits = self.limits if limits is None else limits
        other = replace(self, pairs=np.unique(pairs), rows=np.unique(rows), limits=np.unique(limits))
        tasks, log_price = self.whole(z)
        known = log_price[np.isfinite(log_price)]
        prices = log_price.reshape(-1)[other.rows]
        prices = np.where(np.isfinite(prices), prices, (known.min() if len(known) else 0.0) + free)
        excess = np.zeros(len(self.system.weight))
        excess[self.limits] = self.split(z)[2]
        return other, np.concatenate([tasks[other.pairs], prices, excess[other.limits]])
