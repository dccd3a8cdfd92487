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
    """How weights are looked for."""

    #: Solves of one attempt.
    most: int = 200
    #: Steps that are mixed.
    memory: int = 5
    #: Parts of the step that are then tried without mixing.
    plain: tuple[float, ...] = (1.0, 0.5, 0.2)
    #: Mixed steps are forgotten and the step is halved where the error is this many times the least so far.
    restart: float = 2.0
    #: Given up below this part of the step.
    smallest_step: float = 1 / 64
    #: No weight changes by more than this factor at once.
    largest: float = 10.0
    #: An attempt is given up where so many solves have found nothing better.
    patience: int = 40


@dataclass(frozen=True)
class Matched:
    """The best weights found.

    Attributes
    ----------
    weights : (users,)
    allocation : the answer with them
    error : by what part its tasks miss the stated ones
    found_at : the number of this answer among those looked at
    """

    weights: Array
    allocation: Allocation
    error: float
    found_at: int


def matched(
    answer: Callable[[Array], Allocation],
    starts: list[Array],
    stated: Array,
    users: NDArray[np.intp],
    tol: float,
    options: MatchingOptions | None = None,
) -> Matched:
    """The weights (users,) of `users` with which the answer has the tasks `stated` (users,), or comes nearest.

    The first of `starts` that does at once is taken, otherwise the search begins at the best of them.
    """
    options = options or MatchingOptions()
    search = _Search(answer, stated, users)
    for start in starts:
        search.look(np.log(start))
        if search.best.error <= tol:
            return search.best
    # Mixing is fast where answers follow weights smoothly; plain small steps also end at a kink.
    for memory, step in ((options.memory, 1.0), *((1, part) for part in options.plain)):
        search.attempt(memory, step, tol, options)
        if search.best.error <= tol:
            break
    return search.best


class _Search:
    """Answers that were looked at, and the best."""

    best: Matched

    def __init__(self, answer: Callable[[Array], Allocation], stated: Array, users: NDArray[np.intp]) -> None:
        self._answer, self._stated, self._users = answer, stated, users
        self._solves = 0

    def look(self, log_weights: Array) -> Array:
        """`log X - log x` of the answer with these weights, (users,)."""
        self._solves += 1
        found = self._answer(np.exp(log_weights))
        off = self._off(found)
        error = float(np.abs(np.expm1(off)).max(initial=0.0))
        if self._solves == 1 or error < self.best.error:
            self.best = Matched(np.exp(log_weights), found, error, self._solves)
        return off

    def attempt(self, memory: int, first: float, tol: float, options: MatchingOptions) -> None:
        """Steps from the best weights so far, until they do or no longer get better."""
        step, begun, most = first, self._solves, float(np.log(options.largest))
        points, residuals = self._again()
        while self.best.error > tol and self._solves < begun + options.most and step >= first * options.smallest_step:
            if self._solves - max(self.best.found_at, begun) > options.patience:
                break
            error = float(np.abs(np.expm1(residuals[-1])).max())
            if memory > 1 and error > options.restart * self.best.error and len(points) > 1:
                step /= 2
                points, residuals = self._again()
            new = points[-1] + np.clip(_mixed(points, residuals, step), -most, most)
            new -= new.mean()
            points, residuals = [*points, new][-memory:], [*residuals, self.look(new)][-memory:]

    def _again(self) -> tuple[list[Array], list[Array]]:
        return [np.log(self.best.weights)], [self._off(self.best.allocation)]

    def _off(self, found: Allocation) -> Array:
        tasks = np.maximum(found.user_tasks[self._users], np.finfo(float).tiny)
        return np.asarray(np.log(self._stated) - np.log(tasks))


def _mixed(points: list[Array], residuals: list[Array], step: float) -> Array:
    """Anderson's step from the last points and what they miss."""
    last = step * residuals[-1]
    if len(points) == 1:
        return np.asarray(last)
    moved = np.diff(np.array(points), axis=0).T
    changed = np.diff(np.array(residuals), axis=0).T
    mix = np.linalg.lstsq(changed, residuals[-1], rcond=1e-8)[0]
    return np.asarray(last - (moved + step * changed) @ mix)
