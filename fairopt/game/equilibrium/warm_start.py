"""From a point of the interior point at one alpha to the like point at another, at constant mu.

A point near an equilibrium is a bad start for the next alpha: other pairs run tasks there, whose products `x slack`
are next to zero, and steps stay short. At mu about 1e-3 all products are alike, and one or two Newton steps aiming at
the same mu bring the equations of the next alpha into order; mu falls only after that. Where a step is short mu was
too small for so different an alpha, and is raised; every following alpha tries half of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...model.problem import Problem
from ..model.equilibrium_system import EquilibriumPoint, EquilibriumSystem
from .kkt_system import KKTSystem


@dataclass(frozen=True)
class WarmStart:
    """What a solution offers to the next alpha: a point, and its game, which is the same but for alpha."""

    point: EquilibriumPoint
    equations: EquilibriumSystem
    limits: NDArray[np.float64]  # of all users

    def game(self, problem: Problem) -> EquilibriumSystem | None:
        """The game of a problem, or None if more than alpha is another."""
        cluster, criterion = problem.cluster, problem.criterion
        known = self.equations.polytope
        if known.cluster is not cluster or not np.array_equal(problem.limits, self.limits):
            return None
        same = np.array_equal(criterion.weight[known.users], self.equations.weight)
        return self.equations.at(criterion.alpha) if same else None

    def fits(self, equations: EquilibriumSystem) -> bool:
        """Has the point as many pairs and prices, and an alpha that is not so far that nothing is saved?"""
        shapes = equations.gamma.shape, equations.row.shape
        far = abs(np.log(equations.alpha / self.equations.alpha)) > np.log(2.5)
        return not far and (self.point.tasks.shape, self.point.idle.shape) == shapes


def followed(equations: EquilibriumSystem, point: EquilibriumPoint) -> tuple[EquilibriumPoint | None, int]:
    """The point for the alpha of `equations`, or None where it is too far, and the Newton steps taken."""
    alpha, most = equations.alpha, 12
    mu = max(0.5 * point.mu, 1e-3 / max(1.0, alpha / equations.power))
    point = point.measured(equations.power)
    for steps in range(most + 1):
        here = KKTSystem(equations, point, alpha, alpha, True)
        if not np.isfinite(here.average):
            break
        if steps and here.residual() < 0.1:
            return point, steps
        step = here.corrected(mu, here.newton(0.0))
        t = here.damped(step, mu)
        point = replace(here.moved(step, t), mu=mu)
        if t < 0.3:
            mu = min(3.0 * mu, 0.1)
    return None, steps
