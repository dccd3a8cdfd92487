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

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Steps that differ by less than this part are one drift.
_STEADY = 0.05
#: The same for `Drift`; rounds across which it jumps at first, and those in between; when a drift goes on (cosine).
_EVEN, _REACH, _WAIT, _ONWARD = 0.1, 10.0, 3, 0.9


class Acceleration:
    """Remembers points and their steps, and proposes points further on."""

    def __init__(self, memory: int = 6) -> None:
        self._points: deque[Array] = deque(maxlen=memory + 1)
        self._steps: deque[Array] = deque(maxlen=memory + 1)

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
        yield image - (point_changes + step_changes) @ mix, 0.7
        step = steps[-1]
        leaving = step < 0
        if np.linalg.norm(step - steps[-2]) < _STEADY * np.linalg.norm(step) and leaving.any():
            reach = float((image[leaving] / -step[leaving]).min())
            for part in (1.0, 0.5, 0.2):
                yield image + part * reach * step, 1 + 1e-9


class Drift:
    """Jumps along a steady drift of best responses, twice as far where the drift then goes on as before.

    Users who would leave servers on the way are not waited for: the next responses put that right.
    """

    def __init__(self) -> None:
        self._last: Array | None = None
        self._step: Array | None = None
        self._along: Array | None = None
        self._reach, self._wait = _REACH, _WAIT

    def ahead(self, point: Array) -> Array | None:
        """Called after every round: where to go on instead of `point`, if the last rounds took equal steps."""
        step = None if self._last is None else point - self._last
        before, self._last, self._step = self._step, point.copy(), step
        self._wait -= 1
        if step is None or before is None or self._wait > 0:
            return None
        size = float(np.linalg.norm(step))
        if not np.linalg.norm(step - before) < _EVEN * size:
            return None
        if self._along is not None:
            onward = step @ self._along > _ONWARD * size * np.linalg.norm(self._along)
            self._reach = 2 * self._reach if onward else _REACH
        self._along = step
        jump = np.asarray(np.maximum(point + self._reach * step, 0.0))
        self._last, self._step, self._wait = jump.copy(), None, _WAIT
        return jump
