"""A Newton step on the equations of `system`: predictor and corrector on one factorised matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .factors import Solve, factors
from .state import AugmentedResiduals, AugmentedState
from .system import System

Array = NDArray[np.float64]
#: Changes of a point, and what products should change by: of pairs, rows and limits.
Step = tuple[Array, Array, Array, Array, Array, Array]  # of parts, slacks, log prices, idle, room and excess
Products = tuple[Array, Array, Array]


def stepped(system: System, at: AugmentedState, here: AugmentedResiduals) -> AugmentedState | None:
    """The point after one step; `None` if the matrix or the step is not finite."""
    options, total = system.options, here.total[system.who]
    solve = factors(system, at, here)
    if solve is None:
        return None
    products = at.part / total * at.slack, at.weight * at.idle, at.room * at.excess
    mu = _mean(products)
    aim = _direction(system, at, here, solve, (-products[0], -products[1], -products[2]))
    if aim is None:
        return None
    t = _longest(system, at, here, aim)
    blocked = t < options.blocked
    centre = 1.0 if blocked else min(max((_mean(_after(at, total, aim, t)) / mu) ** 3, 1e-6), 1.0)
    largest = max(float(np.abs(each).max(initial=0.0)) for each in (here.pair, here.row, here.limit))
    target = max(centre * mu, options.least_mu, min(1e-4 * largest**2, mu))
    # What products change by to second order, unless that is of a step which is not there to take.
    second_order = 0.0 if blocked else 1.0
    second = (
        second_order * aim[0] / total * aim[1],
        second_order * at.weight * aim[2] * aim[3],
        second_order * aim[4] * aim[5],
    )
    pair, row, limit = (
        np.minimum(target - bend, 10 * target) - now for bend, now in zip(second, products, strict=True)
    )
    step = _direction(system, at, here, solve, (pair, row, limit))
    if step is None:
        return None
    t = _longest(system, at, here, step)
    t = min(1.0, t * (min(max(options.part, 1 - target), options.whole) if t > options.nearly else options.short_part))
    grown = 1 + t * step[2]
    return AugmentedState(
        part=at.part + t * step[0],
        slack=at.slack + t * step[1],
        log_row=at.log_row + np.log(grown),
        weight=at.weight * grown,
        idle=at.idle + t * step[3],
        room=at.room + t * step[4],
        excess=at.excess + t * step[5],
    )


def _direction(
    system: System, at: AugmentedState, here: AugmentedResiduals, solve: Solve, wanted: Products
) -> Step | None:
    """Steps that put right what is wrong, products changing by what is wanted."""
    p, r = len(system.pairs), len(system.rows)
    total = here.total[system.who]
    # Complementarity to first order: slack = d_slack + .. dy, idle = d_idle + .. dL, room = d_room + .. dxi.
    d_slack, d_idle, d_room = wanted[0] / (at.part / total), wanted[1] / at.weight, wanted[2] / at.excess
    found = solve(np.concatenate([d_slack - here.pair, here.row - d_idle, here.limit - d_room]))
    if not np.isfinite(found).all():
        return None
    d_part, d_row, d_excess = found[:p] * total, found[p : p + r], found[p + r :]
    d_slack = d_slack - at.slack / at.part * d_part
    return d_part, d_slack, d_row, d_idle - at.idle * d_row, d_room - at.room / at.excess * d_excess, d_excess


def _longest(system: System, at: AugmentedState, here: AugmentedResiduals, step: Step) -> float:
    """The longest step, at most 1, that leaves nothing negative and changes no cost or total by too much.

    A price that is no part of anybody's cost may rise a thousandfold.
    """
    falls = -np.concatenate([step[0] / at.part, step[1] / at.slack, step[2], step[3] / at.idle])
    falls = np.concatenate([falls, -step[4] / at.room, -step[5] / at.excess]) if len(at.room) else falls
    t = 1 / max(float(falls.max(initial=0.0)), 1.0)
    there = here.total > 0
    totals = np.bincount(system.who, step[0], len(here.total))[there] / here.total[there]
    dearer = np.abs(step[2]) * np.minimum(at.weight, 1.0)
    grown = max(float(dearer.max(initial=0.0)), float(np.abs(totals).max(initial=0.0)), 1e-300)
    return min(t, system.options.longest / grown)


def _after(at: AugmentedState, total: Array, step: Step, t: float) -> Products:
    """Products after a part t of a step."""
    pair = (at.part + t * step[0]) / total * (at.slack + t * step[1])
    row = at.weight * (1 + t * step[2]) * (at.idle + t * step[3])
    return pair, row, (at.room + t * step[4]) * (at.excess + t * step[5])


def _mean(products: Products) -> float:
    return sum(float(each.sum()) for each in products) / sum(len(each) for each in products)
