"""The level of max-min by a structured interior point: Mehrotra's predictor and corrector with Gondzio's correctors.

With slacks z of costs, w of capacities and v of levels, and tau_n = 1 for the rising, 0 for the held:

    z = use.lambda - p,  w = 1 - sum use y,  v = sum_i y - tau t - floor,  sum tau p = 1,  y z = lambda w = p v = mu.

Users and t are eliminated (`level_newton`), which leaves a matrix over (server, resource). Where there are many pairs
only some take part; others come in before they would carry anything, and dear ones leave: what they carried counts
until others carry it. Linear equations are kept as well as the gap asks for, but for those of held users. Slow
progress is in the problem: on dense clusters with no two servers alike this takes twenty to eighty steps, the interior
point of HiGHS 90 to 120.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..linalg import gondzio
from .level import LEAST_GAP, BoundedLevel, Budget, Level, by_simplex, everyone_stopped, with_amounts
from .level_newton import LevelNewton, Steps
from .level_point import LevelPoint
from .level_screening import add_columns, drop_columns
from .options import LEVELS, OPTIONS, LevelOptions

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]


def highest(
    problem: Level,
    rng: np.random.Generator,
    wanted: float = LEAST_GAP,
    options: LevelOptions = OPTIONS,
    budget: Budget | None = None,
    known: Array | None = None,
) -> BoundedLevel | None:
    """The best point and prices: from the interior point, or from a simplex method where that gets stuck.

    `budget` is what the simplex method may take; `None` if that was not enough. `known` (pairs,) is a point that holds
    everyone: where that takes all there is, no point lies inside, and prices show how little better others are.
    """
    found = _interior(problem, rng, wanted, options)
    if found.gap >= options.unacceptable and known is not None:
        found = with_amounts(found, known)
    if found.gap < options.unacceptable or len(problem.server) > options.simplex:
        return found
    return by_simplex(problem, budget or Budget(LEVELS.simplex_seconds))


def _interior(problem: Level, rng: np.random.Generator, wanted: float, options: LevelOptions) -> BoundedLevel:
    point = LevelPoint(problem, rng, options.point)
    best = found = point.found(0)
    still = 0
    for number in range(1, options.steps + 1):
        stopped = point.problem.stopped(found.low)
        if not stopped.rising.any():
            return everyone_stopped(found, stopped)
        if (stopped.rising != point.problem.rising).any():
            point.hold(stopped)
            best = point.found(number)
        drop_columns(point, best.gap, options.screening)
        if not point.active.all():
            add_columns(point, best.gap, options.entering)
        length = advance(point, min(best.gap, 1.0), options)
        if not np.isfinite(point.mu):
            break
        found = point.found(number)
        still = 0 if found.gap < options.better * best.gap or not np.isfinite(best.gap) else still + 1
        best = found if found.gap <= best.gap else best
        if best.gap <= wanted:
            return _solved(point, best, number, options)
        if still > options.patience or (length < options.short and still > options.short_patience):
            break
    return best


def _solved(point: LevelPoint, best: BoundedLevel, number: int, options: LevelOptions) -> BoundedLevel:
    """One step beyond what the gap can show: it takes idle capacity and surplus down to rounding."""
    advance(point, best.gap, options)
    found = point.found(number + 1) if np.isfinite(point.mu) else best
    return found if found.gap <= 2 * best.gap else best


def advance(point: LevelPoint, gap: float, options: LevelOptions = OPTIONS) -> float:
    """Predictor, corrector and centring correctors; returns the shorter of the two step lengths."""
    mu = point.mu
    newton = LevelNewton(point, point.rough, options.newton)
    yz, lw, pv = point.y * point.z, np.where(point.row, point.lam * point.w, 0.0), point.p * point.v
    aim = newton.direction(-yz, -lw, -pv)
    primal, dual = _longest(point, aim)
    after = sum(float(product.sum()) for product in _products(point, aim, primal, dual))
    centre = after / (len(point.y) + point.row.sum() + len(point.p)) / mu
    target = min(max(centre**3, 1e-8), 0.5) * mu
    centred = np.where(point.row, target - aim.lam * aim.w, 0.0)
    steps = newton.corrected(aim, target - aim.y * aim.z, centred, target - aim.p * aim.v)

    def retried(steps: Steps, lengths: gondzio.Lengths) -> Steps:
        ry, rw, rv = (gondzio.beyond(each, target, options.correctors) for each in _products(point, steps, *lengths))
        return newton.corrected(steps, ry, np.where(point.row, rw, 0.0), rv)

    steps, _ = gondzio.corrected(steps, retried, lambda tried: _longest(point, tried), options.correctors)
    # A gap is not known yet where held users have not their levels; the products know it.
    left = float(yz.sum() + lw.sum() + pv.sum())
    steps = newton.refined(steps, options.sharp * min(gap, left / point.t))
    point.rough = newton.rough
    primal, dual = _longest(point, steps)
    back = min(max(0.9, 1 - gap), 0.99995) if min(primal, dual) > 0.9 else 0.9
    primal, dual = back * primal, back * dual
    point.screened_out *= 1 - primal  # so much of it others carry now
    if point.screened_out.max() < options.forgotten * point.t:
        point.screened_out[:] = 0.0
    point.y, point.w = point.y + primal * steps.y, point.w + primal * steps.w
    point.v, point.t = point.v + primal * steps.v, point.t + primal * steps.t
    point.z, point.lam, point.p = point.z + dual * steps.z, point.lam + dual * steps.lam, point.p + dual * steps.p
    point.residuals()
    return min(primal, dual)


def _longest(point: LevelPoint, steps: Steps) -> tuple[float, float]:
    """The longest steps, at most 1, after which nothing is negative: primal and dual."""
    from ..linalg._pairs import longest

    row = point.row
    primal = ((point.y, steps.y), (point.w[row], steps.w[row]), (point.v, steps.v))
    dual = ((point.z, steps.z), (point.lam[row], steps.lam[row]), (point.p, steps.p))
    return min(longest(*pair) for pair in primal), min(longest(*pair) for pair in dual)


def _products(point: LevelPoint, steps: Steps, primal: float, dual: float) -> tuple[Array, Array, Array]:
    lw = np.where(point.row, (point.lam + dual * steps.lam) * (point.w + primal * steps.w), 0.0)
    yz = (point.y + primal * steps.y) * (point.z + dual * steps.z)
    return yz, lw, (point.p + dual * steps.p) * (point.v + primal * steps.v)
