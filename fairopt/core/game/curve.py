"""The curve of equilibria through alpha = 1, followed in tasks, prices and log alpha: crossings, indices, jumps.

    {(x, lambda, alpha): x is an equilibrium of alphaPF-VDS with prices lambda}

has, for almost all data, one component through the only equilibrium at alpha = 1: a curve, smooth but where pairs, rows
or limits enter or leave the active set. It may turn back in alpha (a fold); an alpha in a fold has several equilibria,
whose indices alternate along the curve. What `first` means: of all crossings of alpha the one that the curve comes to
first. Where it turns back, the first crossing jumps as alpha goes on.

It starts at the equilibrium near alpha = 1, as a regular active set. Splits of users over servers, and prices of rows
that are full together, may be undetermined, for all alpha where users share a bottleneck. Then the set is made regular:
along a direction in which nothing but the split changes something falls to zero and leaves. Whatever is not in the set
is made worse by a little, other for every pair and row, so that ties do not come back; the point is exactly an
equilibrium of the data that were changed.

On one active set it is smooth and followed by its length (Keller 1977). Where a pair, row or limit enters or leaves, it
turns in the direction in which that one grows (Allgower and Georg, chapter 12).
A member of the active set leaves where its tasks, price or excess fall to 0, another enters where its slack, what idles
or the room below its limit does.

Source: Keller, "Numerical solution of bifurcation and nonlinear eigenvalue problems" (1977); Allgower and Georg,
"Numerical Continuation Methods" (1990), chapters 6 and 12.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...base import clock
from ...base.errors import SolverError
from ...certificates.backward import backward_error
from ...model._arrays import Array, Index, Mask
from ...model.problem import Problem
from ..engines.native import everybody_served
from ..interior import solved
from ..settled import settled
from ..system import stacked
from . import engine
from .curve_system import OPTIONS, Active, CurveOptions, Game, Place, Values, gauge
from .index import Factors

#: Why a run ended; empty if it came to the last target.
STUCK, SINGULAR = "no step along the curve is short enough", "the curve is not regular: exact ties"
#: Log of the part of a step that is as good as nothing; a slack as near to 0 as Newton's method needs it.
_NOTHING, _NEAR = -700.0, 1e-3
#: A tangent whose part along log alpha is below this goes neither up nor down; values of log alpha that are the same.
_LEVEL, _SAME = 1e-9, 1e-11
#: Tasks that differ by more than this, in logarithms, are other ones.
_JUMP = 1e-6


@dataclass
class Run:
    """One run along the curve, to be gone on with: where it is, and what it has seen."""

    g: Game
    at: Place
    targets: Array  # sorted
    up: bool
    options: CurveOptions
    shorter: float
    crossings: list[tuple[Place, int]] = field(default_factory=list)  # with the index
    jumps: list[tuple[float, Array, Array]] = field(default_factory=list)  # log alpha, tasks before and after
    steps: int = 0
    length: float = 0.0
    _event: int = -1
    _way: Array = field(default_factory=lambda: np.zeros(0))  # the last tangent, of everybody and log alpha
    _sign: int = 0  # of the determinant on this active set, bordered by the tangent
    _reach: float = 0.0
    _fold: float = np.nan
    _before: Array = field(default_factory=lambda: np.zeros(0))
    _back: tuple[Place, Array] | None = None  # the point before, if alpha went on there

    def __post_init__(self) -> None:
        self.length, self._way = 0.05 * self.shorter, np.zeros(len(self.at.on) + 1)
        self._way[-1] = 1.0 if self.up else -1.0
        self._reach = self.at.theta

    def step(self) -> str | None:
        """One step; why it was the last one, if it was."""
        self.steps += 1
        g, at, forward = self.g, self.at, 1.0 if self.up else -1.0
        gauge(g, at)
        unknowns, v = Active(g, at), Values(g, at)
        # At alpha = 1 there is one equilibrium: far beyond it the curve has come back.
        if not v.sound or forward * at.theta < -np.abs(self.targets).max():
            return SINGULAR
        # What grows after an event fixes the orientation. On one active set the sign of the determinant does, which no
        # border has a say in: where two prices change places in the last digit of log alpha nothing else moves.
        border = self._way[np.append(unknowns.members, -1)]
        if self._event >= 0:
            border = unknowns.gradient(v, self._event)
        scale, factors = unknowns.weights(v), Factors(unknowns.bordered(v, border))
        t = tangent(factors, scale)
        if t is None:
            return SINGULAR
        if self._event >= 0 or not self._sign:
            self._sign = factors.sign
        elif factors.sign != self._sign:
            t = -t
        rises = bool(forward * t[-1] > _LEVEL)
        if self._back is not None and not rises and self._event < 0 and self.length > 1e-3:
            # A fold lies between here and the point before: nearer to it.
            (self.at, self._way), self._back, self.length = self._back, None, 0.3 * self.length
            return None
        self._met(v, rises, forward)
        target = self._target(float(t[-1]))
        self._back = (at.copied(), self._way) if rises and self._event < 0 else None
        self._way = np.zeros(unknowns.whole + 1)
        self._way[np.append(unknowns.members, -1)] = scale * t
        land, turns, done = advanced(unknowns, at, v, t, scale, self.length, target)
        if turns < 0:
            return STUCK
        grown = (done if land < 0 else self.length) * (2.0 if turns <= 3 else 1.4 if turns <= 4 else 0.7)
        self.length, self._event = min(grown, self.shorter * self.options.longest), -1
        return self._landed(land, target)

    def _landed(self, land: int, target: float) -> str | None:
        """A step ended where `land` changes, or at a target: is it the last one?"""
        if land == len(self.at.on):
            self.at.theta = target
            if (self.targets == target).any():
                self._record()
            if target == self.targets[-1 if self.up else 0]:
                return ""
        elif land >= 0:
            self.at.changed(land)
            self._event, self._back = land, None
        return None

    def _target(self, rise: float) -> float:
        """Log alpha that the step must not pass: the next one asked for, or that of the fold; NaN for none."""
        goals, theta = np.append(self.targets, self._fold), self.at.theta
        ahead = goals[np.sign(rise) * (abs(rise) > _LEVEL) * (goals - theta) > _SAME]
        return float(ahead[np.abs(ahead - theta).argmin()]) if len(ahead) else np.nan

    def _met(self, v: Values, rises: bool, forward: float) -> None:
        """True if the curve turns back here, or returns to a turning point with other tasks."""
        theta, inside = self.at.theta, self._fold == self._fold
        if not rises and not inside and forward * (theta - self._reach) > -_SAME:
            self._before, self._fold = v.x, theta
        elif rises and inside and forward * (theta - self._fold) >= -_SAME:
            if np.abs(np.log(v.x / self._before)).max() > _JUMP:
                self.jumps.append((self._fold, self._before, v.x))
            self._fold = np.nan
        self._reach = forward * max(forward * self._reach, forward * theta)

    def _record(self) -> None:
        """Write down a crossing, and its index."""
        v, unknowns = Values(self.g, self.at), Active(self.g, self.at)
        border = unknowns.gradient(v, unknowns.whole)
        self.crossings.append((self.at.copied(), Factors(unknowns.bordered(v, border)).sign))


def tangent(factors: Factors, scale: Array) -> Array | None:
    """The tangent of length 1 on the positive side of the border, (unknowns + 1,); None where there is none."""
    if not factors.regular:
        return None
    t = factors.solved(np.eye(1, len(scale), len(scale) - 1)[0])
    length = float(np.sqrt((scale * t * t).sum()))
    return t / length if 0 < length < np.inf else None


def corrected(
    unknowns: Active, there: Place, across: Array, c: int, target: float, aim: float
) -> tuple[int, Values | None]:
    """Newton's method from `there`, in place: to the plane across `across`, or to where c changes if that is not -1.

    Returns the number of corrections, -1 for a failure.
    """
    before = np.inf
    for turns in range(8):
        v = Values(unknowns.g, there)
        if not v.sound:
            break
        unit, off = across, 0.0
        if c >= 0:
            unit = unknowns.gradient(v, c)
            off = there.theta - target if c == unknowns.whole else unknowns.distances(v, there)[c]
        rhs = -np.append(v.outside[unknowns.members], off)
        size = float(np.abs(rhs).max())
        if size <= aim:
            return turns, v
        if not size < 1e3 or (turns > 2 and size > before and size > 1e-6):
            break
        factors = Factors(unknowns.bordered(v, unit))
        step = factors.solved(rhs) if factors.regular else rhs * np.nan
        if not np.isfinite(step).all():
            break
        unknowns.moved(there, step, 1.0)
        before = size
    return -1, None


def _passed(
    unknowns: Active, start: Place, at: Place, v: Values, land: int, target: float, first: Array
) -> tuple[int, float, Place]:
    """First event on a step besides `land` (-1: none), the part of the step at which it occurs, and the place there."""
    worst, part, now = -1, 1.0, unknowns.distances(v, at)
    known = np.isfinite(first)
    if 0 <= land < len(first):
        known[land] = False
    passed = np.flatnonzero(known & (now < -1e-10))
    if len(passed):
        parts = first[passed] / (first[passed] - now[passed])
        worst, part = int(passed[parts.argmin()]), float(parts.min())
        if worst < at.pairs and not at.on[worst]:
            return worst, *_entered(unknowns, start, at, worst)
    before, after = start.theta - target, at.theta - target
    if worst == -1 and land != len(first) and before * after < 0 and abs(after) > 1e-13:
        worst, part = len(first), abs(before) / abs(after - before)
    return worst, part, _between(start, at, 1 - part)


def _between(start: Place, at: Place, left: float) -> Place:
    """The place on the chord of a step of which this part is left."""
    there = at.copied()
    there.amount += left * (start.amount - at.amount)
    there.level += left * (start.level - at.level)
    there.theta += left * (start.theta - at.theta)
    return there


def _entered(unknowns: Active, start: Place, at: Place, pair: int) -> tuple[float, Place]:
    """The part of a step at which a pair enters, and the place there.

    Where all prices that it would pay go to 0 its slack is a logarithm, which falls without end: the part that is left
    may be of any magnitude, so that halves are those of its logarithm.
    """
    low, high = _NOTHING, 0.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        there = _between(start, at, float(np.exp(middle)))
        slack = float(Values(unknowns.g, there).slack[pair])
        if abs(slack) < _NEAR:
            break
        low, high = (low, middle) if slack > 0 else (middle, high)
    return float(-np.expm1(middle)), there


def advanced(
    unknowns: Active, at: Place, v: Values, t: Array, scale: Array, length: float, target: float
) -> tuple[int, int, float]:
    """One step of at most `length` along t, in place: what changes at its end, or -1; corrections; its length.

    Corrections are -1 where no step of at least 1e-9 succeeds. `target` may be NaN.
    """
    aim, start = 1e-12 * max(1.0, float(np.exp(at.theta)) / 10), at.copied()
    rate, land, h = unknowns.rates(v, t), -1, length
    first = np.maximum(unknowns.distances(v, at), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        reached = np.where(rate < 0, first / -rate, np.inf)
    if len(reached) and (c := int(reached.argmin())) >= 0 and reached[c] < h:
        land, h = c, float(reached[c])
    left, pace = target - at.theta, float(t[-1])
    if left * pace > 0 and abs(left) < abs(pace) * h:
        land, h = unknowns.whole, left / pace
    there = start.copied()
    unknowns.moved(there, t, h)
    for _ in range(24):
        turns, now = corrected(unknowns, there, scale * t, land, target, aim)
        rise, members = there.theta - start.theta, unknowns.pairs
        ahead = np.append((there.z - start.z)[members], rise) @ np.append((scale * t)[: len(members)], t[-1])
        if land >= 0 and (abs(rise) > 3 * length or ahead < -1e-9):
            now = None  # Newton's method has gone to another place where it changes
        if now is None:
            h, land, there = 0.4 * h, -1, start.copied()
            if h < 1e-9:
                break
            unknowns.moved(there, t, h)
            continue
        worst, part, chord = _passed(unknowns, start, there, now, land, target, first)
        if worst == -1:
            at.__dict__.update(there.__dict__)
            return land, turns, h
        land, h, there = worst, h * part, chord
    return -1, -1, h


#: The core looks again from another start above the error `_GOOD`, and the engine is asked above `_SOUND`.
_GOOD, _SOUND = 1e-9, 1e-8
#: Singular values below this part of the largest are ties, and rates below it are none.
_TIE = 1e-9
#: By how much what is outside the active set is worse than in the data, and the most that data may change.
_JITTER, _MOST = 1e-8, 1e-5
#: Splits and prices are determined in turn, at most so often.
_ROUNDS = 4


def beginning(problem: Problem, alpha: float) -> tuple[Game, Place] | None:
    """The game of a problem, whose alpha is not read, and the curve's place at an alpha near 1."""
    if not len(problem.polytope.users):
        return None
    g, polytope, rule = Game.of(problem), problem.polytope, replace(problem.criterion, alpha=alpha)
    near = next(_near(Problem(problem.cluster, rule)), None)
    if near is None:
        return None
    try:
        active = settled(polytope, rule, *near, None)
    except SolverError:
        return None
    on = np.concatenate([active.pairs, active.rows, active.limits])
    z = active.part * active.total[g.user] / polytope.gamma
    amount = np.concatenate([z, active.rows, np.zeros(len(g.limit))])
    level = np.where(active.rows, active.prices[0].log_rows, 0.0) / alpha
    at = Place(amount, on, level, np.zeros(len(g.host), np.bool_), float(np.log(alpha)), len(z))
    gauge(g, at)
    v, excess = Values(g, at), np.zeros(len(g.limit))
    np.minimum.at(excess, g.user[at.pair_on], v.slack[at.pair_on])
    at.xi[at.limit_on] = -excess[at.limit_on]
    return (g, at) if Values(g, at).sound and _regular(g, at) else None


def _near(problem: Problem) -> Iterator[tuple[Array, Array]]:
    """Tasks (users, servers) and log prices of whole capacities (rows,): of the core, else of the engine."""
    polytope, stack = problem.polytope, stacked([problem])
    found = solved(stack, _GOOD, 1e-12, 60)
    if found.error[0] <= _SOUND:
        yield stack.tasks(found.z)[0], found.log_rows[polytope.row_resource, polytope.row_server, 0]
    for other in engine.solutions(problem, _GOOD):
        if other.log_prices is not None:
            yield other.tasks, polytope.log_row_prices(other.log_prices)


def _regular(g: Game, at: Place) -> bool:
    """Make the active set regular and the rest worse by a little; False where that cannot be done."""
    for _ in range(_ROUNDS):
        for amounts in (_split, _price):
            taken = amounts(g, at, Values(g, at))
            gauge(g, at)
            if taken < 0 or not Values(g, at).sound:
                return False
        if taken == 0:
            break
    return _perturbed(g, at)


def _split(g: Game, at: Place, v: Values) -> int:
    """Move tasks between servers, every user's total and the use of priced rows held, until the split is determined."""
    users = len(g.limit)
    matrix = np.vstack([(np.arange(users)[:, None] == g.user) * g.size, g.use])
    value, fixed = np.append(np.zeros(users), v.idle), np.append(np.ones(users, np.bool_), at.row_on)
    taken = _pushed(matrix, at.z, at.pair_on, value, -1.0, fixed)
    at.row_on[:] = fixed[users:]
    return taken


def _price(g: Game, at: Place, v: Values) -> int:
    """Move prices, what active pairs pay held, until they are determined."""
    matrix, (p, r) = np.zeros((len(g.user), len(g.host))), np.nonzero(g.log_cost > -np.inf)
    matrix[p, g.at[p, r]] = v.felt[p, r]
    return _pushed(matrix, at.w, at.row_on, -np.expm1(-np.exp(at.theta) * v.slack), 1.0, at.pair_on)


def _pushed(matrix: Array, amount: Array, on: Mask, value: Array, sign: float, fixed: Mask) -> int:
    """Move `amount` along directions in which nothing that is `fixed` changes until none are left; how many it took.

    What falls to zero first is no longer `on`; a row of the matrix whose `value` falls to zero first, by `sign` times
    the product with the direction, is fixed from then on. -1 where nothing falls.
    """
    for taken in range(len(on) + len(fixed)):
        members = np.flatnonzero(on)
        along = _null(matrix[np.ix_(fixed, members)])
        if along is None:
            return taken
        change = sign * matrix[:, members] @ along
        rate = np.concatenate([along, np.where(fixed, 0.0, change)])
        end = np.concatenate([amount[members], np.maximum(value, 0.0)])
        falls = np.abs(rate) > _TIE
        far = np.where(falls, end / np.where(falls, np.abs(rate), 1.0), np.inf)
        k = int(far.argmin())
        if not np.isfinite(far[k]):
            return -1
        step = -np.sign(rate[k]) * far[k]
        value[~fixed] += step * change[~fixed]
        amount[members] = np.maximum(amount[members] + step * along, 0.0)
        if k < len(members):
            amount[members[k]], on[members[k]] = 0.0, False
        else:
            fixed[k - len(members)] = True
    return -1


def _null(matrix: Array) -> Array | None:
    """A direction of length 1 that the matrix (equations, unknowns) maps to zero."""
    if matrix.shape[1] == 0:
        return None
    _, values, right = np.linalg.svd(matrix, full_matrices=True)
    tied = len(values) < matrix.shape[1] or values[-1] < _TIE * values[0]
    return np.asarray(right[-1]) if tied else None


def _spread(k: Index) -> Array:
    """Numbers in (1, 2), other for every k; nor are differences alike, as ties are of two users on two servers."""
    return np.asarray(1 + (43758.5453123 * np.sin(12.9898 * (k + 1))) % 1)


def _perturbed(g: Game, at: Place) -> bool:
    """Move everything active off zero, and change the data so that the place is exactly an equilibrium."""
    pairs, v = len(g.user), Values(g, at)
    of_pairs, of_rows = (_JITTER * _spread(k) for k in (np.arange(pairs), pairs + np.arange(len(g.host))))
    of_users = _JITTER * _spread(np.arange(len(g.limit))) * at.limit_on
    # In parts of the user's tasks, but of the server where these are more than it can hold.
    at.z += of_pairs * np.minimum(v.x[g.user] / g.size, 1.0) * at.pair_on
    at.w += of_rows * (at.row_on & ~at.stands)
    v = Values(g, at)
    if not v.sound:
        return False
    g.jitter[:] = np.where(at.pair_on, -v.slack, np.maximum(-v.slack, 0.0) + of_pairs)
    g.room[:] = np.where(at.row_on, -v.idle, np.maximum(-v.idle, 0.0) + of_rows)
    worst = max(np.abs(g.jitter).max(), np.abs(g.room).max(), np.abs((v.x / g.limit - 1)[at.limit_on]).max(initial=0.0))
    at.xi += of_users
    g.limit[at.limit_on] = v.x[at.limit_on]
    g.jitter[:] -= of_users[g.user]
    return bool(worst <= _MOST)


#: Why the curve was not followed to the end.
_NO_START = "no regular equilibrium was found near alpha = 1"
_SPENT = "the curve takes more steps than allowed"
#: A crossing of which the error is above this is solved again: only the change of the data has given some pairs tasks.
_FINE = 1e-11
_LATE = "it takes too long"
_LARGE = "the cluster has more pairs (user, server) than CurveOptions.most_pairs"


@dataclass(frozen=True)
class Crossing:
    """An equilibrium where the curve has an alpha that was asked for.

    Attributes
    ----------
    index : +1 or -1; the sum over all equilibria at an alpha is +1, and one of index -1 is unstable
    certificate : the backward error (docs/certificates.md)
    """

    alpha: float
    index: int
    certificate: float
    tasks: Array = field(repr=False)  # (users, servers)
    log_rows: Array = field(repr=False)  # (servers, resources), log prices of whole capacities, -inf for none

    @property
    def user_tasks(self) -> Array:
        """(users,)."""
        return np.asarray(self.tasks.sum(axis=1))


@dataclass(frozen=True)
class Jump:
    """Jump of the first crossing: the curve turns back at `alpha`, and crosses it again elsewhere."""

    alpha: float
    before: Array  # (users,), tasks at the end nearer to alpha = 1, which is the answer at alpha itself
    after: Array


@dataclass(frozen=True)
class Curve:
    """A part of the curve, from alpha = 1 on.

    Attributes
    ----------
    crossings : in the order in which the curve has them
    arrived : did it come to the last alpha asked for?
    reason : why not
    alpha : where it ended
    """

    crossings: tuple[Crossing, ...]
    jumps: tuple[Jump, ...]
    arrived: bool
    reason: str
    steps: int
    alpha: float

    def at(self, alpha: float) -> tuple[Crossing, ...]:
        """All crossings of an alpha that was asked for, the first first."""
        return tuple(one for one in self.crossings if np.isclose(one.alpha, alpha, rtol=1e-12))


def follow(
    problem: Problem,
    alphas: Sequence[float],
    options: CurveOptions = OPTIONS,
    *,
    seconds: float = np.inf,
    bar: Any = None,
) -> Curve:
    """Follow the curve of a game (`problem`, whose alpha is not read) from alpha = 1 to the last of some alphas.

    Parameters
    ----------
    alphas : all above 1, or all below, finite and positive
    seconds : CPU time, looked at now and then
    bar : a progress bar, whose `n` becomes the part of the way in percent
    """
    up = max(alphas) > 1
    end = max(alphas) if up else min(alphas)
    served = everybody_served(problem.polytope)
    if served is not None and len(served):
        # Everybody has all tasks that it may have: nothing has a price, whatever alpha is.
        tasks, free = problem.polytope.allocation(served), np.full(problem.cluster.capacity.shape, -np.inf)
        crossings = tuple(Crossing(one, 1, 0.0, tasks, free) for one in sorted(alphas, reverse=not up))
        return Curve(crossings, (), True, "", 0, end)
    if len(problem.polytope.gamma) > options.most_pairs:
        return Curve((), (), False, _LARGE, 0, 1.0)
    near = min(options.near, max(end, 1 / end))
    begun = beginning(problem, near if up else 1 / near)
    if begun is None:
        return Curve((), (), False, _NO_START, 0, near if up else 1 / near)
    last = clock.cpu() + seconds
    for shorter in (1.0, 0.3):  # once more by shorter steps where a run fails
        targets = np.log(np.array(sorted(alphas)))
        run = Run(begun[0], begun[1].copied(), targets, up, options, shorter)
        most, reason = int(options.steps_per_pair * (len(begun[0].user) + 10) * (1 + abs(np.log(end)))), None
        while reason is None:
            reason = run.step()
            if reason is None and (run.steps >= most or clock.cpu() > last):
                reason = _SPENT if run.steps >= most else _LATE
            if bar is not None and (run.steps % 50 == 0 or reason is not None):
                bar.n = round(100 * run.at.theta / float(np.log(end)))
                bar.refresh()
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
    whole = np.zeros((2, problem.cluster.shape[0]))
    jumps = []
    for theta, *ends in run.jumps:
        whole[:, problem.polytope.users] = np.array(ends) * run.g.largest
        jumps.append(Jump(float(np.exp(theta)), *whole.copy()))
    return Curve(tuple(crossings), tuple(jumps), not reason, reason, run.steps, float(np.exp(run.at.theta)))


def _refined(problem: Problem, alpha: float, g: Game, at: Place) -> tuple[float, Array, Array]:
    """The certificate, tasks (users, servers) and log prices of whole capacities (servers, resources) of a crossing.

    `g` are the data as they are.
    """
    polytope, rule, there = problem.polytope, replace(problem.criterion, alpha=alpha), at.copied()
    unknowns = Active(g, there)
    if corrected(unknowns, there, np.empty(0), unknowns.whole, at.theta, 1e-14)[1] is None:
        there = at

    def judged(z: Array, log_rows: Array) -> tuple[float, Array, Array]:
        tasks = polytope.allocation(polytope.inside(z))
        error = backward_error(polytope, rule, tasks, log_rows).error
        return error, tasks, polytope.by_server(log_rows, unused=-np.inf)

    found = judged(np.maximum(there.z, 0.0), there.log_prices(alpha))
    if found[0] > _FINE:
        with suppress(SolverError):
            active = settled(polytope, rule, found[1], there.log_prices(alpha), None)
            better = judged(active.part * active.total[g.user] / polytope.gamma, active.prices[0].log_rows)
            found = min(found, better, key=lambda one: one[0])
    return found
