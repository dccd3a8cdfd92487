"""Equilibria for alpha in (0, infinity): the interior point, else along a curve.

Each is a candidate, whose certificate is computed from its tasks and prices alone. Deterministic: no random start, and
the order of users and servers does not matter beyond rounding.

The smoothed path, where the interior point jams and no task count binds: complementarity `a >= 0, b >= 0, a b = 0` is
smoothed to `a b = mu`, a, b > 0, in the form of Chen, Harker, Kanzow and Smale, `a + b - sqrt((a - b)^2 + 4 mu) = 0`,
for every pair (its part of the user's tasks against its slack) and every resource (what idles against its price). With
tasks x[n,i], level prices v[i,r], every user's level `X_n` (what its tasks cost where they cost least) and `p_ni =
sum_r D_nir v_ir^alpha`, k = min(alpha, 4), the two factors are

    x_ni / X_n    and    (p_ni^(k/alpha) (X_n / (phi_n gamma_ni))^k - 1)/k,      v_ir^k    and    1 - use_ir.

For almost all data the solutions form a smooth curve from large mu to mu = 0. It need not fall: prices slide along a
server while mu hardly changes, and mu may rise again for a while, wherever equilibria are nearly not unique (exact
ties, zero demands). So mu is an unknown too, and the curve is followed by its length: a step along the tangent, and
Newton steps back in the plane across it.
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
from ..algebra import Equations
from ..engines import welfare
from ..engines.small import in_levels
from ..solution import Solution
from . import entropy_homotopy, played
from .continuation import Reached, Step, StepControl, damped_newton, stepped, towards
from .equilibrium_system import EquilibriumSystem, solution, suppress_fp_warnings
from .rounds import Sweeps

Units = tuple[Array, Array]  # tasks (users,) and log prices (servers, resources) in which pairs and prices are measured

#: mu at first, and what is wrong on the curve is below this part of mu.
_FIRST, _NEAR = 3.0, 0.3
#: By what factor mu may rise above its least, and the longest step where it has risen further.
_RISE, _SHORTER = 1e4, 0.2
_STEPS = StepControl(0.5, 2.0, 1e-7, 0.4, (2.0, 2.0, 1.7, 1.4, 1.1, 0.9, 0.7, 0.6, 0.6, 0.6))
#: Most corrections of a step, and by what part they have to make the merit smaller for a matrix to serve again.
_CORRECTIONS = 9, 0.3


class CurvePoint(NamedTuple):
    """Point near the curve; tasks may be negative, as the smoothed equations allow. Steps are of all four."""

    log_price: Array  # (servers, resources), log v
    log_level: Array  # (users,)
    tasks: Array  # (pairs,), in the user's largest gamma
    log_mu: float

    def moved(self, step: Step, t: float) -> CurvePoint:
        """Point after the part t of a step."""
        return CurvePoint(*(value + t * change for value, change in zip(self, step, strict=True)))


def follow(q: EquilibriumSystem) -> Iterator[tuple[CurvePoint, int]]:
    """Follow the curve: points and systems solved, until no step succeeds, mu rises far, or the budget is spent.

    Where mu has risen far it is followed once more from its beginning, by shorter steps: another curve had been met.
    """
    start, _, solved = start_of_curve(q)
    if start is None:
        return
    budget = max(1000, min(10 * int(q.row.sum()), 4000))  # of systems: 3,248 were seen
    for steps in (_STEPS, replace(_STEPS, longest=_SHORTER)):
        here, along, before, length, least = start, None, None, steps.first, np.inf
        # mu rises where the curve bends: seen were factors of 50 before it fell to the end.
        while here.mu <= min(10 * _FIRST, _RISE * least):
            if solved >= budget:
                return
            if along is None:
                along, solved = here.tangent, solved + 1
            tangent = towards(here, along, before)
            left = budget - solved
            found, more, length = stepped(here, tangent, length, steps.shortest, left, _reached, *_CORRECTIONS)
            solved += more
            if found is None:
                return
            yield found.here.at, solved
            here, along, before = SmoothedSystem(q, found.here.at), found.along, tangent
            length = steps.after(length, found.corrections)
            least = min(least, here.mu)


def _reached(here: SmoothedSystem) -> bool:
    return bool(here.largest < _NEAR * here.mu)


class SmoothedSystem:
    """Smoothed equations at one point: residuals, and Newton steps."""

    @np.errstate(over="ignore")  # a point far off has an infinite merit
    def __init__(self, q: EquilibriumSystem, at: CurvePoint, units: Units | None = None) -> None:
        self.q, self.at, self.mu, self.power = q, at, float(np.exp(at.log_mu)), q.power
        level, share, whole = q.levels(at.log_price, q.alpha)
        true = np.expm1(np.clip(self.power * (at.log_level[q.user] - level), -50, 60))
        self.total = np.exp(at.log_level)
        if units is None:
            # A price in what makes it the largest part that it has in anybody's cost, in levels: then mu is what the
            # certificate will find. With the average part in its users' costs that was 2 to 20 times mu.
            parts = np.full(q.row.shape, 1e-300)
            np.maximum.at(parts, q.server, share / whole[:, None])
            units = self.total, at.log_price - np.where(q.row, np.log(parts), 0.0) / q.alpha
        self.units, self.unit = units, units[0][q.user]
        self.residual_pairs, self.rate_pairs, self.to_part, to_slack = _smoothed(
            at.tasks / self.unit, true / self.power, self.mu
        )
        self.weight = self.unit * (to_slack / self.to_part) * (1 + true)
        price = np.where(q.row, np.exp(self.power * (at.log_price - units[1])), 1.0)
        found = _smoothed(np.where(q.row, 1 - q.used(at.tasks), 0.0), price, self.mu)
        self.residual_rows, self.rate_rows = np.where(q.row, found[:2], 0.0)
        self.to_idle = np.where(q.row, found[2], 1.0)
        self.own = np.where(q.row, self.power * price * found[3] / found[2], 1.0)
        self.gap = q.sums(at.tasks) - self.total
        wrong = np.concatenate([self.residual_pairs, self.residual_rows.ravel(), self.gap / self.total])
        self.merit, self.largest = float(np.linalg.norm(wrong)), float(np.abs(wrong).max())

    def newton(self, there: SmoothedSystem) -> Step:
        """Newton step to the curve from `there`, at constant mu, with the Jacobian here."""
        return (*self._solve(there.residual_pairs, there.residual_rows, there.gap), 0.0)

    @cached_property
    def tangent(self) -> Step:
        """Tangent of the curve: derivatives by log mu."""
        return (*self._solve(self.rate_pairs, self.rate_rows, np.zeros(len(self.total))), 1.0)

    def moved(self, step: Step, part: float) -> SmoothedSystem:
        """Equations after a part of a step, in the same units."""
        return SmoothedSystem(self.q, self.at.moved(step, part), self.units)

    def solved(self, there: SmoothedSystem) -> tuple[Step, Step]:
        """Newton step from `there`, and the tangent."""
        return self.newton(there), self.tangent

    def part(self, step: Step) -> float:
        """Largest part of a step that changes no price, in the power of slacks, by more than e^2; 0 where mu jumps."""
        return min(1.0, 2 / max(float(np.abs(step[0]).max()) * self.power, 1e-300)) if abs(step[-1]) <= 1.5 else 0.0

    def product(self, one: Step, other: Step) -> float:
        """Inner product of steps: log prices in the power of slacks, tasks in the user's own."""
        parts = float((one[2] * other[2] / self.total[self.q.user] ** 2).sum())
        scale = min(1.0, 10.0 / self.q.row.sum())
        return float(scale * (self.power * (one[0] * other[0]).sum() + parts) + one[3] * other[3])

    def _solve(self, pairs: Array, rows: Array, gap: Array) -> tuple[Array, Array, Array]:
        """Newton step for residuals of pairs, rows and users."""
        q = self.q
        fixed = -self.unit * pairs / self.to_part
        level = (gap + q.sums(fixed)) / (self.total + q.sums(self.weight))
        rhs = np.where(q.row, q.used(fixed - self.weight * level[q.user]) - rows / self.to_idle, 0.0)
        sharp = 1e-7 * max(float(np.abs(rhs).max()), 1e-300)
        prices, of_users, _ = self._factored.solve(rhs, np.zeros(len(level)), 0.0, sharp)
        d_level = level - of_users
        paid = self._factored.pairs.cost(prices)
        return prices / self._price, d_level, fixed - self.weight * (d_level[q.user] + paid)

    @cached_property
    def _price(self) -> Array:
        """v^alpha relative to the server's dearest resource, (servers, resources): unit of price changes."""
        log_price = np.where(self.q.row, self.q.alpha * self.at.log_price, -np.inf)
        top = log_price.max(axis=1, initial=-1e300, keepdims=True)
        return np.asarray(np.exp(np.maximum(log_price - top, -600.0)))

    @cached_property
    def _factored(self) -> Equations:
        """Factored linear system of prices."""
        q, price = self.q, self._price
        pairs = q.pairs.with_value(np.maximum(q.pairs.cost(price), 1e-280))
        idle = np.where(q.row, self.own / price, np.inf)
        return Equations(pairs, self.weight, idle, self.total, np.zeros(len(self.total)))


def _smoothed(one: Array, other: Array, mu: float) -> tuple[Array, Array, Array, Array]:
    """Half of `a + b - root`, `root = sqrt((a - b)^2 + 4 mu)`, and its derivatives by log mu, a and b.

    Without a subtraction, where there is one to avoid.
    """
    more, add = one - other, one + other
    root = np.sqrt(more * more + 4 * mu)
    half = np.where(add > 0, 2 * (one * other - mu) / (np.abs(add) + root), (add - root) / 2)
    small, large = 2 * mu / (root * (root + np.abs(more))), (1 + np.abs(more) / root) / 2
    return half, -mu / root, np.where(more > 0, small, large), np.where(more < 0, small, large)


def start_of_curve(q: EquilibriumSystem) -> Reached[SmoothedSystem]:
    """Point of the curve at the first mu, from equal prices."""
    tasks = q.begin(_FIRST)
    log_level = np.log(q.sums(tasks))
    best = np.maximum.reduceat(q.log_gain - np.log(q.use.sum(axis=1)) / q.alpha, q.start[:-1])
    prices = np.where(q.row, np.median(best - log_level), 0.0)
    return damped_newton(
        SmoothedSystem(q, CurvePoint(prices, log_level, tasks, float(np.log(_FIRST)))),
        _reached,
        lambda here: here.newton(here),
        lambda here, step, t: here.moved(step, t),
        lambda here: here.merit,
        39,
        0.5,
        1e-3,
        lambda step: min(1.0, 2 / max(float(np.abs(step[0]).max()) * q.power, 1e-300)),
    )


#: Temperatures at which the homotopy's points are offered.
_ENDS = (1e-9, 1e-11)
#: Systems until one is offered, and twice as many until the next: near its end thousands of users may jam it, too.
_PATIENCE = 300
#: Up to so many prices the homotopy is faster than what follows; of more than those the smoothed path is not tried.
_FEW, _MOST = 64, 500
#: Above this alpha prices in money are further apart than doubles resolve, and levels come first; above that one many
#: users jam the interior point.
_STEEP, _JAMMED = 64.0, 2.0
#: Most rounds of responses where task counts bind.
_ROUNDS = 511
#: Most pairs of users and servers of the interior point in levels, whose algebra is dense.
_LEVELS = 3_000


def solutions(problem: Problem, tol: float, warm: object = None) -> Iterator[Solution]:
    """Candidate equilibria for alpha in (0, infinity), to be certified one after the other.

    Where many users meet few types of servers and alpha is large the interior point is jammed by users who change over
    one by one, and the homotopy, whose unknowns are the few prices, is first.
    """
    criterion, polytope = problem.criterion, problem.polytope
    game = criterion.scope == "game"
    if game and criterion.alpha == 1:
        yield from _program(problem, tol)
    method = EquilibriumSystem.of(polytope, criterion)
    prices = int(method.row.sum())
    many = len(method.weight) >= max(500, 5 * prices)
    few, near = game and not many and prices <= _FEW, method.positive and not len(polytope.limited)
    steep = game and not near and criterion.alpha > (_JAMMED if many else _STEEP)
    small = problem.cluster.shape[0] * problem.cluster.shape[1] <= _LEVELS and (few or steep)

    def in_money() -> Iterator[Solution]:
        # Prices that are decades from where they belong take long, and where they are few the homotopy does not.
        patience = 5 if few and criterion.alpha > 8 and not len(polytope.limited) else np.inf
        for found in welfare.solutions(problem, tol, warm, patience) if game else ():
            yield replace(found, engine="equilibrium")

    if not steep:
        yield from in_money()
    if many or few:
        yield from _homotopy(method, tol)
    if small:
        yield from in_levels(problem, tol, "equilibrium")
    if steep:
        yield from in_money()
    if game and len(polytope.limited):  # where they bind responses come to an end in a tenth of the homotopy's time
        for found in played.solutions(problem, tol, _ROUNDS):
            yield replace(found, engine="equilibrium")
    # The smoothed path often has no beginning at small alpha, knows no limits, and of more prices takes minutes.
    smooth = not (many or criterion.alpha < 1 or len(polytope.limited) or prices > _MOST)
    if not (many or few) and (prices <= _FEW or not smooth):
        yield from _homotopy(method, tol)
    if smooth:
        yield from _smoothed_path(method, tol)


def _program(problem: Problem, tol: float) -> Iterator[Solution]:
    """Equilibria at alpha = 1 as optima of one convex program (PF section 4), in which shares cancel."""
    criterion = problem.criterion
    rule = replace(criterion, share=np.ones(len(criterion.weight)), scope="servers")
    for found in welfare.solutions(Problem(problem.cluster, rule), tol):
        yield replace(found, engine="equilibrium", warm=None)


@suppress_fp_warnings
def _homotopy(method: EquilibriumSystem, tol: float) -> Iterator[Solution]:
    """Candidates from the entropy homotopy: points near its end, and the one at which it stops."""
    begun, offered, place, patience = clock.now(), np.inf, None, _PATIENCE
    for place in entropy_homotopy.follow(method, _ENDS[-1]):
        jammed = place.steps >= patience
        if jammed or any(place.tau <= end * (1 + 1e-6) < offered for end in _ENDS):
            offered, patience = place.tau, patience * (1 + jammed)
            yield _solution(method, place, begun, tol)
    if place is not None and place.tau < offered:
        yield _solution(method, place, begun, tol)


def _solution(method: EquilibriumSystem, place: entropy_homotopy.Place, begun: float, tol: float) -> Solution:
    here, seconds = place.here, clock.now() - begun
    return solution(method, here.tasks, here.price, "entropy homotopy", place.steps, seconds, tol)


@suppress_fp_warnings
def _smoothed_path(method: EquilibriumSystem, tol: float) -> Iterator[Solution]:
    """Candidates from the smoothed path, each nearer to its end than the one before.

    Last what best responses make of its end: where costs differ by less than tasks tell, each server knows its own.
    """
    begun, near, tasks, steps = clock.now(), 3e-8, None, 0
    for at, steps in follow(method):
        tasks = np.maximum(at.tasks, 0.0)
        if (error := method.exploitability(tasks, at.log_price)) <= near:
            near = 0.1 * error
            yield solution(method, tasks, at.log_price, "smoothed path", steps, clock.now() - begun, tol)
        if error <= 1e-12:
            break
    if tasks is not None and near < 3e-8:
        sweeps = Sweeps(method)
        state = sweeps.start(tasks)
        for _ in range(320):
            if sweeps.gauss_seidel(state) < 3e-4 * tol:
                break
        yield sweeps.solution(state, "best responses", steps, clock.now() - begun, tol)
