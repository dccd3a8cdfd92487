"""Weights by solving: those with which a mechanism's answer has stated tasks, found from one answer to the next.

The step is `log phi += log X - log x(phi)`. For global programs with alpha in (0, infinity) the derivative of log x by
log phi is a projection (onto the changes that leave what is full full, in the metric of budgets), and both X and x(phi)
are on the frontier, so that it is Newton's step where prices stay the same; on one server under max-min it is exact. In
the game, where servers differ, Anderson's mixing of the last steps makes up for the difference.

Source: Walker and Ni, "Anderson acceleration for fixed-point iterations", SIAM J. Numer. Anal. 49 (2011).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..result.allocation import Allocation

Array = NDArray[np.float64]


@dataclass(frozen=True)
class MatchingOptions:
    """How weights are looked for.

    Attributes
    ----------
    most : solves of one attempt
    memory : steps that are mixed
    plain : parts of the step that are then tried without mixing
    restart : forget them and halve the step where the error is this many times the least so far
    smallest_step : give up below this part of the step
    largest : no weight changes by more than this factor at once
    patience : give up where so many solves have not made the error less by a tenth
    """

    most: int = 200
    memory: int = 5
    plain: tuple[float, ...] = (1.0, 0.5, 0.2)
    restart: float = 2.0
    smallest_step: float = 1 / 64
    largest: float = 10.0
    patience: int = 40


@dataclass(frozen=True)
class Matched:
    """The best weights found: (users,), the answer with them, and by what part its tasks miss the stated ones."""

    weights: Array
    allocation: Allocation
    error: float
    solves: int


def matched(
    answer: Callable[[Array], Allocation],
    starts: list[Array],
    stated: Array,
    users: NDArray[np.intp],
    tol: float,
    options: MatchingOptions | None = None,
) -> Matched:
    """The weights (users,) of `users` with which the answer has the tasks `stated` (users,), or comes nearest.

    The first of `starts` that does at once is taken, otherwise the search begins at the last.
    """
    options = options or MatchingOptions()
    best: Matched | None = None
    solves = 0

    def look(log_weights: Array) -> Array:
        nonlocal best, solves
        solves += 1
        found = answer(np.exp(log_weights))
        off = _off(found.user_tasks[users], stated)
        error = float(np.abs(np.expm1(off)).max(initial=0.0))
        if best is None or error < best.error:
            best = Matched(np.exp(log_weights), found, error, solves)
        return off

    for start in starts:
        off = look(np.log(start))
        assert best is not None
        if best.error <= tol:
            return best
    most = float(np.log(options.largest))
    # Mixing is fast where answers follow weights smoothly; plain small steps also end at a kink.
    for memory, first in ((options.memory, 1.0), *((1, step) for step in options.plain)):
        step, begun = first, solves
        points, residuals = [np.log(best.weights)], [_off(best.allocation.user_tasks[users], stated)]
        while best.error > tol and solves < begun + options.most and step >= first * options.smallest_step:
            if solves - max(best.solves, begun) > options.patience:
                break
            error = float(np.abs(np.expm1(residuals[-1])).max())
            if memory > 1 and error > options.restart * best.error and len(points) > 1:
                step, points = step / 2, [np.log(best.weights)]
                residuals = [_off(best.allocation.user_tasks[users], stated)]
            new = points[-1] + np.clip(_mixed(points, residuals, step), -most, most)
            new -= new.mean()
            off = look(new)
            points, residuals = [*points, new][-memory:], [*residuals, off][-memory:]
    return Matched(best.weights, best.allocation, best.error, solves)


def _off(tasks: Array, stated: Array) -> Array:
    """`log X - log x`, (users,)."""
    return np.asarray(np.log(stated) - np.log(np.maximum(tasks, np.finfo(float).tiny)))


def _mixed(points: list[Array], residuals: list[Array], step: float) -> Array:
    """Anderson's step from the last points and what they miss."""
    last = step * residuals[-1]
    if len(points) == 1:
        return np.asarray(last)
    moved = np.diff(np.array(points), axis=0).T
    changed = np.diff(np.array(residuals), axis=0).T
    mix = np.linalg.lstsq(changed, residuals[-1], rcond=1e-8)[0]
    return np.asarray(last - (moved + step * changed) @ mix)
