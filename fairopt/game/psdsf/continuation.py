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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...engines.base import ServerStart
from ...engines.linalg.step_control import FactorControl
from ...model._arrays import Array
from ..equilibrium.coupling import CoupledGame
from ..equilibrium.entropy_homotopy import STEPS, Place, cooled, follow, newton
from ..model.equilibrium_system import EquilibriumSystem
from .few_zeros import POWER, beginning

#: alpha at first and at last.
_LOW, _HIGH = 2.0**16, 2.0**20
#: `alpha tau` while alpha grows, at last, and the most for an answer.
_WARM, _COLD, _COOL = 0.1, 1e-5, 1e-4
#: Systems until alpha grows, and after that for each of the two stages.
_BEFORE, _AFTER = 1200, 400
#: Not tried if pairs times prices exceed this: systems take longer than best responses there.
_WORK = 4e6
#: Nor with more than `_ROWS` prices where more than the part `_LACKING` of (user, server) can do without a resource: it
#: was never the limit there (docs/psdsf.md).
_ROWS, _LACKING = 64, 0.5
#: Temperatures at which prices are kept for other users, and Newton steps from there to theirs; where these do not do,
#: a higher temperature is tried, and at last the whole stage.
_KEPT, _RESTART = (0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4), 8
#: Factors of alpha.
_FACTORS = FactorControl(4.0, 16.0, 1.002, 0.4, STEPS.grow)
#: Random weights by which an answer is tried.
_WEIGHTS = 8


@dataclass(frozen=True)
class PriceStart(ServerStart):
    """Prices to start from for other users on the same servers; whose tasks follow from these, so nobody is mapped.

    They are those of the first stage on its way. Where few users have changed, 3 to 6 systems lead to their prices at
    its end; where many have, they do so at a higher temperature.
    """

    servers: tuple[str, ...]
    resources: tuple[str, ...]
    unit: Array  # (servers,)
    way: tuple[tuple[float, Array], ...]  # tau, falling, and log prices (servers, resources), NaN where nobody pays any

    @classmethod
    def of(cls, way: Sequence[Place]) -> PriceStart:
        """Warm start from points of the first stage: its end, and the first below some temperatures."""
        q, cluster = way[-1].here.q, way[-1].here.q.polytope.cluster
        below = (next((place for place in way if place.tau <= tau), way[-1]) for tau in _KEPT)
        chosen = {place.tau: np.where(q.row, place.here.price, np.nan) for place in (*below, way[-1])}
        return cls(cluster.servers, cluster.resources, way[-1].here.unit, tuple(chosen.items()))

    def games(self, q: EquilibriumSystem) -> Iterator[CoupledGame]:
        """Games of a system at these prices, the coldest first, servers by name; none if it has others."""
        cluster = q.polytope.cluster
        if cluster.resources != self.resources or sorted(cluster.servers) != sorted(self.servers):
            return
        at = {name: i for i, name in enumerate(self.servers)}
        order = [at[name] for name in cluster.servers]
        unit = self.unit[order]
        for tau, kept in reversed(self.way):
            price = np.where(np.isnan(kept[order]), unit[:, None], kept[order])
            yield CoupledGame(q, price, tau, unit, most=POWER)


class Ends(NamedTuple):
    """End of the continuation, and its first stage, if that was completed."""

    last: Place
    first: Sequence[Place]


def furthest(equations: EquilibriumSystem, start: PriceStart | None = None) -> Ends | None:
    """The last place on the way; None if there is none on it, or no hope. With a start the first stage is skipped."""
    lacking = (~(equations.use > 0) & equations.row[equations.server]).any(axis=1).mean()
    rows = equations.row.sum()
    if len(equations.server) * rows > _WORK or (rows > _ROWS and lacking > _LACKING):
        return None
    low = EquilibriumSystem(equations.polytope, equations.weight, _LOW)
    last = _WARM / _LOW
    way = [] if start is None else _restarted(low, start, last)
    if not way and (begun := beginning(low)) is not None:
        way = list(cooled(begun, last, _BEFORE, warm=True))
    if not way or way[-1].tau > 1.01 * last:
        way = list(follow(low, last, _BEFORE, warm=True, most=POWER))
    if not way or low.alpha * way[-1].tau > 1:
        return None
    if way[-1].tau > 1.01 * last:
        return Ends(way[-1], ())
    grown = _grown(way[-1])
    if grown.here.q.alpha < _HIGH:
        return Ends(grown, way)
    for place in cooled(grown, _COLD / _HIGH, grown.steps + _AFTER):
        grown = place
    return Ends(grown, way)


def _restarted(low: EquilibriumSystem, start: PriceStart, last: float) -> list[Place]:
    """The first stage from prices of other users, from where these are near enough; empty where they never are."""
    systems = 0
    for game in start.games(low):
        found = newton(game, _RESTART)
        systems += found.systems
        if found.here is not None:
            first = Place(found.here, systems)
            way = [first, *cooled(first, last, systems + _BEFORE, warm=True)]
            if way[-1].tau <= 1.01 * last:
                return way
    return []


def solved(place: Place, most: float) -> Array | None:
    """Tasks at 1/alpha = 0, if the place is near it and they change by at most `most` with what means nothing."""
    here = place.here
    if here.q.alpha < _HIGH or here.tau * here.q.alpha > _COOL:
        return None
    rng = np.random.default_rng(0)
    choices = rng.uniform(-1, 1, (_WEIGHTS, len(here.q.server)))
    barriers = rng.uniform(-1, 1, (_WEIGHTS, *here.price.shape))
    return here.at_infinity() if here.responses(choices, barriers) <= most else None


def _grown(place: Place) -> Place:
    """Increase alpha towards `high` at constant `alpha tau`."""
    here, systems, control = place.here, place.steps, _FACTORS
    factor, budget = control.first, place.steps + _AFTER
    while here.q.alpha < _HIGH and systems < budget:
        slope = here.outward()
        systems += 1
        while slope is not None and factor > control.shortest:
            further = EquilibriumSystem(here.q.polytope, here.q.weight, min(factor * here.q.alpha, _HIGH))
            by = further.alpha / here.q.alpha
            guess = here.price + (1 - 1 / by) * slope
            game = CoupledGame(further, guess, here.tau / by, here.unit, most=POWER)
            there = newton(game, control.most)
            systems += there.systems
            if there.here is not None:
                here, factor = there.here, control.after(factor, there.steps)
                break
            factor = factor**control.shorter
        else:
            break
    return Place(here, systems)
