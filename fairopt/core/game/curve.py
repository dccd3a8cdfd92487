r"""Curve of equilibria through alpha = 1, by continuation in tasks, prices and log alpha: crossings, indices, jumps.

.. math:: \{(x, \lambda, \alpha): x \text{ is an equilibrium of alphaPF-VDS with prices } \lambda\}

has, for almost all data, a single component through the unique equilibrium at alpha = 1: a curve that is smooth except
where pairs, rows or limits enter or leave the active set. The curve may turn back in alpha (folds); an alpha between
two folds has several equilibria, whose indices alternate along the curve. The first crossing of an alpha is the
equilibrium at that alpha that the curve meets first; as alpha passes a fold, the first crossing jumps.

The curve starts at an equilibrium near alpha = 1 with a regular active set (`curve_start`), on perturbed data.

On one active set the curve is followed by pseudo-arclength continuation. At a change of the active set the direction of
the curve is that in which the entering variable increases. A pair, row or limit leaves the active set where its tasks
or its price become zero, and enters where its slack becomes zero.

Source: Keller, "Numerical solution of bifurcation and nonlinear eigenvalue problems" (1977); Allgower and Georg,
"Numerical Continuation Methods" (1990), chapters 6 and 12.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...base import clock
from ...base.errors import SolverError
from ...certificates.backward import backward_error
from ...model._arrays import Array
from ...model.problem import Problem
from .. import accuracy
from ..engines.native import everybody_served
from ..factors import LOG_RANGE
from ..identification import identified
from .curve_start import beginning
from .curve_system import OPTIONS, Active, CurveOptions, Game, Place, Values, gauge
from .index import Factors

#: Reasons why the curve was not followed to the end: step lengths, singular Jacobian, size, start, and limits.
STUCK, SINGULAR = "no step along the curve is short enough", "the curve is not regular: exact ties"
_LARGE = "the cluster has more pairs (user, server) than CurveOptions.most_pairs"
_NO_START, _LATE = "no regular equilibrium was found near alpha = 1", "the time limit was reached"
_SPENT = "the curve takes more steps than allowed"
#: Shortest step (`_SHORTEST`), and the slack below which Newton's method replaces bisection (`_NEWTON_SLACK`).
_SHORTEST, _NEWTON_SLACK = accuracy.NEGLIGIBLE, 1e-3
#: Factors of all step lengths in the first run, and in a second run if the first fails (`_STEP_FACTORS`); and length
#: of the first step of a run (`_FIRST_STEP`).
_STEP_FACTORS, _FIRST_STEP = (1.0, 0.3), 0.05
#: A step longer than `_CLEARS_FOLD` that has passed a fold is repeated at `_TOWARDS_FOLD` times its length.
_CLEARS_FOLD, _TOWARDS_FOLD = 1e-3, 0.3
#: Factors of the step length after at most three corrections (`_FASTER`), after four (`_FAST`), and after more
#: (`_SLOWER`); and largest number of attempts of a step (`_ATTEMPTS`).
_FASTER, _FAST, _SLOWER, _ATTEMPTS = 2.0, 1.4, 0.7, 24
#: Residual above which Newton's method is given up as divergent (`_DIVERGED`), and residual below which an increase of
#: the residual is accepted (`_MAY_RISE`).
_DIVERGED, _MAY_RISE = 1e3, accuracy.VISIBLE
#: Largest residual of points of the curve at alpha up to 10. At larger alpha the tolerance grows in proportion to
#: alpha, as rounding errors of slacks do.
_RESIDUAL = accuracy.CONVERGED
#: A step has passed an event if the distance from it is below `-_PASSED`, and a target if log alpha is past the target
#: by more than `_PASSED_TARGET`; `_BISECTIONS` is the largest number of bisections.
_PASSED, _PASSED_TARGET, _BISECTIONS = accuracy.REFINED, accuracy.NEWTON_ROUNDING, 60
#: Slope up to which alpha counts as constant along the tangent (`_TURNING`), and difference of log alphas that counts
#: as zero (`_SAME_LOG_ALPHA`).
_TURNING, _SAME_LOG_ALPHA = accuracy.NEGLIGIBLE, accuracy.ACCURATE


@dataclass
class Run:
    """State of a run along the curve: its point, step control, and the crossings and jumps found."""

    g: Game
    at: Place
    targets: Array  # sorted log alphas of the requested crossings
    up: bool  # True if alpha increases from 1
    options: CurveOptions
    shorter: float  # factor of all step lengths
    crossings: list[tuple[Place, int]] = field(default_factory=list)  # points and their indices
    jumps: list[tuple[float, Array, Array]] = field(default_factory=list)  # log alpha, tasks before and after
    steps: int = 0
    length: float = 0.0
    _event: int = -1  # the condition that has just entered or left the active set; -1 for none
    _tangent: Array = field(default_factory=lambda: np.zeros(0))  # the last tangent, of all variables and log alpha
    _orientation: int = 0  # sign of the determinant on this active set, bordered by the tangent; 0 if unknown
    _furthest: float = 0.0  # log alpha at the largest distance from the start so far
    _fold: float = np.nan  # log alpha of the last fold, until the curve has returned to it
    _fold_tasks: Array = field(default_factory=lambda: np.zeros(0))  # (users,), tasks at that fold
    _previous: tuple[Place, Array] | None = None  # previous point and tangent, if alpha advanced there

    def __post_init__(self) -> None:
        self.length, self._tangent = _FIRST_STEP * self.shorter, np.zeros(len(self.at.on) + 1)
        self._tangent[-1], self._furthest = 1.0 if self.up else -1.0, self.at.theta

    def to_the_end(self, deadline: float, bar: Any = None) -> str:
        """Take steps to the last target, up to a largest number, until the CPU time of the process exceeds `deadline`.

        Returns "", or the reason why the target was not attained.
        """
        end = float(self.targets[-1 if self.up else 0])
        most, reason = int(self.options.steps_per_pair * (len(self.g.user) + 10) * (1 + abs(end))), None
        while reason is None:
            reason = self.step()
            if reason is None and (self.steps >= most or clock.cpu() > deadline):
                reason = _SPENT if self.steps >= most else _LATE
            if bar is not None:
                bar.update(round(bar.total * self.at.theta / end) - bar.n)
        return reason

    def step(self) -> str | None:
        """Take one predictor-corrector step; return None, or the reason why the run ends ("" at the last target).

        A step follows the tangent, which is oriented along the curve, to the next event. If the tangent shows that the
        previous step has passed a fold, the run returns to the point before it instead, with a shorter length.
        """
        self.steps += 1
        g, at, forward = self.g, self.at, 1.0 if self.up else -1.0
        gauge(g, at)
        unknowns, v = Active(g, at), Values(g, at)
        # The equilibrium at alpha = 1 is unique: a curve far on the other side of alpha = 1 has passed it once more.
        if not v.valid or forward * at.theta < -np.abs(self.targets).max():
            return SINGULAR
        scale, same_set = unknowns.weights(v), self._event < 0
        t = self._oriented_tangent(unknowns, v, scale)
        if t is None:
            return SINGULAR
        rises = bool(forward * t[-1] > _TURNING)
        if self._previous is not None and not rises and same_set and self.length > _CLEARS_FOLD:
            # A fold lies between this point and the previous point: return, and approach the fold by a shorter step.
            (self.at, self._tangent), self._previous = self._previous, None
            self.length *= _TOWARDS_FOLD
            return None
        self._track_folds(v, rises, forward)
        target = self._next_target(float(t[-1]))
        self._previous = (at.copied(), self._tangent) if rises and same_set else None
        self._tangent = np.zeros(unknowns.whole + 1)
        self._tangent[np.append(unknowns.members, -1)] = scale * t
        event, corrections, length = advanced(unknowns, at, v, t, scale, self.length, target)
        if corrections < 0:
            return STUCK
        factor = _FASTER if corrections <= 3 else _FAST if corrections <= 4 else _SLOWER
        # A step that ends at an event may be short: the next step then depends on the length that was allowed.
        tried = length if event < 0 else self.length
        self.length, self._event = min(tried * factor, self.shorter * self.options.longest), -1
        return self._change_active_set(event, target)

    def _oriented_tangent(self, unknowns: Active, v: Values, scale: Array) -> Array | None:
        """Unit `tangent` in the direction in which the curve is followed; None if it is not regular here.

        After an event the entering variable must increase, which fixes the orientation. On one active set the sign of
        the determinant fixes it, which is independent of the border, also where the tangent turns abruptly.
        """
        entered = self._event >= 0
        border = unknowns.gradient(v, self._event) if entered else self._tangent[np.append(unknowns.members, -1)]
        factors = Factors(unknowns.bordered(v, border))
        t = tangent(factors, scale)
        if t is None:
            return None
        if entered or not self._orientation:
            self._orientation = factors.sign
        return t if factors.sign == self._orientation else -t

    def _change_active_set(self, event: int, target: float) -> str | None:
        """Change the active set at an `event` (-1: none), or record an attained `target`; return as `step` does."""
        if event == len(self.at.on):
            self.at.theta = target
            if (self.targets == target).any():
                self._record()
            if target == self.targets[-1 if self.up else 0]:
                return ""
        elif event >= 0:
            self.at.changed(event)
            self._event, self._previous = event, None
        return None

    def _next_target(self, rise: float) -> float:
        """Log alpha that the step must not pass: of the next target or of the last fold; NaN without one."""
        goals, theta = np.append(self.targets, self._fold), self.at.theta
        ahead = goals[np.sign(rise) * (abs(rise) > _TURNING) * (goals - theta) > _SAME_LOG_ALPHA]
        return float(ahead[np.abs(ahead - theta).argmin()]) if len(ahead) else np.nan

    def _track_folds(self, v: Values, rises: bool, forward: float) -> None:
        """Record a fold where the curve turns back, and a jump where it returns to that alpha with other tasks."""
        theta, inside = self.at.theta, self._fold == self._fold
        if not rises and not inside and forward * (theta - self._furthest) > -_SAME_LOG_ALPHA:
            self._fold_tasks, self._fold = v.x, theta
        elif rises and inside and forward * (theta - self._fold) >= -_SAME_LOG_ALPHA:
            if np.abs(np.log(v.x / self._fold_tasks)).max() > accuracy.VISIBLE:
                self.jumps.append((self._fold, self._fold_tasks, v.x))
            self._fold = np.nan
        self._furthest = forward * max(forward * self._furthest, forward * theta)

    def _record(self) -> None:
        """Record a crossing, and its index."""
        v, unknowns = Values(self.g, self.at), Active(self.g, self.at)
        border = unknowns.gradient(v, unknowns.whole)
        self.crossings.append((self.at.copied(), Factors(unknowns.bordered(v, border)).sign))


def tangent(factors: Factors, scale: Array) -> Array | None:
    r"""Unit tangent t of the curve, (unknowns + 1,), in unknowns and log alpha; None if singular or not finite.

    .. math:: J t = 0, \qquad b \cdot t > 0, \qquad \sum_k scale_k t_k^2 = 1, \quad b \text{ the last row of the matrix}
    """
    if not factors.regular:
        return None
    t = factors.solved(np.eye(1, len(scale), len(scale) - 1)[0])
    length = float(np.sqrt((scale * t * t).sum()))
    return t / length if 0 < length < np.inf else None


def corrected(
    unknowns: Active, there: Place, across: Array, event: int, target: float, aim: float
) -> tuple[int, Values | None]:
    """Correct `there`, in place, to a residual `aim`, by Newton's method.

    Corrections are orthogonal to `across` (unknowns + 1,), or, if `event` is not -1, reduce the distance from it to
    zero; the distance from the last event is the difference of log alpha and `target`. Returns the number of
    corrections and the equations at the result; -1 and None for a failure, also after `CORRECTIONS` evaluations.
    """
    before = np.inf
    for corrections in range(accuracy.CORRECTIONS):
        v = Values(unknowns.g, there)
        if not v.valid:
            break
        border, misfit = across, 0.0
        if event >= 0:
            border = unknowns.gradient(v, event)
            misfit = there.theta - target if event == unknowns.whole else unknowns.distances(v, there)[event]
        rhs = -np.append(v.slacks[unknowns.members], misfit)
        size = float(np.abs(rhs).max())
        if size <= aim:
            return corrections, v
        if not size < _DIVERGED or (corrections > 2 and size > before and size > _MAY_RISE):
            break
        factors = Factors(unknowns.bordered(v, border))
        step = factors.solved(rhs) if factors.regular else rhs * np.nan
        if not np.isfinite(step).all():
            break
        unknowns.moved(there, step, 1.0)
        before = size
    return -1, None


def _first_event(
    unknowns: Active, start: Place, at: Place, v: Values, end: int, target: float, first: Array
) -> tuple[int, float, Place]:
    """First event that a step has passed (-1: none), the fraction of the step at which it occurs, and the point there.

    The step leads from `start`, where distances from events are `first`, to `at`, where the event `end` occurs (-1: no
    event).
    """
    event, part, now = -1, 1.0, unknowns.distances(v, at)
    finite = np.isfinite(first)
    if 0 <= end < len(first):
        finite[end] = False
    passed = np.flatnonzero(finite & (now < -_PASSED))
    if len(passed):
        parts = first[passed] / (first[passed] - now[passed])
        event, part = int(passed[parts.argmin()]), float(parts.min())
        if event < at.pairs and not at.on[event]:
            return event, *_entry_of_pair(unknowns, start, at, event)
    before, after = start.theta - target, at.theta - target
    if event == -1 and end != len(first) and before * after < 0 and abs(after) > _PASSED_TARGET:
        event, part = len(first), abs(before) / abs(after - before)
    return event, part, _between(start, at, 1 - part)


def _between(start: Place, at: Place, left: float) -> Place:
    """Point on the chord of a step of which the fraction `left` remains."""
    there = at.copied()
    there.amount += left * (start.amount - at.amount)
    there.level += left * (start.level - at.level)
    there.theta += left * (start.theta - at.theta)
    return there


def _entry_of_pair(unknowns: Active, start: Place, at: Place, pair: int) -> tuple[float, Place]:
    """Fraction of a step at which a pair enters, and the point there, by bisection.

    If all prices in the pair's cost tend to zero its slack diverges logarithmically: the remaining fraction may have
    any magnitude, so that its logarithm is bisected.
    """
    low, high = -LOG_RANGE, 0.0
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        there = _between(start, at, float(np.exp(middle)))
        slack = float(Values(unknowns.g, there).slack[pair])
        if abs(slack) < _NEWTON_SLACK:
            break
        low, high = (low, middle) if slack > 0 else (middle, high)
    return float(-np.expm1(middle)), there


def advanced(
    unknowns: Active, at: Place, v: Values, t: Array, scale: Array, length: float, target: float
) -> tuple[int, int, float]:
    """Take one step along the unit tangent t, in place; return the event at its end, corrections, and length.

    A step of at most `length` ends at the first event: a condition enters or leaves the active set, or log alpha
    attains `target` (NaN: no target). If the chord passes an event that the tangent did not predict, or a correction
    fails, the step is shortened. The event is -1 if there is none; the number of corrections is -1 if no step of at
    least `_SHORTEST` succeeds.
    """
    aim, start = _RESIDUAL * max(1.0, float(np.exp(at.theta)) / 10), at.copied()
    rate, end, h = unknowns.rates(v, t), -1, length
    first = np.maximum(unknowns.distances(v, at), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        event_length = np.where(rate < 0, first / -rate, np.inf)
    if event_length.min(initial=np.inf) < h:
        end, h = int(event_length.argmin()), float(event_length.min())
    distance, slope = target - at.theta, float(t[-1])
    if distance * slope > 0 and abs(distance) < abs(slope) * h:
        end, h = unknowns.whole, distance / slope
    there = start.copied()
    unknowns.moved(there, t, h)
    for _ in range(_ATTEMPTS):
        corrections, now = corrected(unknowns, there, scale * t, end, target, aim)
        rise, pairs = there.theta - start.theta, unknowns.pairs
        moved = np.append((there.z - start.z)[pairs], rise)
        forward = moved @ np.append((scale * t)[: len(pairs)], t[-1])
        if end >= 0 and (abs(rise) > 3 * length or forward < -_SHORTEST):
            now = None  # Newton's method has converged to another point of the same event
        if now is None:
            h, end, there = accuracy.SHORTER * h, -1, start.copied()
            if h < _SHORTEST:
                break
            unknowns.moved(there, t, h)
            continue
        event, part, chord = _first_event(unknowns, start, there, now, end, target, first)
        if event == -1:
            at.__dict__.update(there.__dict__)
            return end, corrections, h
        end, h, there = event, h * part, chord
    return -1, -1, h


#: A crossing is corrected to the residual `_EXACT` on the unperturbed data. If its backward error then exceeds
#: `_REFINED_ERROR`, it is refined on its active set, since some pairs may have tasks only due to the perturbation.
_REFINED_ERROR, _EXACT = accuracy.ACCURATE, accuracy.SOLVE_ROUNDING


@dataclass(frozen=True)
class Crossing:
    """Equilibrium at which the curve crosses a requested alpha.

    Attributes
    ----------
    index : +1 or -1; indices of all equilibria at an alpha sum to +1, and an equilibrium of index -1 is unstable
    certificate : backward error of the equilibrium (docs/certificates.md)
    """

    alpha: float
    index: int
    certificate: float
    tasks: Array = field(repr=False)  # (users, servers)
    log_rows: Array = field(repr=False)  # (servers, resources), log prices of whole capacities, -inf for a zero price

    @property
    def user_tasks(self) -> Array:
        """Tasks of users, (users,)."""
        return np.asarray(self.tasks.sum(axis=1))


@dataclass(frozen=True)
class Jump:
    """Jump of the first crossing: the curve turns back at `alpha`, and crosses that alpha again at other tasks."""

    alpha: float
    before: Array  # (users,), tasks at the end nearer to alpha = 1, which are returned at the jump itself
    after: Array


@dataclass(frozen=True)
class Curve:
    """Section of the curve that begins at alpha = 1.

    Attributes
    ----------
    crossings : equilibria at the requested alphas, in their order along the curve
    jumps : jumps of the first crossing, in their order along the curve
    arrived : True if the last requested alpha was attained
    reason : why the last alpha was not attained, "" if it was attained
    steps : number of steps along the curve
    alpha : alpha at the end of the section
    """

    crossings: tuple[Crossing, ...]
    jumps: tuple[Jump, ...]
    arrived: bool
    reason: str
    steps: int
    alpha: float

    def at(self, alpha: float) -> tuple[Crossing, ...]:
        """All crossings of a requested alpha, in their order along the curve."""
        return tuple(one for one in self.crossings if np.isclose(one.alpha, alpha, rtol=accuracy.CONVERGED))


def follow(
    problem: Problem,
    alphas: Sequence[float],
    options: CurveOptions = OPTIONS,
    *,
    seconds: float = np.inf,
    bar: Any = None,
) -> Curve:
    """Follow the curve of a game (`problem`, whose alpha is not read) from alpha = 1 to the last of the `alphas`.

    If all limits can be attained together, the result is constant, with zero prices. A run that ends early, unless by
    the time limit, is repeated once with shorter steps. `reason` of the result says why the curve ends before the last
    alpha, or does not begin.

    Parameters
    ----------
    alphas : requested values, all greater than 1 or all less than 1, finite and positive
    seconds : limit of CPU time, tested between steps
    bar : progress bar, updated to the part of its `total` that is the fraction of the last log alpha attained
    """
    up, end = max(alphas) > 1, max(alphas, key=lambda alpha: abs(np.log(alpha)))
    all_served = everybody_served(problem.polytope)
    if all_served is not None and len(all_served):
        # All limits are attained together: the equilibrium has zero prices at every alpha.
        tasks, zero_prices = problem.polytope.allocation(all_served), np.full(problem.cluster.capacity.shape, -np.inf)
        crossings = tuple(Crossing(one, 1, 0.0, tasks, zero_prices) for one in sorted(alphas, reverse=not up))
        return Curve(crossings, (), True, "", 0, end)
    if len(problem.polytope.gamma) > options.most_pairs:
        return Curve((), (), False, _LARGE, 0, 1.0)
    first_alpha = min(options.near, max(end, 1 / end))
    start = beginning(problem, first_alpha if up else 1 / first_alpha)
    if start is None:
        return Curve((), (), False, _NO_START, 0, first_alpha if up else 1 / first_alpha)
    targets, deadline = np.log(np.array(sorted(alphas))), clock.cpu() + seconds
    for shorter in _STEP_FACTORS:
        run = Run(start[0], start[1].copied(), targets, up, options, shorter)
        reason = run.to_the_end(deadline, bar)
        found = _curve(problem, run, sorted(alphas), reason)
        if reason in ("", _LATE):
            break
    return found


def _curve(problem: Problem, run: Run, alphas: Sequence[float], reason: str) -> Curve:
    """Result of a run, on the unperturbed data."""
    crossings, exact = [], Game.of(problem)
    for at, index in run.crossings:
        alpha = alphas[int(np.abs(run.targets - at.theta).argmin())]
        error, tasks, log_rows = _refined(problem, alpha, exact, at)
        crossings.append(Crossing(alpha, index, error, tasks, log_rows))
    whole, jumps = np.zeros((2, problem.cluster.shape[0])), []
    for theta, *ends in run.jumps:
        whole[:, problem.polytope.users] = np.array(ends) * run.g.largest
        jumps.append(Jump(float(np.exp(theta)), *whole.copy()))
    return Curve(tuple(crossings), tuple(jumps), not reason, reason, run.steps, float(np.exp(run.at.theta)))


def _refined(problem: Problem, alpha: float, g: Game, at: Place) -> tuple[float, Array, Array]:
    """Certificate, tasks (users, servers) and log prices of whole capacities (servers, resources) of a crossing.

    `g` has the unperturbed data.
    """
    polytope, rule, there = problem.polytope, replace(problem.criterion, alpha=alpha), at.copied()
    unknowns = Active(g, there)
    if corrected(unknowns, there, np.empty(0), unknowns.whole, at.theta, _EXACT)[1] is None:
        there = at

    def judged(z: Array, log_rows: Array) -> tuple[float, Array, Array]:
        tasks = polytope.allocation(polytope.inside(z))
        error = backward_error(polytope, rule, tasks, log_rows).error
        return error, tasks, polytope.by_server(log_rows, unused=-np.inf)

    found = judged(np.maximum(there.z, 0.0), there.log_prices(alpha))
    if found[0] > _REFINED_ERROR:
        with suppress(SolverError):
            active = identified(polytope, rule, found[1], there.log_prices(alpha), None)
            refined = judged(active.part * active.total[g.user] / polytope.gamma, active.prices[0].log_rows)
            found = min(found, refined, key=lambda one: one[0])
    return found
