"""What algorithms of the game find: a point with its errors, and the same as tasks and prices of a cluster."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...engines.base import Run, Solution
from ...model.polytope import Polytope
from .equilibrium_system import EquilibriumPoint, EquilibriumSystem

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Candidate:
    """A point, how far it is from an equilibrium (relative, in tasks), after how many Newton steps."""

    point: EquilibriumPoint
    error: float
    steps: int
    notes: tuple[str, ...] = ()
    by: str = ""  # what found it


def solution(
    polytope: Polytope,
    method: EquilibriumSystem,
    answer: Candidate,
    build: float,
    seconds: float,
    alpha: float,
    tol: float,
) -> Solution:
    """A point as tasks and prices of the cluster."""
    fractions = answer.point.tasks / method.gamma
    tasks = polytope.allocation(polytope.inside(fractions))
    prices = None
    if np.isfinite(alpha):
        prices = log_unit_prices(method, answer.point.log_price)
    status = "converged" if answer.error <= tol else "not converged"
    if np.isnan(answer.error):
        status = "not measured"  # PS-DSF: the judge alone says
    run = Run(answer.by, status, 0.0, seconds, answer.error)
    return Solution(
        tasks,
        None,
        "equilibrium",
        (run,),
        build,
        answer.steps,
        status,
        answer.notes,
        log=prices,
        rough=bool(np.isfinite(alpha)),
    )


def log_unit_prices(method: EquilibriumSystem, log_price: Array) -> Array:
    """Level prices, log v, as log prices per resource unit (servers, resources): `alpha log v - log c`."""
    capacity = method.polytope.cluster.capacity
    return np.where(method.row, method.alpha * log_price - np.log(np.where(method.row, capacity, 1.0)), -np.inf)
