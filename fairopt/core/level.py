r"""Primal-dual interior-point method for one level of lexicographic max-min, with Mehrotra's and Gondzio's correctors.

For amounts y of pairs, the common level t, prices lambda of rows and p of users, slacks z of costs, w of capacities and
s of levels, and tau_n = 1 for rising users, whose level is t, and 0 for users held at fixed levels, the conditions are

.. math::
    z = cost - p, \qquad w = 1 - use, \qquad s_n = \sum_i y_{ni} - \tau_n t - held_n, \qquad \tau \cdot p = 1,

    y_{ni} z_{ni} = \lambda_{ir} w_{ir} = p_n s_n = \mu.

Users in `exact` have no slack s and rows in `full` no slack w: their constraints are equations, with prices p and
lambda of either sign. Primal and dual bounds of t show how accurate the level is.

Source: S. Mehrotra (1992), SIAM Journal on Optimization 2, 575-601. https://doi.org/10.1137/0802028; J. Gondzio (1996),
Computational Optimization and Applications 6, 137-156. https://doi.org/10.1007/BF00249643
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..model._arrays import Array, Index, Mask
from .accuracy import HALF_PRECISION, NEGLIGIBLE
from .algebra import Equations, Pairs
from .central_path import (
    FULL,
    LEAST,
    LEAST_GAIN,
    LEAST_PRODUCT,
    LEAST_RESIDUAL,
    LENGTHENED,
    LONG_STEP,
    MOST_CENTRING,
    RESIDUAL_PER_MU,
    SINGLE_ACCURACY,
)  # fmt: skip
from .factors import TINY

#: Relative regularization of the diagonals of constraints that are equations, which may be linearly dependent. With
#: 1e-11 residuals of these equations grow where weights of pairs differ by many decades, and later levels have no lower
#: bound.
_REGULARIZATION = 1e-13
#: Gondzio's correctors: largest number (`_CORRECTORS`), and step length above which no corrector is tried
#: (`_LONG_STEP`).
_CORRECTORS, _LONG_STEP = 3, 0.95
#: Fraction of the step to the boundary that is taken: `_TO_BOUNDARY`, and up to `_MOST_TO_BOUNDARY` as the gap closes
#: if both primal and dual steps are longer than `_LONG`.
_TO_BOUNDARY, _MOST_TO_BOUNDARY, _LONG = LONG_STEP, 0.99995, LONG_STEP
#: Cold start: number of iterations that balance loads (`_BALANCINGS`), ratio of the users' tasks to the common level
#: (`_ABOVE_LEVEL`), and slack of levels relative to the common level (`_SLACK`).
_BALANCINGS, _ABOVE_LEVEL, _SLACK = 6, 1.2, 0.2
#: Lower bound of the centring parameter.
_LEAST_CENTRING = HALF_PRECISION


class Faces(NamedTuple):
    """Face of the feasible set of a component: its users, servers and pairs, and constraints that are equations.

    `user`, `server` and `pair` are indices in the whole problem.
    """

    user: Index  # (users,)
    server: Index  # (servers,)
    pair: Index  # (pairs,)
    rising: Array  # (users,), tau: 1 for rising users, else 0
    exact: Mask  # (users,), frozen users, whose level is an equation
    full: Mask  # (servers, resources), rows whose capacity is an equation
    held: Array  # (users,), fixed levels of users that are not rising

    def restricted(self, u: Index, s: Index, p: Index) -> Faces:
        """Restrict to some users, servers and pairs."""
        return Faces(
            self.user[u], self.server[s], self.pair[p], self.rising[u], self.exact[u], self.full[s], self.held[u]
        )


class Point(NamedTuple):
    """Iterate: tasks and slacks of pairs, slacks and prices of rows, slacks and prices of users, and the level."""

    y: Array
    z: Array
    w: Array
    lam: Array
    s: Array
    p: Array
    t: float

    def plus(self, step: Point, primal: float = 1.0, dual: float = 1.0) -> Point:
        """Iterate after steps of lengths `primal` and `dual` along a direction."""
        lengths = primal, dual, primal, dual, primal, dual, primal
        every: Any = zip(self, lengths, step, strict=True)
        parts = (one + (change if length == 1 else length * change) for one, length, change in every)
        return Point(*parts)

    def restricted(self, u: Index, s: Index, p: Index) -> Point:
        """Restrict to some users, servers and pairs."""
        return Point(self.y[p], self.z[p], self.w[s], self.lam[s], self.s[u], self.p[u], self.t)


class State:
    """Iterate of a connected component, with residuals and best bounds.

    `lower_level` is the previous level of the component, a lower bound of its next level.
    """

    def __init__(self, pairs: Pairs, faces: Faces, point: Point, lower_level: float = 0.0) -> None:
        self.pairs, self.lower_level = pairs, lower_level
        self.user, self.server, self.pair, self.rising, self.exact, self.full, self.held = faces
        self.row = pairs.present & ~self.full
        self.count = len(pairs.user) + np.count_nonzero(self.row) + np.count_nonzero(~self.exact)
        self.best_gap = self.last_gap = np.inf
        self.bounded, self.stalled = False, 0
        self.best_point = self.bounded_point = point
        self.single = True
        self.set(point)

    @property
    def faces(self) -> Faces:
        """Face of the component."""
        return Faces(self.user, self.server, self.pair, self.rising, self.exact, self.full, self.held)

    def residuals(self) -> None:
        """Update residuals of the linear equations, least costs of users, complementarity products, and mu."""
        pairs = self.pairs
        self.use, self.attained = pairs.use(self.y), pairs.sums(self.y)
        slack = pairs.slack(self.lam, self.p)
        self.least_cost = self.p + pairs.least(slack)
        self.dual_residual = np.subtract(self.z, slack, out=slack)
        self.capacity_residual = np.where(pairs.present, 1 - self.use - np.where(self.full, 0.0, self.w), 0.0)
        wanted = np.where(self.rising > 0, self.t, self.held)
        self.level_residual = wanted - self.attained + np.where(self.exact, 0.0, self.s)
        self.sum_residual = 1 - float(self.rising @ self.p)
        self.products = self.products_of(self.now)
        self.mu = self.total(self.products) / self.count

    @property
    def now(self) -> Point:
        """The current iterate."""
        return Point(self.y, self.z, self.w, self.lam, self.s, self.p, self.t)

    def products_of(self, point: Point) -> tuple[Array, Array, Array]:
        """Complementarity products of pairs, rows and users at an iterate."""
        rows, users = point.lam * point.w, point.p * point.s
        return point.y * point.z, np.where(self.row, rows, 0.0), np.where(self.exact, 0.0, users)

    def set(self, to: Point) -> None:
        """Set the iterate."""
        self.y, self.z, self.w, self.lam, self.s, self.p, self.t = to
        self.residuals()

    @staticmethod
    def total(products: tuple[Array, Array, Array]) -> float:
        """Sum of complementarity products over pairs, rows and users."""
        return float(sum(each.sum() for each in products))

    def log_multiplier_ratio(self, point: Point) -> Array:
        """Log ratios of prices to slacks of users, in units of the level; users with large ratios are to be frozen."""
        return np.asarray(np.log(point.p * (max(self.rising.sum(), 1.0) * self.t) / point.s))

    def bounds(self) -> tuple[float, float, Array]:
        """Lower and upper bound of the level, and least costs (users,).

        The lower bound is the level of the tasks scaled down to capacities; the upper bound follows from weak duality.
        It is valid with negative prices of rows in `full` and users in `exact`, provided that no other user has a
        negative least cost; otherwise, and if no rising user has a cost, it is infinite.
        """
        rising, least_cost = self.rising > 0, self.least_cost
        attained = self.attained / max(self.use.max(), 1.0)
        low = float(np.where(rising, attained, np.inf).min())
        is_held = ~rising & (self.held > 0)
        if is_held.any():
            fraction_met = float((attained[is_held] / self.held[is_held]).min())
            low = max(low * min(fraction_met, 1.0) if fraction_met > 1 - NEGLIGIBLE else 0.0, self.rescaled()[1])
        value = float(self.lam.sum() - (least_cost * self.held)[~rising].sum())
        total = float(np.maximum(least_cost[rising], 0.0).sum())
        subsidised = self.full.any() and (least_cost[~self.exact] < 0).any()
        return low, value / total if total > 0 and not subsidised else np.inf, least_cost

    def rescaled(self) -> tuple[Array, float]:
        """Amounts (pairs,) rescaled to the levels of held users and a common level of rising users, and this level."""
        pairs = self.pairs
        rises = pairs.of_user(self.rising)
        scaled = self.y * pairs.of_user(np.where(self.rising > 0, 1.0, self.held) / self.attained)
        held_use, rising_use = pairs.use(scaled * (1 - rises)), pairs.use(scaled * rises)
        levels = np.divide(1 - held_use, rising_use, out=np.full(rising_use.shape, np.inf), where=rising_use > 0)
        level = float(levels.min())
        return scaled * np.where(rises > 0, level, 1.0), level


class Newton:
    """Newton's equations at an iterate, factored once."""

    def __init__(self, at: State) -> None:
        self.at, pairs = at, at.pairs
        self.weight = at.y / at.z
        self.user_diagonal = np.where(at.exact, _REGULARIZATION * pairs.sums(self.weight), at.s / at.p)
        self.row_diagonal = np.where(at.row, at.w / np.maximum(at.lam, TINY), np.inf)
        if at.full.any():
            size = np.einsum("rrk->kr", pairs.squares(self.weight))
            self.row_diagonal = np.where(at.full, _REGULARIZATION * size + TINY, self.row_diagonal)
        self.equations = Equations(pairs, self.weight, self.row_diagonal, self.user_diagonal, at.rising, at.single)

    def step(self, cy: Array, cw: Array, cs: Array, feasibility: bool = False) -> Point:
        """Direction with first-order changes of the products of pairs `cy`, rows `cw` and users `cs`.

        With `feasibility` a full step also removes all residuals.
        """
        at, pairs = self.at, self.at.pairs
        own, rows = cy / at.z, np.where(at.row, cw / np.maximum(at.lam, TINY), 0.0)
        users, of_sum = np.where(at.exact, 0.0, cs / at.p), 0.0
        if feasibility:
            own += self.weight * at.dual_residual
        b, e = pairs.use(own) + rows, users - pairs.sums(own)
        if feasibility:
            b, e, of_sum = b - at.capacity_residual, e + at.level_residual, at.sum_residual
        lam, p, t = self.equations.solve(b, e, of_sum)
        z = pairs.slack(lam, p)
        own -= self.weight * z
        if feasibility:
            z -= at.dual_residual
        return self._whole(own, z, rows, lam, users, p, t)

    def _whole(self, y: Array, z: Array, rows: Array, lam: Array, users: Array, p: Array, t: float) -> Point:
        """Complete a direction by the slacks of rows and users."""
        at = self.at
        w = np.where(at.row, rows - np.where(at.row, self.row_diagonal, 0.0) * lam, 0.0)
        return Point(y, z, w, lam, np.where(at.exact, 0.0, users - self.user_diagonal * p), p, t)

    def finished(self, step: Point, tol: float) -> Point:
        """Iteratively refine a direction until residuals of rows and users are below `tol`, if possible."""
        at, pairs, best, least = self.at, self.at.pairs, step, np.inf
        for _ in range(3):
            row_residual = np.where(at.row, at.capacity_residual - pairs.use(step.y) - step.w, 0.0)
            if at.full.any():
                row_residual = np.where(at.full, at.capacity_residual - pairs.use(step.y), row_residual)
            user_residual = np.where(at.exact, 0.0, step.s) + at.rising * step.t
            user_residual += at.level_residual - pairs.sums(step.y)
            size = max(float(np.abs(row_residual).max()), float(np.abs(user_residual).max()) / abs(at.t)) / tol
            if not size < least:
                break
            at.single, best, least = at.single and size < SINGLE_ACCURACY, step, size
            if size <= 1:
                break
            lam, p, t = self.equations.solve(
                -row_residual, user_residual, at.sum_residual - float(at.rising @ step.p), tol
            )
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


def _centrality_corrected(at: State, newton: Newton, step: Point, target: float) -> Point:
    """Add up to three Gondzio correctors, which bring products to within a factor of ten of the target."""
    primal, dual = _lengths(at, step)
    for _ in range(_CORRECTORS):
        if min(primal, dual) > _LONG_STEP:
            break
        products = at.products_of(at.now.plus(step, min(primal + LENGTHENED, 1.0), min(dual + LENGTHENED, 1.0)))
        wanted = [np.maximum(np.clip(q, LEAST_PRODUCT * target, 10 * target) - q, -10 * target) for q in products]
        corrected = step.plus(newton.step(wanted[0], wanted[1], wanted[2]))
        lengths = _lengths(at, corrected)
        if sum(lengths) <= primal + dual + LEAST_GAIN:
            break
        step, (primal, dual) = corrected, lengths
    return step


def advance(at: State, gap: float) -> None:
    """Take a step of Mehrotra's method with up to three centrality correctors, at a relative `gap` of the bounds."""
    newton, total = Newton(at), at.mu * at.count
    yz, lw, ps = at.products
    affine = newton.step(-yz, -lw, -ps, feasibility=True)
    affine_ratio = at.total(at.products_of(at.now.plus(affine, *_lengths(at, affine)))) / total
    target = min(max(affine_ratio**3, _LEAST_CENTRING), MOST_CENTRING) * at.mu
    step = affine.plus(
        newton.step(target - affine.y * affine.z, target - affine.lam * affine.w, target - affine.p * affine.s)
    )
    step = _centrality_corrected(at, newton, step, target)
    # Bounds are not valid while held users have less than their fixed levels: the sum of complementarity products is
    # then an estimate of the gap.
    relative_gap = min(gap, total / abs(at.t))
    tol = (
        min(RESIDUAL_PER_MU * relative_gap, RESIDUAL_PER_MU * NEGLIGIBLE)
        if at.held.any()
        else RESIDUAL_PER_MU * relative_gap
    )
    step = newton.finished(step, max(tol, LEAST_RESIDUAL))
    primal, dual = _lengths(at, step)
    damping = min(max(1 - relative_gap, _TO_BOUNDARY), _MOST_TO_BOUNDARY if min(primal, dual) > _LONG else _TO_BOUNDARY)
    at.set(at.now.plus(step, damping * primal, damping * dual))


def cold_start(pairs: Pairs, faces: Faces) -> Point:
    """Starting point, strictly feasible except for users at a fixed level: uniform prices, balanced server loads.

    The tasks of each user are divided among its servers in inverse proportion to reduced costs. Fractions on a server
    are then multiplied by its load to the power -1/2, a fixed number of times, so that loads become similar. With this
    division the common level is half of the largest feasible level, so that capacity is idle.
    """
    present, rising = pairs.present, faces.rising
    lam = present.astype(float)
    least = pairs.least(pairs.cost(lam))
    total = least[rising > 0].sum()
    lam, p = lam / (FULL * total), least / total
    z = pairs.cost(lam) - pairs.of_user(p)
    z = np.maximum(z, LEAST * pairs.of_user(p))
    share = 1 / z
    share /= pairs.of_user(pairs.sums(share))
    wanted = pairs.of_user(rising)
    for _ in range(_BALANCINGS):
        load = pairs.use(share * wanted).max(axis=1)
        root = np.where(load > 0, load, 1.0) ** -0.5
        share *= np.tile(root, len(p)) if pairs.full else root[pairs.server]
        share /= pairs.of_user(pairs.sums(share))
    level, held = 0.5 / float(pairs.use(share * wanted).max()), np.maximum(faces.held, TINY)
    y = share * pairs.of_user(np.where(rising > 0, level, held))
    t = level / _ABOVE_LEVEL
    w = np.where(present, np.maximum(1 - pairs.use(y), LEAST), 1.0)
    s = np.where(faces.exact, 1.0, np.where(rising > 0, _SLACK * t, LEAST * held))
    return Point(y, z, w, lam, s, p, t)


def warm_start(at: State) -> None:
    """Warm-start the next level in place: normalize prices to `tau.p = 1`, and raise products to at least mu / 10."""
    total_price = max(float(at.rising @ at.p), TINY)
    w, s = np.where(at.row, at.w, 1.0), np.where(at.exact, 1.0, at.s)
    lam, p = np.where(at.row, at.lam / total_price, 0.0), np.where(at.exact, 0.0, at.p / total_price)
    at.set(Point(at.y, at.z / total_price, w, lam, s, p, at.t))
    mu = LEAST_PRODUCT * at.mu
    lam = np.where(at.row, np.maximum(lam, mu / w), lam)
    p = np.where(at.exact, p, np.maximum(p, mu / s))
    at.set(at.now._replace(z=np.maximum(at.z, mu / at.y), lam=lam, p=p))
    at.best_point = at.bounded_point = at.now
