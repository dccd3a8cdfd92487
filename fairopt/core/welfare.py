r"""Concave welfare, and the game, by an interior point whose matrix `algebra` eliminates, in either order.

With what a unit of user n is worth `m_n(x)`, costs of pairs at prices lambda of whole capacities, pay p, limits q and
floors (sign -1) with excesses xi:

.. math::

    z = cost - p \ge 0 \perp y \ge 0, \qquad w = 1 - use\,y \ge 0 \perp \lambda \ge 0, \qquad
    v = \pm(q - x) \ge 0 \perp \xi \ge 0,

    x = \sum_i y, \qquad \log(p \pm \xi) = \log m(x).

A product counts by what its user turns over or by its price, so that nobody is small. Pay may have any sign where a
limit binds: nothing diverges where a user has all of its tasks and servers are free. Where worth has a part for the
sum of shares, one more unknown is what that part weighs; where that goes to and fro it is held in a run, and Brent's
method finds it. In the game costs are divided by what a task is worth on its server beside the user's best one
(`Pairs.value`).

The logarithm of the common level of prices is one more unknown: where alpha is large, an error of 1/alpha in the tasks
of all users changes prices by decades, which steps that are linear in prices would take one by one.

Where alpha is large prices of servers are decades apart, and a start would have to know which is where: alpha begins at
4 and is doubled as soon as equations hold about, prices being taken to the power that their users' levels ask for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from ..base.libraries import optimize
from ..certificates.backward import error_at
from ..model._arrays import Array
from ..model.problem import Problem
from .algebra import Equations
from .market import GENTLE, TINY, Change, Market, Point, Start

#: By what alpha grows, and how well the equations are met before it does; in the game.
_STEEPER, _STEEPER_GAME = (2.0, 0.1), (3.0, 0.3)
#: A point is judged where its mean product is below that part of the tolerance, before which it hardly ever passes, or
#: below that number, after which rounding is near.
_WITHIN, _SMALL = 1e-2, 1e-11
#: Below that mean product nothing is found in steps that fail.
_ROUNDING = 1e-12
#: Steps for the decades of tasks: for those of one decade of prices, over alpha, and for all that numbers have.
_PRICES, _NUMBERS = 3.0, 1000.0


class Step:
    """Newton's equations at a point, factored."""

    def __init__(self, market: Market, at: Point, weights: tuple[Array, Array], rough: bool) -> None:
        self.market, self.at, self.weights = market, at, weights
        q, pairs = market, market.pairs
        self.worth = q.worth(at.x, at.tilt)
        self.pays = at.p + q.on_users(q.sign * at.xi)
        self.inverse = 1 / at.z
        self.product = at.y * at.z / weights[0]
        #: Errors of slacks as parts of them.
        self.dual = 1 - pairs.slack(at.lam, at.p) * self.inverse
        self.excess = np.where(q.row, 1 - pairs.use(at.y) - at.w, 0.0)
        self.short = at.x - pairs.sums(at.y)
        self.rho = np.log(self.pays) - self.worth.log + at.level
        self.off = at.v - q.sign * (q.bound - at.x[q.user])
        tilt, self.slopes = q.tilt(at.x)
        self.untilted = tilt - at.tilt if q.tilted else 0.0
        self.mu = self._mean(float(self.product.sum()), at)
        errors = (
            self.dual * self.product, self.excess, self.short / at.x, self.rho / q.power, self.off / q.bound,
            self.untilted,
        )  # fmt: skip
        self.missed = max(float(np.abs(each).max(initial=0.0)) for each in errors)
        self.rough = rough

    def _mean(self, of_pairs: float, at: Point) -> float:
        """Mean of weighted products, given their sum over pairs."""
        q = self.market
        of_limits = at.xi * at.v / (q.bound * self._worth_of_limits)
        total = of_pairs + (at.lam * at.w / self.weights[1])[q.row].sum() + of_limits.sum()
        return float(total / (len(at.y) + np.count_nonzero(q.row) + len(at.v)))

    @property
    def _worth_of_limits(self) -> Array:
        return np.asarray(self.market.of_limit * self.pays[self.market.user])

    def factor(self) -> None:
        """Eliminate pairs, limits and tasks."""
        q, at = self.market, self.at
        self.weight = at.y * self.inverse
        stiff = np.maximum(self.worth.elastic, 1e-13) * self.pays / at.x + q.on_users(at.xi / at.v)
        self.loose = 1 / stiff
        self.ratio = np.where(q.row, at.w / np.maximum(at.lam, TINY), 0.0)
        idle = np.where(q.row, self.ratio, np.inf)
        common = self.loose * self.pays if q.power > GENTLE and q.log_gamma is None else 0 * at.x
        self.equations = Equations(q.pairs, self.weight, idle, self.loose, common, self.rough)
        #: Users whose worth hardly depends on tasks, and does not say these.
        self.unsaid = self.loose > q.pairs.sums(self.weight)
        if q.tilted:
            users = self.worth.part * self.pays
            self.by_tilt = self._solve(None, 0 * at.lam, 0 * at.x, -users, 0 * at.lam, None)

    def _solve(
        self, own: Array | None, rows: Array, short: Array, k: Array, excess: Array, sharp: float | None
    ) -> tuple[Array, Array, Array, float]:
        """Solve for changes of prices, pay, tasks and the level."""
        pairs = self.market.pairs
        b, e = rows - excess, short - self.loose * k
        if own is not None:
            b, e = b + pairs.use(own), e - pairs.sums(own)
        lam, p, down = self.equations.solve(b, e, 0.0, sharp)
        return lam, p, -self.loose * (p + k - down * self.pays), -down

    def direction(
        self, cy: Array | float, cw: Array, cv: Array, bend: Array | None = None, wrong: bool = True
    ) -> Change:
        """Direction for changes of products, of pairs relative; with `wrong` it removes residuals too."""
        q, at = self.market, self.at
        none = np.zeros(len(at.x))
        short, excess, off = (self.short, self.excess, self.off) if wrong else (none, 0 * at.lam, 0 * at.v)
        rho = (self.rho if wrong else none) + (none if bend is None else bend)
        own = at.y * (self.dual + cy if wrong else cy)
        rows = np.where(q.row, cw / np.maximum(at.lam, TINY), 0.0)
        k = rho * self.pays + q.on_users(q.sign * (cv + at.xi * off) / at.v)
        lam, p, x, level = self._solve(own, rows, short, k, excess, None)
        tilt: Any = 0.0
        if q.tilted:
            slope = self.slopes / at.x
            tilt = ((self.untilted if wrong else 0.0) + slope @ x) / (1 - slope @ self.by_tilt[2])
            tilt = float(np.clip(tilt, -1.0, 1.0))  # where its slope is nearly 0 it would run away
            both = zip((lam, p, x, level), self.by_tilt, strict=True)
            lam, p, x, level = (one + tilt * more for one, more in both)
        return self._whole(cy, rows, lam, p, x, wrong, short, off, cv, tilt, level)

    def _whole(
        self, cy: Array | float, rows: Array, lam: Array, p: Array, x: Array, wrong: bool, short: Array, off: Array,
        cv: Array, tilt: float, level: float,
    ) -> Change:  # fmt: skip
        """Complete a direction from changes of prices, pay and tasks."""
        q, at, pairs = self.market, self.at, self.market.pairs
        z = pairs.slack(lam, p)
        z *= self.inverse
        if wrong:
            z -= self.dual
        y = cy - z
        if self.unsaid.any():
            x = np.where(self.unsaid, pairs.sums(at.y * y) - short, x)
        w = rows - self.ratio * lam
        v = -q.sign * x[q.user] - off
        xi = (cv - at.xi * v) / at.v
        return Change(y, z, lam, w, x, p, xi, v, tilt, level)

    def finished(self, step: Change, sharp: float) -> Change:
        """Iteratively refine a direction until residuals of rows and users are below `sharp`."""
        q, at, pairs, best, least = self.market, self.at, self.market.pairs, step, np.inf
        for _ in range(3):
            tasks = at.y * step.y
            rows = np.where(q.row, self.excess - pairs.use(tasks) - step.w, 0.0)
            users = self.short + step.x - pairs.sums(tasks)
            size = max(float(np.abs(rows).max()), float((np.abs(users) / at.x).max()))
            if not size < least:
                break
            best, least = step, size
            if size <= sharp:
                break
            nothing = 0 * at.lam
            lam, p, x, level = self._solve(None, nothing, users, 0 * at.x, rows, sharp)
            step = step.plus(self._whole(0.0, nothing, lam, p, x, False, users, 0 * at.v, 0 * at.v, 0.0, level))
        self.rough = self.rough and least < 50 * sharp
        return best

    def longest(self, step: Change) -> float:
        """Longest step, at most 1, that keeps all variables nonnegative."""
        q, at = self.market, self.at
        pays = step.p + q.on_users(q.sign * step.xi)
        falls = [step.y, step.z, (step.lam / np.maximum(at.lam, TINY))[q.row], step.w / at.w]
        falls += [step.x / at.x / 0.95, pays / self.pays / 0.95, step.xi / at.xi, step.v / at.v]
        return 1 / max(max(float(-each.min(initial=0.0)) for each in falls), 1.0)

    def moved(self, change: Change, t: float) -> tuple[Step, float]:
        """Iterate after the part t of a direction, halved while residuals grow; weights follow."""
        q = self.market
        follow = q.follow[0] if self.mu > 1e-4 else q.follow[1]
        for _ in range(8):
            there = self.at.along(change, t)
            weights = zip(q.weights(there), self.weights, strict=True)
            of_pairs, of_rows = (np.maximum(now, follow * before) for now, before in weights)
            new = Step(q, there, (of_pairs, of_rows), self.rough)
            if new.missed + new.mu <= 2 * (self.missed + self.mu) + 1e-9:
                break
            t /= 2
        return new, t

    def aims(self) -> tuple[Change, float]:
        """Predictor, corrector and centrality correctors: the direction, and its longest step."""
        q, at = self.market, self.at
        self.factor()
        of_row, of_limit = self.weights[1], q.bound * self._worth_of_limits
        lw, xv = np.where(q.row, at.lam * at.w, 0.0), at.xi * at.v
        aim = self.direction(-1.0, -lw, -xv)
        t = self.longest(aim)
        if self.rough and not (
            t > 1e-3 and np.isfinite(aim.p).all()
        ):  # as where factors are singular in single precision
            self.rough = False
            return self.aims()
        bent, there = aim.y * aim.z, at.along(aim, t)
        whole, curved = float(self.product.sum()), float(self.product @ bent)
        target = (self._mean(whole * (1 - t) + t * t * curved, there) / self.mu) ** 3
        target = min(max(target, 1e-6), (0.05 if q.plain else 0.1) if t > 0.1 else 0.5) * self.mu
        if self.mu > 1e-4:
            target = max(target, min(0.005 * self.missed, 0.5 * self.mu))
        bend = np.log(self.pays + t * (aim.p + q.on_users(q.sign * aim.xi))) + there.level
        most = 0.5 * np.minimum(self.worth.elastic, 1.0)
        bend = np.clip(bend - q.worth(there.x, there.tilt).log - (1 - t) * self.rho, -most, most)
        aimed = target / self.product
        step = self.direction(
            aimed - bent - 1,
            np.where(q.row, target * of_row - lw - aim.lam * aim.w, 0.0),
            target * of_limit - xv - aim.xi * aim.v,
            bend,
        )
        t = self.longest(step)
        for _ in range(5):
            if t > 0.9:
                break
            far = min(1.1 * t + 0.5 if q.plain else t + 0.3, 1.0)
            pairs = (1 + far * step.y) * (1 + far * step.z)
            rows = np.where(q.row, (at.lam + far * step.lam) * (at.w + far * step.w) / of_row, target)
            limits = (at.xi + far * step.xi) * (at.v + far * step.v) / of_limit
            low, high = (0.2, 5.0) if q.plain else (0.1, 10.0)
            groups = (pairs, aimed), (rows, target), (limits, target)
            asked = [np.maximum(np.clip(one, low * aim, high * aim) - one, -high * aim) for one, aim in groups]
            tried = self.direction(asked[0], asked[1] * of_row, asked[2] * of_limit, wrong=False)
            tried = step.plus(tried)
            longer = self.longest(tried)
            if longer < t + (0.01 * (far - t) if q.plain else 0.02):
                break
            step, t = tried, longer
        step = self.finished(step, max(1e-2 * min(self.mu, 1.0), 1e-15))
        longest = self.longest(step)
        self.rough = self.rough and longest > 0.95 * t
        return step, longest


@dataclass(frozen=True)
class Candidate:
    """Fractions (pairs,) of a feasible allocation, log prices of whole capacities (rows,), their error, and steps."""

    fractions: Array
    log_rows: Array
    error: float
    steps: int
    warm: Start | None = None
    off: float = 0.0  # by what the weight of the sum of shares is to change, if it was held


def run(
    problem: Problem, tol: float, start: object = None, most: int = 90, patience: float = math.inf,
    weight: float | None = None,
) -> Candidate:  # fmt: skip
    """Solve by the interior point, from a warm start if one fits: the best iterate.

    At small alpha tasks span `1/alpha` times the decades of prices, each of which takes steps: beside `most` these.
    `patience`: it ends after so many steps in which products do not halve, nor alpha grows. `weight`: the log of what
    the sum of shares weighs, which is held; `Candidate.off` is by what it should change.
    """
    polytope, alpha = problem.polytope, problem.criterion.alpha
    decades = int(min(_PRICES / alpha, _NUMBERS)) if alpha > 0 else 0
    most += decades
    q, warm = Market(problem, weight), None
    known = start if isinstance(start, Start) and q.fits(start) else None
    at = first = q.begin() if known is None else q.begin_from(known)
    best = Candidate(np.zeros(len(polytope.gamma)), np.full(len(polytope.row_server), -np.inf), np.inf, 0)
    weights = q.weights(at)
    q.even(at, weights)
    step, since, short, slow, least, lowest = Step(q, at, weights, True), 0, 0, 0, np.inf, np.inf
    for number in range(most + 1):
        if not np.isfinite(step.mu + step.missed):
            break
        if q.steep and step.mu > 1e-3 and step.missed < 0.1:
            warm = Start(step.at, q.unit, q.own.alpha)
        if q.steep and step.mu * len(at.y) <= max(_WITHIN * tol, _SMALL) * len(at.x) and step.missed < 1e-4:
            found = _judged(q, step.at, tol, number)
            since = 0 if found.error < 0.7 * best.error or step.mu < 0.5 * least else since + 1
            best, least = min(best, found, key=lambda one: one.error), min(least, step.mu)
            if best.error <= 0.5 * tol or since > 5 or step.mu < 1e-16:
                break
        change, t = step.aims()
        near = 0.9 if q.plain and t < 0.9 else 1 - np.sqrt(10 * step.mu)  # who blocks a step stays near others
        t = min(1.0, t * max(0.9 if t < 0.9 else 0.95, near))
        new, t = step.moved(change, t)
        if not np.isfinite(new.mu + new.missed):
            break
        gains = q.steep and step.mu < 0.5 * lowest
        slow, lowest = (0, step.mu) if gains else (slow + 1, lowest)
        if slow > patience:
            break
        if step.mu < 1e-9 and (t < 0.5 or new.missed > 10 * step.missed):
            since += 2  # rounding is about all that is left: others find last digits from here
            if since > 5 and step.mu < _ROUNDING and number > decades:
                break
        short = short + 1 if t < 0.01 else 0
        if short > 10 and q.power > GENTLE:
            break
        step = new
        steeper, ready = _STEEPER if q.log_gamma is None else _STEEPER_GAME
        if not q.steep and step.missed < ready:
            slow = 0
            at = q.steepened(step.at, min(q.own.alpha * steeper, problem.criterion.alpha))
            step = Step(q, at, q.weights(at), step.rough)
    if np.isinf(best.error) and np.isfinite(step.mu + step.missed):
        best = _judged(q, step.at, tol, most)
    if known is not None and best.error > tol:
        return run(problem, tol, patience=patience)
    if q.tilted and best.error > tol and most > 1:
        best = min(best, _weighed(problem, tol, first.tilt), key=lambda one: one.error)
    return replace(best, warm=warm, off=q.tilt(step.at.x, free=True)[0] - step.at.tilt)


def _weighed(problem: Problem, tol: float, weight: float) -> Candidate:
    """Find the weight of the sum of shares by Brent's method, with a run for each trial."""
    tried: list[Candidate] = []

    @cache
    def off(weight: float) -> float:
        found = run(problem, tol, weight=weight)
        tried.append(found)
        return found.off if found.error > tol and np.isfinite(found.off) else 0.0

    length, here = 8.0, off(weight)
    while here and length <= 1024:
        further = weight + math.copysign(length, here)
        there = off(further)
        if here * there < 0:
            optimize.brentq(off, weight, further, xtol=1e-12, maxiter=30, disp=False)
        if here * there <= 0:
            break
        weight, here, length = further, there, 2 * length
    best = min(tried, key=lambda one: one.error)
    return replace(best, steps=sum(each.steps for each in tried))


def _judged(q: Market, at: Point, tol: float, steps: int) -> Candidate:
    polytope = q.polytope
    fractions = polytope.inside(at.y * q.pairs.of_user(q.unit) / polytope.gamma)
    log_rows = np.log(at.lam[polytope.row_server, polytope.row_resource]) + at.level + q.log_server[polytope.row_server]
    error = error_at(polytope, q.problem.criterion, polytope.allocation(fractions), log_rows, tol)
    return Candidate(fractions, log_rows, error, steps)
