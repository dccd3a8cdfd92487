"""The curve of equilibria in tasks, prices and log alpha, from near alpha = 1 through folds.

On one active set it is smooth and followed by its length (Keller 1977). Where a pair, row or limit enters or leaves, it
turns in the direction in which that one grows (Allgower and Georg, "Numerical Continuation Methods", 1990, chapter 12).
A member of the active set leaves where its tasks, price or excess fall to 0, another enters where its slack, what idles
or the room below its limit does.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ...model._arrays import Array
from ..model.factors import Factors
from ._system import Active, Game, Place, Values, gauge
from .options import CurveOptions

#: Why a run ended; empty if it came to the last target.
STUCK, SINGULAR = "no step along the curve is short enough", "the curve is not regular: exact ties"
#: What `_passed` says of a step that is to be shorter, whatever changes then.
_BEFORE = -2
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
        border, scale = self._border(unknowns, v), unknowns.weights(v)
        t = tangent(Factors(unknowns.bordered(v, border)), scale)
        if t is None:
            return SINGULAR
        rises = bool(forward * t[-1] > _LEVEL)
        if self._back is not None and not rises and self._event < 0 and self.length > 1e-3:
            # A fold lies between here and the point before: nearer to it.
            (self.at, self._way), self._back, self.length = self._back, None, 0.3 * self.length
            return None
        self._met(v, rises, forward)
        target = self._target(float(t[-1]))
        self._back = (at.copied(), self._way) if rises and self._event < 0 else None
        self._way = np.zeros(unknowns.whole + 1)
        self._way[np.append(unknowns.pairs, -1)] = np.append((scale * t)[: len(unknowns.pairs)], t[-1])
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

    def _border(self, unknowns: Active, v: Values) -> Array:
        """Border row that fixes the orientation: by the last event, else by all tasks and log alpha."""
        if self._event >= 0:
            return unknowns.gradient(v, self._event)
        return np.asarray(self._way[np.append(unknowns.members, -1)])

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
) -> tuple[int, float]:
    """First event on a step besides `land` (-1: none, -2: unknown), and the part of the step at which it occurs."""
    worst, part, now = -1, 1.0, unknowns.distances(v, at)
    known = np.isfinite(first)
    if 0 <= land < len(first):
        known[land] = False
    if (known & (now == -np.inf)).any():
        # The last price of a pair has gone to 0, where its cost has no logarithm: it enters before that.
        worst, part = _BEFORE, 0.9
    passed = np.flatnonzero(known & (now < -1e-10) & (now > -np.inf))
    if len(passed):
        parts = first[passed] / (first[passed] - now[passed])
        if parts.min() < part:
            worst, part = int(passed[parts.argmin()]), float(parts.min())
    before, after = start.theta - target, at.theta - target
    if worst == -1 and land != len(first) and before * after < 0 and abs(after) > 1e-13:
        worst, part = len(first), abs(before) / abs(after - before)
    return worst, part


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
    for _ in range(24):
        there = start.copied()
        unknowns.moved(there, t, h)
        turns, now = corrected(unknowns, there, scale * t, land, target, aim)
        rise, members = there.theta - start.theta, unknowns.pairs
        ahead = np.append((there.z - start.z)[members], rise) @ np.append((scale * t)[: len(members)], t[-1])
        if land >= 0 and (abs(rise) > 3 * length or ahead < -1e-9):
            now = None  # Newton's method has gone to another place where it changes
        if now is None:
            h, land = 0.4 * h, -1
            if h < 1e-9:
                break
            continue
        worst, part = _passed(unknowns, start, there, now, land, target, first)
        if worst == -1:
            at.__dict__.update(there.__dict__)
            return land, turns, h
        land, h = max(worst, -1), h * part
    return -1, -1, h
