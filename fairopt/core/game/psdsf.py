"""PS-DSF as the limit of alphaPF-VDS for alpha to infinity.

PS-DSF allocations are not unique: where two users have equal ratios of gamma on two servers, who runs where is free.
Where demands are positive there is a greatest one, and it is the limit (docs/psdsf.md): `core.choices` finds it,
exactly and with a proof.

Otherwise (zero demands, task counts that bind) the games of `entropy_homotopy` are followed to where nothing is left of
1/alpha, and the limit is taken where it is well determined by prices. Elsewhere it is not found, nor do equilibria for
large alpha say what it is: their exploitability does not see what decides.

At large alpha prices are `log v = a + b/alpha` and choices are made by b, which `alpha tau` has to be small for. First
alpha = 2^16, until `alpha tau` is 0.1; then alpha grows to 2^20 while that is held, prices going on linearly in
1/alpha; then tau falls on. Followed at 2^20 from the start curves bend more often, and with `alpha tau` small they have
kinks as alpha grows.

Whether prices determine it: an answer must not depend on weights that mean nothing (`CoupledGame.responses`). Users
short of the same resource on two servers are told apart there only by what other resources cost, less by a factor
`c^alpha`: soon less than any number can tell, while others' tasks may depend on it.

With few zero demands the homotopy is started near its end, from two problems with positive demands. All others need
everything, and `core.choices` finds their prices in a few dozen Newton steps. What they leave of resources that are not
full goes to those who need only these, group by group, by the same algorithm on what is left: the price of such a
resource is below the others' by as much as their levels are higher. Both are prices of one game at a low temperature
but for the little that groups take from each other, which Newton's method puts right, or the homotopy is followed from
its beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from ...model._arrays import Array, Mask
from ...model.polytope import Polytope
from ..choices import Choices
from ..solution import ServerStart
from .continuation import StepControl
from .coupling import BARRIER, CoupledGame
from .elastic import elastic
from .entropy_homotopy import STEPS, Place, ahead, cooled, follow, newton
from .equilibrium_system import EquilibriumSystem, suppress_fp_warnings
from .rounds import Sweeps

#: It is tried where at most the part `_PART` of the users can do without a resource, and there are at least `_USERS`
#: for every price (of a resource of a server): with fewer it often fails, and saves little.
_PART, _USERS = 0.1, 2
#: The temperature, and Newton steps.
_TAU, _MOST = 1e-5, 24
#: A resource is full of which this part idles at most; others are cheaper by `_BELOW _TAU`, in logs.
_FULL, _BELOW = 1e-3, 3.0
#: Barriers of the first power of prices: with less the limit was lost on one of the clusters tried.
POWER = 1.0


def _beginning(q: EquilibriumSystem) -> Place | None:
    """The game at the temperature `_TAU`; None with too many users who lack a resource or prices, or not found."""
    if len(q.weight) < _USERS * int(q.row.sum()):
        return None
    lacking = ~(q.use > 0) & q.row[q.server]
    lacks = np.add.reduceat(lacking.any(axis=1), q.start[:-1]) > 0
    if not 0 < lacks.sum() <= _PART * len(lacks) or len(q.limited):
        return None
    found = _filled(q, ~lacks, np.ones_like(q.row, dtype=float), _TAU)
    if found is None:
        return None
    price, used, steps = found
    idle = np.maximum(1 - used, 0.0)
    top = price.max(axis=1, initial=-np.inf, where=used > 1 - _FULL)
    barrier = np.log(BARRIER * _TAU / np.maximum(idle, _FULL))
    log_price = np.where(used > 1 - _FULL, top[:, None], np.minimum(barrier, top[:, None] - _BELOW * _TAU))
    needs = [tuple(row) for row in q.polytope.cluster.demand[q.polytope.users] > 0]
    for group in {needs[n] for n in np.flatnonzero(lacks)}:
        mine = np.array([lacks[n] and needs[n] == group for n in range(len(lacks))])
        left = _filled(q, mine, np.where(idle > _FULL, idle, 0.0), _TAU)
        if left is None:
            return None
        of_group = np.array(group) & (left[1] > 1 - _FULL) & (idle > _FULL)
        log_price = np.where(of_group, left[0] - np.log(np.maximum(idle, _FULL)), log_price)
        steps += left[2]
    game = CoupledGame(q, log_price, _TAU, np.zeros(len(q.row)), most=POWER)
    there = newton(game, _MOST)
    return None if there.here is None else Place(there.here, steps + there.systems)


def _filled(q: EquilibriumSystem, users: Mask, part: Array, tau: float) -> tuple[Array, Array, int] | None:
    """Log prices and use (servers, resources), of what they have, and the steps, where some users share a part of all.

    Every resource of a server has the price of the server; None where that is not found.
    """
    whole = q.polytope.cluster
    names = [whole.users[n] for n in q.polytope.users[users]]
    shared = whole.replace(capacity=whole.capacity * part).select(names, whole.servers)
    polytope = Polytope(shared, shared.max_tasks)
    if len(polytope.users) != len(names):
        return None
    system = EquilibriumSystem(polytope, q.weight[users], q.alpha)
    found = Choices(system)
    found.cool(tau)
    return (
        (np.repeat(found.price[:, None], part.shape[1], axis=1), found.used, found.steps) if found.tau <= tau else None
    )


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
#: Lengths in log2 alpha: whole ones lead from power of 2 to power of 2.
_FACTORS = StepControl(2.0, 4.0, float(np.log2(1.002)), 0.4, STEPS.grow)
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
    low = equations.at(_LOW)
    last = _WARM / _LOW
    way = [] if start is None else _restarted(low, start, last)
    if not way and (begun := _beginning(low)) is not None:
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
    length, budget = control.first, place.steps + _AFTER
    while here.q.alpha < _HIGH and systems < budget:
        slope = here.outward()
        systems += 1
        if slope is None:
            break

        def steeper(length: float, at: CoupledGame = here, slope: Array = slope) -> CoupledGame:
            """Game with log2 alpha higher by `length`, at the prices to be expected."""
            alpha = min(2.0**length * at.q.alpha, _HIGH)
            by = alpha / at.q.alpha
            return CoupledGame(at.q.at(alpha), at.price + (1 - 1 / by) * slope, at.tau / by, at.unit, most=POWER)

        found, more, length = ahead(steeper, length, control)
        systems += more
        if found is None:
            break
        here = found
    return Place(here, systems)


#: Temperatures of choices at which the greatest allocation is looked for.
_TRIES = (1e-5, 1e-7)
#: By what part the limit may change with weights that mean nothing, whatever the tolerance: seen were changes below
#: 1e-9 and above 1e-3; and by what part exact responses may move it.
_UNMOVED, _STAYS = 1e-7, 1e-5
#: Rounds of elastic responses between two looks.
_ROUNDS = (2, 48, 50, 100, 200, 400, 800, 1600, 3200, 6400)
_OTHER = "PS-DSF found by best responses: not shown to be the limit of alphaPF-VDS, which it need not be"


@dataclass(frozen=True)
class Found:
    """Tasks of pairs in the user's largest gamma, what found them in how many steps, and where others may start."""

    tasks: Array
    by: str
    steps: int
    notes: tuple[str, ...] = ()
    prices: PriceStart | None = None


@suppress_fp_warnings
def limit(method: EquilibriumSystem, tol: float, prices: PriceStart | None = None) -> Iterator[Found]:
    """The greatest where there is one; the limit followed; should neither be found, what best responses reach.

    alpha of the method counts where nothing is followed.
    """
    near = Choices(method) if method.positive else None
    if near is not None:
        for exact in _greatest(method, near):
            yield exact
            # One round of exact responses takes away what the linear program's tolerance has left.
            rounded = Sweeps(method, np.inf)
            state = rounded.start(exact.tasks)
            rounded.gauss_seidel(state)
            yield replace(exact, tasks=state.tasks)
    ends, start = furthest(method, prices), Found(np.empty(0), "best responses", 0)
    if ends is None and near is not None and near.tau <= _TRIES[-1]:
        tasks: Array = np.bincount(near.pairs, near.tasks, len(method.server)).astype(float)
        start = replace(start, tasks=tasks * np.minimum(method.limit / method.sums(tasks), 1.0)[method.user])
    elif ends is None:
        start = replace(start, tasks=method.begin(0.3))
    else:
        place = ends.last
        offered = PriceStart.of(ends.first) if ends.first else None
        start = replace(start, tasks=place.here.tasks, steps=place.steps, prices=offered)
        followed = solved(place, _UNMOVED)
        if followed is not None:
            yield from _rounded(method, replace(start, tasks=followed), tol)
    yield from _responses(method, start, _ROUNDS, tol)


def _greatest(method: EquilibriumSystem, near: Choices) -> Iterator[Found]:
    """The greatest PS-DSF allocation, once it is proved to be that, and if no task count binds there."""
    for tau in _TRIES:
        near.cool(tau)
        tasks, proved = near.greatest()
        if proved.all():
            if (method.sums(tasks) < method.limit * (1 - 1e-9)).all():
                yield Found(tasks, "linear programs", near.steps)
            return


def _rounded(method: EquilibriumSystem, found: Found, tol: float) -> Iterator[Found]:
    """The limit as it was followed, then exact responses to it that stay there."""
    found = replace(found, by="equilibria followed to infinity")
    yield found
    for answer in _responses(method, found, (1, 1), tol):
        if _apart(method, answer.tasks, found.tasks) <= min(10 * tol, _STAYS):
            yield replace(answer, by=found.by, notes=())


def _responses(method: EquilibriumSystem, found: Found, looks: tuple[int, ...], tol: float) -> Iterator[Found]:
    """Elastic responses from a point: what each number of rounds in `looks` leads to."""
    sweeps = Sweeps(method, np.inf)
    state = sweeps.start(found.tasks)
    game = elastic(sweeps, state, highest=64.0)  # with zero demands larger caps take half as long again
    for rounds in looks:
        for change, *_ in islice(game, rounds):
            if change < 0.1 * tol:
                break
        yield replace(found, tasks=state.tasks.copy(), notes=(_OTHER,), by="best responses")


def _apart(method: EquilibriumSystem, one: Array, other: Array) -> float:
    """Largest relative difference in anybody's tasks."""
    return float(np.abs(method.sums(one) / method.sums(other) - 1).max())
