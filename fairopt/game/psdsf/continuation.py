"""The games of `entropy_homotopy` at a large alpha, followed to where nothing is left of 1/alpha.

At large alpha prices are `log v = a + b/alpha` and choices are made by b, which `alpha tau` has to be small for: at
alpha = 2^16 tau falls until it is 1e-5. What is left is of the order 1/alpha, and taken away by its derivative.

Whether prices determine it: an answer must not depend on weights that mean nothing (`CoupledGame.responses`). Users
short of the same resource on two servers are told apart there only by what other resources cost, less by a factor
`c^alpha`: soon less than any number can tell, while others' tasks may depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...engines.base import ServerStart
from ..equilibrium.coupling import CoupledGame
from ..equilibrium.entropy_homotopy import Place, cooled, follow, newton
from ..model.equilibrium_system import EquilibriumSystem
from .few_zeros import beginning
from .options import OPTIONS, ContinuationOptions

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PriceStart(ServerStart):
    """Prices to start from for other users on the same servers; whose tasks follow from these, so nobody is mapped.

    They are those at some temperatures on its way. Where few users have changed, 3 to 6 systems lead to their prices
    at the lowest; where many have, they do so at a higher one.
    """

    servers: tuple[str, ...]
    resources: tuple[str, ...]
    unit: Array  # (servers,)
    way: tuple[tuple[float, Array], ...]  # tau, falling, and log prices (servers, resources), NaN where nobody pays any

    @classmethod
    def of(cls, way: Sequence[Place], options: ContinuationOptions) -> PriceStart:
        """From places on the way: the first below some temperatures."""
        q, cluster = way[-1].here.q, way[-1].here.q.polytope.cluster
        below = (next((place for place in way if place.tau <= tau), way[-1]) for tau in options.kept)
        chosen = {place.tau: np.where(q.row, place.here.price, np.nan) for place in below}
        return cls(cluster.servers, cluster.resources, way[-1].here.unit, tuple(chosen.items()))

    def games(self, q: EquilibriumSystem, options: ContinuationOptions) -> Iterator[CoupledGame]:
        """Games of a system at these prices, the coldest first, servers by name; none if it has others."""
        cluster = q.polytope.cluster
        if cluster.resources != self.resources or sorted(cluster.servers) != sorted(self.servers):
            return
        at = {name: i for i, name in enumerate(self.servers)}
        order = [at[name] for name in cluster.servers]
        unit = self.unit[order]
        for tau, kept in reversed(self.way):
            price = np.where(np.isnan(kept[order]), unit[:, None], kept[order])
            yield CoupledGame(q, price, tau, unit, most=options.power)


def furthest(
    equations: EquilibriumSystem,
    options: ContinuationOptions = OPTIONS.continuation,
    start: PriceStart | None = None,
) -> list[Place]:
    """The way, as far as it leads; empty if there is nothing on it, or no hope. With a start only its last stretch."""
    lacking = (~(equations.use > 0) & equations.row[equations.server]).any(axis=1).mean()
    rows = equations.row.sum()
    if len(equations.server) * rows > options.work or (rows > options.rows and lacking > options.lacking):
        return []
    q = EquilibriumSystem(equations.polytope, equations.weight, options.alpha)
    last, enough = options.cold / q.alpha, options.warm / q.alpha
    way = [] if start is None else _restarted(q, start, last, options)
    if not way and (begun := beginning(q, options)) is not None:
        way = list(cooled(begun, last, options.systems, warm=True))
    if not way or way[-1].tau > enough:
        way = list(follow(q, last, options.systems, warm=True, most=options.power))
    return [] if not way or q.alpha * way[-1].tau > 1 else way


def _restarted(q: EquilibriumSystem, start: PriceStart, last: float, options: ContinuationOptions) -> list[Place]:
    """From prices of other users, from where these are near enough; empty where they never are."""
    systems = 0
    for game in start.games(q, options):
        found = newton(game, options.restart)
        systems += found.systems
        if found.here is not None:
            way = [Place(found.here, systems)]
            way += cooled(way[0], last, systems + options.systems, warm=True)
            if q.alpha * way[-1].tau <= options.warm:
                return way
    return []


def solved(place: Place, most: float, options: ContinuationOptions = OPTIONS.continuation) -> Array | None:
    """Tasks at 1/alpha = 0, if the place is near it and they change by at most `most` with what means nothing."""
    here = place.here
    if here.tau * here.q.alpha > options.cool:
        return None
    rng = np.random.default_rng(0)
    choices = rng.uniform(-1, 1, (options.weights, len(here.q.server)))
    barriers = rng.uniform(-1, 1, (options.weights, *here.price.shape))
    return here.at_infinity() if here.responses(choices, barriers) <= most else None
