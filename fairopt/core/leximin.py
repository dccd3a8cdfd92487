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

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _clock
from .._libraries import csgraph, optimize, sp
from ..errors import SolverError
from ..model.criterion import Criterion
from ..model.polytope import Polytope
from .algebra import Equations, Pairs, by_part, most

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

#: A level is known when it is bounded to within this and who stands still stands out; or when rounding is all.
_KNOWN, _ROUNDING = 1e-11, 1e-14
#: A level bounded so well will do where no more is to be had; one bounded no better than that is not known at all.
_SUFFICIENT, _WORST = 1e-9, 1e-2
#: Frozen or not: what says so must be so many times what says the opposite.
_APART = 1e3
#: Steps without a better bound by a tenth before a part is given up.
_PATIENCE = 8
#: Part by which floors that leave no room are lowered, by which held users may miss theirs, and that is no difference.
_SAME = 1e-9
#: Equations may depend on each other: what is added to their diagonals, as a part.
_DEPENDENT = 1e-13
#: Most pairs of which a simplex method is asked, and for how many seconds in all.
_SIMPLEX, _SECONDS = 30_000, 20.0
_TINY = 1e-300


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


@dataclass
class State:
    """Where all parts are. Users, servers and pairs of a part follow each other, in the order of `pairs`."""

    pairs: Pairs
    user: Index  # (users,), whom of all
    server: Index  # (servers,)
    pair: Index  # (pairs,)
    rising: Array  # (users,), 1 or 0
    exact: Mask  # (users,), held at a level that is an equation
    full: Mask  # (servers, resources), full rows that are equations
    held: Array  # (users,), what the held have
    y: Array
    z: Array
    w: Array
    lam: Array
    s: Array
    p: Array
    t: Array  # (parts,)

    def __post_init__(self) -> None:
        pairs = self.pairs
        self.row = pairs.present & ~self.full
        self.dual_row = pairs.present
        self.part = pairs.part_of_user
        self.free = self.exact
        self.count = (
            np.diff(pairs.pairs) + by_part(self.row.sum(axis=1).astype(float), pairs.servers)
            + by_part((~self.exact).astype(float), pairs.users)
        )  # fmt: skip
        parts = len(self.t)
        self.best = np.full(parts, np.inf)
        self.known = np.zeros(parts, dtype=bool)
        self.last = np.full(parts, np.inf)
        self.good = self.early = self.now
        self.still = np.zeros(parts, dtype=int)
        self.tries = np.zeros(parts, dtype=int)
        self.residuals()

    def residuals(self) -> None:
        """What is wrong with the linear equations."""
        pairs, part = self.pairs, self.part
        self.cost, self.use, self.have = pairs.cost(self.lam), pairs.use(self.y), pairs.sums(self.y)
        self.dual = self.z - self.cost + pairs.of_user(self.p)
        self.excess = np.where(self.dual_row, 1 - self.use - np.where(self.full, 0.0, self.w), 0.0)
        wanted = np.where(self.rising > 0, self.t[part], self.held)
        self.short = wanted - self.have + np.where(self.exact, 0.0, self.s)
        self.sum = 1 - by_part(self.rising * self.p, pairs.users)

    @cached_property
    def reach(self) -> Array:
        """The most that each user could have alone, (users,)."""
        return self.pairs.sums(1 / np.maximum(self.pairs.takes.max(axis=1), _TINY))

    @property
    def now(self) -> _Step:
        """All that moves."""
        return _Step(self.y, self.z, self.w, self.lam, self.s, self.p, self.t)

    def set(self, to: _Step) -> None:
        """Be there."""
        self.y, self.z, self.w, self.lam, self.s, self.p, self.t = to
        self.residuals()

    def products(self) -> Array:
        """The sum of all products of a part, (parts,)."""
        pairs = self.pairs
        rows = np.where(self.row, self.lam * self.w, 0.0).sum(axis=1)
        users = np.where(self.exact, 0.0, self.p * self.s)
        return by_part(self.y * self.z, pairs.pairs) + by_part(rows, pairs.servers) + by_part(users, pairs.users)

    def bounds(self) -> tuple[Array, Array, Array]:
        """Levels that the point reaches and that its prices leave possible, (parts,), and what each user pays at least.

        Full rows and exact levels may have prices of either sign, as long as nobody who rises is paid.
        """
        pairs, rising = self.pairs, self.rising > 0
        load = np.maximum(most(self.use.max(axis=1), pairs.servers), 1.0)
        have = self.have / load[self.part]
        low = -most(np.where(rising, -have, -np.inf), pairs.users)
        fixed = ~rising & (self.held > 0)
        if fixed.any():
            met = -most(np.where(fixed, -have / np.maximum(self.held, _TINY), -1.0), pairs.users)
            low = np.where(met > 1 - _SAME, low * np.minimum(met, 1.0), 0.0)
        least = pairs.least(self.cost)
        paid = by_part(self.lam.sum(axis=1), pairs.servers)
        fix = by_part(np.where(rising, 0.0, least * self.held), pairs.users)
        total = by_part(np.where(rising, np.maximum(least, 0.0), 0.0), pairs.users)
        if self.full.any():
            paid_to = np.where(rising | ~self.exact, np.maximum(-least, 0.0), 0.0)
            if paid_to.any():
                fix = fix - by_part(paid_to * (self.reach - np.where(rising, 0.0, self.held)), pairs.users)
        high = np.where(total > 0, (paid - fix) / np.maximum(total, _TINY), np.inf)
        return low, np.maximum(high, low), least


class _Step(NamedTuple):
    y: Array
    z: Array
    w: Array
    lam: Array
    s: Array
    p: Array
    t: Array

    def plus(self, other: _Step) -> _Step:
        return _Step(*(one + two for one, two in zip(self, other, strict=True)))


class _Newton:
    """Newton's equations of all parts at a state."""

    def __init__(self, at: State) -> None:
        self.at, pairs = at, at.pairs
        self.weight = at.y / at.z
        own = pairs.sums(self.weight)
        self.loose = np.where(at.exact, _DEPENDENT * own, at.s / at.p)
        self.idle = np.where(at.row, at.w / np.maximum(at.lam, _TINY), np.inf)
        if at.full.any():
            size = np.einsum("rrk->kr", pairs.squares(self.weight))
            self.idle = np.where(at.full & at.dual_row, _DEPENDENT * size + _TINY, self.idle)
        self.equations = Equations(pairs, self.weight, self.idle, self.loose, at.rising)

    def step(self, cy: Array, cw: Array, cs: Array, wrong: bool, sharp: Array | None = None) -> _Step:
        """Changes of products by `cy`, `cw`, `cs` to the first order; `wrong`: and of all that is wrong."""
        at, pairs = self.at, self.at.pairs
        dual, excess, short = (at.dual, at.excess, at.short) if wrong else (0.0, 0.0, 0.0)
        base = cy / at.z
        if wrong:
            base += self.weight * dual
        rows = np.where(at.row, cw / np.maximum(at.lam, _TINY), 0.0)
        users = np.where(at.exact, 0.0, cs / at.p)
        f = at.sum if wrong else np.zeros(len(at.t))
        lam, p, t = self.equations.solve(
            np.where(at.dual_row, pairs.use(base) + rows - excess, 0.0), short - pairs.sums(base) + users, f, sharp
        )
        z = pairs.cost(lam) - pairs.of_user(p) - dual
        y = (cy - at.y * z) / at.z
        w = np.where(at.row, rows - self.idle * lam, 0.0) if at.row.all() else np.where(at.row, rows - np.where(at.row, self.idle, 0.0) * lam, 0.0)
        s = np.where(at.exact, 0.0, users - self.loose * p)
        return _Step(y, z, w, lam, s, p, t)

    def finished(self, step: _Step, sharp: Array) -> _Step:
        """With what factors and rounding left of the equations put right."""
        at, pairs, least = self.at, self.at.pairs, np.inf
        for _ in range(3):
            use, have = pairs.use(step.y), pairs.sums(step.y)
            left = np.where(at.row, at.excess - use - step.w, 0.0)
            if at.full.any():
                left = np.where(at.full, at.excess - use + self.idle_of_full * step.lam, left)
            user = at.short - have + at.rising * step.t[at.part] + np.where(at.exact, -self.loose * step.p, step.s)
            of_sum = at.sum - by_part(at.rising * step.p, pairs.users)
            size = np.maximum(
                most(np.abs(left).max(axis=1), pairs.servers), most(np.abs(user), pairs.users) / np.abs(at.t)
            ) / sharp  # fmt: skip
            if not size.max() < least:
                return best
            best, least = step, float(size.max())
            if least <= 1:
                return step
            lam, p, t = self.equations.solve(-left, user, of_sum, sharp)
            z = pairs.cost(lam) - pairs.of_user(p)
            step = step.plus(
                _Step(
                    -self.weight * z, z, np.where(at.row, -np.where(at.row, self.idle, 0.0) * lam, 0.0), lam,
                    np.where(at.exact, 0.0, -self.loose * p), p, t,
                )
            )  # fmt: skip
        return best

    @property
    def idle_of_full(self) -> Array:
        return np.where(self.at.full & self.at.dual_row, self.idle, 0.0)


def _lengths(at: State, step: _Step) -> tuple[Array, Array]:
    """The longest steps, at most 1, after which nothing is negative, (parts,): primal and dual."""
    pairs = at.pairs

    def fastest(pair: tuple[Array, Array], row: tuple[Array, Array], user: tuple[Array, Array]) -> Array:
        rate = most(-pair[1] / pair[0], pairs.pairs)
        rows = np.where(at.row, -row[1] / np.where(at.row, row[0], 1.0), 0.0).max(axis=1)
        users = np.where(at.exact, 0.0, -user[1] / np.where(at.exact, 1.0, user[0]))
        return 1 / np.maximum(np.maximum(rate, np.maximum(most(rows, pairs.servers), most(users, pairs.users))), 1.0)

    primal = fastest((at.y, step.y), (at.w, step.w), (at.s, step.s))
    return primal, fastest((at.z, step.z), (at.lam, step.lam), (at.p, step.p))


def advance(at: State, gap: Array) -> Array:
    """Predictor, corrector and up to five centring correctors; returns the shorter of the two lengths, (parts,)."""
    pairs = at.pairs
    of_pair = (lambda v: v) if len(at.t) == 1 else (lambda v: v[at.part][pairs.user])
    of_row = lambda v: v[pairs.part_of_server][:, None]  # noqa: E731
    total = at.products()
    mu = total / at.count
    newton = _Newton(at)
    yz, lw, ps = at.y * at.z, np.where(at.row, at.lam * at.w, 0.0), np.where(at.exact, 0.0, at.p * at.s)
    aim = newton.step(-yz, -lw, -ps, True)

    def products(step: _Step, primal: Array, dual: Array) -> tuple[Array, Array, Array]:
        a, b = (of_pair(primal), of_pair(dual)) if len(at.t) > 1 else (primal[0], dual[0])
        rows = np.where(at.row, (at.lam + of_row(dual) * step.lam) * (at.w + of_row(primal) * step.w), 0.0)
        users = np.where(at.exact, 0.0, (at.p + dual[at.part] * step.p) * (at.s + primal[at.part] * step.s))
        return (at.y + a * step.y) * (at.z + b * step.z), rows, users

    def summed(of: tuple[Array, Array, Array]) -> Array:
        return (
            by_part(of[0], pairs.pairs) + by_part(of[1].sum(axis=1), pairs.servers) + by_part(of[2], pairs.users)
        )

    primal, dual = _lengths(at, aim)
    after = summed(products(aim, primal, dual)) / total
    target = np.clip(after**3, 1e-8, 0.5) * mu
    t_pair, t_row, t_user = of_pair(target) if len(at.t) > 1 else target[0], of_row(target), target[at.part]
    cw = np.where(at.row, t_row - aim.lam * aim.w, 0.0)
    cs = np.where(at.exact, 0.0, t_user - aim.p * aim.s)
    step = aim.plus(newton.step(t_pair - aim.y * aim.z, cw, cs, False))
    primal, dual = _lengths(at, step)
    for _ in range(5):
        if (np.minimum(primal, dual) > 0.95).all():
            break
        far = np.minimum(primal + 0.3, 1.0), np.minimum(dual + 0.3, 1.0)
        asked = []
        for product, own in zip(products(step, *far), (t_pair, t_row, t_user), strict=True):
            asked.append(np.maximum(np.clip(product, 0.1 * own, 10 * own) - product, -10 * own))
        asked[1], asked[2] = np.where(at.row, asked[1], 0.0), np.where(at.exact, 0.0, asked[2])
        tried = step.plus(newton.step(*asked, False))
        lengths = _lengths(at, tried)
        better = lengths[0] + lengths[1] > primal + dual + 0.02
        if not better.any():
            break
        if better.all():
            step = tried
        else:
            step = _chosen(at, better, tried, step)
        primal, dual = np.where(better, lengths[0], primal), np.where(better, lengths[1], dual)
    # Where held users have not their levels yet no gap is known; products know it.
    sharp = 1e-2 * np.minimum(gap, total / np.abs(at.t))
    sharp = np.where(by_part(at.held, pairs.users) > 0, np.minimum(sharp, 1e-2 * _SAME), sharp)
    step = newton.finished(step, np.maximum(sharp, 1e-15))
    primal, dual = _lengths(at, step)
    back = np.where(np.minimum(primal, dual) > 0.9, np.clip(1 - gap, 0.9, 0.99995), np.clip(1 - gap, 0.9, 0.95))
    primal, dual = back * primal, back * dual
    a, b = of_pair(primal) if len(at.t) > 1 else primal[0], of_pair(dual) if len(at.t) > 1 else dual[0]
    at.y, at.z = at.y + a * step.y, at.z + b * step.z
    at.w, at.lam = at.w + of_row(primal) * step.w, at.lam + of_row(dual) * step.lam
    at.s, at.p = at.s + primal[at.part] * step.s, at.p + dual[at.part] * step.p
    at.t = at.t + primal * step.t
    at.residuals()
    return np.minimum(primal, dual)


def _chosen(at: State, which: Mask, one: _Step, other: _Step) -> _Step:
    """One step in some parts, another in the rest."""
    pairs = at.pairs
    user = which[at.part]
    masks = user[pairs.user], user[pairs.user], *(which[pairs.part_of_server][:, None],) * 2, user, user, which
    return _Step(*(np.where(mask, a, b) for mask, a, b in zip(masks, one, other, strict=True)))


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
        self.floor: Array = (1 - _SAME) * own.floor / self.tasks_per_level
        capacity = polytope.cluster.capacity
        self.demand: Array = polytope.cluster.demand[polytope.users] * self.tasks_per_level[:, None]
        self.inverse: Array = np.divide(1, capacity, out=np.zeros(capacity.shape), where=capacity > 0)
        count = len(polytope.users)
        self.level: Array = np.zeros(count)
        self.amount: Array = np.zeros(len(polytope.gamma))
        self.pieces: list[Piece] = []
        self.stages: list[Stage] = []
        self.steps, self.gap, self.seconds = 0, 0.0, _SECONDS
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
        gap = np.where(low > 0, high / np.maximum(low, _TINY) - 1, np.inf)
        stop = (at.rising > 0) & (self.cap[at.user] < low[at.part])
        if stop.any():
            self._stopped(at, stop)
            if not by_part(at.rising, at.pairs.users).all():
                return self._cut(at, by_part(at.rising, at.pairs.users) == 0, low, high, least)
            low, high, least = at.bounds()
            gap = np.where(low > 0, high / np.maximum(low, _TINY) - 1, np.inf)
        better = gap < np.where(at.known, 1.0, 0.9) * at.best
        at.still = np.where(better, 0, at.still + 1)
        at.best = np.minimum(at.best, gap)
        stuck = (at.still > _PATIENCE) | ~np.isfinite(at.t)
        if better.any():
            at.good = _chosen(at, better, at.now, at.good)
        lost = stuck & ~at.known & (at.best <= _SUFFICIENT)
        if lost.any():
            return self._accepted(at, lost)
        # Steps beyond take idle capacity and what is paid too much down to rounding.
        done = at.known & ((gap <= _ROUNDING) | (gap > 0.3 * at.last))
        if done.any():
            worse = done & ~(gap <= at.best)
            if worse.any():
                at.set(_chosen(at, worse, at.good, at.now))
                low, high, least = at.bounds()
            return self._cut(at, done, low, high, least)
        new = ~at.known & ((gap <= _ROUNDING) | ((gap <= _KNOWN) & self._apart(at)))
        if new.any():
            at.early = _chosen(at, new, at.now, at.early)
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
        """Does everybody clearly stand still, or clearly not? (parts,)"""
        count, t = self._scales(at)
        one, other = at.p * count, at.s / t
        ratio = np.where(at.exact, np.inf, np.maximum(one, other) / np.maximum(np.minimum(one, other), _TINY))
        return -most(-ratio, at.pairs.users) > _APART

    # --- levels that are known

    def _cut(self, at: State, known: Mask, low: Array, high: Array, least: Array, cold: bool = False) -> State | None:
        """Freeze users of parts whose level is known, keep their prices, and go on with the rest."""
        pairs, part = at.pairs, at.part
        count, t = self._scales(at)
        mine, rising = known[part], at.rising > 0
        waiting = mine & rising & (self.floor[at.user] > (high * (1 + _SAME))[part])
        if waiting.any():
            return self._waiting(at, waiting)
        proved = known & (by_part(at.rising, pairs.users) > 0)
        self.gap = max(self.gap, float((high / np.maximum(low, _TINY) - 1)[proved].max(initial=0.0)))
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
        load = np.where(live, 1.0, np.maximum(most(at.use.max(axis=1), pairs.servers), 1.0))
        dropped = inside & (was.z * count_pair > was.y / t_pair)
        rows = np.maximum(by_part(at.dual_row.sum(axis=1).astype(float), pairs.servers), 1.0)
        scale = (rows / at.t)[pairs.part_of_server][:, None]
        full = at.full | (on[:, None] & at.row & (was.lam * scale > was.w))
        held = np.where(frozen & rising, low[part], at.held)
        exact = at.exact | frozen
        # Those who wait at their floors rise again.
        again = mine & ~rising & ~exact & (at.held < self.cap[at.user] * (1 - _SAME))
        tau = np.where(frozen, 0.0, np.where(again, 1.0, at.rising))
        start = _chosen(at, known, was, at.now)
        s = np.where(again, np.maximum(at.held + start.s - t, _TINY), start.s)
        total = np.maximum(by_part(np.where(rising, least, 0.0), pairs.users), _TINY)
        before = len(self.pieces)
        for k in np.flatnonzero(known):
            if not by_part(at.rising, pairs.users)[k]:
                continue
            servers, users = slice(*pairs.servers[k : k + 2]), slice(*pairs.users[k : k + 2])
            self.stages.append(
                Stage(at.server[servers], at.lam[servers] / total[k], at.user[users], least[users] / total[k], before)
            )
        made = _Cut(at.user, at.server, pairs.user, pairs.server, at.pair, tau, exact, full, held)
        state = _Start(start._replace(s=s), at.y / pairs.of_user(load[part]), at.z, at.lam, known, dropped, total, least, pairs.users, full & ~at.full, cold)
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
        fresh = _cold(at.pairs, at.user, at.server, at.pair, tau, at.exact, at.full, held)
        cold = np.zeros(len(at.t), dtype=bool)
        cold[parts] = True
        user, server = cold[at.part], cold[at.pairs.part_of_server][:, None]
        pair = user[at.pairs.user]
        made = State(
            at.pairs, at.user, at.server, at.pair, tau, at.exact, at.full, held,
            np.where(pair, fresh.y, at.y), np.where(pair, fresh.z, at.z), np.where(server, fresh.w, at.w),
            np.where(server, fresh.lam, at.lam), np.where(user, fresh.s, at.s), np.where(user, fresh.p, at.p),
            np.where(cold, fresh.t, at.t),
        )  # fmt: skip
        made.tries = at.tries + cold
        return made

    def _rescued(self, at: State, part: int) -> State | None:
        """A part that gets on no more: from a cold start, then by a simplex method, or as well as it is known."""
        if at.tries[part] == 0:
            return self._anew(at, np.array([part]), at.rising, at.held)
        one = np.arange(len(at.t)) == part
        vertex = self._vertex(at, part)
        if vertex is not None:
            at.set(_chosen(at, one, vertex, at.now))
            at.early = _chosen(at, one, at.now, at.early)
            return self._cut(at, one, *at.bounds(), cold=True)
        if at.best[part] <= _WORST:
            return self._accepted(at, one)
        raise SolverError("a level could not be bounded, or not in the time that a simplex method may take")

    def _accepted(self, at: State, parts: Mask) -> State | None:
        """Go on from the best that was found."""
        at.set(_chosen(at, parts, at.good, at.now))
        at.early = _chosen(at, parts, at.now, at.early)
        return self._cut(at, parts, *at.bounds())

    def _vertex(self, at: State, part: int) -> _Step | None:
        """The level of a part by HiGHS: slow, but it needs no interior. Prices of next to nothing are none."""
        pairs, low, high = at.pairs, at.pairs.users[part], at.pairs.users[part + 1]
        begin, end = pairs.pairs[part], pairs.pairs[part + 1]
        if end - begin > _SIMPLEX or self.seconds <= 0:
            return None
        users, count, size = high - low, end - begin, at.lam.shape[1]
        rows = (pairs.server[begin:end, None] * size + np.arange(size)).ravel()
        take = sp.csr_matrix((pairs.takes[begin:end].ravel(), (rows, np.repeat(np.arange(count), size))), (at.lam.size, count))
        rising, held = at.rising[low:high] > 0, at.held[low:high]
        unit = np.where(rising, 1.0, np.maximum(held, _TINY))
        user = pairs.user[begin:end] - low
        have = sp.csr_matrix((1 / unit[user], (user, np.arange(count))), (users, count))
        begun = _clock.now()
        found = optimize.linprog(
            np.append(np.zeros(count), -1.0),
            A_ub=sp.vstack(
                [sp.hstack([take, sp.csr_matrix((at.lam.size, 1))]), sp.hstack([-have, sp.csr_matrix(rising[:, None] * 1.0)])],
                format="csr",
            ),
            b_ub=np.concatenate([np.ones(at.lam.size), np.where(rising, 0.0, -1.0)]),
            method="highs-ds",
            options={
                "primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10, "time_limit": self.seconds,
            },
        )  # fmt: skip
        self.seconds -= _clock.now() - begun
        if found.status != 0:
            return None
        y, z, p, s, t = at.y.copy(), at.z.copy(), at.p.copy(), at.s.copy(), at.t.copy()
        y[begin:end], t[part] = np.maximum(found.x[:count], 0.0), found.x[-1]
        marginal = np.maximum(-found.ineqlin.marginals, 0.0)
        lam = marginal[: at.lam.size].reshape(at.lam.shape)
        lam = np.where(lam > _SAME * lam.sum(), lam, 0.0)
        cost = pairs.cost(lam)[begin:end]
        least = np.minimum.reduceat(cost, pairs.start[low:high] - begin)
        few = _SAME * max(float(least.max()), _TINY)
        p[low:high] = np.where(least > few, least, 0.0)
        z[begin:end] = np.where(cost - least[user] > few, cost - least[user], 0.0)
        s[low:high] = np.maximum(pairs.sums(y)[low:high] - np.where(rising, t[part], held), 0.0)
        w = np.maximum(1 - pairs.use(y), 0.0)
        return _Step(y, z, w, lam, s, p, t)

    # --- taking apart

    def _arranged(self, cut: _Cut, start: _Start | None) -> State | None:
        """What is left to raise, part after part; writes down what is done."""
        stay = np.ones(len(cut.pair), dtype=bool) if start is None else ~start.dropped
        users, servers = len(cut.user), len(cut.server)
        user, server = cut.pair_user[stay], cut.pair_server[stay]
        if len(user) == users * servers:
            count, label = 1, np.zeros(users + servers, dtype=np.intp)
        else:
            graph = sp.csr_matrix((np.ones(len(user), dtype=np.int8), (user, users + server)), shape=(users + servers,) * 2)
            count, label = csgraph.connected_components(graph, directed=False)
        of_user, of_server = label[:users], label[users:]
        if start is not None:
            self._keep_pieces(cut, start, of_user, of_server, count)
        going = np.bincount(of_user, cut.rising, count) > 0
        done = np.flatnonzero(~going[of_user])
        self.level[cut.user[done]] = cut.held[done]
        if start is not None:
            over = np.flatnonzero(stay & ~going[of_user][cut.pair_user])
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
        order_p = order_p[np.lexsort((place_s[cut.pair_server[order_p]], place_u[cut.pair_user[order_p]]))]
        parts = np.arange(int(going.sum()) + 1)
        who, which = cut.user[order_u], cut.server[order_s]
        pairs = Pairs(
            place_u[cut.pair_user[order_p]], place_s[cut.pair_server[order_p]], self.demand[who], self.inverse[which],
            np.searchsorted(new[of_user[order_u]], parts), np.searchsorted(new[of_server[order_s]], parts),
        )  # fmt: skip
        pair, rising, exact = cut.pair[order_p], cut.rising[order_u], cut.exact[order_u]
        full, held = cut.full[order_s] & pairs.present, cut.held[order_u]
        if start is None:
            return _cold(pairs, who, which, pair, rising, exact, full, held)
        old = np.searchsorted(start.users, order_u[pairs.users[:-1]], side="right") - 1
        again = start.known[old]
        p = np.where(rising > 0, start.at.p[order_u], 0.0)
        left = np.where(again, np.maximum(by_part(p, pairs.users), _TINY), 1.0)
        part = pairs.part_of_user
        row = 1 / left[pairs.part_of_server][:, None]
        at = State(
            pairs, who, which, pair, rising, exact, full, held, start.at.y[order_p],
            start.at.z[order_p] / left[part][pairs.user], np.where(full, 1.0, start.at.w[order_s]),
            np.where(full & again[pairs.part_of_server][:, None], 0.0, start.at.lam[order_s] * row),
            np.where(exact, 1.0, start.at.s[order_u]),
            np.where(exact & again[part], 0.0, start.at.p[order_u] / left[part]), start.at.t[old],
        )  # fmt: skip
        if start.cold and again.any():
            return self._anew(at, np.flatnonzero(again), at.rising, at.held)
        _centred(at, again)
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
                    cut.server[on], start.lam[on] / unit, start.filled[on], cut.user[who], start.least[who] / unit, cut.pair[mine],
                    start.z[mine] / unit,
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
        have = np.maximum(np.bincount(self.polytope.pair_user, self.amount, len(self.level)), _TINY)
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
                factor = float(((user_price[user] - cost) / np.maximum(piece.surplus, _TINY)).max(initial=0.0))
            below = piece.full & (here < 0)
            if below.any():
                factor = max(factor, float((-here / np.maximum(piece.prices, _TINY))[below].max()))
            if factor > 0:
                factor *= 1.001
                prices[piece.servers] += factor * piece.prices
                user_price[piece.users] += factor * piece.user_price
        np.maximum(prices, 0.0, out=prices)


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

    at: _Step
    y: Array  # at the end, (pairs,), as z and lam
    z: Array
    lam: Array
    known: Mask
    dropped: Mask
    total: Array
    least: Array
    users: Index
    filled: Mask
    cold: bool

    @property
    def of_known(self) -> Mask:
        """Whose level is known, (users,)."""
        return np.repeat(self.known, np.diff(self.users))


def _cold(
    pairs: Pairs, user: Index, server: Index, pair: Index, rising: Array, exact: Mask, full: Mask, held: Array
) -> State:
    """Strictly feasible, but for the held: equal prices of whole capacities, and loads about balanced."""
    present, part = pairs.present, pairs.part_of_user
    lam = present.astype(float)
    least = pairs.least(pairs.cost(lam))
    total = by_part(np.where(rising > 0, least, 0.0), pairs.users)
    lam = lam / (0.9 * total)[pairs.part_of_server][:, None]
    p = least / total[part]
    z = pairs.cost(lam) - pairs.of_user(p)
    z = np.maximum(z, 0.1 * pairs.of_user(p))
    share = 1 / z
    share /= pairs.of_user(pairs.sums(share))
    wanted = pairs.of_user(rising)
    for _ in range(6):
        load = pairs.use(share * wanted).max(axis=1)
        root = np.where(load > 0, load, 1.0) ** -0.5
        share *= np.tile(root, len(p)) if pairs.full else root[pairs.server]
        share /= pairs.of_user(pairs.sums(share))
    least_t = 0.5 / np.maximum(most(pairs.use(share * wanted).max(axis=1), pairs.servers), _TINY)
    y = share * pairs.of_user(np.where(rising > 0, least_t[part], np.maximum(held, _TINY)))
    t = least_t / 1.2
    w = np.where(present, np.maximum(1 - pairs.use(y), 0.1), 1.0)
    s = np.where(exact, 1.0, np.where(rising > 0, 0.2 * t[part], 0.1 * np.maximum(held, _TINY)))
    return State(pairs, user, server, pair, rising, exact, full, held, y, z, w, lam, s, p, t)


def _centred(at: State, which: Mask) -> None:
    """No product of those parts below a tenth of the mean: duals are lifted."""
    mu = 0.1 * at.products() / at.count
    pairs = at.pairs
    of_user, of_server = which[at.part], which[pairs.part_of_server][:, None]
    of_pair = of_user[pairs.user]
    at.z = np.where(of_pair, np.maximum(at.z, mu[at.part][pairs.user] / at.y), at.z)
    of_row = of_server & at.row
    at.lam = np.where(of_row, np.maximum(at.lam, mu[pairs.part_of_server][:, None] / np.where(at.row, at.w, 1.0)), at.lam)
    of_user = of_user & ~at.exact
    at.p = np.where(of_user, np.maximum(at.p, mu[at.part] / at.s), at.p)
    at.residuals()
