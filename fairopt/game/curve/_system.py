"""The equations of an equilibrium at one point of the curve, in unknowns that may reach zero.

Log prices are minus infinity where a row leaves the active set. So the price of a row is its largest part w in what
a pair pays, `lambda_k c_k = w_k e^(alpha l_k)`. Of each server one row has w = 1 and its log level l_i as the unknown:
all prices of the server move with it. With tasks z (fractions of monopoly tasks), A = active pairs, rows and limits:

    log X_n + log(sum_r D_pr w_r e^(alpha l_r) + tax_p) / alpha + xi_n = g_p - jitter_p     p in A
    sum_p D_pr z_p = 1 + room_r                                                             r in A
    X_n = q_n                                                                               n in A

A user who has all its tasks where nothing that it needs is used up would pay nothing there, and its xi be infinite. So
users with a limit pay a little on all servers, in proportion to what a task is worth there once the limit is reached:
`tax_p = T e^(alpha h_p), h_p = g_p - log q_n - 3`. Who is at its limit prefers the same servers with it as without.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...model.problem import Problem

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

#: log T: the tax of users with a limit, in parts of what their last task is worth, and by how much its level is below
#: theirs besides.
LOG_TAX, TAX_BELOW = float(np.log(1e-8)), 3.0
#: A row stands for its server if somebody there pays less than this part of its cost as tax.
_TAXED = 0.5


@dataclass(frozen=True)
class Game:
    """What does not change along the curve. Pairs of a user stand together."""

    user: Index  # (pairs,)
    server: Index  # (pairs,)
    size: Array  # (pairs,), gamma in units of the user's largest
    gain: Array  # (pairs,), log(phi_n gamma_p)
    at: Index  # (pairs, resources), the row, any where there is no cost
    cost: Array  # (pairs, resources), D
    log_cost: Array  # (pairs, resources), -inf for none
    host: Index  # (rows,), the server of a row
    unused: Array  # (users,), 1 of those who can run nothing
    limit: Array  # (users,), infinite where it cannot bind
    tax: Array  # (pairs,), log level of the tax, h_p; -inf where the limit cannot bind
    jitter: Array  # (pairs,), by how much a pair is dearer than in the data, log
    room: Array  # (rows,), by how much a row is larger than in the data, relative

    @classmethod
    def of(cls, problem: Problem) -> Game:
        """That of a problem, whose alpha is not read; users who can run nothing have no pairs."""
        polytope, cluster = problem.polytope, problem.cluster
        user, server = polytope.users[polytope.pair_user], polytope.pair_server
        largest = np.ones(cluster.shape[0])
        largest[polytope.users] = np.maximum.reduceat(polytope.gamma, polytope.start[:-1])
        size = polytope.gamma / largest[user]
        gain = np.log(problem.criterion.weight[user] * size)
        number = np.zeros(cluster.capacity.shape, np.intp)
        number[polytope.row_server, polytope.row_resource] = np.arange(len(polytope.row_server))
        cost = polytope.pair_use
        limit = np.full(cluster.shape[0], np.inf)
        binds = polytope.limit < polytope.user_tasks(np.ones(len(user))) * (1 + 1e-9)
        limit[polytope.users[binds]] = (polytope.limit / largest[polytope.users])[binds]
        with np.errstate(divide="ignore"):
            log_cost = np.log(cost)
        tax = gain - np.log(limit)[user] - TAX_BELOW
        at, host = number[server], polytope.row_server
        unused = np.ones(len(limit))
        unused[polytope.users] = 0.0  # of no account
        none = np.zeros(len(user)), np.zeros(len(host))
        return cls(user, server, size, gain, at, cost, log_cost, host, unused, limit, tax, *none)

    def costs(self, alpha: float, log_price: Array, w: Array) -> tuple[Array, Array, Array, Array]:
        """Of pairs `sum_r D w e^log_price + tax` over e^top, its top, `D e^log_price` and the tax, both over e^top."""
        each, tax = self.log_cost + log_price[self.at], LOG_TAX + alpha * self.tax
        top = np.maximum(each.max(axis=1), tax)
        felt, taxed = np.exp(each - top[:, None]), np.exp(tax - top)
        return (felt * w[self.at]).sum(axis=1) + taxed, top, felt, taxed

    def totals(self, z: Array) -> Array:
        """X of tasks, (users,)."""
        return np.bincount(self.user, self.size * z, len(self.limit)).astype(float)

    def used(self, z: Array) -> Array:
        """Part of every row that is used, (rows,)."""
        return np.bincount(self.at.ravel(), (self.cost * z[:, None]).ravel(), len(self.host)).astype(float)


@dataclass
class Place:
    """A point of the curve."""

    z: Array  # (pairs,)
    w: Array  # (rows,), largest part of a row in what a pair pays; 1 for the row that stands for its server
    level: Array  # (rows,), l
    xi: Array  # (users,), by how much a limit bends the level, log
    theta: float  # log alpha
    pair_on: Mask  # (pairs,), active?
    row_on: Mask  # (rows,)
    limit_on: Mask  # (users,)
    stands: Mask  # (rows,), does the row stand for its server?

    def copied(self) -> Place:
        """Another place with the same numbers."""
        arrays: Any = {name: one.copy() for name, one in vars(self).items() if name != "theta"}
        return replace(self, **arrays)

    def changed(self, c: int) -> None:
        """Number c, which is at its end, leaves the active set or enters it."""
        pairs, rows = len(self.z), len(self.w)
        if c < pairs:
            self.pair_on[c] ^= True
            self.z[c] = 0.0
        elif c < pairs + rows:
            self.row_on[c - pairs] ^= True
            self.w[c - pairs], self.stands[c - pairs] = 0.0, False
        else:
            self.limit_on[c - pairs - rows] ^= True
            self.xi[c - pairs - rows] = 0.0


class Values:
    """What the equations say at a place; not `sound` where a user has no tasks or an active pair costs nothing.

    `x` (users,); `felt` (pairs, resources), by how much the log of a cost rises with w, relative to the cost; `slack`
    (pairs,) and its derivative by log alpha, `turn`; `idle` (rows,).
    """

    def __init__(self, g: Game, at: Place) -> None:
        self.alpha, self.w = alpha, w = float(np.exp(at.theta)), at.w
        self.x = g.totals(at.z) + g.unused
        self.idle = 1 + g.room - g.used(at.z)
        with np.errstate(all="ignore"):
            whole, top, self.felt, taxed = g.costs(alpha, np.where(at.row_on, alpha * at.level, -np.inf), w)
            level = at.level[g.at]
            turn = (self.felt * w[g.at] * level).sum(axis=1)
            turn += np.where(taxed > 0, taxed * g.tax, 0.0)
            self.felt /= whole[:, None]
            log_cost = (top + np.log(whole)) / alpha
            self.slack = (np.log(self.x) + at.xi)[g.user] + log_cost - g.gain + g.jitter
            self.turn = turn / whole - log_cost
        free = ~(whole > 0)
        self.slack[free], self.turn[free], self.felt[free] = -np.inf, 0.0, 0.0
        self.sound = bool((self.x > 0).all() and not (free & at.pair_on).any())


def gauge(g: Game, at: Place) -> None:
    """Measure prices anew: w of every active row is its largest part, and 1 for the largest of a server's.

    Where everybody pays hardly anything but the tax no row stands for the server, and all prices may fall to 0.
    """
    alpha, rows, servers = float(np.exp(at.theta)), len(g.host), int(g.host.max()) + 1
    priced = at.row_on & (at.w > 0)
    log_price = np.where(priced, np.log(np.where(priced, at.w, 1.0)) + alpha * at.level, -np.inf)
    with np.errstate(all="ignore"):
        whole, top, felt, taxed = g.costs(alpha, log_price, np.ones(rows))
        part_of, floor_of = felt / whole[:, None], g.log_cost - (top + np.log(whole))[:, None]
        taxed = taxed / whole
    pays = at.pair_on & (top > -np.inf)
    part, floor, least = np.zeros(rows), np.full(rows, -np.inf), np.ones(servers)
    np.maximum.at(part, g.at[pays], part_of[pays])
    np.maximum.at(floor, g.at[pays], floor_of[pays])
    np.minimum.at(least, g.server[pays], taxed[pays])
    known = at.row_on & (floor > -np.inf)
    at.level[known], at.w[known] = -floor[known] / alpha, part[known]
    at.stands[:] = False
    order = np.lexsort((np.arange(rows)[::-1], np.where(at.row_on, part, 0.0)))
    best = np.full(servers, -1)
    best[g.host[order]] = order
    best = best[(best >= 0) & (least < _TAXED)]
    best = best[at.row_on[best] & (part[best] > 0)]
    at.stands[best], at.level[best], at.w[best] = True, log_price[best] / alpha, 1.0


class Active:
    """The unknowns at a place, numbered: active pairs, active rows, limits that are met, and at last log alpha."""

    def __init__(self, g: Game, at: Place) -> None:
        self.g, self.at = g, at
        self.members = np.flatnonzero(np.concatenate([at.pair_on, at.row_on, at.limit_on]))
        self.count, self.whole = len(self.members), len(at.z) + len(at.w) + len(at.xi)
        self.place = np.full(self.whole, -1)
        self.place[self.members] = np.arange(self.count)
        self.pairs, self.rows, self.limits = (np.flatnonzero(one) for one in (at.pair_on, at.row_on, at.limit_on))
        self.of_pair, self.of_row, self.of_limit = np.split(self.place, np.cumsum([len(at.z), len(at.w)]))
        stand = np.full(int(g.host.max()) + 1, -1)
        stand[g.host[at.stands]] = self.of_row[at.stands]
        self.stand = stand  # (servers,), the unknown of the row that stands for it

    def slack_rows(self, v: Values, some: Index) -> Array:
        """Derivatives of some pairs' slacks, (some, unknowns + 1)."""
        g, at, users = self.g, self.at, self.g.user[some]
        found, here = np.zeros((len(some), self.count + 1)), np.arange(len(some))
        own = users[:, None] == g.user[self.pairs]
        found[:, : len(self.pairs)] = own * (g.size / v.x[g.user])[self.pairs]
        felt, row = v.felt[some], g.at[some]
        k, r = np.nonzero((g.cost[some] > 0) & (at.row_on & ~at.stands)[row])
        found[k, self.of_row[row[k, r]]] = felt[k, r] / v.alpha
        stand = self.stand[g.server[some]]
        k = here[stand >= 0]
        found[k, stand[k]] = (felt * v.w[row]).sum(axis=1)[k]
        k = here[at.limit_on[users]]
        found[k, self.of_limit[users[k]]] = 1.0
        found[:, -1] = v.turn[some]
        return found

    def use_rows(self, some: Index) -> Array:
        """Derivatives of what is used of some rows, (some, unknowns + 1)."""
        number = np.full(len(self.g.host), -1)
        number[some] = np.arange(len(some))
        found, row = np.zeros((len(some), self.count + 1)), number[self.g.at[self.pairs]]
        k, r = np.nonzero((row >= 0) & (self.g.cost[self.pairs] > 0))
        found[row[k, r], k] = self.g.cost[self.pairs][k, r]
        return found

    def total_rows(self, some: Index) -> Array:
        """Derivatives of some users' tasks over their limits, (some, unknowns + 1)."""
        found = np.zeros((len(some), self.count + 1))
        own = some[:, None] == self.g.user[self.pairs]
        found[:, : len(self.pairs)] = own * self.g.size[self.pairs] / self.g.limit[some, None]
        return found

    def bordered(self, v: Values, border: Array) -> Array:
        """The derivative of the equations by unknowns and log alpha, and `border` as the last row."""
        return np.vstack(
            [self.slack_rows(v, self.pairs), self.use_rows(self.rows), self.total_rows(self.limits), border]
        )

    def residual(self, v: Values) -> Array:
        """Minus what is wrong, (unknowns + 1,), 0 at last."""
        over = 1 - v.x[self.limits] / self.g.limit[self.limits]
        return np.concatenate([-v.slack[self.pairs], v.idle[self.rows], over, [0.0]])

    def spread(self, t: Array) -> tuple[Array, Array, Array, Array]:
        """Changes of z, w, levels and xi of everybody by a step (unknowns + 1,)."""
        g, at = self.g, self.at
        dz, dw, dxi = (np.where(one >= 0, t[one], 0.0) for one in (self.of_pair, self.of_row, self.of_limit))
        stand = self.stand[g.host]
        return dz, np.where(at.stands, 0.0, dw), np.where((stand >= 0) & at.row_on, t[stand], 0.0), dxi

    def moved(self, there: Place, step: Array, part: float) -> None:
        """Change a place with this active set by a part of a step (unknowns + 1,)."""
        for amount, change in zip((there.z, there.w, there.level, there.xi), self.spread(step), strict=True):
            amount += part * change
        there.theta += part * float(step[-1])

    def weights(self, v: Values) -> Array:
        """Squares of the units in which the curve's length is measured, (unknowns + 1,)."""
        found = np.full(self.count + 1, min(1.0, 10.0 / (self.count + 1)))
        found[: len(self.pairs)] *= (self.g.size / v.x[self.g.user])[self.pairs] ** 2
        found[-1] = 1.0
        return found

    # -- what may change: pairs, rows, users by their limit, and at last log alpha reaching a value asked for --------

    def distances(self, v: Values, there: Place) -> Array:
        """How far everybody is from entering or leaving the set, (pairs + rows + users,), >= 0 on the curve."""
        g = self.g
        return np.concatenate(
            [
                np.where(there.pair_on, g.size * there.z / v.x[g.user], v.slack),
                np.where(there.row_on, there.w, v.idle),
                np.where(there.limit_on, there.xi, 1 - v.x / g.limit),
            ]
        )

    def rates(self, v: Values, t: Array) -> Array:
        """The change of distances along t, infinite where there is none."""
        g, at = self.g, self.at
        dz, dw, level, dxi = self.spread(t)
        dx = g.totals(dz)
        off = (dx / v.x + dxi)[g.user] + v.turn * t[-1]
        off += (v.felt * (v.w * level + dw / v.alpha)[g.at]).sum(axis=1)
        of_rows = np.where(at.stands, np.inf, np.where(at.row_on, dw, -g.used(dz)))
        of_limits = np.where(np.isfinite(g.limit), -dx / g.limit, np.inf)
        return np.concatenate(
            [
                np.where(at.pair_on, g.size * dz / v.x[g.user], off),
                of_rows,
                np.where(at.limit_on, dxi, of_limits),
            ]
        )

    def gradient(self, v: Values, c: int, away: bool) -> Array:
        """The derivative of the distance of c, (unknowns + 1,); `away`: is log alpha to fall?"""
        found, pairs, rows = np.zeros(self.count + 1), len(self.at.z), len(self.at.w)
        if c == self.whole:
            found[-1] = 1.0 if away else -1.0
        elif self.place[c] >= 0:
            found[self.place[c]] = self.g.size[c] / v.x[self.g.user[c]] if c < pairs else 1.0
        elif c < pairs:
            found = self.slack_rows(v, np.array([c]))[0]
        elif c < pairs + rows:
            found = -self.use_rows(np.array([c - pairs]))[0]
        else:
            found = -self.total_rows(np.array([c - pairs - rows]))[0]
        return found
