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

import numpy as np

from .._libraries import sp, sparse_linalg
from ..model._arrays import Array, Index, Mask
from ..model.criterion import Criterion
from ..model.polytope import Polytope

#: Pairs and rows beyond this take too long: where all tie, minutes.
_LARGE = 20_000


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
        whole = Conditions(polytope, criterion)
        start = whole.started(tasks, log_rows)
        pairs, rows, mu = whole.near(start)
        best, steps = None, 0
        for _ in range(5):
            chosen = Conditions(polytope, criterion, pairs, rows)
            if len(chosen.pairs) + len(chosen.rows) > _LARGE:
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


def _starved(polytope: Polytope, tasks: Array) -> bool:
    """True if some user has no tasks."""
    return not len(tasks) or not (np.add.reduceat(tasks, polytope.start[:-1]) > 0).all()


@dataclass(frozen=True)
class Point:
    """Tasks (pairs,), log prices (rows,), excess (users,) and derived quantities, on chosen pairs and rows."""

    user: Index
    tasks: Array
    log_rows: Array
    excess: Array
    total: Array  # (users,)
    cost: Array  # (pairs,), log price of a task
    part: Array  # (pairs,)
    weighty: Array  # (pairs,), part of its user's tasks or of its server, whichever is larger
    slack: Array  # (pairs,)
    slope: Array  # (pairs,), of slacks in the log of totals
    share: Array  # (entries,), parts of rows in what pairs pay
    weight: Array  # (rows,), the largest part of a row in what a pair costs, or would be worth
    idle: Array  # (rows,)
    room: Array  # (users,), 1 without a limit

    @property
    def pairs(self) -> Mask:
        """Pairs that have tasks to the last digit, of every user at least one."""
        most = np.zeros(len(self.total))
        np.maximum.at(most, self.user, self.tasks)
        largest = (self.tasks >= most[self.user]) & (self.tasks > 0)
        return np.asarray((self.part > np.maximum(self.slack, 0.0)) | largest)

    @property
    def rows(self) -> Mask:
        """Rows that have a price."""
        return np.asarray(self.weight > np.maximum(self.idle, 1e-100))

    @property
    def limits(self) -> Mask:
        """Users whom their limit holds."""
        return np.asarray(self.excess > np.maximum(self.room, 0.0))

    @property
    def missed(self) -> float:
        """Largest residual of active conditions, or violation of inactive ones."""
        sets = (self.slack, self.pairs), (self.idle, self.rows), (self.room, self.limits)
        return max(float(np.where(on, np.abs(one), -one).max(initial=0.0)) for one, on in sets)


class Conditions:
    """Optimality conditions, of all pairs and rows or restricted to some."""

    def __init__(
        self, polytope: Polytope, criterion: Criterion, pairs: Mask | None = None, rows: Mask | None = None
    ) -> None:
        self.polytope, self.criterion = polytope, criterion
        pairs = np.ones(len(polytope.gamma), dtype=bool) if pairs is None else pairs
        rows = np.ones(len(polytope.row_server), dtype=bool) if rows is None else rows
        self.pairs, self.rows = np.flatnonzero(pairs), np.flatnonzero(rows)
        self.own, self.scale = criterion.restrict(polytope.users), criterion.stiffness
        uses = polytope.use.tocoo()
        on = rows[uses.row] & pairs[uses.col]
        self.row, self.pair = np.cumsum(rows)[uses.row[on]] - 1, np.cumsum(pairs)[uses.col[on]] - 1
        self.use = uses.data[on]
        self.log_use = np.log(self.use)
        self.user, self.server = polytope.pair_user[pairs], polytope.pair_server[pairs]
        self.gamma = polytope.gamma[pairs]
        self.log_gamma = np.log(self.gamma)
        users = np.unique(self.user)
        self.limits = users[np.isfinite(polytope.limit[users])]

    def at(self, tasks: Array, log_rows: Array, excess: Array) -> Point:
        total = np.bincount(self.user, tasks, len(self.polytope.users)).astype(float)
        marginal, slope = (self._of_pairs(one) for one in (self.own.log_marginal(total), self.own.elasticity(total)))
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
        of_rows = share, weight, idle, room
        return Point(self.user, tasks, log_rows, excess, total, cost, part, weighty, slack, slope, *of_rows)

    def _of_pairs(self, values: Array) -> Array:
        return np.asarray(values[self.user, self.server] if values.ndim == 2 else values[self.user])

    def started(self, tasks: Array, log_rows: Array, excess: Array | None = None) -> Point:
        """Starting point on all pairs and rows; a row without a price gets a negligible one.

        First prices of a global program are in the unit that suits most users, and who is served in full pays less
        than its tasks are worth.
        """
        users = len(self.polytope.users)
        total = np.bincount(self.user, tasks, users).astype(float)
        value = self._of_pairs(self.own.log_marginal(total)) + self.log_gamma
        least = np.full(len(log_rows), np.inf)
        np.minimum.at(least, self.row, value[self.pair] - self.log_use)
        if excess is not None:
            return self.at(tasks, np.fmax(log_rows, least - 300), excess)
        here = self.at(tasks, np.where(log_rows > -np.inf, log_rows, least - 300), np.zeros(users))
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
        _, du, dv = self._direction(solve, -products)
        t = self._longest(du, dv)
        after = float(((self.u + t * du) * (self.v + t * dv)).mean())
        centre = min(max((after / mu) ** 3, 1e-6), 1.0)
        target = max(centre * mu, 1e-26, min(1e-4 * largest**2, mu))
        d, du, dv = self._direction(solve, np.minimum(target - du * dv, 10 * target) - products)
        t = self._longest(du, dv)
        t = min(1.0, t * (min(max(0.99, 1 - target), 1 - 1e-10) if t > 0.9 else 0.8))
        if not np.isfinite(t) or not np.isfinite(d).all():
            return False
        self.u, self.v = self.u + t * du, self.v + t * dv
        at = self.here
        self._move(
            at.tasks + t * d[self.pairs] * at.total[self.conditions.user], at.log_rows + np.log1p(t * d[self.rows])
        )
        return True

    def _direction(self, solve: Callable[[Array], Array], wanted: Array) -> tuple[Array, Array, Array]:
        """Newton direction: changes of unknowns and of both factors, for wanted changes of products."""
        direct = wanted / self.u
        d = solve(direct - (self.f - self.v))
        return d, self.unit * d, direct - self.diagonal * d

    def _longest(self, du: Array, dv: Array) -> float:
        """Longest step, at most 1, that keeps factors positive."""
        return 1 / max(float((-du / self.u).max()), float((-dv / self.v).max()), 1.0)

    def _factored(self) -> Callable[[Array], Array] | None:
        """Solver for the Newton matrix; factors are regularized, as splits and prices need not be unique.

        Sums of users' changes are unknowns of their own, which keeps it sparse where a user has many pairs.
        """
        c, at, size = self.conditions, self.here, len(self.u)
        self.unit = np.concatenate([at.weighty / at.part, self.u[self.rows], np.ones(len(c.limits))])
        self.diagonal = self.unit * self.v / self.u
        limit = np.full(len(at.total), -1)
        limit[c.limits] = np.arange(self.limits.start, size)
        pairs, total = np.arange(len(c.pairs)), size + c.user
        held, rows, every = pairs[limit[c.user] >= 0], c.row + self.rows.start, np.arange(size + len(at.total))
        by, whole = limit[c.user[held]], (at.total / c.polytope.limit)[c.user[held]]
        used = c.use * (at.total[c.user] / c.gamma)[c.pair]
        own = np.concatenate([self.diagonal, np.full(len(at.total), -1.0)])
        scale = 1 / np.maximum(1.0, own)
        entries = (
            (every, every, own),
            (c.pair, rows, at.share / c.scale),
            (rows, c.pair, -used),
            (held, by, np.ones(len(by))),
            (by, held, -whole),
            (pairs, total, at.slope),
            (total, pairs, np.ones(len(pairs))),
        )
        i, j, values = (np.concatenate(each) for each in zip(*entries, strict=True))
        matrix = sp.csc_matrix((scale[i] * values, (i, j)))
        regular = sp.diags(np.where(every < size, 1e-9, 0.0), format="csc")
        # Pairs first, of few entries each, and then users, where they are many: few rows are left.
        many = len(at.total) > 5 * len(c.rows)
        order = np.concatenate([pairs, every[size:], every[len(pairs) : size]]) if many else every
        by_degree = "NATURAL" if many else "MMD_AT_PLUS_A"
        try:
            # Small pivots do; refinement makes up for it.
            permuted = (matrix + regular)[order][:, order].tocsc()
            factors = sparse_linalg.splu(permuted, by_degree, 1e-4, options={"SymmetricMode": True})
        except RuntimeError:
            return None
        back = np.argsort(order)

        def solve(given: Array) -> Array:
            given = scale * np.concatenate([given, np.zeros(len(own) - size)])
            found = factors.solve(given[order])[back]
            left = given - matrix @ found
            for _ in range(8):  # iterative refinement
                if not np.abs(left).max() > 1e-13 * np.abs(given).max():
                    break
                better = found + factors.solve(left[order])[back]
                missed = given - matrix @ better
                if not np.abs(missed).max() < 0.5 * np.abs(left).max():
                    break
                found, left = better, missed
            return np.asarray(found[:size])

        return solve
