"""One interior point for the levels of max-min of all parts at once: Mehrotra's predictor, Gondzio's correctors.

With slacks z of costs, w of capacities and s of levels, tau_n = 1 for those who rise,

    z = cost - p,  w = 1 - use,  s = sum_i y - tau t - held,  tau.p = 1,  y z = lambda w = p s = mu,

where those who are `exact` have no s and rows that are `full` no w: p and lambda are free there. Parts share nothing
and have a t, a mu and step lengths of their own. Bounds from both sides say how well a level is known.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._libraries import lapack
from ..model._arrays import Array, Index, Mask
from .algebra import Equations, Pairs, by_part, fewest, most

#: By what part held users may miss their levels, and what counts as nothing beside the largest.
SAME = 1e-9
#: Equations may depend on each other: what is added to their diagonals, as a part.
_DEPENDENT = 1e-11
#: Most rows and users of equations that are factored as they are.
_FEW = 500
#: Factors in single precision will do until they leave so many times what may be left.
_ROUGH = 50.0
TINY = 1e-300


class Faces(NamedTuple):
    """Whom and what a state is about, by their numbers among all, and what has become an equation."""

    user: Index  # (users,)
    server: Index  # (servers,)
    pair: Index  # (pairs,)
    rising: Array  # (users,), 1 or 0
    exact: Mask  # (users,), held at a level that is an equation
    full: Mask  # (servers, resources), full rows that are equations
    held: Array  # (users,), what the held have

    def taken(self, u: Index, s: Index, p: Index) -> Faces:
        """Of some users, servers and pairs."""
        return Faces(
            self.user[u], self.server[s], self.pair[p], self.rising[u], self.exact[u], self.full[s], self.held[u]
        )


class Point(NamedTuple):
    """All that moves: tasks and slacks of pairs, slacks and prices of rows, slacks and worths of users, levels."""

    y: Array
    z: Array
    w: Array
    lam: Array
    s: Array
    p: Array
    t: Array

    def plus(self, other: Point) -> Point:
        """The sum of two."""
        return Point(*(one + two for one, two in zip(self, other, strict=True)))

    def taken(self, u: Index, s: Index, p: Index, part: Index) -> Point:
        """Of some users, servers, pairs and parts."""
        return Point(*(each[i] for each, i in zip(self, (p, p, s, s, u, u, part), strict=True)))


class State:
    """Where all parts are. Users, servers and pairs of a part follow each other, in the order of `pairs`."""

    def __init__(self, pairs: Pairs, faces: Faces, point: Point) -> None:
        self.pairs, self.part = pairs, pairs.part_of_user
        self.user, self.server, self.pair, self.rising, self.exact, self.full, self.held = faces
        self.row = pairs.present & ~self.full
        self.count = (
            np.diff(pairs.pairs) + by_part(self.row.astype(float), pairs.servers)
            + by_part((~self.exact).astype(float), pairs.users)
        )  # fmt: skip
        parts = len(point.t)
        self.best, self.lowest, self.last = np.full((3, parts), np.inf)
        self.known, self.still = np.zeros(parts, dtype=bool), np.zeros(parts, dtype=int)
        self.good = self.early = point
        self.rough, self.whole = True, False
        self.set(point)

    @property
    def faces(self) -> Faces:
        """Whom and what it is about."""
        return Faces(self.user, self.server, self.pair, self.rising, self.exact, self.full, self.held)

    def residuals(self) -> None:
        """What is wrong with the linear equations, what each user pays at least, products, and mu (parts,)."""
        pairs, part = self.pairs, self.part
        self.use, self.have = pairs.use(self.y), pairs.sums(self.y)
        slack = pairs.slack(self.lam, self.p)
        self.least = self.p + pairs.least(slack)
        self.dual = np.subtract(self.z, slack, out=slack)
        self.excess = np.where(self.pairs.present, 1 - self.use - np.where(self.full, 0.0, self.w), 0.0)
        wanted = np.where(self.rising > 0, self.t[part], self.held)
        self.short = wanted - self.have + np.where(self.exact, 0.0, self.s)
        self.sum = 1 - by_part(self.rising * self.p, pairs.users)
        self.products = self.products_of(self.now)
        self.mu = self.total(self.products) / self.count

    @property
    def now(self) -> Point:
        """All that moves."""
        return Point(self.y, self.z, self.w, self.lam, self.s, self.p, self.t)

    def products_of(self, point: Point) -> tuple[Array, Array, Array]:
        """Of pairs, rows and users at a point."""
        rows, users = point.lam * point.w, point.p * point.s
        return point.y * point.z, np.where(self.row, rows, 0.0), np.where(self.exact, 0.0, users)

    def moved(self, step: Point, primal: Array, dual: Array) -> Point:
        """After so much of a step, lengths of (parts,)."""
        on = self.on_pairs, self.on_rows, self.on_users
        lengths = (*(each(length) for each in on for length in (primal, dual)), primal)
        changes = (length * change for length, change in zip(lengths, step, strict=True))
        return Point(*(np.add(each, change, out=change) for each, change in zip(self.now, changes, strict=True)))

    def set(self, to: Point) -> None:
        """Be there."""
        self.y, self.z, self.w, self.lam, self.s, self.p, self.t = to
        self.residuals()

    def on_users(self, of_part: NDArray[Any]) -> NDArray[Any]:
        """A value of every part on its users."""
        return of_part[self.part]

    def on_pairs(self, of_part: NDArray[Any]) -> NDArray[Any]:
        """A value of every part on its pairs, or one that does for all."""
        return of_part if len(of_part) == 1 else of_part[self.part][self.pairs.user]

    def on_rows(self, of_part: NDArray[Any]) -> NDArray[Any]:
        """A value of every part on its rows, (servers, 1)."""
        return of_part[self.pairs.part_of_server][:, None]

    def total(self, products: tuple[Array, Array, Array]) -> Array:
        """The sum of what pairs, rows and users have, (parts,)."""
        rows = by_part(products[1], self.pairs.servers)
        return by_part(products[0], self.pairs.pairs) + rows + by_part(products[2], self.pairs.users)

    def held_by(self, point: Point) -> Array:
        """Logs of users' worths over their slacks, both in parts of the level's: of the held large, of others small."""
        rising = np.maximum(by_part(self.rising, self.pairs.users), 1.0)
        return np.asarray(np.log(point.p * (rising * self.t)[self.part] / point.s))

    def bounds(self) -> tuple[Array, Array, Array]:
        """Levels that the point reaches and that its prices leave possible, (parts,), and what each user pays at least.

        Full rows and exact levels may have prices of either sign, as long as nobody who rises is paid.
        """
        pairs, rising, least = self.pairs, self.rising > 0, self.least
        load = np.maximum(most(self.use, pairs.servers), 1.0)
        have = self.have / load[self.part]
        low = -most(np.where(rising, -have, -np.inf), pairs.users)
        fixed = ~rising & (self.held > 0)
        if fixed.any():
            met = -most(np.where(fixed, -have / np.maximum(self.held, TINY), -1.0), pairs.users)
            low = np.where(met > 1 - SAME, low * np.minimum(met, 1.0), 0.0)
        paid = by_part(self.lam, pairs.servers)
        fix = by_part(np.where(rising, 0.0, least * self.held), pairs.users)
        total = by_part(np.where(rising, np.maximum(least, 0.0), 0.0), pairs.users)
        paid_to = by_part(np.where(self.exact | ~self.full.any(), 0.0, least < 0), pairs.users)
        high = np.where((total > 0) & (paid_to == 0), (paid - fix) / np.maximum(total, TINY), np.inf)
        return low, high, least


class Newton:
    """Newton's equations of all parts at a state, factored once."""

    def __init__(self, at: State) -> None:
        self.at, pairs = at, at.pairs
        self.weight = at.y / at.z
        self.loose = np.where(at.exact, _DEPENDENT * pairs.sums(self.weight), at.s / at.p)
        self.idle = np.where(at.row, at.w / np.maximum(at.lam, TINY), np.inf)
        if at.full.any():
            size = np.einsum("rrk->kr", pairs.squares(self.weight))
            self.idle = np.where(at.full, _DEPENDENT * size + TINY, self.idle)
        self.equations = Equations(pairs, self.weight, self.idle, self.loose, at.rising, at.rough)

    def step(self, cy: Array, cw: Array, cs: Array, wrong: bool = False) -> Point:
        """Changes of products by `cy`, `cw`, `cs` to the first order; `wrong`: and of all that is wrong."""
        at, pairs = self.at, self.at.pairs
        own, rows = cy / at.z, np.where(at.row, cw / np.maximum(at.lam, TINY), 0.0)
        users, of_sum = np.where(at.exact, 0.0, cs / at.p), np.zeros(len(at.t))
        if wrong:
            own += self.weight * at.dual
        b, e = pairs.use(own) + rows, users - pairs.sums(own)
        if wrong:
            b, e, of_sum = b - at.excess, e + at.short, at.sum
        lam, p, t = self.equations.solve(b, e, of_sum)
        z = pairs.slack(lam, p)
        own -= self.weight * z
        if wrong:
            z -= at.dual
        return self._whole(own, z, rows, lam, users, p, t)

    def _whole(self, y: Array, z: Array, rows: Array, lam: Array, users: Array, p: Array, t: Array) -> Point:
        """With what rows and users have left over."""
        at = self.at
        w = np.where(at.row, rows - np.where(at.row, self.idle, 0.0) * lam, 0.0)
        return Point(y, z, w, lam, np.where(at.exact, 0.0, users - self.loose * p), p, t)

    def finished(self, step: Point, sharp: Array) -> Point:
        """With what factors and rounding left of the equations put right, to `sharp` (parts,) if they can be."""
        at, pairs, best, least = self.at, self.at.pairs, step, np.inf
        for _ in range(3):
            rows = np.where(at.row, at.excess - pairs.use(step.y) - step.w, 0.0)
            if at.full.any():
                rows = np.where(at.full, at.excess - pairs.use(step.y), rows)
            users = np.where(at.exact, 0.0, step.s) + at.rising * at.on_users(step.t)
            users += at.short - pairs.sums(step.y)
            wrong = np.maximum(most(np.abs(rows), pairs.servers), most(np.abs(users), pairs.users) / np.abs(at.t))
            size = float((wrong / sharp).max())
            if not size < least:
                break
            at.rough, best, least = at.rough and size < _ROUGH, step, size
            if size <= 1:
                break
            of_sum = at.sum - by_part(at.rising * step.p, pairs.users)
            lam, p, t = self.equations.solve(-rows, users, of_sum, sharp)
            z = pairs.slack(lam, p)
            step = step.plus(self._whole(-self.weight * z, z, np.zeros(lam.shape), lam, np.zeros(p.shape), p, t))
        at.whole = bool(least > 1 and not at.known.all() and at.lam.size + len(at.p) <= _FEW)
        return best


class Whole(Newton):
    """Newton's equations of few rows as they are: only pairs that cost more than they carry are eliminated.

    Where levels nearly tie or numbers are decades apart, what pairs weigh swallows what rows and users leave.
    """

    def __init__(self, at: State) -> None:
        self.at, pairs = at, at.pairs
        self.weight, count = at.y / at.z, np.maximum(by_part(at.rising, pairs.users), 1.0)
        self.idle, self.loose = np.where(at.row, at.w / at.lam, 0.0), np.where(at.exact, 0.0, at.s / at.p)
        self.kept = self.weight > pairs.of_user((count * at.t)[at.part])
        self.columns = np.hstack([pairs.matrix.toarray(), -np.eye(len(at.p))[pairs.user]])
        kept, dear, few = self.columns[self.kept], self.columns[~self.kept], int(self.kept.sum())
        sums = np.zeros((len(at.t), len(kept.T)))
        sums[at.part, at.lam.size + np.arange(len(at.p))] = at.rising
        both = -(dear.T * self.weight[~self.kept]) @ dear - np.diag(np.append(self.idle, self.loose))
        none = np.zeros((few, len(at.t)))
        own = np.diag(1 / self.weight[self.kept])
        self.matrix = np.block([[own, kept, none], [kept.T, both, sums.T], [none.T, sums, np.zeros((len(at.t),) * 2)]])
        size = np.abs(self.matrix).max(axis=0)
        self.scale = 1 / np.sqrt(np.where(size > 0, size, 1.0))
        scaled = self.matrix * self.scale * self.scale[:, None]
        # Equations may depend on each other, or be of rows that nobody uses.
        np.einsum("ii->i", scaled)[few : few + len(both)] -= _DEPENDENT * np.append(~at.row, at.exact)
        self.factor = lapack.dgetrf(scaled, overwrite_a=1)[:2]

    def step(self, cy: Array, cw: Array, cs: Array, wrong: bool = False) -> Point:
        """Changes of products by `cy`, `cw`, `cs` to the first order; `wrong`: and of all that is wrong."""
        at, kept = self.at, self.kept
        rows, users = np.where(at.row, cw / np.maximum(at.lam, TINY), 0.0), np.where(at.exact, 0.0, cs / at.p)
        own, others, of_sum = cy / at.y, -np.append(rows, users), np.zeros(len(at.t))
        if wrong:
            own, others, of_sum = own + at.dual, others + np.append(at.excess, -at.short), at.sum
        others = others - self.columns[~kept].T @ (self.weight * own)[~kept]
        given = np.concatenate([own[kept], others, of_sum])
        found = np.zeros(len(given))
        for _ in range(2):
            left = self.scale * (given - self.matrix @ found)
            found += self.scale * lapack.dgetrs(*self.factor, left)[0]
        y, both, t = np.split(found, [kept.sum(), len(found) - len(at.t)])
        lam, p = both[: at.lam.size].reshape(at.lam.shape), both[at.lam.size :]
        change = self.weight * (own - self.columns @ both)
        change[kept] = y
        return self._whole(change, (cy - at.z * change) / at.y, rows, lam, users, p, t)

    def finished(self, step: Point, sharp: Array) -> Point:
        """The step, of which nothing is left to put right."""
        return step


def _lengths(at: State, step: Point) -> tuple[Array, Array]:
    """The longest steps, at most 1, after which nothing is negative, (parts,): primal and dual."""
    pairs = at.pairs

    def longest(pair: Array, row: Array, user: Array) -> Array:
        rows, users = np.where(at.row, row, 0.0), np.where(at.exact, 0.0, user)
        fastest = np.maximum(most(rows, pairs.servers), most(users, pairs.users))
        return np.asarray(1 / np.maximum(np.maximum(-fewest(pair, pairs.pairs), fastest), 1.0))

    return (
        longest(step.y / at.y, -step.w / at.w, -step.s / at.s),
        longest(step.z / at.z, -step.lam / np.maximum(at.lam, TINY), -step.p / at.p),
    )


def _centred(at: State, newton: Newton, step: Point, targets: tuple[Array, Array, Array]) -> Point:
    """With up to three of Gondzio's correctors, which bring products back to within a factor of ten of targets."""
    primal, dual = _lengths(at, step)
    for _ in range(3):
        if (np.minimum(primal, dual) > 0.95).all():
            break
        far = at.products_of(at.moved(step, np.minimum(primal + 0.3, 1.0), np.minimum(dual + 0.3, 1.0)))
        asked = [np.maximum(np.clip(q, 0.1 * c, 10 * c) - q, -10 * c) for q, c in zip(far, targets, strict=True)]
        tried = step.plus(newton.step(asked[0], asked[1], asked[2]))
        lengths = _lengths(at, tried)
        better = lengths[0] + lengths[1] > primal + dual + 0.02
        if not better.any():
            break
        step = chosen(at, better, tried, step)
        primal, dual = np.where(better, lengths[0], primal), np.where(better, lengths[1], dual)
    return step


def advance(at: State, gap: Array) -> None:
    """Predictor, corrector, and up to three that centre."""
    newton, total = (Whole if at.whole else Newton)(at), at.mu * at.count
    yz, lw, ps = at.products
    aim = newton.step(-yz, -lw, -ps, wrong=True)
    after = at.total(at.products_of(at.moved(aim, *_lengths(at, aim)))) / total
    target = np.clip(after**3, 1e-8, 0.1) * at.mu
    targets = at.on_pairs(target), at.on_rows(target), at.on_users(target)
    step = aim.plus(newton.step(targets[0] - aim.y * aim.z, targets[1] - aim.lam * aim.w, targets[2] - aim.p * aim.s))
    step = _centred(at, newton, step, targets)
    # Where held users have not their levels yet no gap is known; products know it.
    left = np.minimum(gap, total / np.abs(at.t))
    sharp = 1e-2 * left
    sharp = np.where(by_part(at.held, at.pairs.users) > 0, np.minimum(sharp, 1e-2 * SAME), sharp)
    step = newton.finished(step, np.maximum(sharp, 1e-15))
    if at.whole and not isinstance(newton, Whole):
        advance(at, gap)
        return
    primal, dual = _lengths(at, step)
    back = np.clip(1 - left, 0.9, np.where(np.minimum(primal, dual) > 0.9, 0.99995, 0.9))
    at.set(at.moved(step, back * primal, back * dual))


def chosen(at: State, which: Mask, one: Point, other: Point) -> Point:
    """One step in some parts, another in the rest."""
    if which.all():
        return one
    pairs = at.pairs
    user = which[at.part]
    masks = user[pairs.user], user[pairs.user], *(which[pairs.part_of_server][:, None],) * 2, user, user, which
    return Point(*(np.where(mask, a, b) for mask, a, b in zip(masks, one, other, strict=True)))


def cold(pairs: Pairs, faces: Faces) -> Point:
    """Strictly feasible, but for the held: equal prices of whole capacities, and loads about balanced."""
    present, part, rising = pairs.present, pairs.part_of_user, faces.rising
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
    least_t, held = 0.5 / np.maximum(most(pairs.use(share * wanted), pairs.servers), TINY), np.maximum(faces.held, TINY)
    y = share * pairs.of_user(np.where(rising > 0, least_t[part], held))
    t = least_t / 1.2
    w = np.where(present, np.maximum(1 - pairs.use(y), 0.1), 1.0)
    s = np.where(faces.exact, 1.0, np.where(rising > 0, 0.2 * t[part], 0.1 * held))
    return Point(y, z, w, lam, s, p, t)


def renew(at: State, which: Mask) -> None:
    """Begin a level of some parts: duals in parts of what still rises there, no product below a tenth of the mean."""
    left = np.where(which, np.maximum(by_part(at.rising * at.p, at.pairs.users), TINY), 1.0)
    full, exact = at.on_rows(which) & at.full, at.on_users(which) & at.exact
    w, s = np.where(full, 1.0, at.w), np.where(exact, 1.0, at.s)
    lam, p = np.where(full, 0.0, at.lam / at.on_rows(left)), np.where(exact, 0.0, at.p / at.on_users(left))
    at.set(Point(at.y, at.z / at.on_pairs(left), w, lam, s, p, at.t))
    mu = np.where(which, 0.1 * at.mu, 0.0)
    lam = np.where(at.row, np.maximum(lam, at.on_rows(mu) / w), lam)
    p = np.where(at.exact, p, np.maximum(p, at.on_users(mu) / s))
    at.set(at.now._replace(z=np.maximum(at.z, at.on_pairs(mu) / at.y), lam=lam, p=p))
    at.good = at.early = at.now
