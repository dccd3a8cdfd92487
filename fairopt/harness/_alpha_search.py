"""Where the misfit along alpha is least, and how far on both sides it stays near that."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._libraries import optimize
from ._misfit import Misfit


@dataclass(frozen=True)
class InferenceOptions:
    """How alpha is looked for."""

    #: The ends of the finite alphas that are looked at; infinity is looked at too.
    smallest: float = 0.05
    largest: float = 1000.0
    #: Alphas of the first look, a constant factor apart.
    count: int = 37
    #: So many local minima of the first look are refined, to this accuracy of log alpha.
    minima: int = 4
    accuracy: float = 1e-6
    #: The step of log alpha in the difference that the sensitivity comes from.
    step: float = 1e-3
    #: The standard deviation of log tasks below which differences are the solver's.
    floor: float = 1e-7

    @property
    def grid(self) -> list[float]:
        """The finite alphas of the first look."""
        return [float(alpha) for alpha in np.geomspace(self.smallest, self.largest, self.count)]


def minima(misfit: Misfit, options: InferenceOptions) -> tuple[float, list[float]]:
    """The alpha of the least misfit, and other local minima."""
    grid = options.grid
    values = np.array([misfit(alpha) for alpha in grid])
    values = np.where(np.isnan(values), np.inf, values)
    padded = np.concatenate([[np.inf], values, [np.inf]])
    places = np.flatnonzero(np.isfinite(values) & (values <= padded[:-2]) & (values <= padded[2:]))
    places = places[np.argsort(values[places], kind="stable")][: options.minima]
    found = [math.inf] if np.isfinite(misfit(math.inf)) else []
    for k in places.tolist():
        ends = math.log(grid[max(k - 1, 0)]), math.log(grid[min(k + 1, len(grid) - 1)])
        refined = optimize.minimize_scalar(
            lambda log_alpha: _number(misfit(math.exp(log_alpha))),
            bounds=ends,
            method="bounded",
            options={"xatol": options.accuracy},
        )
        inside = math.exp(refined.x)
        found.append(inside if misfit(inside) < values[k] else grid[k])
    found.sort(key=misfit)
    return found[0], found[1:]


def _number(value: float) -> float:
    """Large where there is no answer: Brent's method wants numbers."""
    return value if math.isfinite(value) else 1e300


def interval(misfit: Misfit, alpha: float, threshold: float, options: InferenceOptions) -> tuple[float, float]:
    """Where the misfit first exceeds the threshold on both sides of alpha; 0 and infinity where it does not."""

    def above(log_alpha: float) -> float:
        return _number(misfit(math.exp(log_alpha))) - threshold

    def crossing(points: list[float]) -> float | None:
        inside = alpha
        for point in points:
            value = misfit(point)
            if value > threshold:
                if math.isinf(inside):
                    return point  # beyond the largest finite alpha nothing is looked at
                if math.isinf(point):
                    return None
                root = optimize.brentq(above, math.log(inside), math.log(point), xtol=options.accuracy, rtol=1e-9)
                return math.exp(root)
            if not math.isnan(value):
                inside = point
        return None

    low = crossing([point for point in reversed(options.grid) if point < alpha])
    high = None if math.isinf(alpha) else crossing([*(point for point in options.grid if point > alpha), math.inf])
    return (0.0 if low is None else low), (math.inf if high is None else high)
