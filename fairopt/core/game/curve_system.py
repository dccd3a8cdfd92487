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

from ...model._arrays import Array, Index, Mask
from ...model.problem import Problem
from .equilibrium_system import EquilibriumSystem


@dataclass(frozen=True)
class CurveOptions:
    """Options of the continuation."""

    #: The curve begins at `near` or `1/near`; nearer to 1 an equilibrium is taken as it is found.
    near: float = 1.001
    #: The longest step. `length^2 = (d log alpha)^2 + min(1, 10/unknowns) (|d tasks / tasks of the user|^2 + |d log
    #: levels of servers|^2 + |d parts of rows in what is paid|^2)`.
    longest: float = 0.3
    #: Steps of a run: `steps_per_pair (pairs + 10) (1 + |log alpha|)` at most, whichever way it goes.
    steps_per_pair: int = 60
    #: It is followed up to this number of pairs (user, server); its beginning has dense matrices and looks at no clock.
    most_pairs: int = 6000
    #: Crossings that `select="welfare"` compares lie on the curve up to this factor beyond alpha.
    beyond: float = 3.0


#: What is used unless a caller says otherwise.
OPTIONS = CurveOptions()


#: log T: the tax of users with a limit, in parts of what their last task is worth, and by how much its level is below
#: theirs besides.
LOG_TAX, TAX_BELOW = float(np.log(1e-8)), 3.0
#: A row stands for its server if somebody there pays less than this part of its cost as tax.
_TAXED = 0.5


@dataclass(frozen=True)
class Game:
    """Data that are constant along the curve, pairs sorted by user."""

    user: Index  # (pairs,)
    server: Index  # (pairs,)
    size: Array  # (pairs,), gamma in units of the user's largest
    gain: Array  # (pairs,), log(phi_n gamma_p)
    at: Index  # (pairs, resources), the row, any where there is no cost
    log_cost: Array  # (pairs, resources), log D, -inf for none
    use: Array  # (rows, pairs), D
    host: Index  # (rows,), the server of a row
    largest: Array  # (users,), the unit of tasks
    limit: Array  # (users,), infinite where it cannot bind
    tax: Array  # (pairs,), log level of the tax, h_p; -inf where the limit cannot bind
    jitter: Array  # (pairs,), by how much a pair is dearer than in the data, log
    room: Array  # (rows,), by how much a row is larger than in the data, relative

    @classmethod
    def of(cls, problem: Problem) -> Game:
        """Data of a problem, at any alpha; users who can run nothing have no pairs."""
        polytope = problem.polytope
        system = EquilibriumSystem.of(polytope, problem.criterion)
        user, host = system.user, polytope.row_server
        number = np.zeros(system.row.shape, np.intp)
        number[host, polytope.row_resource] = np.arange(len(host))
        binds = polytope.limit < polytope.user_tasks(np.ones(len(user))) * (1 + 1e-9)
        limit = np.where(binds, system.limit, np.inf)
        with np.errstate(divide="ignore"):
            log_cost = np.log(system.use)
        tax = system.log_gain - np.log(limit)[user] - TAX_BELOW
        at, use = number[system.server], polytope.use.toarray()
        none = np.zeros(len(user)), np.zeros(len(host))
        each = user, system.server, system.gamma, system.log_gain, at, log_cost, use, host, system.largest, limit, tax
        return cls(*each, *none)

    def costs(self, alpha: float, log_price: Array, w: Array) -> tuple[Array, Array, Array, Array]:
        """Costs of pairs, `sum_r D w e^log_price + tax`, in units of e^top: the sum, top, `D e^log_price`, the tax."""
        each, tax = self.log_cost + log_price[self.at], LOG_TAX + alpha * self.tax
        top = np.maximum(each.max(axis=1), tax)
        felt, taxed = np.exp(each - top[:, None]), np.exp(tax - top)
        return (felt * w[self.at]).sum(axis=1) + taxed, top, felt, taxed

    def totals(self, z: Array) -> Array:
        """X of tasks, (users,)."""
        return np.bincount(self.user, self.size * z, len(self.limit)).astype(float)


@dataclass
class Place:
    """A point of the curve. Amounts are of pairs, rows and limits, one after the other; so is what is active."""

    amount: Array  # (pairs + rows + users,), z, w and xi
    on: Mask  # (pairs + rows + users,), active?
    level: Array  # (rows,), l
    stands: Mask  # (rows,), does the row stand for its server? Its w is 1
    theta: float  # log alpha
    pairs: int

    def __post_init__(self) -> None:
        cuts = self.pairs, self.pairs + len(self.level)
        #: Fractions, largest parts of rows in what a pair pays, and by how much limits bend levels, log.
        self.z, self.w, self.xi = np.split(self.amount, cuts)
        self.pair_on, self.row_on, self.limit_on = np.split(self.on, cuts)

    def copied(self) -> Place:
        """Another place with the same numbers."""
        arrays: Any = {name: getattr(self, name).copy() for name in ("amount", "on", "level", "stands")}
        return replace(self, **arrays)

    def log_prices(self, alpha: float) -> Array:
        """Log prices of whole capacities (rows,), -inf for none."""
        priced = self.row_on & (self.w > 0)
        return np.where(priced, np.log(np.where(priced, self.w, 1.0)) + alpha * self.level, -np.inf)

    def changed(self, c: int) -> None:
        """Number c, which is at its end, leaves the active set or enters it."""
        self.on[c] ^= True
        self.amount[c] = 0.0
        if 0 <= c - self.pairs < len(self.level):
            self.stands[c - self.pairs] = False


class Values:
    """Equations evaluated at a point; not `sound` where a user has no tasks or an active pair costs nothing.

    `x` (users,); `felt` (pairs, resources), by how much the log of a cost rises with w, relative to the cost; `slack`
    (pairs,) and its derivative by log alpha, `turn`; `idle` (rows,). Of pairs, rows and limits: `outside`, how far they
    are from entering the active set, and `unit`, in which amounts are from leaving it.
    """

    @np.errstate(all="ignore")  # Newton's method may go beyond all numbers, which is not sound
    def __init__(self, g: Game, at: Place) -> None:
        self.alpha, self.w = alpha, w = float(np.exp(at.theta)), at.w
        self.x = g.totals(at.z)
        self.idle = 1 + g.room - g.use @ at.z
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
        self.outside = np.concatenate([self.slack, self.idle, 1 - self.x / g.limit])
        self.unit = np.ones(len(self.outside))
        self.unit[: len(g.user)] = g.size / self.x[g.user]
        self.sound = bool((self.x > 0).all() and not (free & at.pair_on).any())


def gauge(g: Game, at: Place) -> None:
    """Measure prices anew: w of every active row is its largest part, and 1 for the largest of a server's.

    Where everybody pays hardly anything but the tax no row stands for the server, and all prices may fall to 0.
    """
    alpha, rows, servers = float(np.exp(at.theta)), len(g.host), int(g.host.max()) + 1
    log_price = at.log_prices(alpha)
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
    fit = at.row_on & (part > 0) & (least < _TAXED)[g.host]
    order = np.argsort(part, kind="stable")
    order, best = order[fit[order]], np.full(servers, -1)
    best[g.host[order]] = order
    best = best[best >= 0]
    at.stands[:] = False
    at.stands[best], at.level[best], at.w[best] = True, log_price[best] / alpha, 1.0


class Active:
    """The unknowns at a place, numbered: active pairs, active rows, limits that are met, and at last log alpha.

    What may change on the way is numbered too: pairs, rows, users by their limit, and log alpha by reaching a value.
    """

    def __init__(self, g: Game, at: Place) -> None:
        self.g, self.at = g, at
        self.members, self.pairs = np.flatnonzero(at.on), np.flatnonzero(at.pair_on)
        self.count, self.whole = len(self.members), len(at.on)
        self.place = np.full(self.whole, -1)  # -1: not active; as a column that of log alpha
        self.place[self.members] = np.arange(self.count)
        _, self.of_row, self.of_limit = np.split(self.place, (at.pairs, at.pairs + len(at.level)))
        self.stand = np.full(int(g.host.max()) + 1, -1)  # (servers,), the unknown of the row that stands for it
        self.stand[g.host[at.stands]] = self.of_row[at.stands]

    def slopes(self, v: Values, some: Index) -> Array:
        """Derivatives of slacks, idle parts of rows and rooms of limits, by number, sorted: (some, unknowns + 1)."""
        g, at, users = self.g, self.at, self.g.user[self.pairs]
        found, cuts = np.zeros((len(some), self.count + 1)), np.searchsorted(some, [at.pairs, at.pairs + len(at.level)])
        p, r, n = np.split(some, cuts)
        r, n, here, row = r - at.pairs, n - at.pairs - len(at.level), np.arange(len(p)), g.at[p]
        of_pairs, of_rows, of_limits = np.split(found, cuts)
        price = np.where(at.stands, -1, self.of_row)[row]
        of_pairs[here[:, None], np.where(g.log_cost[p] > -np.inf, price, -1)] = v.felt[p] / v.alpha
        of_pairs[here, self.stand[g.server[p]]] = (v.felt[p] * v.w[row]).sum(axis=1)
        of_pairs[here, self.of_limit[g.user[p]]] = 1.0
        of_pairs[:, -1] = v.turn[p]
        of_pairs[:, : len(users)] = (g.user[p][:, None] == users) * v.unit[self.pairs]
        of_rows[:, : len(users)] = -g.use[r][:, self.pairs]
        of_limits[:, : len(users)] = (n[:, None] == users) * -g.size[self.pairs] / g.limit[n, None]
        return found

    def bordered(self, v: Values, border: Array) -> Array:
        """The derivative of the equations by unknowns and log alpha, and `border` as the last row."""
        return np.vstack([self.slopes(v, self.members), border])

    def moved(self, there: Place, step: Array, part: float) -> None:
        """Change a place with this active set by a part of a step (unknowns + 1,)."""
        amounts, levels = self.spread(part * step)
        there.amount += amounts
        there.level += levels
        there.theta += part * float(step[-1])

    def spread(self, t: Array) -> tuple[Array, Array]:
        """Changes of amounts and levels of everybody by a step (unknowns + 1,)."""
        change, of_unknowns = np.zeros(self.whole), np.append(t[:-1], 0.0)
        change[self.members] = t[:-1]
        change[self.at.pairs + np.flatnonzero(self.at.stands)] = 0.0
        return change, np.where(self.at.row_on, of_unknowns[self.stand[self.g.host]], 0.0)

    def weights(self, v: Values) -> Array:
        """Squares of the units in which the curve's length is measured, (unknowns + 1,)."""
        return np.append(min(1.0, 10.0 / (self.count + 1)) * v.unit[self.members] ** 2, 1.0)

    def distances(self, v: Values, there: Place) -> Array:
        """Distances to entering or leaving the active set, (pairs + rows + users,), >= 0 on the curve."""
        return np.where(there.on, there.amount * v.unit, v.outside)

    def rates(self, v: Values, t: Array) -> Array:
        """The change of distances along t."""
        found, others = self.spread(t)[0] * v.unit, np.flatnonzero(~self.at.on)
        found[others] = self.slopes(v, others) @ t
        return np.asarray(found)

    def gradient(self, v: Values, c: int) -> Array:
        """The derivative of the distance of c, or of log alpha, (unknowns + 1,)."""
        if c < self.whole and self.place[c] < 0:
            return np.asarray(self.slopes(v, np.array([c]))[0])
        found = np.zeros(self.count + 1)
        if c == self.whole:
            found[-1] = 1.0
        else:
            found[self.place[c]] = v.unit[c]
        return found
