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
from numpy.typing import NDArray

from .._libraries import csgraph, sp
from ..errors import SolverError
from ..model.criterion import Criterion
from ..model.polytope import Polytope
from .algebra import Pairs, by_part, most
from .level import SAME, TINY, Point, State, advance, centre, chosen, cold

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

#: A level is known when it is bounded to within this and who stands still stands out, or nothing gets better.
_KNOWN, _ROUNDING = 1e-11, 1e-14
#: A level bounded so well will do where no more is to be had; one bounded no better than that is not known at all.
_SUFFICIENT, _WORST = 1e-9, 1e-2
#: Frozen or not, kept or not: what says so must be so many times what says the opposite.
_APART = 1e5
#: Steps without a better bound by a tenth before a part is given up.
_PATIENCE = 8


class Stage(NamedTuple):
    """Prices (servers, resources) of whole capacities that prove one level, and how many pieces there were before."""

    servers: Index
    prices: Array
    users: Index
    user_price: Array
    before: int


class Piece(NamedTuple):
    """Prices that a stage left on servers of one part, and pairs that they keep out, by what these cost too much.

    `full`: the rows that they fill, whose prices may be negative from then on.
    """

    servers: Index
    prices: Array
    full: Mask
    users: Index
    user_price: Array
    dropped: Index
    surplus: Array


class _Cut(NamedTuple):
    """Users, servers and pairs of what was, in its order, with what they are from now on."""

    user: Index
    server: Index
    pair_user: Index
    pair_server: Index
    pair: Index
    rising: Array
    exact: Mask
    full: Mask
    held: Array


class _Start(NamedTuple):
    """Where it was, which parts are `known`, and what they drop."""

    at: Point
    y: Array  # at the end, (pairs,), as z and lam
    z: Array
    lam: Array
    known: Mask
    dropped: Mask
    total: Array
    least: Array
    users: Index
    filled: Mask
    whole: bool

    @property
    def of_known(self) -> Mask:
        """Whose level is known, (users,)."""
        return np.repeat(self.known, np.diff(self.users))


def _gap(low: Array, high: Array) -> Array:
    return np.where(low > 0, high / np.maximum(low, TINY) - 1, np.inf)


def _ratio(one: Array, other: Array) -> Array:
    """Of the larger to the smaller."""
    return np.asarray(np.maximum(one, other) / np.maximum(np.minimum(one, other), TINY))


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
        capacity = polytope.cluster.capacity
        self.demand: Array = polytope.cluster.demand[polytope.users] * self.tasks_per_level[:, None]
        self.inverse: Array = np.divide(1, capacity, out=np.zeros(capacity.shape), where=capacity > 0)
        count = len(polytope.users)
        self.level: Array = np.zeros(count)
        self.amount: Array = np.zeros(len(polytope.gamma))
        self.pieces: list[Piece] = []
        self.stages: list[Stage] = []
        self.steps, self.gap = 0, 0.0
        if not count:
            return
        everyone = np.ones(count)
        start = _Cut(
            np.arange(count), np.arange(len(capacity)), polytope.pair_user, polytope.pair_server,
            np.arange(len(self.amount)), everyone, everyone < 0, np.zeros(capacity.shape, dtype=bool), np.zeros(count),
        )  # fmt: skip
        at = self._arranged(start, None)
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
        stuck = (at.still > _PATIENCE) | ~np.isfinite(at.t)
        if better.any():
            at.good = chosen(at, better, at.now, at.good)
        lost = stuck & ~at.known & (at.best <= _SUFFICIENT)
        if lost.any():
            return self._accepted(at, lost)
        # Steps beyond take idle capacity and what is paid too much down to rounding.
        done = at.known & ((gap <= _ROUNDING) | (gap > 0.3 * at.last))
        if done.any():
            worse = done & ~(gap <= at.best)
            if worse.any():
                at.set(chosen(at, worse, at.good, at.now))
                low, high, least = at.bounds()
            return self._cut(at, done, low, high, least)
        new = ~at.known & (gap <= _KNOWN) & (self._apart(at) | (at.still > 1))
        if new.any():
            at.early = chosen(at, new, at.now, at.early)
            at.known = at.known | new
        at.last = gap
        if stuck.any():
            return self._rescued(at, int(np.flatnonzero(stuck)[0]))
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

    def _scales(self, at: State) -> tuple[Array, Array]:
        """How many rise in a part, and t, of every user."""
        rising = np.maximum(by_part(at.rising, at.pairs.users), 1.0)
        return rising[at.part], at.t[at.part]

    def _apart(self, at: State) -> Mask:
        """Is it clear of everybody who goes on? (parts,)"""
        count, t = self._scales(at)
        users = np.where(at.exact, np.inf, _ratio(at.p * count, at.s / t))
        return np.asarray(-most(-users, at.pairs.users) > _APART)

    def _scale(self, at: State) -> Array:
        """Rows of a part over its level, (servers, 1): prices sum up to about the level."""
        rows = np.maximum(by_part(at.pairs.present.astype(float), at.pairs.servers), 1.0)
        return at.on_rows(rows / at.t)

    # --- levels that are known

    def _cut(self, at: State, known: Mask, low: Array, high: Array, least: Array) -> State | None:
        """Freeze users of parts whose level is known, keep their prices, and go on with the rest."""
        pairs, part = at.pairs, at.part
        count, t = self._scales(at)
        mine, rising = known[part], at.rising > 0
        waiting = mine & rising & (self.floor[at.user] > (high * (1 + SAME))[part])
        if waiting.any():
            return self._waiting(at, waiting)
        proved = known & (by_part(at.rising, pairs.users) > 0)
        self.gap = max(self.gap, float(np.abs(_gap(low, high)[proved]).max(initial=0.0)))
        was = at.early
        frozen = mine & ~at.exact & (was.p * count > was.s / t)
        missing = known & (by_part((frozen & rising).astype(float), pairs.users) == 0)
        if missing.any():
            highest = most(np.where(rising, was.p, -1.0), pairs.users)
            frozen |= missing[part] & rising & (was.p >= highest[part])
        # Rows and pairs, by the same rule.
        inside, on = mine[pairs.user], known[pairs.part_of_server]
        t_pair, count_pair = pairs.of_user(t), pairs.of_user(count)
        live = by_part(at.rising, pairs.users) > 0
        inside, on = inside & pairs.of_user(live[part].astype(float)).astype(bool), on & live[pairs.part_of_server]
        load = np.where(live, 1.0, np.maximum(most(at.use, pairs.servers), 1.0))
        dropped = inside & (was.z * count_pair > was.y / t_pair)
        scale = self._scale(at)
        full = at.full | (on[:, None] & at.row & (was.lam * scale > was.w))
        held = np.where(frozen & rising, low[part], at.held)
        exact = at.exact | frozen
        # Those who wait at their floors rise again.
        again = mine & ~rising & ~exact & (at.held < self.cap[at.user] * (1 - SAME))
        tau = np.where(frozen, 0.0, np.where(again, 1.0, at.rising))
        start = chosen(at, known, was, at.now)
        s = np.where(again, np.maximum(at.held + start.s - t, TINY), start.s)
        total = np.maximum(by_part(np.where(rising, least, 0.0), pairs.users), TINY)
        before = len(self.pieces)
        for k in np.flatnonzero(known):
            if not by_part(at.rising, pairs.users)[k]:
                continue
            servers, users = slice(*pairs.servers[k : k + 2]), slice(*pairs.users[k : k + 2])
            self.stages.append(
                Stage(at.server[servers], at.lam[servers] / total[k], at.user[users], least[users] / total[k], before)
            )
        made = _Cut(at.user, at.server, pairs.user, pairs.server, at.pair, tau, exact, full, held)
        state = _Start(
            start._replace(s=s),
            at.y / pairs.of_user(load[part]),
            at.z,
            at.lam,
            known,
            dropped,
            total,
            least,
            pairs.users,
            full & ~at.full,
            at.whole,
        )
        return self._arranged(made, state)

    def _waiting(self, at: State, waiting: Mask) -> State | None:
        """Those with floors above a level are held there, and their parts begin anew."""
        tau = np.where(waiting, 0.0, at.rising)
        if not by_part(tau, at.pairs.users).all():
            raise SolverError("floors leave no level to anybody")
        held = np.where(waiting, self.floor[at.user], at.held)
        return self._anew(at, np.unique(at.part[waiting]), tau, held)

    def _anew(self, at: State, parts: Index, tau: Array, held: Array) -> State:
        """The same with some parts as if nothing were known of them."""
        fresh = cold(at.pairs, at.user, at.server, at.pair, tau, at.exact, at.full, held)
        which = np.zeros(len(at.t), dtype=bool)
        which[parts] = True
        here = chosen(at, which, fresh.now, at.now)
        made = State(at.pairs, at.user, at.server, at.pair, tau, at.exact, at.full, held, *here)
        made.tries = at.tries + which
        return made

    def _rescued(self, at: State, part: int) -> State | None:
        """A part that gets on no more: from a cold start, then as well as it is known."""
        if at.tries[part] == 0:
            return self._anew(at, np.array([part]), at.rising, at.held)
        if at.best[part] <= _WORST:
            return self._accepted(at, np.arange(len(at.t)) == part)
        raise SolverError("a level could not be bounded")

    def _accepted(self, at: State, parts: Mask) -> State | None:
        """Go on from the best that was found."""
        at.set(chosen(at, parts, at.good, at.now))
        at.early = chosen(at, parts, at.now, at.early)
        return self._cut(at, parts, *at.bounds())

    # --- taking apart

    def _arranged(self, cut: _Cut, start: _Start | None) -> State | None:
        """What is left to raise, part after part; writes down what is done."""
        stay = np.ones(len(cut.pair), dtype=bool) if start is None else ~start.dropped
        users, servers = len(cut.user), len(cut.server)
        user, server = cut.pair_user[stay], cut.pair_server[stay]
        if len(user) == users * servers:
            count, label = 1, np.zeros(users + servers, dtype=np.intp)
        else:
            graph = sp.csr_matrix(
                (np.ones(len(user), dtype=np.int8), (user, users + server)), shape=(users + servers,) * 2
            )
            count, label = csgraph.connected_components(graph, directed=False)
        of_user, of_server = label[:users], label[users:]
        if start is not None:
            self._keep_pieces(cut, start, of_user, of_server, count)
        going = np.bincount(of_user, cut.rising, count) > 0
        done = np.flatnonzero(~going[of_user])
        self.level[cut.user[done]] = cut.held[done]
        if start is not None:
            over = np.flatnonzero(~going[of_user][cut.pair_user])
            self.amount[cut.pair[over]] = start.y[over]
        if not going.any():
            return None
        new = np.cumsum(going) - 1
        order_u = np.flatnonzero(going[of_user])
        order_u = order_u[np.argsort(of_user[order_u], kind="stable")]
        used = np.bincount(of_user, minlength=count) > 0
        order_s = np.flatnonzero(going[of_server] & used[of_server])
        order_s = order_s[np.argsort(of_server[order_s], kind="stable")]
        place_u, place_s = np.full(users, -1), np.full(servers, -1)
        place_u[order_u], place_s[order_s] = np.arange(len(order_u)), np.arange(len(order_s))
        order_p = np.flatnonzero(stay & going[of_user][cut.pair_user])
        place = place_u[cut.pair_user[order_p]] * servers + place_s[cut.pair_server[order_p]]
        order_p = order_p[np.argsort(place, kind="stable")]
        parts = np.arange(int(going.sum()) + 1)
        who, which = cut.user[order_u], cut.server[order_s]
        pairs = Pairs(
            place_u[cut.pair_user[order_p]], place_s[cut.pair_server[order_p]], self.demand[who], self.inverse[which],
            np.searchsorted(new[of_user[order_u]], parts), np.searchsorted(new[of_server[order_s]], parts),
        )  # fmt: skip
        pair, rising, exact = cut.pair[order_p], cut.rising[order_u], cut.exact[order_u]
        full, held = cut.full[order_s] & pairs.present, cut.held[order_u]
        if start is None:
            return cold(pairs, who, which, pair, rising, exact, full, held)
        old = np.searchsorted(start.users, order_u[pairs.users[:-1]], side="right") - 1
        again = start.known[old]
        p = np.where(rising > 0, start.at.p[order_u], 0.0)
        left = np.where(again, np.maximum(by_part(p, pairs.users), TINY), 1.0)
        part = pairs.part_of_user
        row = 1 / left[pairs.part_of_server][:, None]
        at = State(
            pairs, who, which, pair, rising, exact, full, held, start.at.y[order_p],
            start.at.z[order_p] / left[part][pairs.user], np.where(full, 1.0, start.at.w[order_s]),
            np.where(full & again[pairs.part_of_server][:, None], 0.0, start.at.lam[order_s] * row),
            np.where(exact, 1.0, start.at.s[order_u]),
            np.where(exact & again[part], 0.0, start.at.p[order_u] / left[part]), start.at.t[old],
        )  # fmt: skip
        centre(at, again)
        at.whole = start.whole
        return at

    def _keep_pieces(self, cut: _Cut, start: _Start, of_user: Index, of_server: Index, count: int) -> None:
        """Prices that keep dropped pairs out, of every part on its own."""
        lost = np.flatnonzero(start.dropped)
        total = start.total[np.repeat(np.arange(len(start.known)), np.diff(start.users))]
        users, servers = np.argsort(of_user, kind="stable"), np.argsort(of_server, kind="stable")
        lost = lost[np.argsort(of_server[cut.pair_server[lost]], kind="stable")]
        every = np.arange(count + 1)
        begin_u, begin_s = np.searchsorted(of_user[users], every), np.searchsorted(of_server[servers], every)
        begin_l = np.searchsorted(of_server[cut.pair_server[lost]], every)
        for k in range(count):
            on, who = servers[begin_s[k] : begin_s[k + 1]], users[begin_u[k] : begin_u[k + 1]]
            mine = lost[begin_l[k] : begin_l[k + 1]]
            some = who[0] if len(who) else cut.pair_user[mine[0]] if len(mine) else -1
            if some < 0 or not start.of_known[some] or not len(on) or not (start.lam[on] > 0).any():
                continue
            unit = total[some]
            self.pieces.append(
                Piece(
                    cut.server[on], start.lam[on] / unit, start.filled[on], cut.user[who], start.least[who] / unit,
                    cut.pair[mine], start.z[mine] / unit,
                )
            )  # fmt: skip

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

    @property
    def use(self) -> Array:
        """(pairs, resources), parts of whole capacities per unit of level."""
        return np.asarray(self.demand[self.polytope.pair_user] * self.inverse[self.polytope.pair_server])

    def prices(self) -> Array:
        """One array (servers, resources) of prices per unit for every stage, (stages, servers, resources)."""
        result = np.zeros((len(self.stages), *self.inverse.shape))
        for at, stage in zip(result, self.stages, strict=True):
            self._prove(stage, at)
            at *= self.inverse
        return result

    def _prove(self, stage: Stage, prices: Array) -> None:
        """Add to the stage's prices those of earlier pieces, as high as it takes to keep dropped pairs out."""
        polytope = self.polytope
        prices[stage.servers] = stage.prices
        user_price = np.zeros(len(self.level))
        user_price[stage.users] = stage.user_price
        for piece in reversed(self.pieces[: stage.before]):
            pairs = piece.dropped
            user, server = polytope.pair_user[pairs], polytope.pair_server[pairs]
            here = prices[piece.servers]
            factor = 0.0
            if user_price[user].any():
                cost = (self.demand[user] * self.inverse[server] * prices[server]).sum(axis=1)
                factor = float(((user_price[user] - cost) / np.maximum(piece.surplus, TINY)).max(initial=0.0))
            below = piece.full & (here < 0)
            if below.any():
                factor = max(factor, float((-here / np.maximum(piece.prices, TINY))[below].max()))
            if factor > 0:
                factor *= 1.001
                prices[piece.servers] += factor * piece.prices
                user_price[piece.users] += factor * piece.user_price
        np.maximum(prices, 0.0, out=prices)
