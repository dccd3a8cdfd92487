"""From a point of the interior point at one alpha to the like point at another, at constant mu.

A point near an equilibrium is a bad start for the next alpha: other pairs run tasks there, whose products `x slack`
are next to zero, and steps stay short. At mu about 1e-3 all products are alike, and one or two Newton steps aiming at
the same mu bring the equations of the next alpha into order; mu falls only after that. Where a step is short mu was
too small for so different an alpha, and is raised; every following alpha tries half of it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .equations import Equations, Point
from .linearised import SINGLE, Linearised

#: Followed once nothing is wrong by more than this, relative; most steps.
_NEAR, _MOST = 0.1, 12
#: mu is that of the last alpha times the first, but at least the second, over alpha/4 where alpha is larger, and at
#: most the third; it is multiplied by `_RAISE` after a step that is shorter than `_SHORT`.
_LOWER, _LEAST, _LARGEST = 0.5, 1e-3, 0.1
_SHORT, _RAISE = 0.3, 3.0


def followed(equations: Equations, point: Point) -> tuple[Point | None, int]:
    """The point for the alpha of `equations`, or None where it is too far, and the Newton steps taken."""
    alpha = equations.alpha
    mu = max(_LOWER * point.mu, _LEAST / max(1.0, alpha / equations.power))
    point = point.measured(equations.power)
    for steps in range(_MOST + 1):
        here = Linearised(equations, point, alpha, alpha, point.mu > SINGLE)
        if not np.isfinite(here.average):
            break
        if steps and here.residual < _NEAR:
            return point, steps
        step = here.corrected(mu, here.newton(0.0))
        t = here.damped(step, mu)
        point = replace(here.moved(step, t), mu=mu)
        if t < _SHORT:
            mu = min(_RAISE * mu, _LARGEST)
    return None, steps
