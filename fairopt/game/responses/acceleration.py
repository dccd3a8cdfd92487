"""Where a sequence of small steps is going: Anderson's extrapolation, and long jumps along a steady drift.

Sweeps of best responses approach an equilibrium slowly. For finite alpha and near the end they shrink geometrically,
which Anderson's mixing foresees. Max-min responses can instead drift at constant speed, two servers handing a
user back and forth, until that user has left one of them: then the jump to that event saves the way.
`Acceleration` proposes points that the caller keeps only if they are better; `Drift` jumps where best responses drift.

Source: Anderson 1965; Walker and Ni, SIAM J. Numer. Anal. 49 (2011).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class AccelerationOptions:
    """When `Acceleration` proposes what."""

    #: Points remembered, beside the last.
    memory: int = 6
    #: Anderson's point must be better by this factor.
    better: float = 0.7
    #: A drift: `|step - step before| < steady |step|`.
    steady: float = 0.05
    #: Parts of the way to where the first user leaves.
    jumps: tuple[float, ...] = (1.0, 0.5, 0.2)


@dataclass(frozen=True)
class DriftOptions:
    """When `Drift` jumps, and how far."""

    #: A drift: `|step - step before| < even |step|`.
    even: float = 0.1
    #: Rounds across which it jumps at first.
    reach: float = 10.0
    #: Rounds between two jumps.
    wait: int = 3
    #: A drift goes on as before if the cosine of its directions is above this.
    onward: float = 0.9


#: What is used unless a caller says otherwise.
ACCELERATION, DRIFT = AccelerationOptions(), DriftOptions()


class Acceleration:
    """Remembers points and their steps, and proposes points further on."""

    def __init__(self, options: AccelerationOptions = ACCELERATION) -> None:
        self._options = options
        self._points: deque[Array] = deque(maxlen=options.memory + 1)
        self._steps: deque[Array] = deque(maxlen=options.memory + 1)

    def proposals(self, point: Array, image: Array) -> Iterator[tuple[Array, float]]:
        """Points to try instead of `image`, which a sweep made of `point`, and by what factor each must be better.

        A jump along a drift need not be better at all: nothing gets better before somebody has left.
        """
        self._points.append(point)
        self._steps.append(image - point)
        if len(self._points) < 3:
            return
        steps, points = np.array(self._steps), np.array(self._points)
        step_changes, point_changes = np.diff(steps, axis=0).T, np.diff(points, axis=0).T
        mix = np.linalg.lstsq(step_changes, steps[-1], rcond=1e-10)[0]
        yield image - (point_changes + step_changes) @ mix, self._options.better
        step = steps[-1]
        leaving = step < 0
        if np.linalg.norm(step - steps[-2]) < self._options.steady * np.linalg.norm(step) and leaving.any():
            reach = float((image[leaving] / -step[leaving]).min())
            for part in self._options.jumps:
                yield image + part * reach * step, 1 + 1e-9


class Drift:
    """Jumps along a steady drift of best responses, twice as far where the drift then goes on as before.

    Users who would leave servers on the way are not waited for: the next responses put that right.
    """

    def __init__(self, options: DriftOptions = DRIFT) -> None:
        self._options = options
        self._last: Array | None = None
        self._step: Array | None = None
        self._along: Array | None = None
        self._reach, self._wait = options.reach, options.wait

    def ahead(self, point: Array) -> Array | None:
        """Called after every round: where to go on instead of `point`, if the last rounds took equal steps."""
        step = None if self._last is None else point - self._last
        before, self._last, self._step = self._step, point.copy(), step
        self._wait -= 1
        if step is None or before is None or self._wait > 0:
            return None
        size = float(np.linalg.norm(step))
        if not np.linalg.norm(step - before) < self._options.even * size:
            return None
        if self._along is not None:
            onward = step @ self._along > self._options.onward * size * np.linalg.norm(self._along)
            self._reach = 2 * self._reach if onward else self._options.reach
        self._along = step
        jump = np.asarray(np.maximum(point + self._reach * step, 0.0))
        self._last, self._step, self._wait = jump.copy(), None, self._options.wait
        return jump
