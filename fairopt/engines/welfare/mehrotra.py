"""How far and where to: predictor, corrector and Gondzio's further correctors on the conditions of `welfare`.

Products of pairs aim at mu, those of capacities at a multiple of it, which evens out where the path begins.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...core.welfare import in_parts
from ..linalg import gondzio
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
    falls = (in_parts(lambda value, change: (-change / value,), *each)[0] for each in pairs)
    return 1 / max(max(float(each.max(initial=0.0)) for each in falls), 1.0)


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

    def asked(one: Array, other: Array, d_one: Array, d_other: Array) -> tuple[Array, ...]:
        return (gondzio.beyond((one + far * d_one) * (other + far * d_other), target, options),)

    (pair,) = in_parts(asked, at.tasks, at.slack, step.tasks, step.slack)
    (capacity,) = asked(at.price / weight, at.idle, step.price / weight, step.idle)
    return Products(pair, np.where(welfare.row, capacity * weight, 0.0))
