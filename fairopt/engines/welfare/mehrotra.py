"""How far and where to: predictor, corrector and Gondzio's further correctors on the conditions of `welfare`.

Products of pairs aim at mu, those of capacities at a multiple of it, which evens out where the path begins.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..linalg import _pairs, gondzio
from ..linalg.gondzio import CorrectorOptions
from . import screening
from .conditions import Welfare
from .newton import Newton, Products, Step
from .options import OPTIONS, StepOptions
from .point import Point

Array = NDArray[np.float64]


def products(welfare: Welfare, at: Point) -> Products:
    """`x z` and `lam w` (0 where there is none)."""
    return Products(at.tasks * at.slack, np.where(welfare.row, at.price * at.idle, 0.0))


def mean(now: Products, weight: float) -> float:
    """mu: the average of products, those of capacities over their weight."""
    count = len(now.pair) + np.count_nonzero(now.capacity)
    return float((now.pair.sum() + now.capacity.sum() / weight) / count)


def advance(
    newton: Newton,
    weight: float,
    least: float = 0.0,
    whole: float = 1.0,
    options: StepOptions = OPTIONS.step,
) -> Point:
    """The next point; `weight` is that of capacities, `least` what mu need not fall below.

    It is at the part `whole` of the step.
    """
    q, at = newton.welfare, newton.point
    now = products(q, at)
    mu = newton.mu
    aim = newton.direction(Products(-now.pair, -now.capacity))
    t = longest(q, at, aim)
    after = mean(products(q, _along(at, aim, t)), weight)
    part = max(min(max(after / mu, 0.0) ** 3, options.most_target), options.least_target)
    if newton.residual_marginal > options.off or t < options.short:
        part = 2 * options.most_target if t > options.short else options.poor_target
    target = max(part * mu, min(mu, least))
    wanted = Products(
        target - aim.tasks * aim.slack,
        np.where(q.row, target * weight - aim.price * aim.idle, 0.0),
    )
    second_order = np.clip(q.second_order(at, newton.marginal, aim), -0.5, 0.5)
    step = newton.corrected(aim, wanted, second_order)

    def retried(step: Step, lengths: gondzio.Lengths) -> Step:
        (far,) = lengths
        return newton.corrected(step, _beyond(q, at, step, far, target, weight, options.correctors))

    step, _ = gondzio.corrected(step, retried, lambda tried: (longest(q, at, tried),), options.correctors)
    step = newton.refined(step, newton.residual.rho + second_order)
    t = longest(q, at, step)
    if t < 1:
        t *= max(options.part, 1 - target) if t > options.full else options.part
    t = min(t, screening.longest(q, at, step, options.screening))
    return q.moved(at, step, whole * t)


def longest(welfare: Welfare, at: Point, step: Point) -> float:
    """The longest step, at most 1, that leaves nothing negative; totals follow tasks."""
    rows, counts = welfare.row, welfare.spent(at) > welfare.options.counts
    pairs = (
        (at.tasks, step.tasks),
        (at.slack, step.slack),
        (at.price[rows], step.price[rows]),
        (at.idle[rows], step.idle[rows]),
        (at.user_price[counts], step.user_price[counts]),
    )
    return min(float(_pairs.longest(values, change)) for values, change in pairs)


def _along(at: Point, step: Point, t: float) -> Point:
    names = ("tasks", "slack", "price", "idle")  # what products are of
    return replace(at, **{name: getattr(at, name) + t * getattr(step, name) for name in names})


def _beyond(
    welfare: Welfare,
    at: Point,
    step: Point,
    far: float,
    target: float,
    weight: float,
    options: CorrectorOptions,
) -> Products:
    """What brings products after a step `far` back to within multiples of what they aim at, not too much at once."""
    rows, low, high = welfare.row, options.low * target, options.high * target
    groups = (
        (at.tasks, at.slack, step.tasks, step.slack, 1.0),
        (at.price[rows], at.idle[rows], step.price[rows], step.idle[rows], weight),
    )
    found = []
    for one, other, d_one, d_other, scale in groups:
        scaled = one / scale, other, d_one / scale, d_other
        result = np.empty(len(one))
        _pairs.beyond(*scaled, far, low, high, result)
        found.append(result * scale)
    capacity = np.zeros(rows.shape)
    capacity[rows] = found[1]
    return Products(found[0], capacity)
