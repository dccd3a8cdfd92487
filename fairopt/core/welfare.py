r"""Primal-dual interior-point method for concave welfare and for the game, with the Schur complements of `algebra`.

Let :math:`G_n(x_n)` be marginal welfare, lambda the prices of whole capacities, which determine the cost of a task of a
pair, p the prices of users, and b limits (sign +) or floors (sign -) with prices xi. The optimality conditions for
amounts y of pairs and tasks x of users, with slacks z, w and v, are

.. math::

    z = cost - p \ge 0 \perp y \ge 0, \qquad w = 1 - use\,y \ge 0 \perp \lambda \ge 0, \qquad
    v = \pm(b - x) \ge 0 \perp \xi \ge 0,

    x = \sum_i y, \qquad \log(p \pm \xi) = \log G(x)

Complementarity products are scaled by the expenditure of a user or by the price of a row, so that small users count as
much as large users. p may have any sign where a limit binds. With fairness-efficiency the weight of the sum of shares
is one more unknown; where its iteration oscillates, the weight is fixed in each run and found by Brent's method. In the
game costs are divided by the marginal utility of a task on its server relative to the user's best server
(`Pairs.value`).

The log of the common level of prices is an unknown of its own: at a large alpha a relative error of 1/alpha in all
tasks changes prices by decades, and steps linear in prices would change them by one decade at a time.

Homotopy in alpha: at a large alpha prices of servers are decades apart, and no starting point is near the solution.
Alpha begins at `FIRST_ALPHA`, and is multiplied by a factor as soon as the equations hold approximately and mu is
small. Prices that differ much are then raised to the power that levels imply (`Market.continued`).
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
from .accuracy import ACCURATE, CONVERGED, NEGLIGIBLE, NEWTON_ROUNDING, REFINED
from .algebra import Equations
from .central_path import (
    HALVINGS,
    LARGE_MU,
    LEAST_CENTRING,
    LEAST_GAIN,
    LEAST_PRODUCT,
    LEAST_RESIDUAL,
    LEAST_SLOPE,
    LENGTHENED,
    LONG_STEP,
    MERIT_ROUNDING,
    MOST_CENTRING,
    PATIENCE,
    RESIDUAL_CENTRING,
    RESIDUAL_PER_MU,
    SHORT_STEP,
    SINGLE_ACCURACY,
    TO_BOUNDARY,
)  # fmt: skip
from .factors import TINY
from .market import FIRST_ALPHA, Change, Market, Point, Start

#: Factor by which alpha is multiplied, and residual and mu below which it is multiplied, for welfare programs
#: (`_GROWTH`) and for the game (`_GROWTH_GAME`).
_GROWTH, _GROWTH_GAME = (2.0, 0.1, 0.01), (3.0, 0.3, np.inf)
#: The backward error of an iterate is computed once mu is below the fraction `_JUDGED` of the tolerance, as the error
#: rarely suffices earlier, or below `_SMALL_MU`, where rounding errors become significant.
_JUDGED, _SMALL_MU = 1e-2, ACCURATE
#: Value of mu below which steps fail by rounding, so that iterations end (`_ROUNDING_MU`), and default number of steps.
_ROUNDING_MU, _STEPS = CONVERGED, 120
#: Number of additional steps at small alpha, where tasks span 1/alpha times as many decades as prices:
#: `_STEPS_PER_DECADE` over alpha, at most `_MOST_STEPS`.
_STEPS_PER_DECADE, _MOST_STEPS = 3.0, 1000.0
#: First change of the log weight in the search for an interval that contains the root (`_FIRST_LENGTH`); changes are
#: doubled until such an interval is found, up to `_LONGEST`.
_FIRST_LENGTH, _LONGEST = 8.0, 1024.0
#: Upper bound of the centring parameter where the affine step is short.
_SHORT_CENTRING = 0.5
#: Bounds of products in Gondzio's correctors relative to the target (`_PRODUCT_BOUNDS`), and largest number of
#: correctors (`_CORRECTORS`).
_PRODUCT_BOUNDS, _CORRECTORS = (LEAST_PRODUCT, 10.0), 5
#: For large problems (`Market.large`): bounds of products in Gondzio's correctors (`_PRODUCT_BOUNDS_LARGE`), and
#: largest centring parameter (`_MOST_CENTRING_LARGE`).
_PRODUCT_BOUNDS_LARGE, _MOST_CENTRING_LARGE = (0.2, 5.0), 0.05
#: Length of the predictor step below which factors in single precision count as singular.
_SINGULAR_STEP = 1e-3
#: Ratio of an error to the least earlier error up to which an iterate counts as progress (`_PROGRESS`), and mu below
#: which iterations end (`_LEAST_MU`).
_PROGRESS, _LEAST_MU = 0.7, 1e-16
#: Search for the weight of the sum of shares: accuracy of the log weight (`_WEIGHT_ACCURACY`), and largest number of
#: iterations (`_WEIGHT_ITERATIONS`).
_WEIGHT_ACCURACY, _WEIGHT_ITERATIONS = CONVERGED, 30
#: Pairs among which tasks are split anew: largest excess cost relative to the tolerance (`_CHEAP`); and number of
#: repetitions, in which rows that the last one overused are added (`_SPLITS`).
_CHEAP, _SPLITS = 0.8, 4
#: The last iterate with mu above `_WARM_MU` and a residual below `_WARM_RESIDUAL` becomes the warm start: nearer to the
#: solution small variables would block the first steps.
_WARM_MU, _WARM_RESIDUAL = 1e-3, 0.1
#: mu below which residuals that do not decrease as expected are mostly due to rounding, which `refinement` reduces.
_NEAR_ROUNDING_MU = NEGLIGIBLE
#: Length below which a step counts as no progress (`_NO_ADVANCE`), and number of consecutive short steps after which a
#: run at large alpha ends (`_MOST_SHORT_STEPS`).
_NO_ADVANCE, _MOST_SHORT_STEPS = 0.01, 10
#: Gondzio's correctors for large problems: a corrector aims at the step length `_FACTOR_LARGE t + _LENGTHENED_LARGE`,
#: with the present length t, and must gain at least the fraction `_LEAST_GAIN_LARGE` of this increase.
_FACTOR_LARGE, _LENGTHENED_LARGE, _LEAST_GAIN_LARGE = 1.1, 0.5, 0.01


class Step:
    """Newton's equations at an iterate `at`: residuals, factors and search directions.

    `weights` are units of products of pairs and rows, `product` is y z in its unit, `rho` (users,) the residual of
    marginal utility at the price p plus or minus xi, `full_price`. `residual` is the largest of all relative residuals,
    and `rough` allows factors in single precision.
    """

    def __init__(self, market: Market, at: Point, weights: tuple[Array, Array], rough: bool) -> None:
        self.market, self.at, self.weights = market, at, weights
        q, pairs = market, market.pairs
        self.marginal = q.marginal_utility(at.x, at.log_weight)
        self.full_price = at.p + q.on_users(q.sign * at.xi)
        self.inverse = 1 / at.z
        self.product = at.y * at.z / weights[0]
        #: Dual residuals relative to the slacks z, (pairs,).
        self.dual = 1 - pairs.slack(at.lam, at.p) * self.inverse
        self.capacity_residual = np.where(q.row, 1 - pairs.use(at.y) - at.w, 0.0)
        self.task_residual = at.x - pairs.sums(at.y)
        self.rho = np.log(self.full_price) - self.marginal.log + at.level
        self.limit_residual = at.v - q.sign * (q.bound - at.x[q.user])
        log_weight, self.slopes = q.log_weight(at.x)
        self.log_weight_residual = log_weight - at.log_weight if q.log_weight_free else 0.0
        self.mu = self._mean(float(self.product.sum()), at)
        errors = (
            self.dual * self.product, self.capacity_residual, self.task_residual / at.x, self.rho / q.power,
            self.limit_residual / q.bound, self.log_weight_residual,
        )  # fmt: skip
        self.residual = max(float(np.abs(each).max(initial=0.0)) for each in errors)
        self.rough = rough

    @property
    def finite(self) -> bool:
        """True unless an entry has overflowed, or is not a number."""
        return bool(np.isfinite(self.mu + self.residual))

    def _mean(self, of_pairs: float, at: Point) -> float:
        """Mean scaled complementarity product of pairs, rows and limits, given the sum `of_pairs` over pairs."""
        q = self.market
        of_limits = at.xi * at.v / (q.bound * self._limit_scale)
        total = of_pairs + (at.lam * at.w / self.weights[1])[q.row].sum() + of_limits.sum()
        return float(total / (len(at.y) + np.count_nonzero(q.row) + len(at.v)))

    @property
    def _limit_scale(self) -> Array:
        """Units of prices of limits, (limits,)."""
        return np.asarray(self.market.limit_unit * self.full_price[self.market.user])

    def factor(self) -> None:
        """Eliminate pairs, limits and tasks, and factor the Schur complement."""
        q, at = self.market, self.at
        self.weight = at.y * self.inverse
        stiff = np.maximum(self.marginal.elasticity, LEAST_SLOPE) * self.full_price / at.x + q.on_users(at.xi / at.v)
        self.user_diagonal = 1 / stiff
        self.ratio = np.where(q.row, at.w / np.maximum(at.lam, TINY), 0.0)
        idle = np.where(q.row, self.ratio, np.inf)
        common = self.user_diagonal * self.full_price if q.power > FIRST_ALPHA and q.log_gamma is None else 0 * at.x
        self.equations = Equations(q.pairs, self.weight, idle, self.user_diagonal, common, self.rough)
        #: Users whose marginal utility hardly depends on tasks: their tasks follow from the amounts of their pairs.
        self.inelastic = self.user_diagonal > q.pairs.sums(self.weight)
        if q.log_weight_free:
            users = self.marginal.part * self.full_price
            self.per_log_weight = self._solve(None, 0 * at.lam, 0 * at.x, -users, 0 * at.lam, None)

    def _solve(
        self,
        of_pairs: Array | None,
        of_rows: Array,
        task_residual: Array,
        of_users: Array,
        capacity_residual: Array,
        tol: float | None,
    ) -> tuple[Array, Array, Array, float]:
        """Solve for changes of row prices (servers, resources), prices and tasks of users (users,), and the level.

        Parameters
        ----------
        of_pairs : (pairs,), changes of amounts at constant prices, or None for 0
        of_rows : (servers, resources), changes of idle fractions at constant prices
        task_residual, capacity_residual : (users,), (servers, resources), residuals to be removed
        of_users : (users,), right-hand sides of marginal utility, in prices
        tol : accuracy of rows to which the solution is refined, or None
        """
        pairs = self.market.pairs
        b, e = of_rows - capacity_residual, task_residual - self.user_diagonal * of_users
        if of_pairs is not None:
            b, e = b + pairs.use(of_pairs), e - pairs.sums(of_pairs)
        lam, p, level_fall = self.equations.solve(b, e, 0.0, tol)
        return lam, p, -self.user_diagonal * (p + of_users - level_fall * self.full_price), -level_fall

    def direction(
        self, pair_products: Array | float, row_products: Array, limit_products: Array, curvature: Array | None = None,
        feasibility: bool = True,
    ) -> Change:  # fmt: skip
        """Newton direction for changes of complementarity products, which with `feasibility` also removes residuals.

        If the log weight of the sum of shares is an unknown, its change solves a bordered system.

        Parameters
        ----------
        pair_products : (pairs,) or a number, changes of the products y z, relative to them
        row_products : (servers, resources), changes of the products lam w
        limit_products : (limits,), changes of the products xi v
        curvature : (users,), correction of the linearised log marginal utilities
        """
        q, at = self.market, self.at
        zeros = np.zeros(len(at.x))
        task_residual, capacity_residual, limit_residual = (
            (self.task_residual, self.capacity_residual, self.limit_residual)
            if feasibility
            else (zeros, 0 * at.lam, 0 * at.v)
        )
        rho = (self.rho if feasibility else zeros) + (zeros if curvature is None else curvature)
        of_pairs = at.y * (self.dual + pair_products if feasibility else pair_products)
        of_rows = np.where(q.row, row_products / np.maximum(at.lam, TINY), 0.0)
        of_users = rho * self.full_price + q.on_users(q.sign * (limit_products + at.xi * limit_residual) / at.v)
        lam, p, x, level = self._solve(of_pairs, of_rows, task_residual, of_users, capacity_residual, None)
        log_weight: Any = 0.0
        if q.log_weight_free:
            slope = self.slopes / at.x
            log_weight = ((self.log_weight_residual if feasibility else 0.0) + slope @ x) / (
                1 - slope @ self.per_log_weight[2]
            )
            log_weight = float(np.clip(log_weight, -1.0, 1.0))  # bounded, since the denominator may be nearly zero
            both = zip((lam, p, x, level), self.per_log_weight, strict=True)
            lam, p, x, level = (change + log_weight * per_log_weight for change, per_log_weight in both)
        return self._completed(
            pair_products, of_rows, lam, p, x, feasibility, task_residual, limit_residual, limit_products, log_weight,
            level,
        )  # fmt: skip

    def _completed(
        self, pair_products: Array | float, of_rows: Array, lam: Array, p: Array, x: Array, feasibility: bool,
        task_residual: Array, limit_residual: Array, limit_products: Array, log_weight: float, level: float,
    ) -> Change:  # fmt: skip
        r"""Complete a direction from the changes lam, p and x of row prices, user prices and tasks.

        With relative changes of y and z, and the sign and residuals of limits, the linearised conditions are

        .. math::
            \frac{dz}{z} = \frac{cost(d\lambda) - dp}{z} - dual, \qquad
            \frac{dy}{y} = pair\_products - \frac{dz}{z}, \qquad dw = of\_rows - \frac{w}{\lambda} d\lambda,

            dv = \mp dx - limit\_residual, \qquad d\xi = (limit\_products - \xi\,dv) / v,

        where the dual residuals count only with `feasibility`. Changes of tasks of `inelastic` users are replaced by
        the sums over their pairs, less `task_residual`. Other arguments are as in `direction` and `_solve`.
        """
        q, at, pairs = self.market, self.at, self.market.pairs
        z = pairs.slack(lam, p)
        z *= self.inverse
        if feasibility:
            z -= self.dual
        y = pair_products - z
        if self.inelastic.any():
            x = np.where(self.inelastic, pairs.sums(at.y * y) - task_residual, x)
        w = of_rows - self.ratio * lam
        v = -q.sign * x[q.user] - limit_residual
        xi = (limit_products - at.xi * v) / at.v
        return Change(y, z, lam, w, x, p, xi, v, log_weight, level)

    def finished(self, step: Change, tol: float) -> Change:
        """Iteratively refine a direction until residuals of rows and users are below `tol`; return the best direction.

        Factors in single precision, `rough`, are given up if they do not suffice for this tolerance.
        """
        q, at, pairs, best, least_residual = self.market, self.at, self.market.pairs, step, np.inf
        unchanged_rows, unchanged_users, unchanged_limits = 0 * at.lam, 0 * at.x, 0 * at.v
        for _ in range(3):
            tasks = at.y * step.y
            of_rows = np.where(q.row, self.capacity_residual - pairs.use(tasks) - step.w, 0.0)
            of_users = self.task_residual + step.x - pairs.sums(tasks)
            residual = max(float(np.abs(of_rows).max()), float((np.abs(of_users) / at.x).max()))
            if not residual < least_residual:
                break
            best, least_residual = step, residual
            if residual <= tol:
                break
            lam, p, x, level = self._solve(None, unchanged_rows, of_users, unchanged_users, of_rows, tol)
            correction = self._completed(
                0.0, unchanged_rows, lam, p, x, False, of_users, unchanged_limits, unchanged_limits, 0.0, level
            )
            step = step.plus(correction)
        self.rough = self.rough and least_residual < SINGLE_ACCURACY * tol
        return best

    def longest(self, step: Change) -> float:
        """Ratio test: longest step, at most 1, that keeps all variables nonnegative, and tasks and prices positive."""
        q, at = self.market, self.at
        full_price = step.p + q.on_users(q.sign * step.xi)
        decreases = [step.y, step.z, (step.lam / np.maximum(at.lam, TINY))[q.row], step.w / at.w]
        decreases += [
            step.x / at.x / TO_BOUNDARY,
            full_price / self.full_price / TO_BOUNDARY,
            step.xi / at.xi,
            step.v / at.v,
        ]
        return 1 / max(max(float(-each.min(initial=0.0)) for each in decreases), 1.0)

    def damped(self, t: float) -> float:
        """Step length, at most 1, that keeps blocking variables near the central path, from the longest length t."""
        long = t >= LONG_STEP
        near = 1 - np.sqrt(10 * self.mu) if long or not self.market.large else LONG_STEP
        return min(1.0, t * max(TO_BOUNDARY if long else LONG_STEP, near))

    def line_search(self, change: Change, t: float) -> tuple[Step, float]:
        """Search along a direction by backtracking from the length t; return the next iterate and the step length.

        The length is halved, at most `HALVINGS` times, while residual plus mu more than doubles. Units of products fall
        in one step at most by the factor `decay`, since prices may oscillate.
        """
        q = self.market
        decay = q.weight_decay[0] if self.mu > LARGE_MU else q.weight_decay[1]
        for _ in range(HALVINGS):
            trial = self.at.along(change, t)
            weights = zip(q.product_units(trial), self.weights, strict=True)
            of_pairs, of_rows = (np.maximum(now, decay * before) for now, before in weights)
            step = Step(q, trial, (of_pairs, of_rows), self.rough)
            if step.residual + step.mu <= 2 * (self.residual + self.mu) + MERIT_ROUNDING:
                break
            t /= 2
        return step, t

    def search_direction(self) -> tuple[Change, float]:
        """Direction by Mehrotra's predictor and corrector and up to five of Gondzio's correctors; its longest step."""
        q, at = self.market, self.at
        self.factor()
        row_scale, limit_scale = self.weights[1], q.bound * self._limit_scale
        row_products, limit_products = np.where(q.row, at.lam * at.w, 0.0), at.xi * at.v
        affine = self.direction(-1.0, -row_products, -limit_products)
        t = self.longest(affine)
        # If the predictor step is very short, factors in single precision count as singular, and double precision is
        # used from here on.
        if self.rough and not (t > _SINGULAR_STEP and np.isfinite(affine.p).all()):
            self.rough = False
            return self.search_direction()
        trial = at.along(affine, t)
        target = self._target(affine, trial, t)
        step = self.direction(
            target / self.product - affine.y * affine.z - 1,
            np.where(q.row, target * row_scale - row_products - affine.lam * affine.w, 0.0),
            target * limit_scale - limit_products - affine.xi * affine.v,
            self._curvature(affine, trial, t),
        )
        step, t = self._centrality_corrected(step, target)
        step = self.finished(step, max(RESIDUAL_PER_MU * min(self.mu, 1.0), LEAST_RESIDUAL))
        longest = self.longest(step)
        self.rough = self.rough and longest > TO_BOUNDARY * t
        return step, longest

    def _curvature(self, affine: Change, trial: Point, t: float) -> Array:
        r"""Bounded error (users,) of linearised log marginal utilities after a predictor step of length t to `trial`.

        .. math:: \log\big(p \pm \xi + t (dp \pm d\xi)\big) + level - \log G(x + t\,dx) - (1 - t) \rho
        """
        q = self.market
        log_price = np.log(self.full_price + t * (affine.p + q.on_users(q.sign * affine.xi))) + trial.level
        largest = 0.5 * np.minimum(self.marginal.elasticity, 1.0)
        error = log_price - q.marginal_utility(trial.x, trial.log_weight).log - (1 - t) * self.rho
        return np.asarray(np.clip(error, -largest, largest))

    def _target(self, affine: Change, trial: Point, t: float) -> float:
        """Target of complementarity products: mu times the cube of the factor by which the predictor step changes mu.

        The predictor step of length t leads to `trial`. The cube is bounded from both sides. At a large mu, and until
        alpha is the final one, the target is also at least a multiple of the residual, up to mu / 2.
        """
        whole, curved = float(self.product.sum()), float(self.product @ (affine.y * affine.z))
        ratio = self._mean(whole * (1 - t) + t * t * curved, trial) / self.mu
        most = (_MOST_CENTRING_LARGE if self.market.large else MOST_CENTRING) if t > SHORT_STEP else _SHORT_CENTRING
        target = min(max(ratio**3, LEAST_CENTRING), most) * self.mu
        early = self.mu > LARGE_MU or not self.market.at_final_alpha
        return max(target, min(RESIDUAL_CENTRING * self.residual, 0.5 * self.mu)) if early else target

    def _centrality_corrected(self, step: Change, target: float) -> tuple[Change, float]:
        """Add up to five of Gondzio's correctors, which bound products; return the direction and its longest step."""
        q, at, centre = self.market, self.at, target / self.product
        row_scale, limit_scale = self.weights[1], q.bound * self._limit_scale
        t = self.longest(step)
        for _ in range(_CORRECTORS):
            if t > LONG_STEP:
                break
            reach = min(_FACTOR_LARGE * t + _LENGTHENED_LARGE if q.large else t + LENGTHENED, 1.0)
            pairs = (1 + reach * step.y) * (1 + reach * step.z)
            rows = np.where(q.row, (at.lam + reach * step.lam) * (at.w + reach * step.w) / row_scale, target)
            limits = (at.xi + reach * step.xi) * (at.v + reach * step.v) / limit_scale
            low, high = _PRODUCT_BOUNDS_LARGE if q.large else _PRODUCT_BOUNDS
            groups = (pairs, centre), (rows, target), (limits, target)
            wanted = [np.maximum(np.clip(one, low * goal, high * goal) - one, -high * goal) for one, goal in groups]
            corrected = self.direction(wanted[0], wanted[1] * row_scale, wanted[2] * limit_scale, feasibility=False)
            corrected = step.plus(corrected)
            corrected_length = self.longest(corrected)
            if corrected_length < t + (_LEAST_GAIN_LARGE * (reach - t) if q.large else LEAST_GAIN):
                break
            step, t = corrected, corrected_length
        return step, t


@dataclass(frozen=True)
class Candidate:
    """Feasible fractions (pairs,), log prices of whole capacities (rows,), their backward error, and steps."""

    fractions: Array
    log_rows: Array
    error: float
    steps: int
    warm: Start | None = None
    off: float = 0.0  # residual of a fixed log weight of the sum of shares


def run(
    problem: Problem, tol: float, start: object = None, max_steps: int = _STEPS, patience: float = math.inf,
    weight: float | None = None, wanted: Array | None = None,
) -> Candidate:  # fmt: skip
    """Solve by the interior-point method, from a compatible warm `start`; return the iterate of least backward error.

    A run from a warm start that misses `tol` is repeated from the usual starting point.

    Parameters
    ----------
    problem : problem of finite alpha
    tol : backward error at which iterations end
    start : a `Start` of the same problem at another alpha, or None
    max_steps : largest number of steps, besides the additional steps at small alpha
    patience : number of successive steps without a halving of mu at the final alpha, after which iterations end
    weight : log weight of the sum of shares, if it is fixed; `Candidate.off` is then its residual
    wanted : (users,), tasks at alpha = 1; iterations end once prices prove that their welfare is not attainable
    """
    alpha = problem.criterion.alpha
    decades = int(min(_STEPS_PER_DECADE / alpha, _MOST_STEPS)) if alpha > 0 else 0
    max_steps += decades
    warm_start = start if isinstance(start, Start) else None
    at = _Run(Market(problem, weight), tol, warm_start, patience, decades)
    for number in range(max_steps + 1):
        if not at.step(number) or (wanted is not None and at.market.excludes(wanted, at.now.at, tol)):
            break
    best, log_weight = at.best, at.now.at.log_weight
    if np.isinf(best.error) and at.now.finite:
        best = at.judged(max_steps)
    elif best.error > tol and at.now.finite:
        best = min(best, at.split_anew(), key=lambda one: one.error)
    if at.warm_started and best.error > tol:
        return run(problem, tol, patience=patience)
    if at.market.log_weight_free and best.error > tol and max_steps > 1:
        best = min(best, _by_root_finding(problem, tol, at.first_log_weight), key=lambda one: one.error)
    return replace(best, warm=at.warm, off=at.market.log_weight(at.now.at.x, free=True)[0] - log_weight)


class _Run:
    """State of a run: Newton's equations `now` at its iterate, best candidate, and counts of steps without progress."""

    def __init__(self, market: Market, tol: float, start: Start | None, patience: float, decades: int) -> None:
        self.market, self.tol, self.patience, self.decades = market, tol, patience, decades
        self.warm_started = start is not None and market.accepts(start)
        at = market.starting_point() if start is None or not self.warm_started else market.warm_point(start)
        polytope, self.first_log_weight = market.polytope, at.log_weight
        self.best = Candidate(np.zeros(len(polytope.gamma)), np.full(len(polytope.row_server), -np.inf), np.inf, 0)
        self.warm: Start | None = None
        #: Numbers of judged iterates without progress (`stalled`), of successive short steps (`short_steps`), and of
        #: steps since mu was last halved (`slow_steps`).
        self.stalled = self.short_steps = self.slow_steps = 0
        self.least_judged_mu = self.least_mu = np.inf
        units = market.product_units(at)
        market.balance(at, units)
        self.now = Step(market, at, units, True)

    def step(self, number: int) -> bool:
        """Certify the iterate if it is accurate, and take step `number` (from 0); False if iterations end."""
        now, market = self.now, self.market
        if not now.finite:
            return False
        if market.at_final_alpha:
            if now.mu > _WARM_MU and now.residual < _WARM_RESIDUAL:
                self.warm = Start(now.at, market.unit, market.own.alpha)
            nearly_optimal = now.mu * len(now.at.y) <= max(_JUDGED * self.tol, _SMALL_MU) * len(now.at.x)
            if nearly_optimal and now.residual < LARGE_MU and self._accepts(self.judged(number)):
                return False
        change, t = now.search_direction()
        new, t = now.line_search(change, now.damped(t))
        if not new.finite or self._fruitless(new, t, number):
            return False
        self.now = new
        self._raise_alpha()
        return True

    def split_anew(self) -> Candidate:
        r"""Split the tasks of every user anew among its cheapest pairs, at the same prices: the last candidate.

        Where very many pairs nearly tie, those that cost more than the tolerance have too many tasks in sum, although
        prices and the tasks of users are accurate. They are dropped, and the least change of the others restores tasks
        of users and full use of the set L of priced or overused rows:

        .. math::
            \min_{\Delta}\ \sum_{n,i} \frac{p_n \Delta_{ni}^2}{y_{ni}}, \qquad
            \sum_i (y_{ni} + \Delta_{ni}) = x_n, \qquad
            \sum_n a_{nir} (y_{ni} + \Delta_{ni}) = 1 \quad ((i, r) \in L)
        """
        now, q, at = self.now, self.market, self.now.at
        cost, pairs = q.pairs.cost(at.lam), q.pairs.with_value(None)
        excess = at.z / cost
        excess -= pairs.of_user(pairs.least(excess))
        y = np.where(excess <= _CHEAP * self.tol, at.y, 0.0)
        full = q.row & (at.lam > at.w * q.row_units(cost))
        for _ in range(_SPLITS):
            full |= q.row & (pairs.use(y) > 1)
            weight, idle = y / pairs.of_user(now.full_price), np.where(full, 0.0, np.inf)
            equations = Equations(pairs, weight, idle, REFINED * at.x / now.full_price, 0 * at.x)
            prices, of_users, _ = equations.solve(
                np.where(full, pairs.use(y) - 1, 0.0), at.x - pairs.sums(y), 0.0, NEWTON_ROUNDING
            )
            y = np.maximum(y - weight * pairs.slack(prices, of_users), 0.0)
        self.now.at = at._replace(y=y)
        return self.judged(self.best.steps)

    def judged(self, steps: int) -> Candidate:
        """Round the iterate to a feasible allocation, with its backward error."""
        at, market, polytope = self.now.at, self.market, self.market.polytope
        fractions = polytope.inside(at.y * market.pairs.of_user(market.unit) / polytope.gamma)
        log_lam = np.log(at.lam[polytope.row_server, polytope.row_resource])
        log_rows = log_lam + at.level + market.log_server_unit[polytope.row_server]
        error = error_at(polytope, market.problem.criterion, polytope.allocation(fractions), log_rows, self.tol)
        return Candidate(fractions, log_rows, error, steps)

    def _accepts(self, candidate: Candidate) -> bool:
        """Keep the candidate of least error; True if it is accurate enough, or no more progress is to be expected."""
        mu = self.now.mu
        progress = candidate.error < _PROGRESS * self.best.error or mu < 0.5 * self.least_judged_mu
        self.stalled = 0 if progress else self.stalled + 1
        self.best = min(self.best, candidate, key=lambda one: one.error)
        self.least_judged_mu = min(self.least_judged_mu, mu)
        return self.best.error <= 0.5 * self.tol or self.stalled > PATIENCE or mu < _LEAST_MU

    def _fruitless(self, new: Step, t: float, number: int) -> bool:
        """True if iterations are to end: mu has not halved in many steps, is a rounding error, or steps are short."""
        now, market = self.now, self.market
        progress = market.at_final_alpha and now.mu < 0.5 * self.least_mu
        self.slow_steps, self.least_mu = (0, now.mu) if progress else (self.slow_steps + 1, self.least_mu)
        self.short_steps = self.short_steps + 1 if t < _NO_ADVANCE else 0
        # Without rounding errors a step of length t leaves about the fraction 1 - t of the residual.
        expected = (1 - 0.5 * t if t < 0.5 else 10.0) * now.residual
        rounding = now.mu < _NEAR_ROUNDING_MU and new.residual > expected
        if rounding:
            self.stalled += 2
        return (
            self.slow_steps > self.patience
            or (rounding and self.stalled > PATIENCE and now.mu < _ROUNDING_MU and number > self.decades)
            or (self.short_steps > _MOST_SHORT_STEPS and market.power > FIRST_ALPHA)
        )

    def _raise_alpha(self) -> None:
        """Continue with a larger alpha, if the present alpha is not the final one and equations hold approximately."""
        market, now = self.market, self.now
        growth, feasible, central = _GROWTH if market.log_gamma is None else _GROWTH_GAME
        if not market.at_final_alpha and now.residual < feasible and now.mu < central:
            self.slow_steps = 0
            at = market.continued(now.at, min(market.own.alpha * growth, market.problem.criterion.alpha))
            self.now = Step(market, at, market.product_units(at), now.rough)


def _by_root_finding(problem: Problem, tol: float, weight: float) -> Candidate:
    """Find the log weight of the sum of shares by Brent's method, with one interior-point run per evaluation.

    Returns the candidate of least error among these runs, with the number of steps of all of them.
    """
    trials: list[Candidate] = []

    @cache
    def weight_error(weight: float) -> float:
        """Residual of the equation for the log weight at the fixed value `weight`, by a run with that value.

        The result is 0, so that the search ends, if the run meets the tolerance or the residual is not finite.
        """
        candidate = run(problem, tol, weight=weight)
        trials.append(candidate)
        return candidate.off if candidate.error > tol and np.isfinite(candidate.off) else 0.0

    length, here_error = _FIRST_LENGTH, weight_error(weight)
    while here_error and length <= _LONGEST:
        other_weight = weight + math.copysign(length, here_error)
        other_error = weight_error(other_weight)
        if here_error * other_error < 0:
            optimize.brentq(
                weight_error, weight, other_weight, xtol=_WEIGHT_ACCURACY, maxiter=_WEIGHT_ITERATIONS, disp=False
            )
        if here_error * other_error <= 0:
            break
        weight, here_error, length = other_weight, other_error, 2 * length
    best = min(trials, key=lambda one: one.error)
    return replace(best, steps=sum(each.steps for each in trials))
