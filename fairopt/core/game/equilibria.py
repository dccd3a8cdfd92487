r"""Equilibria for alpha in (0, infinity): interior-point methods, then homotopies, as candidates for certificates.

All methods are deterministic, and independent of the order of users and servers up to rounding.

The smoothed path is used where the interior-point methods fail and no limit binds. The complementarity conditions
`a >= 0, b >= 0, a b = 0` are smoothed to `a b = mu` by the function of Chen, Harker, Kanzow and Smale,

.. math:: a + b - \sqrt{(a - b)^2 + 4 \mu} = 0,

for every pair (fraction of the user's tasks against its slack) and every row (idle fraction against its price). With
tasks :math:`x_{ni}`, level prices :math:`v_{ir}`, tasks :math:`X_n` at which the least cost of a user equals its
marginal utility, idle fractions :math:`w_{ir}` of rows, and :math:`k = \min(\alpha, 4)`, the pairs (a, b) are

.. math::
    \frac{x_{ni}}{X_n}, \quad
    \frac1k \Big(\Big(\sum_r D_{nir} v_{ir}^\alpha\Big)^{k/\alpha}
    \Big(\frac{X_n}{\phi_n \gamma_{ni}}\Big)^k - 1\Big) \qquad \text{and} \qquad v_{ir}^k, \quad w_{ir}

For almost all data the solutions form a smooth curve from a large mu to mu = 0, along which mu need not decrease: near
degenerate equilibria (exact ties, zero demands) prices change while mu is nearly constant. Therefore mu is an unknown,
and the curve is followed by pseudo-arclength continuation (`continuation`): a predictor along the tangent, and Newton
corrections in the hyperplane orthogonal to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...base import clock
from ...model._arrays import Array
from ...model.problem import Problem
from ..accuracy import CONVERGED, SHORTER, SHORTEST, SINGLE_ROUNDING, VISIBLE
from ..algebra import Equations
from ..engines import welfare
from ..engines.small import in_levels
from ..factors import LOG_NOTHING, LOG_RANGE, TINY, UNDERFLOW
from ..solution import Solution
from . import entropy_homotopy, played
from .continuation import Reached, Step, StepControl, damped_newton, stepped, towards
from .coupling import CoupledGame
from .equilibrium_system import EquilibriumSystem, solution, suppress_fp_warnings
from .rounds import SETTLED, Sweeps

#: Units of tasks (users,), and log units of prices (servers, resources).
Units = tuple[Array, Array]

#: Initial mu (`_FIRST_MU`), and largest residual of points on the curve relative to mu (`_RESIDUAL_PER_MU`).
_FIRST_MU, _RESIDUAL_PER_MU = 3.0, 0.3
#: Largest ratio of mu to its minimum before a restart (`_MOST_RISE`), and longest step after a restart
#: (`_SHORTER_STEP`).
_MOST_RISE, _SHORTER_STEP = 1e4, 0.2
_STEPS = StepControl(0.5, 2.0, SINGLE_ROUNDING, SHORTER, (2.0, 2.0, 1.7, 1.4, 1.1, 0.9, 0.7, 0.6, 0.6, 0.6))
#: Largest number of corrections of a step, and ratio of successive merits up to which the Jacobian is reused.
_CORRECTIONS = 9, 0.3
#: Largest number of linear systems for the curve: ten times the number of prices, from `_LEAST_BUDGET` to
#: `_MOST_BUDGET`. The largest number observed in a successful run is 3,248.
_LEAST_BUDGET, _MOST_BUDGET = 1000, 4000
#: Bounds of the exponent of slacks: below `_LEAST_EXPONENT` the equation of a pair is far from satisfied, above
#: `_MOST_EXPONENT` the pair has no tasks.
_LEAST_EXPONENT, _MOST_EXPONENT = -LOG_NOTHING, 60
#: Newton's method to the first point: largest number of steps (`_FIRST_STEPS`), and factor of backtracking
#: (`_BACKTRACKING`).
_FIRST_STEPS, _BACKTRACKING = 39, 0.5
#: Residual of rows to which Newton steps are refined, relative to the right-hand side.
_REFINED = SINGLE_ROUNDING


class CurvePoint(NamedTuple):
    """Point near the curve; smoothed equations allow negative tasks. A step has the changes of all four fields."""

    log_price: Array  # (servers, resources), log v
    log_level: Array  # (users,)
    tasks: Array  # (pairs,), in units of the user's largest gamma
    log_mu: float

    def moved(self, step: Step, t: float) -> CurvePoint:
        """Point after a step of length t."""
        return CurvePoint(*(value + t * change for value, change in zip(self, step, strict=True)))


def follow(q: EquilibriumSystem) -> Iterator[tuple[CurvePoint, int]]:
    """Follow the curve until no step succeeds or the budget is spent; yield points and numbers of linear systems.

    If mu becomes far larger than its minimum, the corrector has jumped to another branch: the curve is then followed
    once more from the start, by shorter steps. Without a first point nothing is yielded.
    """
    start, _, solved = start_of_curve(q)
    if start is None:
        return
    budget = max(_LEAST_BUDGET, min(10 * int(q.row.sum()), _MOST_BUDGET))
    for steps in (_STEPS, replace(_STEPS, longest=_SHORTER_STEP)):
        here, raw_tangent, previous, length, least = start, None, None, steps.first, np.inf
        # mu increases at folds, by factors of up to 50 in successful runs.
        while here.mu <= min(10 * _FIRST_MU, _MOST_RISE * least):
            if solved >= budget:
                return
            if raw_tangent is None:
                raw_tangent, solved = here.tangent, solved + 1
            tangent = towards(here, raw_tangent, previous)
            remaining = budget - solved
            corrected, systems, length = stepped(
                here, tangent, length, steps.shortest, remaining, _on_curve, *_CORRECTIONS
            )
            solved += systems
            if corrected is None:
                return
            yield corrected.here.at, solved
            here, raw_tangent, previous = SmoothedSystem(q, corrected.here.at), corrected.along, tangent
            length = steps.after(length, corrected.corrections)
            least = min(least, here.mu)


def _on_curve(here: SmoothedSystem) -> bool:
    """True if the residual is small relative to mu."""
    return bool(here.largest < _RESIDUAL_PER_MU * here.mu)


class SmoothedSystem:
    """Smoothed equations at one point: residuals, Newton steps and the tangent."""

    @np.errstate(over="ignore")  # distant points have an infinite merit
    def __init__(self, q: EquilibriumSystem, at: CurvePoint, units: Units | None = None) -> None:
        self.q, self.at, self.mu, self.power = q, at, float(np.exp(at.log_mu)), q.power
        level, share, cost_sum = q.levels(at.log_price, q.alpha)
        relative_slack = np.expm1(np.clip(self.power * (at.log_level[q.user] - level), _LEAST_EXPONENT, _MOST_EXPONENT))
        self.total = np.exp(at.log_level)
        if units is None:
            # Prices are normalized by their largest share in the cost of a pair, so that mu approximates the error of
            # the certificate; with the average share that error was 2 to 20 times mu.
            largest_share = np.full(q.row.shape, TINY)
            np.maximum.at(largest_share, q.server, share / cost_sum[:, None])
            units = self.total, at.log_price - np.where(q.row, np.log(largest_share), 0.0) / q.alpha
        self.units, self.unit = units, units[0][q.user]
        self.residual_pairs, self.rate_pairs, self.to_part, to_slack = _chks(
            at.tasks / self.unit, relative_slack / self.power, self.mu
        )
        self.weight = self.unit * (to_slack / self.to_part) * (1 + relative_slack)
        price = np.where(q.row, np.exp(self.power * (at.log_price - units[1])), 1.0)
        smoothed = _chks(np.where(q.row, 1 - q.used(at.tasks), 0.0), price, self.mu)
        self.residual_rows, self.rate_rows = np.where(q.row, smoothed[:2], 0.0)
        self.to_idle = np.where(q.row, smoothed[2], 1.0)
        self.own = np.where(q.row, self.power * price * smoothed[3] / smoothed[2], 1.0)
        self.gap = q.sums(at.tasks) - self.total
        residual = np.concatenate([self.residual_pairs, self.residual_rows.ravel(), self.gap / self.total])
        self.merit, self.largest = float(np.linalg.norm(residual)), float(np.abs(residual).max())

    def newton(self, there: SmoothedSystem) -> Step:
        """Newton step from `there` to the curve at constant mu, with the Jacobian of this point."""
        return (*self._solve(there.residual_pairs, there.residual_rows, there.gap), 0.0)

    @cached_property
    def tangent(self) -> Step:
        """Tangent of the curve: derivatives in log mu."""
        return (*self._solve(self.rate_pairs, self.rate_rows, np.zeros(len(self.total))), 1.0)

    def moved(self, step: Step, part: float) -> SmoothedSystem:
        """Equations after a step of length `part`, in the same units."""
        return SmoothedSystem(self.q, self.at.moved(step, part), self.units)

    def solved(self, there: SmoothedSystem) -> tuple[Step, Step]:
        """Newton step from `there`, and the tangent."""
        return self.newton(there), self.tangent

    def part(self, step: Step) -> float:
        """Step length that changes no price v^k by more than a factor e^2; 0 if log mu changes by more than 2."""
        return min(1.0, 2 / max(float(np.abs(step[0]).max()) * self.power, TINY)) if abs(step[-1]) <= 2 else 0.0

    def product(self, one: Step, other: Step) -> float:
        """Inner product of steps: changes of log prices v^k, of tasks relative to the user's, and of log mu."""
        parts = float((one[2] * other[2] / self.total[self.q.user] ** 2).sum())
        scale = min(1.0, 10.0 / self.q.row.sum())
        return float(scale * (self.power * (one[0] * other[0]).sum() + parts) + one[3] * other[3])

    def _solve(self, pairs: Array, rows: Array, gap: Array) -> tuple[Array, Array, Array]:
        """Newton step of log prices, log levels and tasks for residuals of pairs, rows and users.

        Tasks and levels are eliminated, which leaves the Schur complement of `algebra` over prices. The shape of `rows`
        is (servers, resources); `gap` (users,) is in tasks.
        """
        q = self.q
        task_change = -self.unit * pairs / self.to_part
        level = (gap + q.sums(task_change)) / (self.total + q.sums(self.weight))
        rhs = np.where(q.row, q.used(task_change - self.weight * level[q.user]) - rows / self.to_idle, 0.0)
        tol = _REFINED * max(float(np.abs(rhs).max()), TINY)
        prices, user_change, _ = self._factored.solve(rhs, np.zeros(len(level)), 0.0, tol)
        d_level = level - user_change
        cost_change = self._factored.pairs.cost(prices)
        return prices / self._price, d_level, task_change - self.weight * (d_level[q.user] + cost_change)

    @cached_property
    def _price(self) -> Array:
        """Unit of price changes: v^alpha relative to the largest of its server, (servers, resources)."""
        log_price = np.where(self.q.row, self.q.alpha * self.at.log_price, -np.inf)
        top = log_price.max(axis=1, initial=-1 / TINY, keepdims=True)
        return np.asarray(np.exp(np.maximum(log_price - top, -LOG_RANGE)))

    @cached_property
    def _factored(self) -> Equations:
        """Factored Schur complement of prices."""
        q, price = self.q, self._price
        pairs = q.pairs.with_value(np.maximum(q.pairs.cost(price), UNDERFLOW))
        idle = np.where(q.row, self.own / price, np.inf)
        return Equations(pairs, self.weight, idle, self.total, np.zeros(len(self.total)))


def _chks(one: Array, other: Array, mu: float) -> tuple[Array, Array, Array, Array]:
    r"""Smoothing function of complementarity, and its derivatives in log mu, a and b, without cancellation.

    .. math:: \frac12 \Big(a + b - \sqrt{(a - b)^2 + 4 \mu}\Big)
    """
    difference, total = one - other, one + other
    root = np.sqrt(difference * difference + 4 * mu)
    half = np.where(total > 0, 2 * (one * other - mu) / (np.abs(total) + root), (total - root) / 2)
    small, large = 2 * mu / (root * (root + np.abs(difference))), (1 + np.abs(difference) / root) / 2
    return half, -mu / root, np.where(difference > 0, small, large), np.where(difference < 0, small, large)


def start_of_curve(q: EquilibriumSystem) -> Reached[SmoothedSystem]:
    """Find the point of the curve at the initial mu by a damped Newton method from equal prices; None if it fails."""
    tasks = q.begin(_FIRST_MU)
    log_level = np.log(q.sums(tasks))
    best = np.maximum.reduceat(q.log_gain - np.log(q.use.sum(axis=1)) / q.alpha, q.start[:-1])
    prices = np.where(q.row, np.median(best - log_level), 0.0)
    return damped_newton(
        SmoothedSystem(q, CurvePoint(prices, log_level, tasks, float(np.log(_FIRST_MU)))),
        _on_curve,
        lambda here: here.newton(here),
        lambda here, step, t: here.moved(step, t),
        lambda here: here.merit,
        _FIRST_STEPS,
        _BACKTRACKING,
        SHORTEST,
        lambda step: min(1.0, 2 / max(float(np.abs(step[0]).max()) * q.power, TINY)),
    )


#: Temperatures at which points of the entropy homotopy are candidates (`_OFFERED_TAU`), and relative tolerance up to
#: which such a temperature counts as attained (`_AT_TAU`).
_OFFERED_TAU, _AT_TAU = (1e-9, 1e-11), VISIBLE
#: Largest number of Newton steps with all pairs from a point of the homotopy that was found with fewer pairs.
_MORE = 8
#: Number of linear systems after which a point is a candidate at any temperature; doubled each time.
_FIRST_OFFER = 300
#: Number of prices up to which the homotopy is faster than other methods (`_FEW_PRICES`), and number above which the
#: smoothed path is not tried (`_MOST_PRICES`).
_FEW_PRICES, _MOST_PRICES = 64, 500
#: Alpha above which prices may span more decades than doubles resolve, so that level prices are tried first: in general
#: (`LARGE_ALPHA`), and for many users on few servers, where the active set changes in many steps
#: (`_LARGE_ALPHA_MANY`).
LARGE_ALPHA, _LARGE_ALPHA_MANY = 64.0, 2.0
#: Largest number of rounds of best responses where limits bind (`_ROUNDS`), and from the end of the smoothed path
#: (`_PATH_ROUNDS`), where they also end after `_IDLE_ROUNDS` in which changes were not halved.
_ROUNDS, _PATH_ROUNDS, _IDLE_ROUNDS = 511, 320, 40
#: Exploitability below which points of the smoothed path are candidates.
_NEAR = 3e-8
#: Largest number of pairs (user, server) for the dense interior-point method.
_DENSE_PAIRS = 3_000
#: There are many users if their number is at least `_MANY_USERS`, and at least `_MANY_PER_PRICE` times that of prices.
_MANY_USERS, _MANY_PER_PRICE = 500, 5
#: Temperature, relative to the tolerance, at which the first point is a candidate for a crowd (`welfare.crowded`): its
#: error is up to ten times the temperature.
_TAU_PER_TOL = 0.03
#: Above the alpha `_IMPATIENT_ABOVE`, with few prices, the interior-point method ends after `_IMPATIENT` steps in which
#: mu does not halve.
_IMPATIENT, _IMPATIENT_ABOVE = 5, 8
#: A point of the smoothed path is a candidate if its error is at most the fraction `_CLEARLY_BETTER` of the error of
#: the last candidate; the path ends at the error `_TO_ROUNDING`.
_CLEARLY_BETTER, _TO_ROUNDING = 0.1, CONVERGED
#: The state of best responses is a candidate once a round changes tasks by less than half of the tolerance divided by
#: alpha, since slacks change by alpha times as much. A smaller alpha is replaced by this number.
_LEAST_DIVISOR = 50


def solutions(problem: Problem, tol: float, warm: object = None) -> Iterator[Solution]:
    """Candidate equilibria for alpha in (0, infinity), to be certified one after the other.

    With many users on few servers and a large alpha, the active set of the interior-point method changes by one user in
    each step; the homotopy, whose unknowns are the few prices, then comes first.
    """
    criterion, game = problem.criterion, problem.criterion.scope == "game"
    if game and criterion.alpha == 1:
        yield from _program(problem, tol)
    system = EquilibriumSystem.of(problem.polytope, criterion)
    prices, limited = int(system.row.sum()), len(problem.polytope.limited) > 0
    many_users = len(system.weight) >= max(_MANY_USERS, _MANY_PER_PRICE * prices)
    homotopy_early, crowd = game and (many_users or prices <= _FEW_PRICES), welfare.crowded(problem)
    # The smoothed path often has no starting point at small alpha, does not support limits, and takes minutes with more
    # prices.
    path_applies = not (many_users or criterion.alpha < 1 or limited or prices > _MOST_PRICES)
    if game:
        yield from _of_game(problem, tol, warm, system, many_users, homotopy_early, crowd)
    if not homotopy_early and (prices <= _FEW_PRICES or not path_applies):
        yield from _homotopy(system, tol, crowd and many_users)
    if path_applies:
        yield from _smoothed_path(system, tol)


def _of_game(
    problem: Problem,
    tol: float,
    warm: object,
    system: EquilibriumSystem,
    many_users: bool,
    homotopy_early: bool,
    crowd: bool,
) -> Iterator[Solution]:
    """Candidates of the game: interior points in prices and in level prices, the homotopy, and best responses.

    The interior-point method in prices comes first, but after the homotopy and level prices for a crowd, and where
    prices may span more decades than doubles resolve. The homotopy is tried only if `homotopy_early`, and best
    responses only where tasks have limits.

    Parameters
    ----------
    tol : backward error that counts as converged
    warm : warm start of the interior-point method in prices
    many_users : users are many times as many as prices, and the homotopy is tried for their number
    homotopy_early : the homotopy is tried here: users are many, or prices few
    crowd : as in `welfare.crowded`
    """
    alpha, (users, servers, _) = problem.criterion.alpha, problem.cluster.shape
    limited, few_prices = len(problem.polytope.limited) > 0, homotopy_early and not many_users
    # Games with positive demands and without limits are scaled by their limit PS-DSF at large alpha (`core.market`).
    scaled = system.positive and not limited
    large_alpha = alpha > (_LARGE_ALPHA_MANY if many_users else LARGE_ALPHA)
    prices_late = crowd or (large_alpha and not scaled)
    # With few prices the homotopy is fast, while the interior-point method takes many steps if its initial prices are
    # decades from the prices of the solution.
    patience = _IMPATIENT if few_prices and not limited and alpha > _IMPATIENT_ABOVE else np.inf
    in_prices = _renamed(welfare.solutions(problem, tol, warm, patience))
    if not prices_late:
        yield from in_prices
    if homotopy_early:
        yield from _homotopy(system, tol, crowd)
    if users * servers <= _DENSE_PAIRS and (few_prices or prices_late):
        yield from in_levels(problem, tol, "equilibrium")
    if prices_late:
        yield from in_prices
    if limited:  # where limits may bind, best responses take a tenth of the homotopy's time
        yield from _renamed(played.solutions(problem, tol, _ROUNDS))


def _renamed(found: Iterator[Solution]) -> Iterator[Solution]:
    """Candidates of another engine, with the name of this engine."""
    return (replace(one, engine="equilibrium") for one in found)


def _program(problem: Problem, tol: float) -> Iterator[Solution]:
    """Equilibria at alpha = 1 as optima of a single convex program (PF section 4), in which shares cancel."""
    criterion = problem.criterion
    rule = replace(criterion, share=np.ones(len(criterion.weight)), scope="servers")
    for found in _renamed(welfare.solutions(Problem(problem.cluster, rule), tol)):
        yield replace(found, warm=None)


@suppress_fp_warnings
def _homotopy(method: EquilibriumSystem, tol: float, crowd: bool = False) -> Iterator[Solution]:
    """Candidates of the entropy homotopy: points near its end, and the last point.

    If the end is not attained within `_FIRST_OFFER` linear systems, the present point is a candidate, and again each
    time that the number of systems has doubled. For a `crowd` pairs without tasks are left out.
    """
    begun, offered, place, patience = clock.cpu(), np.inf, None, _FIRST_OFFER
    ends = (_TAU_PER_TOL * tol, *_OFFERED_TAU) if crowd else _OFFERED_TAU
    for place in entropy_homotopy.follow(method, ends[-1], listed=crowd):
        overdue = place.steps >= patience
        if overdue or any(place.tau <= end * (1 + _AT_TAU) < offered for end in ends):
            offered, patience = place.tau, patience * (1 + overdue)
            yield _solution(method, place, begun, tol)
    if place is not None and place.tau < offered:
        yield _solution(method, place, begun, tol)


def _solution(method: EquilibriumSystem, place: entropy_homotopy.Place, begun: float, tol: float) -> Solution:
    """Candidate from a point of the homotopy, corrected with all pairs if some of them were left out."""
    here = place.here
    if len(here.tasks) < len(method.server):  # pairs that were left out may have tasks at the last prices
        game = CoupledGame(method, here.price, here.tau, here.unit, most=here.most)
        here = entropy_homotopy.newton(game, _MORE).here or game
    seconds = clock.cpu() - begun
    return solution(method, here.tasks, here.price, "entropy homotopy", place.steps, seconds, tol)


@suppress_fp_warnings
def _smoothed_path(method: EquilibriumSystem, tol: float) -> Iterator[Solution]:
    """Candidates of the smoothed path, of decreasing error, followed by candidates of best responses from its end.

    Best responses are played only if the path has yielded a candidate. They compute the tasks on each server exactly,
    also where costs differ by less than the smoothed path resolves.
    """
    begun, best, tasks, steps = clock.cpu(), _NEAR, None, 0
    for at, steps in follow(method):
        tasks = np.maximum(at.tasks, 0.0)
        if (error := method.exploitability(tasks, at.log_price)) <= best:
            best = _CLEARLY_BETTER * error
            yield solution(method, tasks, at.log_price, "smoothed path", steps, clock.cpu() - begun, tol)
        if error <= _TO_ROUNDING:
            break
    if tasks is not None and best < _NEAR:
        sweeps = Sweeps(method)
        state, near = sweeps.start(tasks), 0.5 * tol / max(method.alpha, _LEAST_DIVISOR)
        least, idle = np.inf, 0
        for _ in range(_PATH_ROUNDS):
            change = sweeps.gauss_seidel(state)
            least, idle = (change, 0) if change < 0.5 * least else (least, idle + 1)
            if change < near:
                yield sweeps.solution(state, "best responses", steps, clock.cpu() - begun, tol)
                near *= _CLEARLY_BETTER
            if change < SETTLED * tol or idle > _IDLE_ROUNDS:
                break
        yield sweeps.solution(state, "best responses", steps, clock.cpu() - begun, tol)
