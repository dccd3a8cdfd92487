"""One interior point for a level of max-min: Mehrotra's predictor, Gondzio's correctors.

With slacks z of costs, w of capacities and s of levels, tau_n = 1 for those who rise,

    z = cost - p,  w = 1 - use,  s = sum_i y - tau t - held,  tau.p = 1,  y z = lambda w = p s = mu,

where those who are `exact` have no s and rows that are `full` no w: p and lambda are free there. Bounds from both
sides say how well the level is known.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..model._arrays import Array, Index, Mask
from .algebra import Equations, Pairs

#: By what part held users may miss their levels, and what counts as nothing beside the largest.
SAME = 1e-9
#: Equations may depend on each other: what is added to their diagonals, as a part.
_DEPENDENT = 1e-11
#: Factors in single precision will do until they leave so many times what may be left.
_ROUGH = 50.0
TINY = 1e-300


class Faces(NamedTuple):
    """Face of a part: its users, servers and pairs by global number, and constraints turned into equations."""

    user: Index  # (users,)
    server: Index  # (servers,)
    pair: Index  # (pairs,)
    rising: Array  # (users,), 1 or 0
    exact: Mask  # (users,), held at a level that is an equation
    full: Mask  # (servers, resources), full rows that are equations
    held: Array  # (users,), what the held have

    def taken(self, u: Index, s: Index, p: Index) -> Faces:
        """Restrict to some users, servers and pairs."""
        return Faces(
            self.user[u], self.server[s], self.pair[p], self.rising[u], self.exact[u], self.full[s], self.held[u]
        )


class Point(NamedTuple):
    """Iterate: tasks and slacks of pairs, slacks and prices of rows, slacks and worths of users, the level."""

    y: Array
    z: Array
    w: Array
    lam: Array
    s: Array
    p: Array
    t: float

    def plus(self, step: Point, primal: float = 1.0, dual: float = 1.0) -> Point:
        """Point after parts `primal` and `dual` of a step."""
        lengths = primal, dual, primal, dual, primal, dual, primal
        every: Any = zip(self, lengths, step, strict=True)
        parts = (one + (change if length == 1 else length * change) for one, length, change in every)
        return Point(*parts)

    def taken(self, u: Index, s: Index, p: Index) -> Point:
        """Restrict to some users, servers and pairs."""
        return Point(self.y[p], self.z[p], self.w[s], self.lam[s], self.s[u], self.p[u], self.t)


class State:
    """State of a part, a connected component of users and servers; `before` is the level that it comes from."""

    def __init__(self, pairs: Pairs, faces: Faces, point: Point, before: float = 0.0) -> None:
        self.pairs, self.before = pairs, before
        self.user, self.server, self.pair, self.rising, self.exact, self.full, self.held = faces
        self.row = pairs.present & ~self.full
        self.count = len(pairs.user) + np.count_nonzero(self.row) + np.count_nonzero(~self.exact)
        self.best = self.last = np.inf
        self.known, self.still = False, 0
        self.good = self.early = point
        self.rough = True
        self.set(point)

    @property
    def faces(self) -> Faces:
        """The face it lies on."""
        return Faces(self.user, self.server, self.pair, self.rising, self.exact, self.full, self.held)

    def residuals(self) -> None:
        """Update residuals of the linear equations, least costs of users, products, and mu."""
        pairs = self.pairs
        self.use, self.have = pairs.use(self.y), pairs.sums(self.y)
        slack = pairs.slack(self.lam, self.p)
        self.least = self.p + pairs.least(slack)
        self.dual = np.subtract(self.z, slack, out=slack)
        self.excess = np.where(pairs.present, 1 - self.use - np.where(self.full, 0.0, self.w), 0.0)
        wanted = np.where(self.rising > 0, self.t, self.held)
        self.short = wanted - self.have + np.where(self.exact, 0.0, self.s)
        self.sum = 1 - float(self.rising @ self.p)
        self.products = self.products_of(self.now)
        self.mu = self.total(self.products) / self.count

    @property
    def now(self) -> Point:
        """The current iterate."""
        return Point(self.y, self.z, self.w, self.lam, self.s, self.p, self.t)

    def products_of(self, point: Point) -> tuple[Array, Array, Array]:
        """Complementarity products of pairs, rows and users at a point."""
        rows, users = point.lam * point.w, point.p * point.s
        return point.y * point.z, np.where(self.row, rows, 0.0), np.where(self.exact, 0.0, users)

    def set(self, to: Point) -> None:
        """Move to a point."""
        self.y, self.z, self.w, self.lam, self.s, self.p, self.t = to
        self.residuals()

    @staticmethod
    def total(products: tuple[Array, Array, Array]) -> float:
        """Sum over pairs, rows and users."""
        return float(sum(each.sum() for each in products))

    def held_by(self, point: Point) -> Array:
        """Log ratio of users' worths to slacks, in units of the level: large for held users, small for others."""
        return np.asarray(np.log(point.p * (max(self.rising.sum(), 1.0) * self.t) / point.s))

    def bounds(self) -> tuple[float, float, Array]:
        """Primal and dual bounds of the level, and least costs of users.

        Full rows and exact levels may have prices of either sign, as long as nobody who rises is paid.
        """
        rising, least = self.rising > 0, self.least
        have = self.have / max(self.use.max(), 1.0)
        low = float(np.where(rising, have, np.inf).min())
        fixed = ~rising & (self.held > 0)
        if fixed.any():
            met = float((have[fixed] / self.held[fixed]).min())
            low = max(low * min(met, 1.0) if met > 1 - SAME else 0.0, self.shared()[1])
        left = float(self.lam.sum() - (least * self.held)[~rising].sum())
        total = float(np.maximum(least[rising], 0.0).sum())
        paid = self.full.any() and (least[~self.exact] < 0).any()
        return low, left / total if total > 0 and not paid else np.inf, least

    def shared(self) -> tuple[Array, float]:
        """Amounts of which the held get theirs and the others what is left, in the same proportions, and the level."""
        pairs = self.pairs
        up = pairs.of_user(self.rising)
        each = self.y * pairs.of_user(np.where(self.rising > 0, 1.0, self.held) / self.have)
        before, after = pairs.use(each * (1 - up)), pairs.use(each * up)
        room = np.divide(1 - before, after, out=np.full(after.shape, np.inf), where=after > 0)
        level = float(room.min())
        return each * np.where(up > 0, level, 1.0), level


class Newton:
    """Newton's equations at a state, factored once."""

    def __init__(self, at: State) -> None:
        self.at, pairs = at, at.pairs
        self.weight = at.y / at.z
        self.loose = np.where(at.exact, _DEPENDENT * pairs.sums(self.weight), at.s / at.p)
        self.idle = np.where(at.row, at.w / np.maximum(at.lam, TINY), np.inf)
        if at.full.any():
            size = np.einsum("rrk->kr", pairs.squares(self.weight))
            self.idle = np.where(at.full, _DEPENDENT * size + TINY, self.idle)
        self.equations = Equations(pairs, self.weight, self.idle, self.loose, at.rising, at.rough)

    def step(self, cy: Array, cw: Array, cs: Array, wrong: bool = False) -> Point:
        """Direction that changes products by `cy`, `cw`, `cs` to first order; with `wrong` it removes residuals too."""
        at, pairs = self.at, self.at.pairs
        own, rows = cy / at.z, np.where(at.row, cw / np.maximum(at.lam, TINY), 0.0)
        users, of_sum = np.where(at.exact, 0.0, cs / at.p), 0.0
        if wrong:
            own += self.weight * at.dual
        b, e = pairs.use(own) + rows, users - pairs.sums(own)
        if wrong:
            b, e, of_sum = b - at.excess, e + at.short, at.sum
        lam, p, t = self.equations.solve(b, e, of_sum)
        z = pairs.slack(lam, p)
        own -= self.weight * z
        if wrong:
            z -= at.dual
        return self._whole(own, z, rows, lam, users, p, t)

    def _whole(self, y: Array, z: Array, rows: Array, lam: Array, users: Array, p: Array, t: float) -> Point:
        """Complete a direction by the slacks of rows and users."""
        at = self.at
        w = np.where(at.row, rows - np.where(at.row, self.idle, 0.0) * lam, 0.0)
        return Point(y, z, w, lam, np.where(at.exact, 0.0, users - self.loose * p), p, t)

    def finished(self, step: Point, sharp: float) -> Point:
        """Iteratively refine a direction until residuals of rows and users are below `sharp`, if possible."""
        at, pairs, best, least = self.at, self.at.pairs, step, np.inf
        for _ in range(3):
            rows = np.where(at.row, at.excess - pairs.use(step.y) - step.w, 0.0)
            if at.full.any():
                rows = np.where(at.full, at.excess - pairs.use(step.y), rows)
            users = np.where(at.exact, 0.0, step.s) + at.rising * step.t
            users += at.short - pairs.sums(step.y)
            size = max(float(np.abs(rows).max()), float(np.abs(users).max()) / abs(at.t)) / sharp
            if not size < least:
                break
            at.rough, best, least = at.rough and size < _ROUGH, step, size
            if size <= 1:
                break
            lam, p, t = self.equations.solve(-rows, users, at.sum - float(at.rising @ step.p), sharp)
            z = pairs.slack(lam, p)
            step = step.plus(self._whole(-self.weight * z, z, np.zeros(lam.shape), lam, np.zeros(p.shape), p, t))
        return best


def _lengths(at: State, step: Point) -> tuple[float, float]:
    """Longest primal and dual steps, at most 1, that keep all variables nonnegative."""

    def longest(pair: Array, row: Array, user: Array) -> float:
        rows, users = row[at.row].max(initial=1.0), user[~at.exact].max(initial=1.0)
        return float(1 / max(-pair.min(), rows, users))

    return (
        longest(step.y / at.y, -step.w / at.w, -step.s / at.s),
        longest(step.z / at.z, -step.lam / np.maximum(at.lam, TINY), -step.p / at.p),
    )


def _centred(at: State, newton: Newton, step: Point, target: float) -> Point:
    """Add up to three Gondzio correctors, which bring products to within a factor of ten of the target."""
    primal, dual = _lengths(at, step)
    for _ in range(3):
        if min(primal, dual) > 0.95:
            break
        far = at.products_of(at.now.plus(step, min(primal + 0.3, 1.0), min(dual + 0.3, 1.0)))
        asked = [np.maximum(np.clip(q, 0.1 * target, 10 * target) - q, -10 * target) for q in far]
        tried = step.plus(newton.step(asked[0], asked[1], asked[2]))
        lengths = _lengths(at, tried)
        if sum(lengths) <= primal + dual + 0.02:
            break
        step, (primal, dual) = tried, lengths
    return step


def advance(at: State, gap: float) -> None:
    """Take one step: predictor, corrector, and up to three centrality correctors."""
    newton, total = Newton(at), at.mu * at.count
    yz, lw, ps = at.products
    aim = newton.step(-yz, -lw, -ps, wrong=True)
    after = at.total(at.products_of(at.now.plus(aim, *_lengths(at, aim)))) / total
    target = min(max(after**3, 1e-8), 0.1) * at.mu
    step = aim.plus(newton.step(target - aim.y * aim.z, target - aim.lam * aim.w, target - aim.p * aim.s))
    step = _centred(at, newton, step, target)
    # Where held users have not their levels yet no gap is known; products know it.
    left = min(gap, total / abs(at.t))
    sharp = min(1e-2 * left, 1e-2 * SAME) if at.held.any() else 1e-2 * left
    step = newton.finished(step, max(sharp, 1e-15))
    primal, dual = _lengths(at, step)
    back = min(max(1 - left, 0.9), 0.99995 if min(primal, dual) > 0.9 else 0.9)
    at.set(at.now.plus(step, back * primal, back * dual))


def cold(pairs: Pairs, faces: Faces) -> Point:
    """Starting point, strictly feasible but for held users: equal prices, and loads about balanced."""
    present, rising = pairs.present, faces.rising
    lam = present.astype(float)
    least = pairs.least(pairs.cost(lam))
    total = least[rising > 0].sum()
    lam, p = lam / (0.9 * total), least / total
    z = pairs.cost(lam) - pairs.of_user(p)
    z = np.maximum(z, 0.1 * pairs.of_user(p))
    share = 1 / z
    share /= pairs.of_user(pairs.sums(share))
    wanted = pairs.of_user(rising)
    for _ in range(6):
        load = pairs.use(share * wanted).max(axis=1)
        root = np.where(load > 0, load, 1.0) ** -0.5
        share *= np.tile(root, len(p)) if pairs.full else root[pairs.server]
        share /= pairs.of_user(pairs.sums(share))
    level, held = 0.5 / float(pairs.use(share * wanted).max()), np.maximum(faces.held, TINY)
    y = share * pairs.of_user(np.where(rising > 0, level, held))
    t = level / 1.2
    w = np.where(present, np.maximum(1 - pairs.use(y), 0.1), 1.0)
    s = np.where(faces.exact, 1.0, np.where(rising > 0, 0.2 * t, 0.1 * held))
    return Point(y, z, w, lam, s, p, t)


def renew(at: State) -> None:
    """Start the next level: duals normalized by the worths of rising users, no product below a tenth of the mean."""
    left = max(float(at.rising @ at.p), TINY)
    w, s = np.where(at.row, at.w, 1.0), np.where(at.exact, 1.0, at.s)
    lam, p = np.where(at.row, at.lam / left, 0.0), np.where(at.exact, 0.0, at.p / left)
    at.set(Point(at.y, at.z / left, w, lam, s, p, at.t))
    mu = 0.1 * at.mu
    lam = np.where(at.row, np.maximum(lam, mu / w), lam)
    p = np.where(at.exact, p, np.maximum(p, mu / s))
    at.set(at.now._replace(z=np.maximum(at.z, mu / at.y), lam=lam, p=p))
    at.good = at.early = at.now
