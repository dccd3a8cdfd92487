r"""Last digits of an answer at finite alpha: interior-point steps on the pairs, rows and limits that are near it.

Every condition is a product of two numbers u, v that are not negative, of which one is 0 at an answer:

    part of a pair in its user's tasks              by how much it costs more than it is worth, in logarithms over A
    part of a row in what its users pay             part of it that idles
    log price of a limit over A                     part of it that is left

.. math::
    (\log p_{ni} - \log m_{ni})/A + \xi_n = v_{ni}, \quad 1 - \sum_n x_{ni} d_{nr}/c_{ir} = v_{ir}, \quad
    1 - x_n/q_n = v_n, \quad u v = \mu \to 0.

Where pairs are eliminated what nearly ties is squared: a product of 1e-8 may be two numbers of 1e-4. Here v/u stays on
the diagonal, so that both become small. What is left aside comes back where it is violated.

Source: Wright, "Primal-Dual Interior-Point Methods" (1997), chapters 10 and 11 (augmented systems, Mehrotra).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..base.libraries import lapack, optimize, sp, sparse_linalg
from ..model._arrays import Array, Index, Mask
from ..model.criterion import Criterion
from ..model.polytope import Polytope
from .sparse import TABLES, Factors, Order, ordered

Solve = Callable[[Array], Array]

#: Numbers in a table that would take too long, or gigabytes.
_LARGE = 4e7
#: Matrices are dense up to so many unknowns.
DENSE = 300


@dataclass(frozen=True)
class Refined:
    """Tasks (pairs,), log prices of whole capacities (rows,), -inf for zero, their error, and Newton steps."""

    tasks: Array
    log_rows: Array
    error: float
    steps: int


def refined(polytope: Polytope, criterion: Criterion, tasks: Array, log_rows: Array, aim: float) -> Refined | None:
    """Refine `tasks` (pairs,) and `log_rows` (rows,): the iterate of smallest error.

    Errors are relative, in tasks; it ends below `aim`. None for users without tasks: whether they are to have some is
    not asked here.
    """
    if _starved(polytope, tasks):
        return None
    with np.errstate(all="ignore"):
        whole = Conditions(polytope, criterion, np.arange(len(tasks)), np.arange(len(log_rows)))
        start = whole.started(tasks, log_rows)
        pairs, rows, mu = whole.near(start)
        best, steps = None, 0
        for _ in range(5):
            chosen = whole.some(pairs, rows)
            if chosen.heavy:
                break
            found, excess = _run(chosen, start, mu, aim, 40 - steps)
            steps += found.steps
            there = whole.started(found.tasks, found.log_rows, excess)
            outside, idles = found.tasks == 0, found.log_rows == -np.inf
            back, full = outside & (there.slack < 3e-4), idles & (there.idle < 0)
            violated = max(float(-there.slack[back].min(initial=0.0)), float(-there.idle[full].min(initial=0.0)))
            error = max(found.error, violated)
            if best is None or error <= best.error:
                best = Refined(found.tasks, found.log_rows, error, steps)
            if steps >= 40 or found.error > 1e-6 or violated <= 1e-13:
                break
            if violated < 1e-4:
                start, mu, pairs, rows = there, min(max(violated**2, 1e-14), 1e-2), ~outside | back, ~idles | full
            else:
                pairs, rows = pairs | back, rows | full
        return None if best is None else replace(best, steps=steps)


def vertex(polytope: Polytope, criterion: Criterion, tasks: Array, log_rows: Array) -> Refined | None:
    """One LP-Newton step, whose linear program decides which factor of each product is zero; None if it fails.

    At exact ties both factors become the root of a small number on every path, and the equations singular. The program
    has as objective the products to first order, and factors that are not negative.

    Source: Facchinei, Fischer, Herrich, "An LP-Newton method" (2014), Mathematical Programming 146.
    """
    with np.errstate(all="ignore"):
        if _starved(polytope, tasks):
            return None
        whole = Conditions(polytope, criterion, np.arange(len(tasks)), np.arange(len(log_rows)))
        start = whole.started(tasks, log_rows)
        c = whole.some(start.slack < 0.03, np.ones(len(log_rows), dtype=bool))
        if c.heavy or (np.bincount(c.user).astype(float) ** 2).sum() > _LARGE:
            return None
        state = _State(c, start, 1e-300)
        unit = state.error
        length = min(30 * unit, 0.03)
        if not 0 < unit < length:
            return None
        slopes = (state.apart() + state.together()) @ sp.diags(1 / state.unit)
        totals = sp.csr_matrix(
            (1 / state.unit[state.pairs], (c.user, np.arange(len(c.pairs)))), (len(start.total), len(state.u))
        )
        low, high = -state.u, np.full(len(state.u), np.inf)
        low[state.rows], high[state.rows] = np.maximum(low[state.rows], -length), length
        found = optimize.linprog(
            np.clip(state.f / unit, 1e-3, 1e3) + slopes.T @ np.minimum(state.u / unit, 1e3),
            A_ub=sp.vstack([-slopes, totals, -totals]),
            b_ub=np.concatenate([state.f, np.full(2 * len(start.total), length)]) / unit,
            bounds=np.stack([low, high], axis=1) / unit,
            method="highs",
            options={
                "primal_feasibility_tolerance": min(max(1e-13 / unit, 1e-10), 1e-4),
                "dual_feasibility_tolerance": 1e-9,
                "maxiter": 5_000,
            },
        )
        if found.x is None:
            return None
        d = found.x * unit / state.unit
        moved = np.zeros(len(tasks))
        moved[c.pairs] = np.maximum(state.here.tasks + d[state.pairs] * state.here.total[c.user], 0.0)
        return Refined(moved, state.here.log_rows + np.log(np.maximum(1 + d[state.rows], 1e-9)), unit, 1)


def _starved(polytope: Polytope, tasks: Array) -> bool:
    """True if some user has no tasks."""
    return not len(tasks) or not (np.add.reduceat(tasks, polytope.start[:-1]) > 0).all()


@dataclass(frozen=True)
class Point:
    """Tasks (pairs,), log prices (rows,), excess (users,) and derived quantities, on chosen pairs and rows."""

    tasks: Array
    log_rows: Array
    excess: Array
    total: Array  # (users,)
    part: Array  # (pairs,)
    weighty: Array  # (pairs,), part of its user's tasks or of its server, whichever is larger
    slack: Array  # (pairs,)
    slope: Array  # (pairs,), of slacks in the log of totals
    share: Array  # (entries,), parts of rows in what pairs pay
    weight: Array  # (rows,), the largest part of a row in what a pair costs, or would be worth
    idle: Array  # (rows,)
    room: Array  # (users,), 1 without a limit


class Conditions:
    """Optimality conditions restricted to some pairs and rows."""

    def __init__(self, polytope: Polytope, criterion: Criterion, pairs: Index, rows: Index) -> None:
        self.polytope, self.criterion, self.pairs, self.rows = polytope, criterion, pairs, rows
        self.own, self.scale = criterion.restrict(polytope.users), criterion.stiffness
        use = polytope.use[rows][:, pairs].tocsc().tocoo()  # by pair
        self.row, self.pair, self.use, self.log_use = use.row, use.col, use.data, np.log(use.data)
        self.user, self.server = polytope.pair_user[pairs], polytope.pair_server[pairs]
        self.gamma = polytope.gamma[pairs]
        self.log_gamma = np.log(self.gamma)
        users = np.unique(self.user)
        self.limits = users[np.isfinite(polytope.limit[users])]

    @property
    def heavy(self) -> bool:
        """True if the matrix over rows would take gigabytes."""
        if self.few_users:
            return len(self.own.weight) * len(self.rows) > _LARGE
        return (len(self.rows) - (len(self.order.pointer) - 1 if self.listed else 0)) ** 2 > _LARGE

    @property
    def few_users(self) -> bool:
        """True if users are so few that rows are best coupled by thin matrices."""
        return 50 * len(self.own.weight) < len(self.rows)

    @cached_property
    def listed(self) -> bool:
        """True if rows are so few of each user that they are coupled from lists."""
        couples, tables = 10.0 * np.bincount(self.user[self.pair]) ** 2, len(self.own.weight) * len(self.rows) ** 2
        return bool(couples.sum() < tables > TABLES)

    @cached_property
    def order(self) -> Order:
        """Order of rows, which users couple; those of a server apart."""
        return ordered(self.user[self.pair], self.row, len(self.rows), 1, self.server[self.pair])

    def some(self, pairs: Mask, rows: Mask) -> Conditions:
        return Conditions(self.polytope, self.criterion, self.pairs[pairs], self.rows[rows])

    def at(self, tasks: Array, log_rows: Array, excess: Array) -> Point:
        total = np.bincount(self.user, tasks, len(self.polytope.users)).astype(float)
        marginal, slope = self.own.log_marginal_of(total, self.user, self.server), self.own.elasticity(total)
        slope = slope[self.user, self.server] if slope.ndim == 2 else slope[self.user]
        each = self.log_use + log_rows[self.row]
        top = np.full(len(tasks), -np.inf)
        np.maximum.at(top, self.pair, each)
        paid = np.exp(each - top[self.pair])
        whole = np.bincount(self.pair, paid, len(tasks))
        cost = top + np.log(whole) - self.log_gamma
        slack = (cost - marginal) / self.scale + excess[self.user]
        weight = np.zeros(len(log_rows))
        most = np.maximum(cost, marginal) + self.log_gamma
        np.maximum.at(weight, self.row, np.exp(np.minimum(each - most[self.pair], 0.0)))
        idle = 1 - np.bincount(self.row, self.use * (tasks / self.gamma)[self.pair], len(log_rows)).astype(float)
        part, share, room = tasks / total[self.user], paid / whole[self.pair], 1 - total / self.polytope.limit
        slope, weighty = slope / self.scale, np.maximum(part, tasks / self.gamma)
        return Point(tasks, log_rows, excess, total, part, weighty, slack, slope, share, weight, idle, room)

    def started(self, tasks: Array, log_rows: Array, excess: Array | None = None) -> Point:
        """Starting point on all pairs and rows; a row without a price gets a negligible one.

        First prices of a global program are in the unit that suits most users, and who is served in full pays less
        than its tasks are worth.
        """
        users = len(self.polytope.users)
        total = np.bincount(self.user, tasks, users).astype(float)
        value = self.own.log_marginal_of(total, self.user, self.server) + self.log_gamma
        least = np.full(len(log_rows), np.inf)
        np.minimum.at(least, self.row, value[self.pair] - self.log_use)
        if excess is not None:
            return self.at(tasks, np.fmax(log_rows, least - 300), excess)
        here = self.at(tasks, log_rows, np.zeros(users))
        lowest, full = np.full(users, np.inf), here.room < 1e-3
        np.minimum.at(lowest, self.user, np.where(here.part > 1e-6, here.slack, np.inf))
        if self.criterion.scope != "game":
            unit = float(np.median(lowest[~full])) if not full.all() else 0.0
            log_rows, lowest = log_rows - self.scale * unit, lowest - unit
        excess = np.where(full & (lowest < 0), -lowest, 0.0)
        return self.at(tasks, np.fmax(log_rows, least - 300), excess)

    def near(self, at: Point) -> tuple[Mask, Mask, float]:
        """Pairs and rows that are nearly active, and the mean of their products."""
        inside = at.weighty > np.maximum(at.slack, 0.0)
        products = np.concatenate([(at.weighty * np.abs(at.slack))[inside], np.abs(at.idle) * at.weight])
        mu = min(max(float(products.mean()), 1e-14), 1e-2)
        most = 2 * (len(at.total) + len(at.idle))
        nearest = min(3e-3, max(1e-5, 100 * np.sqrt(mu)))
        if most < len(at.slack):
            nearest = min(nearest, float(np.partition(at.slack, most)[most]))
        pairs = inside | (at.slack < nearest)
        rows = (at.weight > 1e-6) | (at.weight > at.idle) | (at.idle < 1e-2)
        without = pairs & (np.bincount(self.pair, rows[self.row], len(pairs)) == 0)
        rows[self.row[without[self.pair]]] = True
        lost = np.where(pairs, 0.0, at.tasks)
        left = max(
            float(np.where(pairs, 0.0, at.part).max(initial=0.0)),
            float(np.bincount(self.row, self.use * (lost / self.gamma)[self.pair]).max(initial=0.0)),
        )
        return pairs, rows, min(max(mu, 1e-3 * left), 1e-2)


def _run(conditions: Conditions, start: Point, mu: float, aim: float, most: int) -> tuple[Refined, Array]:
    """Iterate until the error is below `aim` or stalls: the best iterate, and its excess."""
    state = _State(conditions, start, mu)
    best, steps, since, least = None, 0, 0, np.inf
    while True:
        error = state.error
        if best is None or error < best[0]:
            best = error, state.here
        # Where products still fall there is progress, though the error does not show it yet.
        reached = min(error, float((state.u * state.v)[state.pairs].sum()))
        since = 0 if reached < 0.5 * least else since + 1
        least = min(least, reached)
        if error <= aim or steps >= most or since > 8 or not np.isfinite(error) or not state.step():
            break
        steps += 1
    assert best is not None
    error, at = best
    tasks, log_rows = np.zeros(len(start.tasks)), np.full(len(start.log_rows), -np.inf)
    tasks[conditions.pairs], log_rows[conditions.rows] = at.tasks, at.log_rows
    return Refined(tasks, log_rows, error, steps), at.excess


class _State:
    """Iterate: a point, and both factors of every complementarity product, of pairs, rows and limits in this order."""

    def __init__(self, conditions: Conditions, start: Point, mu: float) -> None:
        c = conditions
        u = np.concatenate([start.weighty[c.pairs], start.weight[c.rows], start.excess[c.limits]])
        v = np.concatenate([start.slack[c.pairs], start.idle[c.rows], start.room[c.limits]])
        root = np.sqrt(mu)
        self.u = np.maximum(u, 0.1 * mu / np.maximum(v, root))
        self.v = np.maximum(v, mu / np.maximum(self.u, root))
        p, rows = len(c.pairs), slice(len(c.pairs), len(c.pairs) + len(c.rows))
        log_rows = start.log_rows[c.rows] + np.log(self.u[rows] / u[rows])
        self.conditions, self.pairs, self.rows, self.limits = c, slice(0, p), rows, slice(rows.stop, len(u))
        self._move(start.tasks[c.pairs] + (self.u - u)[:p] * np.minimum(start.total[c.user], c.gamma), log_rows)

    def _move(self, tasks: Array, log_rows: Array) -> None:
        c, excess = self.conditions, np.zeros(len(self.conditions.polytope.users))
        excess[c.limits] = self.u[self.limits]
        at = c.at(tasks, log_rows, excess)
        if len(c.limits):  # who is served in full pays what prices say
            wanted = np.full(len(excess), -np.inf)
            used = self.u[self.pairs] > self.v[self.pairs]
            np.maximum.at(wanted, c.user[used], (excess[c.user] - at.slack)[used])
            wanted = np.where((wanted > excess) & (at.room < 1e-2), wanted, excess)
            at = replace(at, excess=wanted, slack=at.slack + (wanted - excess)[c.user])
            self.u[self.limits] = wanted[c.limits]
        self.here, self.u[self.pairs] = at, at.weighty
        self.f = np.concatenate([at.slack, at.idle, at.room[c.limits]])

    @property
    def error(self) -> float:
        at, c = self.here, self.conditions
        now = np.concatenate([at.part, at.weight, at.excess[c.limits]])
        wrong = np.where(self.f < 0, -self.f, np.minimum(now, self.f))
        return float(wrong.max(initial=0.0)) if np.isfinite(self.f).all() else np.inf

    def step(self) -> bool:
        """Take a predictor-corrector step; False if it is not finite."""
        products, largest = self.u * self.v, float(np.abs(self.f - self.v).max())
        mu, solve = float(products.mean()), self._factored()
        if solve is None:
            return False
        d, du, dv = self._direction(solve, -products)
        t = self._longest(d, du, dv)
        blocked = not t >= 0.1
        after = float(((self.u + t * du) * (self.v + t * dv)).mean())
        centre = 1.0 if blocked else min(max((after / mu) ** 3, 1e-6), 1.0)
        target = max(centre * mu, 1e-26, min(1e-4 * largest**2, mu))
        bend = 0.0 if blocked else du * dv
        d, du, dv = self._direction(solve, np.minimum(target - bend, 10 * target) - products)
        t = self._longest(d, du, dv)
        t = min(1.0, t * (min(max(0.99, 1 - target), 1 - 1e-10) if t > 0.9 else 0.8))
        if not np.isfinite(t) or not np.isfinite(d).all():
            return False
        self.u, self.v = self.u + t * du, self.v + t * dv
        at = self.here
        self._move(
            at.tasks + t * d[self.pairs] * at.total[self.conditions.user], at.log_rows + np.log1p(t * d[self.rows])
        )
        return True

    def _direction(self, solve: Solve, wanted: Array) -> tuple[Array, Array, Array]:
        """Newton direction: changes of unknowns and of both factors, for wanted changes of products."""
        direct = wanted / self.u
        d = solve(direct - (self.f - self.v))
        return d, self.unit * d, direct - self.diagonal * d

    def _longest(self, d: Array, du: Array, dv: Array) -> float:
        """Longest step, at most 1, that keeps factors positive and changes no cost or total too much."""
        falls = max(float((-du / self.u).max()), float((-dv / self.v).max()), 1.0)
        totals = np.bincount(self.conditions.user, d[self.pairs])
        dearer = np.abs(d[self.rows]) * np.minimum(self.u[self.rows], 1.0)
        grown = max(float(np.abs(totals).max()), float(dearer.max(initial=0.0)), 1e-300)
        return min(1 / falls, 3.0 / grown)

    def _factored(self) -> Solve | None:
        """Solver for the Newton matrix; factors are regularized, as splits and prices need not be unique."""
        apart, size = self.apart(), len(self.u)
        self.diagonal = self.unit * self.v / self.u
        scale = 1 / np.maximum(1.0, self.diagonal)
        user, slope = self.conditions.user, self.here.slope

        def product(x: Array) -> Array:
            found = apart @ x + self.diagonal * x
            found[self.pairs] += slope * np.bincount(user, x[self.pairs])[user]
            return np.asarray(scale * found)

        if size <= DENSE:
            whole = apart + self.together() + sp.diags(self.diagonal)
            near = _regular((sp.diags(scale) @ whole).toarray(), np.full(size, 1e-9))
        else:
            near = self._eliminated(1 / scale)
        return None if near is None else _refining(near, product, scale)

    def together(self) -> sp.csr_matrix:
        """Derivatives of slacks by tasks of the same user: a dense block of pairs for each user."""
        mine, other = _couples(self.conditions.user)
        return sp.csr_matrix((self.here.slope[mine], (mine, other)), shape=(len(self.u), len(self.u)))

    def apart(self) -> sp.csr_matrix:
        """Sparse derivatives: all but those of `together`."""
        c, at, size = self.conditions, self.here, len(self.u)
        self.unit = np.ones(size)
        self.unit[self.pairs] = at.weighty / at.part
        self.unit[self.rows] = self.u[self.rows]
        of_limit = np.full(len(at.total), -1)
        of_limit[c.limits] = np.arange(self.limits.start, size)
        held = np.flatnonzero(of_limit[c.user] >= 0)
        rows, taken = c.row + self.rows.start, -c.use * (at.total[c.user] / c.gamma)[c.pair]
        limit, whole = of_limit[c.user[held]], (at.total / c.polytope.limit)[c.user[held]]
        where = [(c.pair, rows, at.share / c.scale), (rows, c.pair, taken)]
        where += [(held, limit, np.ones(len(held))), (limit, held, -whole)]
        i, j, values = (np.concatenate(one) for one in zip(*where, strict=True))
        return sp.csr_matrix((values, (i, j)), shape=(size, size))

    def _eliminated(self, scale: Array) -> Solve | None:
        """Eliminate limits, pairs and users in turn, which leaves a matrix over rows; None if it is singular."""
        c, at = self.conditions, self.here
        users, count = len(at.total), len(c.rows)
        soft = self.diagonal + 1e-8
        weight = 1 / soft[self.pairs]
        whole = np.zeros(users)
        whole[c.limits] = (at.total / c.polytope.limit)[c.limits]
        softness = np.ones(users)
        softness[c.limits] = soft[self.limits]
        slope = at.slope + (whole / softness)[c.user]
        use, share = c.use * (at.total[c.user] / c.gamma)[c.pair], at.share / c.scale
        each = weight * slope
        total = 1 + np.bincount(c.user, each, users)
        # What a user's other pairs weigh: for the largest of them summed, not subtracted.
        rest = total[c.user] - each
        large = rest < 0.5 * total[c.user]
        rest[large] = (1 + np.bincount(c.user, np.where(large, 0.0, each), users))[c.user[large]]

        def of_rows(parts: Array) -> Array:
            return np.bincount(c.row, use * parts[c.pair], count).astype(float)

        def bought(value: Array) -> Array:
            mean = np.bincount(c.user, weight * value, users) / total
            return np.asarray(weight * (value - slope * mean[c.user]))

        before, after = use * (each / total[c.user])[c.pair], share * weight[c.pair]
        # Blocks of servers, each of which a user has one pair of, are not a difference.
        first, second = _couples(c.pair)
        block = use[first] * (weight * rest / total[c.user])[c.pair[first]] * share[second]
        first, second, of_rows_alone = c.row[first], c.row[second], None
        if c.few_users or not c.listed:
            place, shape = (c.user[c.pair], c.row), (users, count)
            left, right = (sp.csr_matrix((values, place), shape) for values in (before, after))
            host = c.polytope.row_server[c.rows]
            if c.few_users:
                of_rows_alone = _less_thin(left, right, host, (first, second, block), soft[self.rows])
            else:
                matrix = -left.toarray().T @ right.toarray()
                matrix[host[:, None] == host] = 0.0
                matrix += np.bincount(first * count + second, block, count * count).reshape(count, count)
                of_rows_alone = _regular(matrix, soft[self.rows])
        else:
            of_rows_alone = _from_lists(c.order, c.row, before, after, (first, second, block), soft[self.rows])
        if of_rows_alone is None:
            return None

        def once(given: Array) -> Array:
            given = given * scale
            full = np.zeros(users)
            full[c.limits] = given[self.limits]
            value = given[self.pairs] - (full / softness)[c.user]
            log_rows = of_rows_alone(given[self.rows] + of_rows(bought(value)))
            cost = np.bincount(c.pair, share * log_rows[c.row], len(weight))
            parts = bought(value - cost)
            excess = ((full + whole * np.bincount(c.user, parts, users)) / softness)[c.limits]
            return np.concatenate([parts, log_rows, excess])

        return once


def _regular(matrix: Array, more: Array) -> Solve | None:
    """Solver for a dense matrix with `more` added to its diagonal; None if it is singular."""
    np.einsum("ii->i", matrix)[:] += more
    factors, order, info = lapack.dgetrf(matrix)
    return None if info else lambda given: lapack.dgetrs(factors, order, given)[0]


def _from_lists(
    order: Order, row: Index, before: Array, after: Array, block: tuple[Index, Index, Array], soft: Array
) -> Solve:
    """Solver for server blocks less what users couple, with `soft` added to its diagonal."""
    first, second, value = block
    own = first == second
    even = 1 / np.sqrt(soft + np.bincount(first[own], value[own], len(soft)))
    left, right = ((each * even[row])[order.member, None] for each in (before, after))
    others = first[~own], second[~own], (value * even[first] * even[second])[~own]
    found = Factors(order, left, right, others)
    return lambda given: found.solve(given * even) * even


def _couples(group: Index) -> tuple[Index, Index]:
    """List all ordered pairs of members (k,) of a group, with themselves too; groups are sorted."""
    count = np.bincount(group)
    start, mine = np.cumsum(count) - count, count[group]
    first = np.repeat(np.arange(len(group)), mine)
    offset = np.arange(len(first)) - np.repeat(np.cumsum(mine) - mine, mine)
    return first, start[group[first]] + offset


def _less_thin(
    left: sp.csr_matrix, right: sp.csr_matrix, host: Index, block: tuple[Index, Index, Array], soft: Array
) -> Solve | None:
    """Solver for server blocks minus the low-rank coupling by few users, `left' right` off the blocks (Woodbury)."""
    i, j = _couples(host)
    before, after, size = left.toarray(), right.toarray(), (len(host), len(host))
    own = np.einsum("ui,ui->i", before[:, i], after[:, j])
    blocks = sp.csc_matrix((block[2], block[:2]), size) + sp.csc_matrix((own, (i, j)), size) + sp.diags(soft)
    try:
        of_servers = sparse_linalg.splu(blocks.tocsc())
        through = of_servers.solve(np.ascontiguousarray(before.T))
        users = np.linalg.inv(np.eye(len(before)) - after @ through)
    except (RuntimeError, np.linalg.LinAlgError):
        return None

    def coupled(given: Array) -> Array:
        apart = of_servers.solve(given)
        return np.asarray(apart + through @ (users @ (after @ apart)))

    return coupled


def _refining(once: Solve, product: Solve, scale: Array) -> Solve:
    """Solver by approximate factors with iterative refinement."""

    def solve(given: Array) -> Array:
        given = given * scale
        found = once(given)
        left = given - product(found)
        for _ in range(8):
            size = float(np.abs(left).max())
            if not size > 1e-13 * float(np.abs(given).max()):
                break
            better = found + once(left)
            left = given - product(better)
            if not float(np.abs(left).max()) < 0.5 * size:
                break
            found = better
        return np.asarray(found)

    return solve
