"""Near an equilibrium of the per-server game, from servers that know nothing of each other.

For every temperature tau in (0, 1] a game lies between: a server counts a user's tasks as `X^(1-tau) x^tau`, X in all
and x on the server itself, so that with levels `l_ni = log(phi_n gamma_ni) - log norm_i(n)`

    log X_n = tau log sum_i e^(l_ni/tau),    x_ni = X_n softmax(l_n/tau)_i.

At tau = 1 every server is alone, with a problem of its own; tau = 0 is the game. Nor is there any complementarity in
prices: a phantom user of little weight eps = 0.01 tau wants nothing but the one resource r of server i, and takes
`eps/v_ir` of it (`eps/v^alpha` for alpha < 1), so that

    F_ir(log v) = log(use_ir + eps_i/v_ir) = 0,    a = min(alpha, 1/tau) in place of alpha,

has the logs of prices as its only unknowns. It is followed by Newton's method as tau falls, log v extrapolated along
its tangent. Where a price slides while tau hardly changes (a resource comes to bind whose price had no effect), the
curve is followed by its length. From a point on the way the interior point goes on, or the curve itself goes on to
where nothing is left of tau.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .equations import Equations, Point

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Step = tuple[Array, float]  # of log prices and log tau

#: Weight of the phantom users, relative to tau and to a price at which the server alone is full.
_PHANTOM = 0.01
#: The first step of log tau, the longest and the shortest; the next one by Newton steps taken.
_STEP, _LONGEST, _SHORTEST = 0.5, 4.0, 1e-4
#: Across a bend: at most so many systems, until log tau has fallen by so much. Lengths as in `path`.
_BEND, _PAST, _TYPICAL = 200, 0.02, 10.0
_GROW = (2.0, 2.0, 1.7, 1.4, 1.2, 1.0, 0.8, 0.7, 0.6)
#: On the curve: by what part of tau something may be wrong.
_NEAR = 0.1
#: Systems on the way from one alpha to twice that.
_ONWARD = 60
#: Most prices: every system takes the third power of it.
_LARGEST = 1000
#: Users whose matrices are formed at once.
_BLOCK = 256


@dataclass(frozen=True)
class Between:
    """A point of the game between, after so many Newton steps."""

    point: Point
    tau: float
    steps: int
    price: Array  # log prices (servers, resources), those without effect as well
    unit: Array

    def tasks(self, equations: Equations) -> Array:
        """Tasks of the pairs here, not those that the interior point starts from."""
        found: Array = _Here(equations, self.price, self.tau, self.unit).tasks
        return found


def onward(at: Between, before: Equations, after: Equations) -> Between | None:
    """The same place for a larger alpha: prices go on linearly in 1/alpha, in shorter steps where that is not so."""
    alpha, factor, price, steps = before.alpha, 2.0, at.price, at.steps
    while alpha < after.alpha:
        q, higher, further = (
            Equations(before.polytope, before.weight, value)
            for value in (alpha, alpha * (1 + 1e-6), min(factor * alpha, after.alpha))
        )
        here = _Here(q, price, at.tau, at.unit)
        slope = here.solve((_Here(higher, price, at.tau, at.unit).wrong - here.wrong) / 1e-6)
        if slope is None:
            return None
        guess = price + (1 - alpha / further.alpha) * slope
        found, taken = _newton(_Here(further, guess, at.tau, at.unit), len(_GROW) - 1)
        steps += taken + 1
        if found is not None:
            alpha, price, factor = further.alpha, found.price, min(1 + (factor - 1) * _GROW[taken], 2.0)
            continue
        factor = factor**0.4
        if factor < 1 + 1e-3 or steps > at.steps + _ONWARD:
            return None
    return Between(_Here(after, price, at.tau, at.unit).point(), at.tau, steps, price, at.unit)


def follow(equations: Equations, last: float = 1e-7, budget: int = 600) -> Iterator[Between]:
    """Points as tau falls from 1 to `last`, once alpha itself is reached, at most `budget` systems; none if large."""
    start = _start(equations) if equations.row.size <= _LARGEST else None
    if start is None:
        return
    here, steps = start
    length = _STEP
    while here.tau > last and steps < budget:
        slope = here.slope()
        steps += 1
        while True:
            guess = here.price + np.where(here.phantom > 0.5, -length, np.expm1(-length)) * slope
            there, taken = _newton(_Here(equations, guess, here.tau * np.exp(-length), here.unit), len(_GROW) - 1)
            steps += taken
            if there is not None:
                here, length = there, min(length * _GROW[taken], _LONGEST)
                break
            length *= 0.35
            if length < _SHORTEST:
                there, taken = _past(here)
                steps += taken
                if there is None:
                    return
                here, length = there, _PAST
                break
        if here.tau * equations.alpha <= 1:
            yield Between(here.point(), here.tau, steps, here.price, here.unit)


class _Here:
    """The game between at one vector of log prices (servers, resources); `unit` (servers,) are log prices too."""

    def __init__(self, q: Equations, price: Array, tau: float, unit: Array) -> None:
        self.q, self.price, self.tau, self.unit = q, price, float(tau), unit
        self.a = min(q.alpha, 1 / self.tau)
        first, user, server = q.start[:-1], q.polytope.pair_user, q.server
        own = np.where(q.use > 0, np.log(q.use) + self.a * price[server], -np.inf)
        top = own.max(axis=1)
        share = np.exp(own - top[:, None])
        whole = share.sum(axis=1)
        self.share = share / whole[:, None]
        level = (q.log_gain - (top + np.log(whole)) / self.a) / self.tau
        best = np.maximum.reduceat(level, first)
        part = np.exp(level - best[user])
        total = np.add.reduceat(part, first)
        self.part = part / total[user]
        self.log_level: Array = self.tau * (best + np.log(total))
        # A limit q bends X below it: log X = -tau log(e^(-log level/tau) + q^(-1/tau)).
        below = np.where(np.isfinite(q.limit), (self.log_level - np.log(q.limit)) / self.tau, -np.inf)
        self.kept = 1 / (1 + np.exp(np.minimum(below, 700.0)))
        self.tasks: Array = self.part * np.exp(self.log_level - self.tau * np.logaddexp(0, below))[user]
        self.used = q.used(self.tasks)
        taken = _PHANTOM * self.tau * np.exp(min(q.alpha, 1.0) * (unit[:, None] - price))
        full = np.where(q.row, self.used + taken, 1.0)
        self.wrong: Array = np.log(full)
        self.phantom = np.where(q.row, taken / full, 1.0)
        self.full = full

    def matrix(self) -> Array:
        """Derivatives of what is wrong over log prices, (servers resources, servers resources)."""
        q, (servers, size) = self.q, self.price.shape
        user, server = q.polytope.pair_user, q.server
        use = self.tasks[:, None] * q.per_task / self.full[server]
        result = np.zeros((servers * size, servers * size))
        for low in range(0, len(q.start) - 1, _BLOCK):
            high = min(low + _BLOCK, len(q.start) - 1)
            pairs = slice(q.start[low], q.start[high])
            at = (user[pairs] - low, server[pairs])
            answer, cost = np.zeros((2, high - low, servers, size))
            answer[at] = use[pairs] * (1 / self.tau - self.kept[user[pairs]])[:, None]
            cost[at] = self.part[pairs][:, None] * self.share[pairs]
            result += answer.reshape(high - low, -1).T @ cost.reshape(high - low, -1)
        i = np.arange(servers) * size
        for r in range(size):
            for s in range(size):
                result[i + r, i + s] -= np.bincount(server, use[:, r] * self.share[:, s], servers) / self.tau
        result[np.diag_indices_from(result)] -= min(q.alpha, 1.0) * self.phantom.ravel()
        return result

    def solve(self, wrong: Array) -> Array | None:
        """Newton's step of log prices for what is wrong, (servers, resources) or several of them, one after another."""
        try:
            step = np.asarray(-np.linalg.solve(self.matrix(), wrong.reshape(-1, self.price.size).T).T, dtype=float)
        except np.linalg.LinAlgError:
            return None
        return step.reshape(wrong.shape) if np.isfinite(step).all() else None

    def drift(self) -> Array:
        """What becomes wrong as log tau grows, by a difference."""
        h = 1e-6
        return np.asarray((_Here(self.q, self.price, self.tau * np.exp(h), self.unit).wrong - self.wrong) / h)

    def slope(self) -> Array:
        """Derivatives of log prices over log tau along the curve."""
        found = self.solve(self.drift())
        return np.zeros_like(self.price) if found is None else found

    def point(self) -> Point:
        """Where the interior point can go on, with products near tau."""
        q, mu, k = self.q, self.tau, self.q.power
        user = q.polytope.pair_user
        log_price = np.where(q.row, self.price, 0.0)
        at = Point(self.tasks, self.tasks, log_price, self.log_level, log_price, mu, k)
        true, share, _ = q.priced(at, q.alpha)
        total = q.totals(self.log_level, mu)[0][user]
        part = self.tasks / total
        many = part > np.sqrt(k * mu)  # tasks are known better than slacks, or the other way round
        slack = np.where(many, k * mu / np.maximum(part, 1e-300), np.maximum(true, k * mu))
        tasks = np.where(many, part, k * mu / slack) * total
        parts = q.parts(at, share, true, self.used)
        idle = np.where(parts > np.sqrt(mu), mu / parts, np.maximum(1 - q.used(tasks), np.sqrt(mu)))
        lift = np.maximum(np.log(mu / idle) - np.log(parts), 0.0) / q.alpha
        idle, log_price = np.where(q.row, idle, 1.0), np.where(q.row, log_price + lift, 0.0)
        return Point(tasks, slack, log_price, self.log_level, idle, mu, k)


def _newton(here: _Here, most: int) -> tuple[_Here | None, int]:
    """The curve at the temperature of `here`, or None, and the Newton steps taken."""
    for taken in range(most + 1):
        if np.abs(here.wrong).max() < _NEAR * here.tau:
            return here, taken
        step = here.solve(here.wrong) if taken < most and np.isfinite(here.wrong).all() else None
        if step is None:
            return None, taken
        norm, t = np.linalg.norm(here.wrong), 1.0
        while True:
            there = _Here(here.q, here.price + t * step, here.tau, here.unit)
            if np.linalg.norm(there.wrong) < (1 - 0.1 * t) * norm:
                break
            t *= 0.4
            if t < 0.02:
                return None, taken + 1
        here = there
    return None, most


def _past(here: _Here) -> tuple[_Here | None, int]:
    """The curve followed by its length until tau has fallen a little, or None; and the systems solved."""
    q, unit, origin = here.q, here.unit, here.tau
    scale = min(1.0, _TYPICAL / q.row.sum()) / origin**2

    def product(one: Step, other: Step) -> float:
        return float(scale * (one[0] * other[0]).sum() + one[1] * other[1])

    length, before, solved = _STEP, None, 0
    while solved < _BEND:
        along: Step = (here.slope(), 1.0)
        solved += 1
        norm = np.sqrt(product(along, along)) * (-1 if before is None or product(along, before) < 0 else 1)
        tangent: Step = (along[0] / norm, along[1] / norm)
        while True:
            log_tau = np.log(here.tau) + length * tangent[1]
            there = _Here(q, here.price + length * tangent[0], np.exp(log_tau), unit)
            first = float(np.abs(there.wrong).max())
            for turns in range(len(_GROW)):
                wrong = float(np.abs(there.wrong).max())
                if wrong < _NEAR * there.tau or not wrong <= 10 * first or turns == len(_GROW) - 1:
                    break
                both = there.solve(np.stack([there.wrong, there.drift()]))
                solved += 1
                if both is None:
                    break
                change = -product(tangent, (both[0], 0.0)) / product(tangent, (both[1], 1.0))
                step = both[0] + change * both[1]
                part = 1 / max(1.0, float(np.abs(step).max()) / (2 * there.tau), abs(change))
                log_tau += part * change
                there = _Here(q, there.price + part * step, np.exp(log_tau), unit)
            if wrong < _NEAR * there.tau:
                break
            length *= 0.4
            if length < _SHORTEST or solved > _BEND:
                return None, solved
        here, before = there, tangent
        if here.tau < (1 - _PAST) * origin:
            return here, solved
        length *= _GROW[turns]
    return None, solved


def _start(q: Equations) -> tuple[_Here, int] | None:
    """tau = 1, from prices that are the same for all resources of a server and fill it."""
    served: Mask = np.asarray(q.row.any(axis=1))
    unit = np.zeros(len(served))
    for _ in range(60):
        full = np.where(q.row, _Here(q, np.repeat(unit[:, None], q.row.shape[1], axis=1), 1.0, unit).wrong, -np.inf)
        most = np.where(served, full.max(axis=1), 0.0)
        if np.abs(most).max() < 0.3:
            break
        unit = unit + np.clip(most, -2, 2)
    here, steps = _newton(_Here(q, np.repeat(unit[:, None], q.row.shape[1], axis=1), 1.0, unit), 60)
    return None if here is None else (here, steps)
