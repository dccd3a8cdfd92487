"""The games of `entropy_homotopy`, followed to where nothing is left of 1/alpha.

At large alpha prices are `log v = a + b/alpha` and choices are made by b, which `alpha tau` has to be small for. First
alpha = 2^16, until `alpha tau` is 0.1; then alpha grows to 2^20 while that is held, prices going on linearly in
1/alpha; then tau falls on. Followed at 2^20 from the start curves bend more often, and with `alpha tau` small they have
kinks as alpha grows.

Whether prices determine it: an answer must not depend on weights that mean nothing (`CoupledGame.responses`). Users
short of the same resource on two servers are told apart there only by what other resources cost, less by a factor
`c^alpha`: soon less than any number can tell, while others' tasks may depend on it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..equilibrium.coupling import CoupledGame
from ..equilibrium.entropy_homotopy import Place, cooled, follow, newton
from ..model.equilibrium_system import EquilibriumSystem
from .few_zeros import beginning
from .options import OPTIONS, ContinuationOptions

Array = NDArray[np.float64]


def furthest(equations: EquilibriumSystem, options: ContinuationOptions = OPTIONS.continuation) -> Place | None:
    """The last place on the way; None if there is none on it, or no hope."""
    lacking = (~(equations.use > 0) & equations.row[equations.server]).any(axis=1).mean()
    rows = equations.row.sum()
    if len(equations.server) * rows > options.work or (rows > options.rows and lacking > options.lacking):
        return None
    low = EquilibriumSystem(equations.polytope, equations.weight, options.low)
    warm, begun = options.warm / options.low, beginning(low, options)
    place = None if begun is None else _last(cooled(begun, warm, options.systems_before, options.homotopy))
    if place is None or place.tau > 1.01 * warm:
        place = _last(follow(low, warm, options.systems_before, options.homotopy))
    if place is None or place.tau > 1.01 * warm:
        return place
    grown = _grown(place, options)
    if grown.here.q.alpha < options.high:
        return grown
    budget = grown.steps + options.systems_after
    return _last(cooled(grown, options.cold / options.high, budget, options.homotopy)) or grown


def solved(place: Place, most: float, options: ContinuationOptions = OPTIONS.continuation) -> Array | None:
    """Tasks at 1/alpha = 0, if the place is near it and they change by at most `most` with what means nothing."""
    here = place.here
    if here.q.alpha < options.high or here.tau * here.q.alpha > options.cool:
        return None
    rng = np.random.default_rng(0)
    choices = rng.uniform(-1, 1, (options.weights, len(here.q.server)))
    barriers = rng.uniform(-1, 1, (options.weights, *here.price.shape))
    return here.at_infinity() if here.responses(choices, barriers) <= most else None


def _last(places: Iterator[Place]) -> Place | None:
    """The last of them; None if there is none."""
    kept = deque(places, maxlen=1)
    return kept[0] if kept else None


def _grown(place: Place, options: ContinuationOptions) -> Place:
    """As far as alpha can grow towards `high` while `alpha tau` is held."""
    here, systems, control, homotopy = place.here, place.steps, options.factors, options.homotopy
    factor, budget = control.first, place.steps + options.systems_after
    while here.q.alpha < options.high and systems < budget:
        slope = here.outward()
        systems += 1
        while slope is not None and factor > control.shortest:
            further = EquilibriumSystem(here.q.polytope, here.q.weight, min(factor * here.q.alpha, options.high))
            by = further.alpha / here.q.alpha
            guess = here.price + (1 - 1 / by) * slope
            game = CoupledGame(further, guess, here.tau / by, here.unit, options=homotopy.coupling)
            there = newton(game, control.most, homotopy)
            systems += there.systems
            if there.here is not None:
                here, factor = there.here, control.after(factor, there.steps)
                break
            factor = factor**control.shorter
        else:
            break
    return Place(here, systems)
