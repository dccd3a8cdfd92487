r"""Lexicographic max-min over several servers: raise all levels, freeze whom prices hold, cut the state, go on.

A level is

.. math::
    \max t, \quad \sum_i y_{ni} \ge t \text{ (rising)}, \quad \ge f_n \text{ (held)}, \quad
    \sum_n a_{nir} y_{ni} \le 1, \quad y \ge 0,

y in units of level. A primal-dual interior point ends at the analytic centre of the optimal face: prices, worths p and
costs z above worth of whatever stays are exactly mu over their slacks. So the next level starts where this one ends:
frozen users, dear pairs and full servers leave, duals are divided by what is left of `sum p`, and five steps later the
next level is known. Where zero demands leave frozen users among those who rise, what they have and what is full become
equations, with prices of either sign, so that the face has an interior. Parts that share no server are raised one
after the other; one of a single server is filled, level by level.

A user whose limit lies below a level that everyone can have is held there at once; one whose floor lies above the
level is held at that. Freezing has no proof here: `stages` have the prices from which a judge makes one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..base.errors import SolverError
from ..base.libraries import csgraph, sp
from ..model._arrays import Array, Index, Mask
from ..model.criterion import Criterion
from ..model.polytope import Polytope
from .algebra import Pairs
from .level import SAME, TINY, Faces, Point, State, advance, cold, renew

#: A level is known when it is bounded to within this and who stands still stands out, or nothing gets better.
_KNOWN, _ROUNDING = 1e-11, 1e-14
#: A level that is bounded no better than that is not known at all.
_WORST = 1e-2
#: Frozen or not: what says so must be so many times what says the opposite, in logs.
_APART = np.log(1e5)
#: Steps in which the bound gets no better by a tenth, in all, before a part is given up.
_PATIENCE = 8


class Stage(NamedTuple):
    """Prices (servers, resources) of whole capacities that prove a level, and the pairs that they exclude.

    `user_price` (users,) is the least that a unit of each costs, `surplus` (dropped,) by what pairs cost too much;
    `full` are the rows that these prices fill, whose own may be negative from then on.
    """

    level: float
    servers: Index
    prices: Array
    full: Mask
    users: Index
    user_price: Array
    dropped: Index
    surplus: Array


def _gap(low: float, high: float) -> float:
    return abs(high / low - 1) if low > 0 else np.inf


class Leximin:
    """Solver: `amount` (pairs,) in units of level, `level` (users,), and the prices of `stages`.

    Parameters
    ----------
    polytope : the feasible set
    criterion : of the same cluster, with infinite alpha
    likely : finds pairs (pairs,) that may have tasks, where levels are many: users whom these connect are raised apart
        from others. Who would have more on the servers of others is raised with them once more: it need not be right

    Raises
    ------
    SolverError
        where a level could not be bounded
    """

    def __init__(self, polytope: Polytope, criterion: Criterion, likely: Callable[[], Mask] | None = None) -> None:
        own = criterion.restrict(polytope.users)
        self.polytope = polytope
        self.tasks_per_level: Array = own.weight / own.share
        self.cap: Array = polytope.limit / self.tasks_per_level
        self.floor: Array = (1 - SAME) * own.floor / self.tasks_per_level
        capacity, count = polytope.cluster.capacity, len(polytope.users)
        self.inverse: Array = np.divide(1, capacity, out=np.zeros(capacity.shape), where=capacity > 0)
        demand = polytope.cluster.demand[polytope.users] * self.tasks_per_level[:, None]
        self.pairs = Pairs(polytope.pair_user, polytope.pair_server, demand, self.inverse)
        self.level: Array = np.zeros(count)
        self.amount: Array = np.zeros(len(polytope.gamma))
        self.stages: list[Stage] = []
        self.steps, self.gap = 0, 0.0
        if not count:
            return
        self.likely = likely
        user, server, pair = (np.arange(size) for size in (count, len(capacity), len(self.amount)))
        #: Parts that were told apart by what is likely.
        self.of_user, self.of_server, least = 0 * user, 0 * server, 0.0
        raised, stay, full = user >= 0, pair >= 0, np.zeros(capacity.shape, dtype=bool)
        while raised.any():
            self.stages = [one for one in self.stages if one.level < least or not raised[one.users].any()]
            self.amount[raised[self.pairs.user]] = 0.0
            faces = Faces(user, server, pair, raised.astype(float), user < 0, full, self.level)
            left = self._apart(self.pairs, faces, stay, self.amount)
            while left:
                at = left.pop()
                left += self._raised(at)
            raised, stay, least = self._owed()

    def _owed(self) -> tuple[Mask, Mask, float]:
        """Users (users,) to be raised once more, who may use servers of other parts: their pairs, and the least level.

        A pair of two parts is excluded by the first level that fills a resource it needs, if any at which its user has
        a worth is higher: stages come to know that.
        """
        pairs, (user, server), raised = (
            self.pairs,
            (self.pairs.user, self.pairs.server),
            np.zeros(len(self.level), bool),
        )
        apart = self.of_user[user] != self.of_server[server]
        if not apart.any():
            return raised, apart, 0.0
        level, by = np.array([one.level for one in self.stages] + [np.inf]), np.full(self.inverse.shape, -1)
        held = np.full(len(self.level), np.inf)
        for number in np.argsort(-level[:-1], kind="stable"):
            one = self.stages[number]
            row, resource = np.nonzero(one.full)
            by[one.servers[row], resource] = number
            held[one.users[one.user_price > SAME * one.user_price.max()]] = one.level
        table = np.where(pairs.demand[user] > 0, by[server], -1)
        first = table[np.arange(len(user)), level[table].argmin(axis=1)]
        low = held * (1 - SAME)
        more = apart & (low[user] <= level[first]) & np.isfinite(low)[user]
        if more.any():
            _, self.of_user, self.of_server = self._connected(pairs, ~apart | more)
            raised, least = np.isin(self.of_user, self.of_user[user[more]]), float(low[user[more]].min())
            stay = raised[user] & (self.of_user[user] == self.of_server[server])
            # Those below stay as they are, where others have no use for their servers.
            upper, above = raised & (held >= least), stay & (level[first] >= least)
            below = (self.amount * pairs.takes.max(axis=1))[~upper[user] & np.isin(server, server[above])]
            if below.max(initial=0.0) > SAME:
                return raised, stay, 0.0
            return upper, above & upper[user], least
        for number in np.unique(first[apart & (first >= 0)]):
            one, there = self.stages[number], np.flatnonzero(apart & (first == number))
            cost = (pairs.takes[there] * one.prices[np.searchsorted(one.servers, server[there])]).sum(axis=1)
            dropped, surplus = np.append(one.dropped, there), np.append(one.surplus, cost)
            self.stages[number] = one._replace(dropped=dropped, surplus=surplus)
        return raised, apart, 0.0

    # --- one step of a part

    def _raised(self, at: State) -> list[State]:
        """Take one step of a part, or split it once its level is known; the parts to go on with."""
        low, high, least = at.bounds()
        stop = (at.rising > 0) & (self.cap[at.user] < low)
        if stop.any():
            self._stopped(at, stop)
            if not at.rising.any():
                at.y = at.shared()[0]
                return self._cut(at, low, high, least)
            low, high, least = at.bounds()
        # Where equations contradict each other by rounding, bounds may cross: then products know better.
        gap = max(_gap(low, high), at.mu * at.count / abs(at.t))
        better = gap < (1.0 if at.known else 0.9) * at.best
        at.still = 0 if better else at.still + 1
        if better:
            at.best, at.good = gap, at.now
        lost = not at.known and (at.still > _PATIENCE or not np.isfinite(at.t))
        if lost and at.best > _WORST:
            raise SolverError("a level could not be bounded")
        # Steps beyond take idle capacity and what is paid too much down to rounding.
        if lost or (at.known and not _ROUNDING < gap <= 0.3 * at.last):
            if not gap <= at.best:
                at.set(at.good)
                low, high, least = at.bounds()
            if lost:
                at.early = at.now
            return self._cut(at, low, high, least)
        apart = np.abs(at.held_by(at.now))[~at.exact].min(initial=np.inf) > _APART
        if not at.known and gap <= _KNOWN and (apart or at.still > 1):
            at.early, at.known = at.now, True
        at.last = gap
        advance(at, gap)
        self.steps += 1
        return [at]

    def _stopped(self, at: State, stop: Mask) -> None:
        """Hold users at limits that they reach."""
        at.rising = np.where(stop, 0.0, at.rising)
        at.held = np.where(stop, self.cap[at.user], at.held)
        at.s = np.where(stop, np.maximum(at.have - at.held, 0.1 * at.held), at.s)
        left = max(float(at.rising @ at.p), TINY)
        at.z, at.lam, at.p = at.z / left, at.lam / left, at.p / left
        at.best = np.inf
        at.residuals()

    # --- levels that are known

    def _cut(self, at: State, low: float, high: float, least: Array) -> list[State]:
        """Freeze users of a part whose level is known, keep its prices, and go on with the rest."""
        pairs, rising, was = at.pairs, at.rising > 0, at.early
        waiting = rising & (self.floor[at.user] > high * (1 + SAME))
        if waiting.any():
            return [self._waiting(at, waiting)]
        # Frozen, dear or full is whatever has a larger price or cost than slack, both in parts of the level's.
        risen, frozen = int(rising.sum()), ~at.exact & (at.held_by(was) > 0)
        dropped, filled, load = np.zeros(len(at.y), dtype=bool), np.zeros(at.full.shape, dtype=bool), 1.0
        if risen:
            self.gap = max(self.gap, _gap(low, high))
            if not (frozen & rising).any():
                frozen |= rising & (was.p >= was.p[rising].max())
            dropped = was.z * risen > was.y / at.t
            filled = at.row & (was.lam * (pairs.present.sum() / at.t) > was.w)
            total = max(float(least[rising].sum()), TINY)
            lost = np.flatnonzero(dropped)
            prices, user_price, surplus = (each / total for each in (at.lam, least, at.z[lost]))
            at.before = max(low, at.before)
            stage = Stage(at.before, at.server, prices, filled, at.user, user_price, at.pair[lost], surplus)
            self.stages.append(stage)
        else:
            load = max(float(at.use.max()), 1.0)
        held, exact = np.where(frozen & rising, low, at.held), at.exact | frozen
        # Those who wait at their floors rise again.
        again = ~rising & ~exact & (at.held < self.cap[at.user] * (1 - SAME))
        start = was._replace(s=np.where(again, np.maximum(at.held + was.s - at.t, TINY), was.s))
        faces = at.faces._replace(
            rising=np.where(frozen, 0.0, np.where(again, 1.0, at.rising)), exact=exact, full=at.full | filled, held=held
        )
        return self._apart(pairs, faces, ~dropped, at.y / load, start, at.before)

    def _waiting(self, at: State, waiting: Mask) -> State:
        """Hold users whose floors exceed the level, and restart their part."""
        rising = np.where(waiting, 0.0, at.rising)
        if not rising.any():
            raise SolverError("floors leave no level to anybody")
        faces = at.faces._replace(rising=rising, held=np.where(waiting, self.floor[at.user], at.held))
        return State(at.pairs, faces, cold(at.pairs, faces), at.before)

    # --- taking apart

    def _apart(
        self, pairs: Pairs, faces: Faces, stay: Mask, y: Array, start: Point | None = None, before: float = 0.0
    ) -> list[State]:
        """Split into connected parts that are still to be raised, cold or warm; record finished ones."""
        count, of_user, of_server = self._connected(pairs, stay)
        going = np.bincount(of_user, faces.rising, count) > 0
        done = ~going[of_user]
        self.level[faces.user[done]] = faces.held[done]
        over = done[pairs.user]
        self.amount[faces.pair[over]] = y[over]
        left = []
        for part in np.flatnonzero(going):
            u, s = np.flatnonzero(of_user == part), np.flatnonzero(of_server == part)
            p = np.flatnonzero(stay & (of_user[pairs.user] == part))
            places = np.searchsorted(u, pairs.user[p]), np.searchsorted(s, pairs.server[p])
            mine = Pairs(*places, pairs.demand[u], pairs.inverse[s])
            own = faces.taken(u, s, p)
            own = own._replace(full=own.full & mine.present)
            if min(len(s), len(u)) == 1 and not self.floor[own.user].any():
                (self._filled if len(s) == 1 else self._alone)(mine, own, before)
                continue
            many = start is not None and mine.order.endswith("listed") and 2 * len(u) > len(self.level)
            if many and self.likely is not None and not (own.exact.any() or own.full.any()):
                likely, self.likely = self.likely()[own.pair], None
                likely |= (np.bincount(mine.user[likely], minlength=len(u)) == 0)[mine.user]
                _, by_user, by_server = self._connected(mine, likely)
                self.of_user[own.user], self.of_server[own.server] = by_user + 1, by_server + 1
                left += self._apart(mine, own, by_user[mine.user] == by_server[mine.server], y[p], None, before)
                continue
            at = State(mine, own, cold(mine, own) if start is None else start.taken(u, s, p), before)
            if start is not None:
                renew(at)
            left.append(at)
        return left

    @staticmethod
    def _connected(pairs: Pairs, stay: Mask) -> tuple[int, Index, Index]:
        """Number of connected components, and those of users and servers."""
        users, servers = len(pairs.demand), len(pairs.inverse)
        if stay.all() and pairs.full:
            return 1, np.zeros(users, dtype=np.intp), np.zeros(servers, dtype=np.intp)
        edges = pairs.user[stay], users + pairs.server[stay]
        graph = sp.csr_matrix((np.ones(len(edges[0]), dtype=np.int8), edges), shape=(users + servers,) * 2)
        count, label = csgraph.connected_components(graph, directed=False)
        return count, label[:users], label[users:]

    def _alone(self, pairs: Pairs, faces: Faces, before: float) -> None:
        """Give its servers to the only user of a part: a price for the scarcest resource of each."""
        most = 1 / pairs.takes.max(axis=1)
        level = min(float(most.sum()), float(self.cap[faces.user[0]]))
        self.level[faces.user], self.amount[faces.pair] = level, most * (level / most.sum())
        if level < self.cap[faces.user[0]]:
            scarce = pairs.takes.argmax(axis=1)[:, None] == np.arange(pairs.takes.shape[1])
            nobody = np.zeros(0, dtype=np.intp)
            prices = scarce * most[:, None]
            level = max(level, before)
            self.stages.append(Stage(level, faces.server, prices, scarce, faces.user, np.ones(1), nobody, np.zeros(0)))

    def _filled(self, pairs: Pairs, faces: Faces, before: float) -> None:
        """Fill the only server of a part: every level is where its next resource is full."""
        rising, held, cap, none = faces.rising > 0, faces.held.copy(), self.cap[faces.user], np.zeros(0, dtype=np.intp)
        while rising.any():
            rate, left = rising @ pairs.takes, np.maximum(1 - np.where(rising, 0.0, held) @ pairs.takes, 0.0)
            levels = np.divide(left, rate, out=np.full(len(rate), np.inf), where=rate > 0)
            scarce = np.arange(len(rate)) == levels.argmin()
            stop = rising & (cap < levels.min())
            if stop.any():
                stop &= cap == cap[stop].min()
                held[stop] = cap[stop]
            elif not levels.min() < np.inf:
                raise SolverError("a level could not be bounded")
            else:
                stop, cost = rising & (pairs.takes @ scarce > 0), pairs.takes @ scarce / rate[scarce]
                held[stop] = levels.min()
                prices = (scarce / rate[scarce])[None]
                before = max(float(levels.min()), before)
                self.stages.append(
                    Stage(before, faces.server, prices, scarce[None], faces.user, cost, none, np.zeros(0))
                )
            rising &= ~stop
        self.level[faces.user] = held
        self.amount[faces.pair] = held / max(float((held @ pairs.takes).max()), 1.0)

    # --- what was found

    def tasks(self) -> Array:
        """Allocation (all users, servers), scaled to the levels found and to capacities."""
        polytope = self.polytope
        fractions = self.amounts() * self.tasks_per_level[polytope.pair_user] / polytope.gamma
        return polytope.allocation(polytope.inside(fractions))

    def amounts(self) -> Array:
        """Amounts y (pairs,), cut to the users' levels."""
        have = np.maximum(np.bincount(self.polytope.pair_user, self.amount, len(self.level)), TINY)
        return self.amount * np.minimum(self.level / have, 1.0)[self.polytope.pair_user]

    def prices(self) -> Array:
        """Prices per resource unit that prove the levels, (stages, servers, resources)."""
        stages, pairs = sorted(self.stages, key=lambda one: one.level), self.pairs
        result, user_price = (np.zeros((len(stages), *shape)) for shape in (self.inverse.shape, self.level.shape))
        for number in reversed(range(len(stages))):
            one, above, paid = stages[number], result[number + 1 :], user_price[number + 1 :]
            result[number, one.servers], user_price[number, one.users] = one.prices, one.user_price
            # Multiples that exclude what was dropped here, and make up for prices below zero.
            row, resource = np.nonzero(one.full)
            lacks = -above[:, one.servers[row], resource] / np.maximum(one.prices[row, resource], TINY)
            factor, user = lacks.max(axis=1, initial=0.0), pairs.user[one.dropped]
            dear = np.flatnonzero(paid[:, user].any(axis=1))
            cost = np.einsum("pr,spr->sp", pairs.takes[one.dropped], above[dear[:, None], pairs.server[one.dropped]])
            lacks = (paid[dear[:, None], user] - cost) / np.maximum(one.surplus, TINY)
            factor[dear] = np.maximum(factor[dear], lacks.max(axis=1, initial=0.0))
            more = np.flatnonzero(factor)
            factor = 1.001 * factor[more, None]
            above[more[:, None], one.servers] += factor[:, :, None] * one.prices
            paid[more[:, None], one.users] += factor * one.user_price
        return np.asarray(np.maximum(result, 0.0) * self.inverse)
