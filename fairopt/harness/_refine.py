"""Alphas placed where tasks bend: between neighbours tasks are then nearly straight, and how nearly is known.

On the axis `t = alpha / (1 + alpha)` of the pictures, log tasks are drawn as straight lines between neighbours. Where
slopes are known at both ends (`Allocation.sensitivity`), the two tangents of a user's tasks meet at one point, and for
tasks that bend one way they lie between the tangents and the line: the distance there bounds the error, and is exact
where all of the bend is in one kink. The interval with the largest bound is divided where the tangents of its worst
user meet. Where a slope is missing (infinity, ties), a certified solve in the middle measures the error.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, SolverError
from ..result.allocation import Allocation

Array = NDArray[np.float64]
Found = tuple[float, Allocation]


@dataclass(frozen=True)
class Options:
    """How intervals are divided."""

    #: New points keep this part of an interval from its ends.
    margin: float = 0.2
    #: Intervals narrower than this, on the axis, are not divided: tasks jump there.
    narrow: float = 1e-4
    #: Most solves.
    most: int = 400


OPTIONS = Options()


@dataclass(frozen=True)
class _Point:
    alpha: float
    found: Allocation
    tasks: Array  # log tasks of those who run
    slope: Array  # by t, NaN where unknown

    @property
    def at(self) -> float:
        return 1.0 if math.isinf(self.alpha) else self.alpha / (1 + self.alpha)

    @classmethod
    def of(cls, alpha: float, found: Allocation) -> _Point:
        with np.errstate(divide="ignore"):
            tasks = np.log(found.user_tasks)
        slope = np.full(len(tasks), np.nan)
        if math.isfinite(alpha) and alpha > 0:
            with suppress(DataError, SolverError):  # it may have none
                slope = found.sensitivity().alpha.to_numpy()[0] * (1 + alpha) ** 2
        return cls(alpha, found, tasks, slope)


def refined(
    solve: Callable[[float], Found],
    found: list[Found],
    goal: float,
    options: Options = OPTIONS,
) -> tuple[list[Found], list[float]]:
    """Answers by alpha, sorted, and for each the error of straight lines to the next one, relative in tasks.

    `solve` gives the answer at an alpha. Errors above `goal` are left where tasks jump, or after the most solves.
    """
    points = {alpha: _Point.of(alpha, one) for alpha, one in found}
    order = sorted(points)
    # Largest first: error, ends, where to divide. Errors that were measured, and not yet of the parts, are halved.
    heap = [_interval(points[a], points[b], math.inf, options) for a, b in pairwise(order)]
    heapq.heapify(heap)
    errors: dict[float, float] = {}
    solves = 0
    while heap:
        negative, low, high, middle = heapq.heappop(heap)
        narrow = points[high].at - points[low].at < options.narrow
        if -negative <= goal or narrow or solves >= options.most:
            errors[low] = -negative
            continue
        solves += 1
        alpha = middle / (1 - middle)
        points[alpha] = _Point.of(*solve(alpha))
        error = _missed(points[low], points[alpha], points[high])
        for a, b in ((low, alpha), (alpha, high)):
            heapq.heappush(heap, _interval(points[a], points[b], error / 2, options))
    order = sorted(points)
    return [(alpha, points[alpha].found) for alpha in order], [errors.get(alpha, math.nan) for alpha in order]


def _interval(low: _Point, high: _Point, otherwise: float, options: Options) -> tuple[float, float, float, float]:
    """The bound of an interval (negative), its ends, and where to divide it; `otherwise` where slopes are missing."""
    width = high.at - low.at
    runs = np.isfinite(low.tasks) & np.isfinite(high.tasks)
    rise = (high.tasks[runs] - low.tasks[runs]) / width
    first, last = low.slope[runs], high.slope[runs]
    if np.isnan(first).any() or np.isnan(last).any() or not len(rise):
        return -(otherwise if len(rise) else 0.0), low.alpha, high.alpha, low.at + width / 2
    before, after = rise - first, last - rise  # of one sign where tasks bend one way
    bends = before * after > 0
    part = np.where(bends, after / np.where(before + after == 0, 1.0, before + after), 0.5)
    distance = width * np.where(bends, np.abs(before) * part, np.maximum(np.abs(before), np.abs(after)) / 4)
    worst = int(distance.argmax())
    where = min(max(float(part[worst]), options.margin), 1 - options.margin)
    return -float(distance[worst]), low.alpha, high.alpha, low.at + width * where


def _missed(low: _Point, middle: _Point, high: _Point) -> float:
    """By how much the line misses the tasks in between, relatively."""
    t = (middle.at - low.at) / (high.at - low.at)
    runs = np.isfinite(low.tasks) & np.isfinite(high.tasks) & np.isfinite(middle.tasks)
    line = (1 - t) * low.tasks[runs] + t * high.tasks[runs]
    return float(np.abs(middle.tasks[runs] - line).max(initial=0.0))
