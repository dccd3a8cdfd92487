r"""PS-DSF as the limit of alphaPF-VDS for alpha to infinity.

PS-DSF allocations are not unique: where two users have equal ratios of gamma on two servers, the split of their tasks
between the servers is not determined. If all demands are positive there is a greatest allocation, which is the limit
(docs/psdsf.md); `core.choices` computes it with a proof.

Otherwise (zero demands, binding task limits) the games of `entropy_homotopy` are followed to 1/alpha = 0, and the
result is the limit if prices determine it well. If they do not, the limit is not found. Equilibria at large alpha do
not show the limit either, since the terms that determine it are smaller than the accuracy of exploitabilities.

At large alpha log prices are :math:`\log v = a + b/\alpha`. Choices among servers depend on b, provided that
:math:`\alpha \tau` is small. The path has three stages: tau decreases at alpha = 2^16 until :math:`\alpha \tau` is 0.1;
alpha grows to 2^20 at this product, with prices extrapolated linearly in 1/alpha; then tau decreases further. With
alpha = 2^20 from the beginning curves have more folds, and with a smaller product they have kinks as alpha grows.

Whether prices determine the limit is measured by perturbing the arbitrary weights of the smoothed choice, which must
not change it (`CoupledGame.responses`). For users limited by the same resource on two servers the difference of costs
is the cost of other resources, whose shares vanish like :math:`c^\alpha` with c < 1 and soon underflow, although tasks
of other users may depend on this difference.

If few users lack demand for some resource, the homotopy starts near its end, from prices of problems with positive
demands. The first problem has all other users, and is solved by `core.choices` in a few dozen Newton steps. Then for
each group of users who demand the same resources a problem on the remaining capacity of these resources is solved; the
log price of such a resource is lower by as much as the log levels of the group are higher. The combined prices are
nearly the prices of the game at a low temperature, except that groups compete with each other, which Newton's method
corrects; if that fails, the homotopy is followed from tau = 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ...model._arrays import Array, Mask
from ...model.polytope import Polytope
from ..accuracy import CORRECTIONS, SHORTER, SINGLE_ROUNDING
from ..choices import EVALUATIONS, LAST_TAU, Choices
from ..solution import ServerStart
from ..system import AT_LIMIT
from .continuation import StepControl
from .coupling import BARRIER, CoupledGame
from .elastic import elastic
from .entropy_homotopy import STEPS, Place, ahead, cooled, follow, newton
from .equilibrium_system import EquilibriumSystem, suppress_fp_warnings
from .rounds import Sweeps, settle

#: A start near the end is tried if at most the fraction `_PART` of the users lacks demand for a resource, and there are
#: at least `_USERS` users per price: with fewer users such a start often fails, and saves little time.
_PART, _USERS = 0.1, 2
#: Temperature of a start near the end (`_TAU`), and largest number of Newton steps from it (`_MOST`).
_TAU, _MOST = LAST_TAU, EVALUATIONS
#: Idle fraction up to which a resource counts as full (`_FULL`); log prices of other resources are lower than the
#: server's largest log price by at least `_BELOW` times tau.
_FULL, _BELOW = 1e-3, 3.0
#: Power of prices in barrier terms; with 1/2 the limit was not found on one of the clusters that were tried.
POWER = 1.0


def _beginning(q: EquilibriumSystem) -> Place | None:
    """Point of the homotopy at the temperature `_TAU`, from prices of problems with positive demands.

    None if no user or too many users lack demand for a resource, if there are too few users per price or a task limit,
    or if one of the problems is not solved or Newton's method fails.
    """
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
    """Smoothed PS-DSF of some `users` (a mask) on fractions `part` (servers, resources) of all capacities.

    Returns log prices (servers, resources), equal for all resources of a server, use (servers, resources) as a fraction
    of the capacities that are available, and the number of Newton steps; None if one of the users can run nowhere or
    `tau` is not attained.
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


#: First and last alpha of the path.
_LOW, _HIGH = 2.0**16, 2.0**20
#: Product of alpha and tau while alpha grows (`_WARM`), at the end of the path (`_COLD`), and largest product at which
#: a point is extrapolated to the limit (`_COOL`).
_WARM, _COLD = 0.1, 1e-5
_COOL = 10 * _COLD
#: Largest number of linear systems in each of the last two stages (`_AFTER`), and in the first stage (`_BEFORE`).
_AFTER = 400
_BEFORE = 3 * _AFTER
#: Product of numbers of pairs and prices above which the path is not followed: best responses are faster.
_WORK = 4e6
#: The path is also not followed with more than `_ROWS` prices if more than the fraction `_LACKING` of the pairs lacks
#: demand for some resource: in such problems its end was never the limit (docs/psdsf.md).
_ROWS, _LACKING = 64, 0.5
#: Temperatures at which prices are stored as warm starts of problems with other users of the same servers (`_KEPT`),
#: and largest number of Newton steps from them (`_RESTART`). If these steps do not suffice at one temperature, the next
#: higher temperature is tried; if they suffice at no temperature, the first stage runs from its beginning.
_KEPT, _RESTART = (0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4), CORRECTIONS
#: Step control in log2 alpha; steps of integer length lead from a power of 2 to a power of 2.
_FACTORS = StepControl(2.0, 4.0, float(np.log2(1.002)), SHORTER, STEPS.grow)
#: Number of random perturbations of weights by which a limit is tested.
_WEIGHTS = 8
#: A temperature counts as attained up to this factor.
_ATTAINED = 1.01


@dataclass(frozen=True)
class PriceStart(ServerStart):
    """Warm start with prices of servers for a problem with other users, whose tasks follow from prices.

    Prices are stored at several temperatures of the first stage. If few users have changed, 3 to 6 linear systems lead
    to the new prices at the last temperature; if many have changed, to the new prices at a higher temperature.
    """

    servers: tuple[str, ...]
    resources: tuple[str, ...]
    unit: Array  # (servers,)
    way: tuple[tuple[float, Array], ...]  # decreasing tau; log prices (servers, resources), NaN for unused rows

    @classmethod
    def of(cls, way: Sequence[Place]) -> PriceStart:
        """Warm start from the last point of the first stage, and the first at or below each temperature of `_KEPT`."""
        q, cluster = way[-1].here.q, way[-1].here.q.polytope.cluster
        below = (next((place for place in way if place.tau <= tau), way[-1]) for tau in _KEPT)
        chosen = {place.tau: np.where(q.row, place.here.price, np.nan) for place in (*below, way[-1])}
        return cls(cluster.servers, cluster.resources, way[-1].here.unit, tuple(chosen.items()))

    def games(self, q: EquilibriumSystem) -> Iterator[CoupledGame]:
        """Games of the system q at the stored prices, lowest tau first; empty if names of rows differ."""
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
    """End of the continuation, and points of its first stage, empty unless that stage was completed."""

    last: Place
    first: Sequence[Place]


def furthest(equations: EquilibriumSystem, start: PriceStart | None = None) -> Ends | None:
    """Last point of the path to PS-DSF; None if the path is not followed (`_WORK`, `_ROWS`) or does not begin.

    The first stage lowers the temperature at alpha = `_LOW`, from a warm `start` if there is one. The second stage
    raises alpha, to `_HIGH` if it succeeds. The last stage lowers the temperature at `_HIGH`.
    """
    lacking = (~(equations.use > 0) & equations.row[equations.server]).any(axis=1).mean()
    rows = equations.row.sum()
    if len(equations.server) * rows > _WORK or (rows > _ROWS and lacking > _LACKING):
        return None
    low = equations.at(_LOW)
    last = _WARM / _LOW
    way = [] if start is None else _restarted(low, start, last)
    if not way and (begun := _beginning(low)) is not None:
        way = list(cooled(begun, last, _BEFORE, warm=True))
    if not way or way[-1].tau > _ATTAINED * last:
        way = list(follow(low, last, _BEFORE, warm=True, most=POWER))
    if not way or low.alpha * way[-1].tau > 1:
        return None
    if way[-1].tau > _ATTAINED * last:
        return Ends(way[-1], ())
    grown = _grown(way[-1])
    if grown.here.q.alpha < _HIGH:
        return Ends(grown, way)
    for place in cooled(grown, _COLD / _HIGH, grown.steps + _AFTER):
        grown = place
    return Ends(grown, way)


def _restarted(low: EquilibriumSystem, start: PriceStart, last: float) -> list[Place]:
    """First stage from prices at the lowest stored temperature from which its end is attained; empty without one."""
    systems = 0
    for game in start.games(low):
        found = newton(game, _RESTART)
        systems += found.systems
        if found.here is not None:
            first = Place(found.here, systems)
            way = [first, *cooled(first, last, systems + _BEFORE, warm=True)]
            if way[-1].tau <= _ATTAINED * last:
                return way
    return []


def solved(place: Place, most: float) -> Array | None:
    """Tasks (pairs,) extrapolated to 1/alpha = 0; None if the point is far from it, or prices do not determine tasks.

    Prices count as not determining the tasks if random perturbations of the log weights of choices and of barrier
    terms, which must have no effect in the limit, change user tasks by more than `most`, relatively.
    """
    here = place.here
    if here.q.alpha < _HIGH or here.tau * here.q.alpha > _COOL:
        return None
    rng = np.random.default_rng(0)
    choices = rng.uniform(-1, 1, (_WEIGHTS, len(here.q.server)))
    barriers = rng.uniform(-1, 1, (_WEIGHTS, *here.price.shape))
    return here.at_infinity() if here.responses(choices, barriers) <= most else None


def _grown(place: Place) -> Place:
    """Second stage: the point of largest alpha up to `_HIGH` that is attained at constant `alpha tau`."""
    here, systems, control = place.here, place.steps, _FACTORS
    length, budget = control.first, place.steps + _AFTER
    while here.q.alpha < _HIGH and systems < budget:
        slope = here.outward()
        systems += 1
        if slope is None:
            break

        def steeper(length: float, at: CoupledGame = here, slope: Array = slope) -> CoupledGame:
            """Game with log2 alpha higher by `length`, at prices extrapolated linearly in 1/alpha."""
            alpha = min(2.0**length * at.q.alpha, _HIGH)
            by = alpha / at.q.alpha
            return CoupledGame(at.q.at(alpha), at.price + (1 - 1 / by) * slope, at.tau / by, at.unit, most=POWER)

        found, more, length = ahead(steeper, length, control)
        systems += more
        if found is None:
            break
        here = found
    return Place(here, systems)


#: Temperatures of choices at which ties are identified; the second is used if the first gives no proof.
_TRIES = LAST_TAU, SINGLE_ROUNDING
#: Last temperature of choices of a sample of users.
_SAMPLE_TAU = 3e-3
#: Largest relative change of user tasks by perturbations of arbitrary weights (`_UNMOVED`; observed changes are below
#: 1e-9 or above 1e-3), and by exact responses to the limit (`_STAYS`).
_UNMOVED, _STAYS = SINGLE_ROUNDING, 1e-5
#: Largest cap of slopes of elastic responses: with zero demands larger caps required 1.5 times as many rounds.
_HIGHEST_CAP = 64.0
#: Change of tasks in a round, relative to the tolerance, at which responses end.
_CONVERGED = 0.1
#: Rounds of elastic responses between two candidates.
_ROUNDS = 2, 48, *(50 * 2**k for k in range(8))
#: Responses end without an answer if a server would still change its tasks by more than `_WANDERS`, relatively, after
#: `_LEAST_ROUNDS` rounds and after `_PATIENCE` rounds divided by the number of pairs. With many resources and zero
#: demands the resources of a server are complements, and states of hundreds of users may not converge.
_LEAST_ROUNDS, _PATIENCE, _WANDERS = 400, 1e7, 1e-3
_OTHER = "PS-DSF by best responses: not proved to be the limit of alphaPF-VDS, from which it may differ"


@dataclass(frozen=True)
class Found:
    """Tasks (pairs,) in units of the user's largest gamma, method, number of steps, notes, and warm start `prices`."""

    tasks: Array
    by: str
    steps: int
    notes: tuple[str, ...] = ()
    prices: PriceStart | None = None


@suppress_fp_warnings
def limit(
    method: EquilibriumSystem,
    tol: float,
    prices: PriceStart | None = None,
    sample: EquilibriumSystem | None = None,
) -> Iterator[Found]:
    """Candidates for PS-DSF, in this order: greatest allocation, limit of the path in alpha, states of best responses.

    1. With positive demands the greatest allocation, as computed, and after a round of exact responses.
    2. The end of the path of `furthest`, extrapolated to 1/alpha = 0, if prices determine it.
    3. States of elastic best responses from the end of the path, from smoothed choices if no path was followed, or from
       an initial allocation. Only the initial allocation depends on the alpha of `method`.

    The next candidate is computed only if the certificate rejects the last one. For a crowd smoothed choices begin at
    the prices of a `sample` of users.
    """
    near = _choices(method, sample) if method.positive else None
    if near is not None:
        for exact in _greatest(method, near):
            yield exact
            # One round of exact responses removes the error of the linear programs' tolerance.
            rounded = Sweeps(method, np.inf)
            state = rounded.start(exact.tasks)
            rounded.gauss_seidel(state)
            yield replace(exact, tasks=state.tasks)
    ends, start = furthest(method, prices), Found(np.empty(0), "best responses", 0)
    if ends is None and near is not None and near.tau <= _TRIES[-1]:
        tasks: Array = np.bincount(near.pairs, near.tasks, len(method.server)).astype(float)
        start = replace(start, tasks=tasks * np.minimum(method.limit / method.sums(tasks), 1.0)[method.user])
    elif ends is None:
        start = replace(start, tasks=method.begin())
    else:
        place = ends.last
        offered = PriceStart.of(ends.first) if ends.first else None
        start = replace(start, tasks=place.here.tasks, steps=place.steps, prices=offered)
        followed = solved(place, _UNMOVED)
        if followed is not None:
            yield from _rounded(method, replace(start, tasks=followed), tol)
    yield from _responses(method, start, _ROUNDS, tol)


def _choices(method: EquilibriumSystem, sample: EquilibriumSystem | None) -> Choices:
    """Smoothed choices, from the prices of a sample of users if ties can be identified from there."""
    if sample is not None:
        few = Choices(sample)
        few.cool(_SAMPLE_TAU)
        near = Choices(method, start=few)
        near.cool(_TRIES[0])
        if near.tau <= _TRIES[0]:
            return near
    return Choices(method)


def _greatest(method: EquilibriumSystem, near: Choices) -> Iterator[Found]:
    """Yield the greatest PS-DSF allocation, or nothing if it is not proved to be greatest or a task limit binds."""
    for tau in _TRIES:
        near.cool(tau)
        tasks, proved = near.greatest()
        if proved.all():
            if (method.sums(tasks) < method.limit * (1 - AT_LIMIT)).all():
                yield Found(tasks, "linear programs", near.steps)
            return


def _rounded(method: EquilibriumSystem, found: Found, tol: float) -> Iterator[Found]:
    """Yield the limit of the path, then the states after one and two rounds of best responses from it.

    A state is left out if user tasks differ, relatively, by more than the smaller of `10 tol` and `_STAYS`.
    """
    found = replace(found, by="equilibria followed to infinity")
    yield found
    for answer in _responses(method, found, (1, 1), tol):
        if _apart(method, answer.tasks, found.tasks) <= min(10 * tol, _STAYS):
            yield replace(answer, by=found.by, notes=())


def _responses(method: EquilibriumSystem, found: Found, looks: tuple[int, ...], tol: float) -> Iterator[Found]:
    """Yield states of elastic best responses from a point; `looks` are the numbers of rounds before each state.

    The iteration ends early if, after many rounds (`_LEAST_ROUNDS`, `_PATIENCE`), a server would still change its tasks
    by more than `_WANDERS`.
    """
    sweeps, played = Sweeps(method, np.inf), 0
    state = sweeps.start(found.tasks)
    game, most = elastic(sweeps, state, highest=_HIGHEST_CAP), max(_LEAST_ROUNDS, _PATIENCE / len(method.server))
    for rounds in looks:
        left = math.ceil(most - played)
        played += settle(game, min(rounds, left) if left > 0 else rounds, _CONVERGED * tol)
        yield replace(found, tasks=state.tasks.copy(), notes=(_OTHER,), by="best responses")
        if played >= most and sweeps.requested(state, _WANDERS) > _WANDERS:
            return


def _apart(method: EquilibriumSystem, one: Array, other: Array) -> float:
    """Largest relative difference of user tasks."""
    return float(np.abs(method.sums(one) / method.sums(other) - 1).max())
