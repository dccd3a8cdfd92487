r"""Equations of an equilibrium at one point of the curve, in variables that may become zero.

Log prices are -inf where a row leaves the active set. The price of a row r is therefore represented by its largest
share w in the cost of a pair, :math:`\lambda_r c_r = w_r e^{\alpha l_r}`. On each server one reference row has w = 1,
and its log level l is an unknown; the levels of the server's other rows change by the same amount. With tasks z
(fractions of monopoly tasks), the active set A of pairs p, rows r and limits n, and small irregular perturbations
`jitter` and `room`, which break exact ties, the equations are

.. math::

    \log X_n + \tfrac1\alpha \log\Big(\sum_r D_{pr} w_r e^{\alpha l_r} + tax_p\Big) + \xi_n = \log(\phi_n \gamma_p)
    - jitter_p, \quad p \in A

    \sum_p D_{pr} z_p = 1 + room_r, \quad r \in A, \qquad X_n = q_n, \quad n \in A.

Where all resources of a server are idle, a user at its limit would have zero cost there, and an infinite xi. To the
costs of users with a limit a small tax is therefore added on all servers, proportional to the marginal utility there at
the limit,

.. math:: tax_p = 10^{-8} e^{\alpha h_p}, \qquad h_p = \log(\phi_n \gamma_p) - \log q_n - 3

The tax does not change which servers a user at its limit prefers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...model._arrays import Array, Index, Mask
from ...model.problem import Problem
from ..accuracy import HALF_PRECISION
from ..system import AT_LIMIT
from .equilibrium_system import EquilibriumSystem


@dataclass(frozen=True)
class CurveOptions:
    """Options of the continuation."""

    #: The curve begins at alpha = `near` or `1/near`; for alphas nearer to 1 the equilibrium is computed directly.
    near: float = 1.001
    #: Longest step, with `length^2 = (d log alpha)^2 + min(1, 10/unknowns) (|d tasks / tasks of the user|^2 + |d log
    #: levels of servers|^2 + |d shares of rows in costs|^2)`.
    longest: float = 0.3
    #: A run has at most `steps_per_pair (pairs + 10) (1 + |log alpha|)` steps.
    steps_per_pair: int = 60
    #: Largest number of pairs (user, server): the starting point needs dense matrices, and has no time limit.
    most_pairs: int = 6000
    #: Factor beyond alpha up to which the curve is followed with `select="welfare"`, which compares its crossings.
    beyond: float = 3.0


#: Default options.
OPTIONS = CurveOptions()


#: Tax of users with a limit, which keeps their costs positive where all prices vanish: log of its factor (`LOG_TAX`),
#: and difference of the log levels of the marginal utility at the limit and of the tax (`TAX_BELOW`).
LOG_TAX, TAX_BELOW = float(np.log(HALF_PRECISION)), 3.0
#: A server has a reference row if the tax is less than this fraction of the cost of some pair there.
_MOST_TAX_SHARE = 0.5


@dataclass(frozen=True)
class Game:
    """Data that are constant along the curve, with pairs sorted by user."""

    user: Index  # (pairs,)
    server: Index  # (pairs,)
    size: Array  # (pairs,), gamma in units of the user's largest gamma
    gain: Array  # (pairs,), log(phi_n gamma_p)
    at: Index  # (pairs, resources), index of the row; arbitrary where nothing is demanded
    log_cost: Array  # (pairs, resources), log D, -inf where nothing is demanded
    use: Array  # (rows, pairs), D
    host: Index  # (rows,), the server of a row
    largest: Array  # (users,), the unit of tasks
    limit: Array  # (users,), infinite where it cannot bind
    tax: Array  # (pairs,), log level of the tax, h_p; -inf where the limit cannot bind
    jitter: Array  # (pairs,), perturbation of log costs, over alpha
    room: Array  # (rows,), relative perturbation of capacities

    @classmethod
    def of(cls, problem: Problem) -> Game:
        """Data of a problem, at any alpha; users without a usable pair are left out."""
        polytope = problem.polytope
        system = EquilibriumSystem.of(polytope, problem.criterion)
        user, host = system.user, polytope.row_server
        number = np.zeros(system.row.shape, np.intp)
        number[host, polytope.row_resource] = np.arange(len(host))
        binds = polytope.limit < polytope.user_tasks(np.ones(len(user))) * (1 + AT_LIMIT)
        limit = np.where(binds, system.limit, np.inf)
        with np.errstate(divide="ignore"):
            log_cost = np.log(system.use)
        tax = system.log_gain - np.log(limit)[user] - TAX_BELOW
        at, use = number[system.server], polytope.use.toarray()
        none = np.zeros(len(user)), np.zeros(len(host))
        each = user, system.server, system.gamma, system.log_gain, at, log_cost, use, host, system.largest, limit, tax
        return cls(*each, *none)

    def costs(self, alpha: float, log_price: Array, w: Array) -> tuple[Array, Array, Array, Array]:
        r"""Costs of pairs, :math:`\sum_r D_{pr} w_r e^{\alpha l_r} + tax_p`, each in a unit of its own.

        Returns the sums (pairs,), the logs of the units (pairs,), the terms without w (pairs, resources) and the taxes
        (pairs,); `log_price` (rows,) is :math:`\alpha l`, and `w` (rows,) are shares.
        """
        terms, tax = self.log_cost + log_price[self.at], LOG_TAX + alpha * self.tax
        largest = np.maximum(terms.max(axis=1), tax)
        row_terms, tax_term = np.exp(terms - largest[:, None]), np.exp(tax - largest)
        return (row_terms * w[self.at]).sum(axis=1) + tax_term, largest, row_terms, tax_term

    def totals(self, z: Array) -> Array:
        """User tasks X, (users,), from fractions z (pairs,)."""
        return np.bincount(self.user, self.size * z, len(self.limit)).astype(float)


@dataclass
class Place:
    """Point of the curve; arrays of amounts and of the active set have entries of pairs, then rows, then limits."""

    amount: Array  # (pairs + rows + users,), z, w and xi
    on: Mask  # (pairs + rows + users,), True if active
    level: Array  # (rows,), l
    reference: Mask  # (rows,), True for reference rows of servers, with w = 1
    theta: float  # log alpha
    pairs: int

    def __post_init__(self) -> None:
        cuts = self.pairs, self.pairs + len(self.level)
        #: Views of the amounts: fractions z, largest shares w of rows in costs, and prices xi of limits.
        self.z, self.w, self.xi = np.split(self.amount, cuts)
        self.pair_on, self.row_on, self.limit_on = np.split(self.on, cuts)

    def copied(self) -> Place:
        """Deep copy."""
        arrays: Any = {name: getattr(self, name).copy() for name in ("amount", "on", "level", "reference")}
        return replace(self, **arrays)

    def log_prices(self, alpha: float) -> Array:
        """Log prices of whole capacities (rows,), -inf for a zero price."""
        priced = self.row_on & (self.w > 0)
        return np.where(priced, np.log(np.where(priced, self.w, 1.0)) + alpha * self.level, -np.inf)

    def changed(self, c: int) -> None:
        """Add condition c to the active set, or remove it, where its amount and its slack are both zero."""
        self.on[c] ^= True
        self.amount[c] = 0.0
        if 0 <= c - self.pairs < len(self.level):
            self.reference[c - self.pairs] = False


class Values:
    """Equations evaluated at a point of the curve.

    Attributes
    ----------
    x : (users,), user tasks X
    row_slope : (pairs, resources), derivatives of log costs in w
    slack, alpha_slope : (pairs,), slacks of pairs, and their derivatives in log alpha
    idle : (rows,), idle fractions of capacities
    slacks : (pairs + rows + users,), slacks of all conditions; a condition whose slack becomes zero enters the set
    unit : (pairs + rows + users,), scales of amounts; a condition whose amount becomes zero leaves the active set
    valid : False if a user has no tasks, or an active pair no cost
    """

    @np.errstate(all="ignore")  # Newton's method may overflow; the point is then not `valid`
    def __init__(self, g: Game, at: Place) -> None:
        self.alpha, self.w = alpha, w = float(np.exp(at.theta)), at.w
        self.x = g.totals(at.z)
        self.idle = 1 + g.room - g.use @ at.z
        whole, top, self.row_slope, taxed = g.costs(alpha, np.where(at.row_on, alpha * at.level, -np.inf), w)
        level = at.level[g.at]
        alpha_slope = (self.row_slope * w[g.at] * level).sum(axis=1)
        alpha_slope += np.where(taxed > 0, taxed * g.tax, 0.0)
        self.row_slope /= whole[:, None]
        log_cost = (top + np.log(whole)) / alpha
        self.slack = (np.log(self.x) + at.xi)[g.user] + log_cost - g.gain + g.jitter
        self.alpha_slope = alpha_slope / whole - log_cost
        free = ~(whole > 0)
        self.slack[free], self.alpha_slope[free], self.row_slope[free] = -np.inf, 0.0, 0.0
        self.slacks = np.concatenate([self.slack, self.idle, 1 - self.x / g.limit])
        self.unit = np.ones(len(self.slacks))
        self.unit[: len(g.user)] = g.size / self.x[g.user]
        self.valid = bool((self.x > 0).all() and not (free & at.pair_on).any())


def gauge(g: Game, at: Place) -> None:
    """Renormalize prices in place: w of every active row is its largest share in a cost, and 1 for reference rows.

    The reference row of a server is the row of largest share. Servers on which costs are nearly all tax have no
    reference row, so that all of their prices may tend to zero.
    """
    alpha, rows, servers = float(np.exp(at.theta)), len(g.host), int(g.host.max()) + 1
    log_price = at.log_prices(alpha)
    with np.errstate(all="ignore"):
        whole, top, terms, taxed = g.costs(alpha, log_price, np.ones(rows))
        part_of, floor_of = terms / whole[:, None], g.log_cost - (top + np.log(whole))[:, None]
        taxed = taxed / whole
    paying = at.pair_on & (top > -np.inf)
    part, floor, least = np.zeros(rows), np.full(rows, -np.inf), np.ones(servers)
    np.maximum.at(part, g.at[paying], part_of[paying])
    np.maximum.at(floor, g.at[paying], floor_of[paying])
    np.minimum.at(least, g.server[paying], taxed[paying])
    measured = at.row_on & (floor > -np.inf)
    at.level[measured], at.w[measured] = -floor[measured] / alpha, part[measured]
    eligible = at.row_on & (part > 0) & (least < _MOST_TAX_SHARE)[g.host]
    order = np.argsort(part, kind="stable")
    order, reference = order[eligible[order]], np.full(servers, -1)
    reference[g.host[order]] = order
    reference = reference[reference >= 0]
    at.reference[:] = False
    at.reference[reference], at.level[reference], at.w[reference] = True, log_price[reference] / alpha, 1.0


class Active:
    """Numbering of the unknowns at a point: active pairs, active rows, binding limits, and log alpha.

    Conditions belong to pairs, rows and limits of users, and have indices in this order. An event has the index of its
    condition; the event of largest index is that log alpha attains a target.

    Attributes
    ----------
    members, pairs : indices of the active conditions, (unknowns,), and of active pairs
    count, whole : numbers of unknowns and of conditions
    place, of_row, of_limit : unknown of every condition, of every row, and of every user's limit; -1 if inactive
    of_reference : (servers,), unknown of the reference row, -1 without one
    """

    def __init__(self, g: Game, at: Place) -> None:
        self.g, self.at = g, at
        self.members, self.pairs = np.flatnonzero(at.on), np.flatnonzero(at.pair_on)
        self.count, self.whole = len(self.members), len(at.on)
        # Inactive conditions have index -1, which is the column of log alpha: `slopes` fills in this column last, and
        # so overwrites their entries.
        self.place = np.full(self.whole, -1)
        self.place[self.members] = np.arange(self.count)
        _, self.of_row, self.of_limit = np.split(self.place, (at.pairs, at.pairs + len(at.level)))
        self.of_reference = np.full(int(g.host.max()) + 1, -1)
        self.of_reference[g.host[at.reference]] = self.of_row[at.reference]

    def slopes(self, v: Values, some: Index) -> Array:
        """Jacobian (some, unknowns + 1) of slacks of `some` conditions; the last column is the derivative in log alpha.

        `some` has the sorted indices of the conditions: of pairs first, then of rows, then of limits.
        """
        g, at, users = self.g, self.at, self.g.user[self.pairs]
        found, cuts = np.zeros((len(some), self.count + 1)), np.searchsorted(some, [at.pairs, at.pairs + len(at.level)])
        p, r, n = np.split(some, cuts)
        r, n, here, row = r - at.pairs, n - at.pairs - len(at.level), np.arange(len(p)), g.at[p]
        of_pairs, of_rows, of_limits = np.split(found, cuts)
        price = np.where(at.reference, -1, self.of_row)[row]
        of_pairs[here[:, None], np.where(g.log_cost[p] > -np.inf, price, -1)] = v.row_slope[p] / v.alpha
        of_pairs[here, self.of_reference[g.server[p]]] = (v.row_slope[p] * v.w[row]).sum(axis=1)
        of_pairs[here, self.of_limit[g.user[p]]] = 1.0
        of_pairs[:, -1] = v.alpha_slope[p]
        of_pairs[:, : len(users)] = (g.user[p][:, None] == users) * v.unit[self.pairs]
        of_rows[:, : len(users)] = -g.use[r][:, self.pairs]
        of_limits[:, : len(users)] = (n[:, None] == users) * -g.size[self.pairs] / g.limit[n, None]
        return found

    def bordered(self, v: Values, border: Array) -> Array:
        """Jacobian of the active equations in unknowns and log alpha, with `border` as the last row."""
        return np.vstack([self.slopes(v, self.members), border])

    def moved(self, there: Place, step: Array, part: float) -> None:
        """Move a point with this active set by the fraction `part` of a step (unknowns + 1,), in place."""
        amounts, levels = self.spread(part * step)
        there.amount += amounts
        there.level += levels
        there.theta += part * float(step[-1])

    def spread(self, t: Array) -> tuple[Array, Array]:
        """Changes of all amounts (pairs + rows + users,) and levels (rows,) by a step t (unknowns + 1,)."""
        change, of_unknowns = np.zeros(self.whole), np.append(t[:-1], 0.0)
        change[self.members] = t[:-1]
        change[self.at.pairs + np.flatnonzero(self.at.reference)] = 0.0
        return change, np.where(self.at.row_on, of_unknowns[self.of_reference[self.g.host]], 0.0)

    def weights(self, v: Values) -> Array:
        """Squared scales of unknowns and log alpha in the arc length, (unknowns + 1,)."""
        return np.append(min(1.0, 10.0 / (self.count + 1)) * v.unit[self.members] ** 2, 1.0)

    def distances(self, v: Values, there: Place) -> Array:
        """Distances to entering or leaving the active set, (pairs + rows + users,), >= 0 on the curve."""
        return np.where(there.on, there.amount * v.unit, v.slacks)

    def rates(self, v: Values, t: Array) -> Array:
        """Derivatives of `distances` along t, (pairs + rows + users,)."""
        found, others = self.spread(t)[0] * v.unit, np.flatnonzero(~self.at.on)
        found[others] = self.slopes(v, others) @ t
        return np.asarray(found)

    def gradient(self, v: Values, c: int) -> Array:
        """Gradient of the distance to event c with respect to unknowns and log alpha, (unknowns + 1,).

        An event ends a segment of the curve with one active set. For a condition c < `whole` outside the active set the
        distance is the condition's slack, which vanishes when it enters; for a condition in the active set the distance
        is its amount (tasks or price), which vanishes when it leaves. For the last event, c = `whole`, the gradient is
        that of log alpha.
        """
        if c < self.whole and self.place[c] < 0:
            return np.asarray(self.slopes(v, np.array([c]))[0])
        found = np.zeros(self.count + 1)
        if c == self.whole:
            found[-1] = 1.0
        else:
            found[self.place[c]] = v.unit[c]
        return found
