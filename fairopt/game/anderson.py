"""Anderson acceleration of a fixed-point iteration: extrapolate from the last few steps.

Source: Anderson 1965; Walker and Ni, SIAM J. Numer. Anal. 49 (2011). The caller keeps an extrapolation only if it is better.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Anderson:
    """Remembers points and their steps; `extrapolate` returns where those steps would come to rest."""

    def __init__(self, memory: int = 6) -> None:
        self._points: deque[Array] = deque(maxlen=memory + 1)
        self._steps: deque[Array] = deque(maxlen=memory + 1)

    def extrapolate(self, point: Array, image: Array) -> Array | None:
        """The affine combination of remembered images with the smallest step; `None` before there are three."""
        self._points.append(point)
        self._steps.append(image - point)
        if len(self._points) < 3:
            return None
        steps, points = np.array(self._steps), np.array(self._points)
        step_changes, point_changes = np.diff(steps, axis=0).T, np.diff(points, axis=0).T
        mix = np.linalg.lstsq(step_changes, steps[-1], rcond=1e-10)[0]
        return np.asarray(image - (point_changes + step_changes) @ mix)
