"""Where the interior point of `welfare` is, and what is wrong there."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class Point:
    """Where the interior point is."""

    tasks: Array  # (pairs,), x
    slack: Array  # (pairs,), z
    price: Array  # (servers, resources), lam
    idle: Array  # (servers, resources), w
    total: Array  # (users,), s
    user_price: Array  # (users,), pi
    units: Array  # (units,), theta and what a subclass adds
    remainder: float = 0.0  # what is left of the tasks of pairs that are screened out, as a part
    fair: Array = field(default_factory=lambda: np.zeros(0))  # (users,) where efficiency counts: log f


@dataclass(frozen=True)
class Start:
    """A point to start from for another alpha, with the unit (users,) that its tasks are in."""

    point: Point
    unit: Array


@dataclass(frozen=True)
class Worth:
    """What a task is worth to each user, near a point: the first part of rho, and how it changes."""

    residual: Array  # (users,), rho
    of_share: Array | float  # its slope in log s
    of_units: tuple[Array, ...]  # (users,) for each unit: minus its slope in it
    scale: Array | float = 1.0  # (users,), what errors of rho count


@dataclass(frozen=True)
class Residuals:
    """What is wrong with the equations that do not involve mu, in the order of the unknowns they are solved for."""

    pair: Array
    capacity: Array
    user: Array
    rho: Array
    units: Array


@dataclass(frozen=True)
class Rest:
    """Pairs that are screened out (`screening`), and what they had when they did."""

    inside: Index  # the pairs that take part
    aside: NDArray[np.bool_]  # (all pairs,)
    called: NDArray[np.bool_]  # (all pairs,), aside, but not for long
    sums: Array  # (users,), tasks
    use: Array  # (servers, resources)


def bend(change: Array) -> Array:
    """What a logarithm deviates from its tangent by, at the point where the logarithm has changed by `change`.

    For what grows, at the point that itself has changed by so much: less far.
    """
    down, up = np.minimum(change, 0.0), np.maximum(change, 0.0)
    return np.asarray(down - np.expm1(down) + np.log1p(up) - up)
