"""The games of `entropy_homotopy`, followed to where nothing is left of 1/alpha.

At large alpha prices are `log v = a + b/alpha` and choices are made by b, which `alpha tau` has to be small for. First
alpha = 2^16, until `alpha tau` is 0.1; then alpha grows to 2^20 while that is held, prices going on linearly in
1/alpha; then tau falls on. Followed at 2^20 from the start curves bend more often, and with `alpha tau` small they have
kinks as alpha grows.

Whether prices determine it: an answer must not depend on weights that mean nothing (`Between.responses`). Users short
of the same resource on two servers are told apart there only by what other resources cost, less by a factor `c^alpha`:
soon less than any number can tell, while others' tasks may depend on it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..equilibrium.coupling import CoupledGame
from ..equilibrium.entropy_homotopy import GROW, MOST, Place, cooled, follow, newton
from ..model.equilibrium_system import EquilibriumSystem

Array = NDArray[np.float64]

#: alpha at first and at last, and `alpha tau` at first, on the way, at last, and what is cold enough for an answer.
_LOW, _HIGH = 2.0**16, 2.0**20
_WARM, _COLD, _COOL = 0.1, 1e-5, 1e-4
#: Systems until alpha grows, and after that.
_BEFORE, _AFTER = 1200, 400
#: Pairs times prices: beyond, systems take longer than best responses.
_WORK = 4e6
#: Beyond so many prices it was never the limit where in more than this part of (user, server) the user can do without a
#: resource (docs/game.md).
_ROWS, _LACKING = 64, 0.5
#: The first factor of alpha, the largest and the smallest.
_STEP, _LONGEST, _SHORTEST = 4.0, 16.0, 1.002
#: Random weights by which an answer is tried.
_WEIGHTS = 8


def furthest(equations: EquilibriumSystem) -> Place | None:
    """The last place on the way; None if there is none on it, or no hope."""
    lacking = (~(equations.use > 0) & equations.row[equations.server]).any(axis=1).mean()
    if len(equations.server) * equations.row.sum() > _WORK or (equations.row.sum() > _ROWS and lacking > _LACKING):
        return None
    low = EquilibriumSystem(equations.polytope, equations.weight, _LOW)
    place = _last(follow(low, _WARM / _LOW, _BEFORE))
    if place is None or place.tau > 1.01 * _WARM / _LOW:
        return place
    grown = _grown(place, _HIGH, place.steps + _AFTER)
    if grown.here.q.alpha < _HIGH:
        return grown
    return _last(cooled(grown, _COLD / _HIGH, grown.steps + _AFTER)) or grown


def solved(place: Place, most: float) -> Array | None:
    """Tasks at 1/alpha = 0, if the place is near it and they change by at most `most` with what means nothing."""
    here = place.here
    if here.q.alpha < _HIGH or here.tau * here.q.alpha > _COOL:
        return None
    rng = np.random.default_rng(0)
    choices = rng.uniform(-1, 1, (_WEIGHTS, len(here.q.server)))
    barriers = rng.uniform(-1, 1, (_WEIGHTS, *here.price.shape))
    return here.at_infinity() if here.responses(choices, barriers) <= most else None


def _last(places: Iterator[Place]) -> Place | None:
    """The last of them; None if there is none."""
    kept = deque(places, maxlen=1)
    return kept[0] if kept else None


def _grown(place: Place, alpha: float, budget: int) -> Place:
    """As far as `alpha` can grow towards that value while `alpha tau` is held."""
    here, steps, factor = place.here, place.steps, _STEP
    while here.q.alpha < alpha and steps < budget:
        slope = here.outward()
        steps += 1
        while slope is not None and factor > _SHORTEST:
            further = EquilibriumSystem(here.q.polytope, here.q.weight, min(factor * here.q.alpha, alpha))
            by = further.alpha / here.q.alpha
            guess = CoupledGame(further, here.price + (1 - 1 / by) * slope, here.tau / by, here.unit)
            there, taken = newton(guess, MOST)
            steps += taken
            if there is not None:
                here, factor = there, min(factor ** GROW[taken], _LONGEST)
                break
            factor = factor**0.4
        else:
            break
    return Place(here, steps)
