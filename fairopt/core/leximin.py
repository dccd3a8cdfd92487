r"""Lexicographic max-min over several servers: raise all levels, freeze whom prices hold, cut the state, go on.

A level is

.. math::
    \max t, \quad \sum_i y_{ni} \ge t \text{ (rising)}, \quad \ge f_n \text{ (held)}, \quad
    \sum_n a_{nir} y_{ni} \le 1, \quad y \ge 0,

y in units of level. A primal-dual interior point ends at the analytic centre of the optimal face: prices, worths p and
costs z above worth of whatever stays are exactly mu over their slacks. So the next level starts where this one ends:
frozen users, dear pairs and full servers leave, duals are divided by what is left of `sum p`, and five steps later the
next level is known. Where zero demands leave frozen users among those who rise, what they have and what is full become
equations, with prices of either sign, so that the face has an interior. Parts that share no server are raised at the
same time, each with a level, a mu and step lengths of its own.

A user whose limit lies below a level that everyone can have is held there at once; one whose floor lies above the
level is held at that. Freezing has no proof here: `stages` have the prices from which a judge makes one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._libraries import csgraph, sp
from ..errors import SolverError
from ..model._arrays import Array, Index, Mask
from ..model.criterion import Criterion
from ..model.polytope import Polytope
from .algebra import Pairs, by_part, fewest, most
from .level import SAME, TINY, Faces, Point, State, advance, chosen, cold, renew

#: A level is known when it is bounded to within this and who stands still stands out, or nothing gets better.
_KNOWN, _ROUNDING = 1e-11, 1e-14
#: A level that is bounded no better than that is not known at all.
_WORST = 1e-2
#: Frozen or not: what says so must be so many times what says the opposite, in logs.
_APART = np.log(1e5)
#: Steps without a better bound by a tenth before a part is given up.
_PATIENCE = 8


class Stage(NamedTuple):
    """Prices (servers, resources) of whole capacities that prove a level, and pairs that they keep out from then on.

    `user_price` (users,) is the least that a unit of each costs, `surplus` (dropped,) by what pairs cost too much;
    `full` are the rows that these prices fill, whose own may be negative from then on.
    """

    servers: Index
    prices: Array
    full: Mask
    users: Index
    user_price: Array
    dropped: Index
    surplus: Array


def _gap(low: Array, high: Array) -> Array:
    return np.where(low > 0, high / np.maximum(low, TINY) - 1, np.inf)


class Leximin:
    """Solves; `amount` (pairs,) in units of level, `level` (users,), and the stages' prices.

    Parameters
    ----------
    polytope : the feasible set
    criterion : of the same cluster, with infinite alpha

    Raises
    ------
    SolverError
        where a level could not be bounded
    """

    def __init__(self, polytope: Polytope, criterion: Criterion) -> None:
        own = criterion.restrict(polytope.users)
        self.polytope = polytope
        self.tasks_per_level: Array = own.weight / own.share
        self.cap: Array = polytope.limit / self.tasks_per_level
        self.floor: Array = (1 - SAME) * own.floor / self.tasks_per_level
        capacity, count = polytope.cluster.capacity, len(polytope.users)
        self.inverse: Array = np.divide(1, capacity, out=np.zeros(capacity.shape), where=capacity > 0)
        demand = polytope.cluster.demand[polytope.users] * self.tasks_per_level[:, None]
        every = np.array([0, count]), np.array([0, len(capacity)])
        self.pairs = Pairs(polytope.pair_user, polytope.pair_server, demand, self.inverse, *every)
        self.level: Array = np.zeros(count)
        self.amount: Array = np.zeros(len(polytope.gamma))
        self.stages: list[Stage] = []
        self.steps, self.gap = 0, 0.0
        if not count:
            return
        user, server, pair = (np.arange(size) for size in (count, len(capacity), len(self.amount)))
        nothing = np.zeros(count), np.zeros(capacity.shape)
        faces = Faces(user, server, pair, np.ones(count), nothing[0] > 0, nothing[1] > 0, nothing[0])
        at = self._apart(self.pairs, faces, self.amount >= 0, self.amount)
        while at is not None:
            at = self._raised(at)

    # --- one step of all parts

    def _raised(self, at: State) -> State | None:
        """One step, and what is left once levels that are known then are cut off."""
        low, high, least = at.bounds()
        stop = (at.rising > 0) & (self.cap[at.user] < low[at.part])
        if stop.any():
            self._stopped(at, stop)
            if not by_part(at.rising, at.pairs.users).all():
                return self._cut(at, by_part(at.rising, at.pairs.users) == 0, low, high, least)
            low, high, least = at.bounds()
        # Where equations contradict each other by rounding, bounds may cross: then products know better.
        gap = np.maximum(np.abs(_gap(low, high)), at.mu * at.count / np.abs(at.t))
        better = gap < np.where(at.known, 1.0, 0.9) * at.best
        # Nothing is proved from below while one who is held misses its level: then products tell whether it gets on.
        falling = (low <= 0) & (at.mu < 0.5 * at.lowest)
        at.still = np.where(better | falling, 0, at.still + 1)
        at.best, at.lowest = np.minimum(at.best, gap), np.minimum(at.lowest, at.mu)
        if better.any():
            at.good = chosen(at, better, at.now, at.good)
        lost = ~at.known & ((at.still > _PATIENCE) | ~np.isfinite(at.t))
        if (at.best[lost] > _WORST).any():
            raise SolverError("a level could not be bounded")
        # Steps beyond take idle capacity and what is paid too much down to rounding.
        done = lost | (at.known & ~((gap > _ROUNDING) & (gap <= 0.3 * at.last)))
        if done.any():
            back = done & ~(gap <= at.best)
            if back.any():
                at.set(chosen(at, back, at.good, at.now))
                at.early = chosen(at, lost, at.now, at.early)
                low, high, least = at.bounds()
            return self._cut(at, done, low, high, least)
        apart = fewest(np.where(at.exact, np.inf, np.abs(at.held_by(at.now))), at.pairs.users) > _APART
        new = ~at.known & (gap <= _KNOWN) & (apart | (at.still > 1))
        if new.any():
            at.early = chosen(at, new, at.now, at.early)
            at.known = at.known | new
        at.last = gap
        advance(at, gap)
        self.steps += 1
        return at

    def _stopped(self, at: State, stop: Mask) -> None:
        """Users who reach their limits are held there."""
        at.rising = np.where(stop, 0.0, at.rising)
        at.held = np.where(stop, self.cap[at.user], at.held)
        at.s = np.where(stop, np.maximum(at.have - at.held, 0.1 * at.held), at.s)
        at.best[np.unique(at.part[stop])] = np.inf
        at.residuals()

    # --- levels that are known

    def _cut(self, at: State, known: Mask, low: Array, high: Array, least: Array) -> State | None:
        """Freeze users of parts whose level is known, keep their prices, and go on with the rest."""
        pairs, part, rising, was = at.pairs, at.part, at.rising > 0, at.early
        mine, risen = known[part], by_part(at.rising, pairs.users)
        waiting = mine & rising & (self.floor[at.user] > (high * (1 + SAME))[part])
        if waiting.any():
            return self._waiting(at, waiting)
        ended, count = known & (risen > 0), np.maximum(risen, 1.0)
        self.gap = max(self.gap, float(np.abs(_gap(low, high)[ended]).max(initial=0.0)))
        # Frozen, dear or full is whatever has a larger price or cost than slack, both in parts of the level's.
        frozen = mine & ~at.exact & (at.held_by(was) > 0)
        missing = ended & (by_part((frozen & rising).astype(float), pairs.users) == 0)
        if missing.any():
            highest = most(np.where(rising, was.p, -1.0), pairs.users)
            frozen |= missing[part] & rising & (was.p >= highest[part])
        dropped = at.on_pairs(ended) & (was.z * at.on_pairs(count) > was.y / at.on_pairs(at.t))
        rows = np.maximum(by_part(pairs.present.astype(float), pairs.servers), 1.0)
        filled = at.on_rows(ended) & at.row & (was.lam * at.on_rows(rows / at.t) > was.w)
        total = np.maximum(by_part(np.where(rising, least, 0.0), pairs.users), TINY)
        for k in np.flatnonzero(ended):
            users, servers = (slice(*each[k : k + 2]) for each in (pairs.users, pairs.servers))
            lost = np.flatnonzero(dropped[slice(*pairs.pairs[k : k + 2])]) + pairs.pairs[k]
            prices, user_price, surplus = (each / total[k] for each in (at.lam[servers], least[users], at.z[lost]))
            self.stages.append(
                Stage(at.server[servers], prices, filled[servers], at.user[users], user_price, at.pair[lost], surplus)
            )
        held, exact = np.where(frozen & rising, low[part], at.held), at.exact | frozen
        # Those who wait at their floors rise again.
        again = mine & ~rising & ~exact & (at.held < self.cap[at.user] * (1 - SAME))
        start = chosen(at, known, was, at.now)
        start = start._replace(s=np.where(again, np.maximum(at.held + start.s - at.t[part], TINY), start.s))
        load = np.where(risen > 0, 1.0, np.maximum(most(at.use, pairs.servers), 1.0))
        faces = at.faces._replace(
            rising=np.where(frozen, 0.0, np.where(again, 1.0, at.rising)),
            exact=exact,
            full=at.full | filled,
            held=held,
        )
        after = self._apart(pairs, faces, ~dropped, at.y / at.on_pairs(load), start, known)
        if after is not None:
            after.whole = at.whole
        return after

    def _waiting(self, at: State, waiting: Mask) -> State | None:
        """Those with floors above a level are held there, and their parts begin anew."""
        rising = np.where(waiting, 0.0, at.rising)
        if not by_part(rising, at.pairs.users).all():
            raise SolverError("floors leave no level to anybody")
        faces = at.faces._replace(rising=rising, held=np.where(waiting, self.floor[at.user], at.held))
        anew = np.isin(np.arange(len(at.t)), at.part[waiting])
        return State(at.pairs, faces, chosen(at, anew, cold(at.pairs, faces), at.now))

    # --- taking apart

    def _apart(
        self, pairs: Pairs, faces: Faces, stay: Mask, y: Array, start: Point | None = None, known: Mask | None = None
    ) -> State | None:
        """What is left to raise, part after part, from a cold start or from where it was; writes down what is done."""
        users, servers = len(faces.user), len(faces.server)
        user, server = pairs.user[stay], pairs.server[stay]
        if len(user) == users * servers:
            count, label = 1, np.zeros(users + servers, dtype=np.intp)
        else:
            graph = sp.csr_matrix(
                (np.ones(len(user), dtype=np.int8), (user, users + server)), shape=(users + servers,) * 2
            )
            count, label = csgraph.connected_components(graph, directed=False)
        going = np.bincount(label[:users], faces.rising, count) > 0
        done = ~going[label[:users]]
        self.level[faces.user[done]] = faces.held[done]
        over = done[pairs.user]
        self.amount[faces.pair[over]] = y[over]
        if done.all():
            return None
        parts, order, place = np.flatnonzero(going), [], []
        for of in (label[:users], label[users:]):
            some = np.flatnonzero(going[of])
            order.append(some[np.argsort(of[some], kind="stable")])
            place.append(np.zeros(len(of), dtype=np.intp))
            place[-1][order[-1]] = np.arange(len(some))
        u, s = order
        starts = (np.append(np.searchsorted(label[each], parts), len(each)) for each in (u, users + s))
        p = np.flatnonzero(stay & ~over)
        user, server = place[0][pairs.user[p]], place[1][pairs.server[p]]
        sort = np.argsort(user * servers + server, kind="stable")
        p = p[sort]
        left = Pairs(user[sort], server[sort], pairs.demand[u], pairs.inverse[s], *starts)
        faces = faces.taken(u, s, p)
        faces = faces._replace(full=faces.full & left.present)
        if start is None or known is None:
            return State(left, faces, cold(left, faces))
        old = pairs.part_of_user[u[left.users[:-1]]]
        at = State(left, faces, start.taken(u, s, p, old))
        renew(at, known[old])
        return at

    # --- what was found

    def tasks(self) -> Array:
        """The allocation, (all users, servers): levels exactly those found, capacities kept."""
        polytope = self.polytope
        fractions = self.amounts() * self.tasks_per_level[polytope.pair_user] / polytope.gamma
        return polytope.allocation(polytope.inside(fractions))

    def amounts(self) -> Array:
        """y (pairs,), nobody above its level."""
        have = np.maximum(np.bincount(self.polytope.pair_user, self.amount, len(self.level)), TINY)
        return self.amount * np.minimum(self.level / have, 1.0)[self.polytope.pair_user]

    @property
    def loose(self) -> bool:
        """Is some level bounded less well than answers are asked for?"""
        return self.gap > 1e-6

    def prices(self) -> Array:
        """One array (servers, resources) of prices per unit for every stage, (stages, servers, resources)."""
        result = np.zeros((len(self.stages), *self.inverse.shape))
        for number, prices in enumerate(result):
            self._prove(number, prices)
            prices *= self.inverse
        return result

    def _prove(self, number: int, prices: Array) -> None:
        """Add to a stage's prices those of earlier ones, as high as it takes to keep dropped pairs out."""
        stage, pairs = self.stages[number], self.pairs
        prices[stage.servers] = stage.prices
        user_price = np.zeros(len(self.level))
        user_price[stage.users] = stage.user_price
        for before in reversed(self.stages[:number]):
            user, server = pairs.user[before.dropped], pairs.server[before.dropped]
            here, factor = prices[before.servers], 0.0
            if user_price[user].any():
                cost = (pairs.takes[before.dropped] * prices[server]).sum(axis=1)
                factor = float(((user_price[user] - cost) / np.maximum(before.surplus, TINY)).max(initial=0.0))
            below = before.full & (here < 0)
            if below.any():
                factor = max(factor, float((-here / np.maximum(before.prices, TINY))[below].max()))
            if factor > 0:
                factor *= 1.001
                prices[before.servers] += factor * before.prices
                user_price[before.users] += factor * before.user_price
        np.maximum(prices, 0.0, out=prices)
