r"""Refinement of a nearly optimal solution at finite alpha, by an interior-point method with augmented Newton systems.

Every optimality condition is a product u v = 0 of two nonnegative factors:

=======================================  ==================================================
factor u                                 factor v
=======================================  ==================================================
fraction of a user's tasks at a pair     log cost minus log marginal utility, over A
largest share of a row in a pair's cost  idle fraction of the row
price of a limit, in logs over A         unused fraction of the limit
=======================================  ==================================================

Here A is the criterion's `stiffness`, max(alpha, 1) under alpha-fairness. With the cost p and the marginal welfare G of
a task, and prices xi of limits q,

.. math::
    (\log p_{ni} - \log G_{ni})/A + \xi_n = v_{ni}, \quad 1 - \sum_n x_{ni} d_{nr}/c_{ir} = v_{ir}, \quad
    1 - x_n/q_n = v_n, \quad u v = \mu \to 0.

Eliminating pairs first squares the condition number where the active set is degenerate: a product of 1e-8 may be two
factors of 1e-4. In the augmented system the ratios v/u stay on the diagonal, so that both factors become small. Only
nearly active pairs, rows and limits are included; an excluded pair or row enters again where its condition is violated.

Source: Wright, "Primal-Dual Interior-Point Methods" (1997), chapters 10 and 11 (augmented systems, Mehrotra).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..base.libraries import lapack, sp
from ..model._arrays import Array, Index, Mask
from ..model.criterion import Criterion
from ..model.linear import TOLERANCE, minimise
from ..model.polytope import Polytope
from . import algebra
from .accuracy import HALF_PRECISION, NEGLIGIBLE, NEWTON_ROUNDING, REFINED, SOLVE_ROUNDING, VISIBLE
from .central_path import LEAST_CENTRING, LEAST_SLOPE, LONG_STEP, SHORT_STEP
from .factors import LOG_RANGE, TINY
from .first_order import Active, Entries, Equations, Prices, assembled, listed

Solve = Callable[[Array], Array]

#: Number of matrix entries above which the factors would take gigabytes.
_MOST_ENTRIES = 4e7
#: Number of unknowns up to which matrices are factored as dense matrices.
DENSE = 300


#: Largest number of restricted problems (`_MOST_SETS`), and of interior-point steps in all of them together
#: (`_MOST_STEPS`).
_MOST_SETS, _MOST_STEPS = 5, 40
#: Slack below which an excluded pair enters (`_ENTERING`), error above which refinement is given up (`_HOPELESS`),
#: largest violation that is neglected (`_NO_VIOLATION`), and violation below which the next run starts at the last
#: iterate (`_WARM`).
_ENTERING, _HOPELESS, _NO_VIOLATION, _WARM = 3e-4, VISIBLE, NEWTON_ROUNDING, 1e-4
#: Bounds of the initial mu (`_LEAST_MU`, `_MOST_MU`), and its least ratio to the use by omitted pairs
#: (`_MU_OF_OMITTED`).
_LEAST_MU, _MOST_MU, _MU_OF_OMITTED = SOLVE_ROUNDING, 1e-2, 1e-3
#: Initial products u v are increased to mu: first u to at least this fraction of mu / v, then v.
_LEAST_FACTOR = 0.1
#: Least target product relative to the squared residual, so that feasibility keeps pace with complementarity.
_PER_RESIDUAL = 1e-4
#: Minus the log of the price, relative to the least cost, that replaces a price of zero (`_LOG_UNPRICED`); and the
#: fraction of its user's tasks above which a pair counts as having tasks, or share of a cost above which a row counts
#: as having a price (`_IN_USE`).
_LOG_UNPRICED, _IN_USE = LOG_RANGE / 2, VISIBLE
#: Regularization of the dense matrix (`_REGULARIZATION_DENSE`) and of the matrix after elimination of pairs
#: (`_REGULARIZATION`), and relative residual at which iterative refinement ends (`_SOLVED`).
_REGULARIZATION_DENSE, _REGULARIZATION, _SOLVED = NEGLIGIBLE, HALF_PRECISION, NEWTON_ROUNDING
#: Slack of rows and limits below which they count as nearly active (`_NEAR_BOUND`), and largest number of steps without
#: progress (`_PATIENCE`).
_NEAR_BOUND, _PATIENCE = 1e-2, 8
#: Unused fraction of a limit below which its user is left out of the median by which prices are scaled.
_NEAR_LIMIT = 1e-3
#: Linear program of `vertex`: range of costs (`_RANGE`), and largest number of pivots (`_MOST_PIVOTS`).
_RANGE, _MOST_PIVOTS = 1e3, 5_000
#: Fraction of the longest step that is taken: at least `_TO_BOUNDARY` of a long step, `_CAUTIOUS` of a shorter step.
_TO_BOUNDARY, _CAUTIOUS = 0.99, 0.8
#: One minus the largest fraction of the longest step that is taken.
_FROM_BOUNDARY = REFINED
#: Linear program of `vertex`: largest slack of its pairs, and largest change of log prices and log tasks (`_TRUST`);
#: and largest change relative to the error (`_TRUST_OF_ERROR`).
_TRUST, _TRUST_OF_ERROR = 0.03, 30.0


@dataclass(frozen=True)
class Refined:
    """Tasks (pairs,), log prices of whole capacities (rows,), -inf for zero prices, error, and number of steps."""

    tasks: Array
    log_rows: Array
    error: float
    steps: int


def refined(polytope: Polytope, criterion: Criterion, tasks: Array, log_rows: Array, aim: float) -> Refined | None:
    """Refine tasks (pairs,) and log prices of whole capacities (rows,); return the iterate of smallest error.

    The error is the largest min(u, v) of a condition, or violation of a constraint. The interior-point method is
    applied to nearly active pairs, rows and limits. Excluded pairs and rows whose conditions the result violates are
    then included, and the method is applied again, at most five times in all.

    Parameters
    ----------
    aim : error at which iterations end

    Returns
    -------
    Refined or None
        None if a user has no tasks, so that its marginal utility may be infinite, or if the problem is too large.
    """
    if _has_empty_user(polytope, tasks):
        return None
    with np.errstate(all="ignore"):
        conditions = Conditions(polytope, criterion, np.arange(len(tasks)), np.arange(len(log_rows)))
        start = conditions.starting_point(tasks, log_rows)
        pairs, rows, mu = conditions.nearly_active(start)
        best, steps = None, 0
        for _ in range(_MOST_SETS):
            restricted = conditions.restricted(pairs, rows)
            if restricted.too_large:
                break
            candidate, excess = _run(restricted, start, mu, aim, _MOST_STEPS - steps)
            steps += candidate.steps
            moved = conditions.starting_point(candidate.tasks, candidate.log_rows, excess)
            excluded_pairs, excluded_rows = candidate.tasks == 0, candidate.log_rows == -np.inf
            entering_pairs, entering_rows = excluded_pairs & (moved.slack < _ENTERING), excluded_rows & (moved.idle < 0)
            violated = max(
                float(-moved.slack[entering_pairs].min(initial=0.0)), float(-moved.idle[entering_rows].min(initial=0.0))
            )
            error = max(candidate.error, violated)
            if best is None or error <= best.error:
                best = Refined(candidate.tasks, candidate.log_rows, error, steps)
            if steps >= _MOST_STEPS or candidate.error > _HOPELESS or violated <= _NO_VIOLATION:
                break
            if violated < _WARM:
                start, mu, pairs, rows = (
                    moved,
                    min(max(violated**2, _LEAST_MU), _MOST_MU),
                    ~excluded_pairs | entering_pairs,
                    ~excluded_rows | entering_rows,
                )
            else:
                pairs, rows = pairs | entering_pairs, rows | entering_rows
        return None if best is None else replace(best, steps=steps)


def vertex(polytope: Polytope, criterion: Criterion, tasks: Array, log_rows: Array) -> Refined | None:
    r"""Take one step of the LP-Newton method, in which a linear program selects zero factors; None for a failure.

    At degenerate solutions both factors tend to zero like sqrt(mu) along the central path, and Newton's equations are
    singular in the limit. The program minimises the linearised products u f of factors and conditions,

    .. math:: \min_\Delta\ f \cdot \Delta + u \cdot J \Delta, \qquad u + \Delta \ge 0, \qquad f + J \Delta \ge 0,

    with the Jacobian J of f, and bounds on the changes of log prices and of the users' log tasks. Unknowns are in units
    of the present error, which is also the `error` of the result.

    Source: Facchinei, Fischer, Herrich, "An LP-Newton method" (2014), Mathematical Programming 146.
    """
    with np.errstate(all="ignore"):
        if _has_empty_user(polytope, tasks):
            return None
        conditions = Conditions(polytope, criterion, np.arange(len(tasks)), np.arange(len(log_rows)))
        start = conditions.starting_point(tasks, log_rows)
        active = conditions.restricted(start.slack < _TRUST, np.ones(len(log_rows), dtype=bool))
        if active.too_large or (np.bincount(active.user).astype(float) ** 2).sum() > _MOST_ENTRIES:
            return None
        state = _State(active, start, TINY)
        unit = state.error
        length = min(_TRUST_OF_ERROR * unit, _TRUST)
        if not 0 < unit < length:
            return None
        equations, others = state.jacobian()
        slopes = assembled([*equations.in_own_tasks(), *others], (len(state.u),) * 2) @ sp.diags(1 / state.unit)
        totals = sp.csr_matrix(
            (1 / state.unit[state.pairs], (active.user, np.arange(len(active.pairs)))), (len(start.total), len(state.u))
        )
        lower, upper = -state.u, np.full(len(state.u), np.inf)
        lower[state.rows], upper[state.rows] = np.maximum(lower[state.rows], -length), length
        solution = minimise(
            np.clip(state.f / unit, 1 / _RANGE, _RANGE) + slopes.T @ np.minimum(state.u / unit, _RANGE),
            sp.vstack([-slopes, totals, -totals]),
            np.concatenate([state.f, np.full(2 * len(start.total), length)]) / unit,
            low=lower / unit,
            high=upper / unit,
            tolerance=min(max(_NO_VIOLATION / unit, TOLERANCE), _WARM),
            steps=_MOST_PIVOTS,
        )
        if solution is None:
            return None
        change = solution.x * unit / state.unit
        new_tasks = np.zeros(len(tasks))
        new_tasks[active.pairs] = np.maximum(
            state.here.tasks + change[state.pairs] * state.here.total[active.user], 0.0
        )
        return Refined(new_tasks, state.here.log_rows + np.log(np.maximum(1 + change[state.rows], TINY)), unit, 1)


def _has_empty_user(polytope: Polytope, tasks: Array) -> bool:
    """True if some user has no tasks."""
    return not len(tasks) or not (np.add.reduceat(tasks, polytope.start[:-1]) > 0).all()


@dataclass(frozen=True)
class Point:
    """Tasks (pairs,), log prices (rows,), prices `excess` (users,) of limits in logs over A, and derived quantities."""

    tasks: Array
    log_rows: Array
    excess: Array
    total: Array  # (users,)
    part: Array  # (pairs,), x_ni/x_n
    scaled_part: Array  # (pairs,), u: the larger of x_ni/x_n and x_ni/gamma_ni
    slack: Array  # (pairs,), v
    slope: Array  # (pairs,), derivative of slacks in log user tasks
    cost: Array  # (pairs,), log cost of a task
    weight: Array  # (rows,), u: largest share in the cost of a pair, or in its marginal utility
    idle: Array  # (rows,), v
    room: Array  # (users,), v of limits, 1 without one


class Conditions:
    """Optimality conditions restricted to some pairs and rows, given by their indices in the polytope."""

    def __init__(self, polytope: Polytope, criterion: Criterion, pairs: Index, rows: Index) -> None:
        self.polytope, self.criterion, self.pairs, self.rows = polytope, criterion, pairs, rows
        self.own, self.scale = criterion.restrict(polytope.users), criterion.stiffness
        use = polytope.use[rows][:, pairs].tocsc().tocoo()  # by pair
        self.row, self.pair, self.use, self.log_use = use.row, use.col, use.data, np.log(use.data)
        self.user, self.server = polytope.pair_user[pairs], polytope.pair_server[pairs]
        self.gamma = polytope.gamma[pairs]
        self.log_gamma = np.log(self.gamma)
        #: Users who have a pair, and their largest gamma.
        self.present, first = np.unique(self.user, return_index=True)
        self.unit = np.maximum.reduceat(self.gamma, first) if len(first) else self.gamma
        self.limits = self.present[np.isfinite(polytope.limit[self.present])]

    @cached_property
    def all_pairs(self) -> algebra.Pairs:
        """Pairs in the format of `algebra`.

        Users without a pair in this restriction are left out, and tasks are in units of the user's largest gamma among
        its pairs here, so that elements of the matrices are of the order of one.
        """
        cluster, number = self.polytope.cluster, np.cumsum(np.diff(self.user, prepend=-1) > 0) - 1
        demand = cluster.demand[self.polytope.users[self.present]] * self.unit[:, None]
        inverse, per = 1 / np.where(cluster.capacity > 0, cluster.capacity, np.inf), self.polytope.per_work
        return algebra.Pairs(number, self.server, demand, inverse, per=None if per is None else per[self.pairs])

    @property
    def too_large(self) -> bool:
        """True if the Schur complement would take gigabytes."""
        pairs = self.all_pairs
        side = pairs.inverse.size if pairs.order.startswith("users") else len(pairs.demand)
        return (side - (len(pairs.lists.pointer) - 1 if pairs.order.endswith("listed") else 0)) ** 2 > _MOST_ENTRIES

    def restricted(self, pairs: Mask, rows: Mask) -> Conditions:
        """Restrict to the pairs and rows of masks."""
        return Conditions(self.polytope, self.criterion, self.pairs[pairs], self.rows[rows])

    def at(self, tasks: Array, log_rows: Array, excess: Array) -> Point:
        """Evaluate all quantities at tasks (pairs,), log prices (rows,) and prices of limits (users,)."""
        total = np.bincount(self.user, tasks, len(self.polytope.users)).astype(float)
        marginal, slope = self.own.log_marginal_of(total, self.user, self.server), self.own.elasticity(total)
        slope = slope[self.user, self.server] if slope.ndim == 2 else slope[self.user]
        terms = self.log_use + log_rows[self.row]
        largest = np.full(len(tasks), -np.inf)
        np.maximum.at(largest, self.pair, terms)
        paid = np.exp(terms - largest[self.pair])
        total_paid = np.bincount(self.pair, paid, len(tasks))
        cost = largest + np.log(total_paid) - self.log_gamma
        slack = (cost - marginal) / self.scale + excess[self.user]
        weight = np.zeros(len(log_rows))
        value = np.maximum(cost, marginal) + self.log_gamma
        np.maximum.at(weight, self.row, np.exp(np.minimum(terms - value[self.pair], 0.0)))
        idle = 1 - np.bincount(self.row, self.use * (tasks / self.gamma)[self.pair], len(log_rows)).astype(float)
        part, room = tasks / total[self.user], 1 - total / self.polytope.limit
        slope, scaled_part = slope / self.scale, np.maximum(part, tasks / self.gamma)
        return Point(tasks, log_rows, excess, total, part, scaled_part, slack, slope, cost, weight, idle, room)

    def starting_point(self, tasks: Array, log_rows: Array, excess: Array | None = None) -> Point:
        """Starting point on all pairs and rows; zero prices of rows are replaced by a negligible fraction of a cost.

        Without `excess`, prices of limits are estimated: prices of rows of a global program are first scaled by the
        median ratio of marginal utility to cost. The price of a user's binding limit is then the difference of the
        user's log marginal utility and log cost, over A.
        """
        users = len(self.polytope.users)
        total = np.bincount(self.user, tasks, users).astype(float)
        gamma_value = self.own.log_marginal_of(total, self.user, self.server) + self.log_gamma
        least_price = np.full(len(log_rows), np.inf)
        np.minimum.at(least_price, self.row, gamma_value[self.pair] - self.log_use)
        if excess is not None:
            return self.at(tasks, np.fmax(log_rows, least_price - _LOG_UNPRICED), excess)
        here = self.at(tasks, log_rows, np.zeros(users))
        least_slack, at_limit = np.full(users, np.inf), here.room < _NEAR_LIMIT
        np.minimum.at(least_slack, self.user, np.where(here.part > _IN_USE, here.slack, np.inf))
        if self.criterion.scope != "game":
            unit = float(np.median(least_slack[~at_limit])) if not at_limit.all() else 0.0
            log_rows, least_slack = log_rows - self.scale * unit, least_slack - unit
        excess = np.where(at_limit & (least_slack < 0), -least_slack, 0.0)
        return self.at(tasks, np.fmax(log_rows, least_price - _LOG_UNPRICED), excess)

    def nearly_active(self, at: Point) -> tuple[Mask, Mask, float]:
        """Masks of nearly active pairs (pairs,) and rows (rows,), and the mean mu of their products, bounded."""
        inside = at.scaled_part > np.maximum(at.slack, 0.0)
        products = np.concatenate([(at.scaled_part * np.abs(at.slack))[inside], np.abs(at.idle) * at.weight])
        mu = min(max(float(products.mean()), _LEAST_MU), _MOST_MU)
        most_pairs = 2 * (len(at.total) + len(at.idle))
        cutoff = 10 * min(_ENTERING, 10 * np.sqrt(mu))
        if most_pairs < len(at.slack):
            cutoff = min(cutoff, float(np.partition(at.slack, most_pairs)[most_pairs]))
        pairs = inside | (at.slack < cutoff)
        rows = (at.weight > _IN_USE) | (at.weight > at.idle) | (at.idle < _NEAR_BOUND)
        unpriced = pairs & (np.bincount(self.pair, rows[self.row], len(pairs)) == 0)
        rows[self.row[unpriced[self.pair]]] = True
        omitted = np.where(pairs, 0.0, at.tasks)
        omitted_use = max(
            float(np.where(pairs, 0.0, at.part).max(initial=0.0)),
            float(np.bincount(self.row, self.use * (omitted / self.gamma)[self.pair]).max(initial=0.0)),
        )
        return pairs, rows, min(max(mu, _MU_OF_OMITTED * omitted_use), _MOST_MU)


def _run(conditions: Conditions, start: Point, mu: float, aim: float, max_steps: int) -> tuple[Refined, Array]:
    """Iterate until the error is at most `aim` or stalls, at most `max_steps` times.

    Returns the iterate of least error, and its prices of limits (users,).
    """
    state = _State(conditions, start, mu)
    best, steps, stalled, least_merit = None, 0, 0, np.inf
    while True:
        error = state.error
        if best is None or error < best[0]:
            best = error, state.here
        # A decrease of the products of pairs also counts as progress, even while the error does not decrease.
        merit = min(error, float((state.u * state.v)[state.pairs].sum()))
        stalled = 0 if merit < 0.5 * least_merit else stalled + 1
        least_merit = min(least_merit, merit)
        if error <= aim or steps >= max_steps or stalled > _PATIENCE or not np.isfinite(error) or not state.step():
            break
        steps += 1
    assert best is not None
    error, at = best
    tasks, log_rows = np.zeros(len(start.tasks)), np.full(len(start.log_rows), -np.inf)
    tasks[conditions.pairs], log_rows[conditions.rows] = at.tasks, at.log_rows
    return Refined(tasks, log_rows, error, steps), at.excess


class _State:
    """Iterate: a point, and the factors u and v of all products, of pairs, rows and limits in this order."""

    def __init__(self, conditions: Conditions, start: Point, mu: float) -> None:
        c = conditions
        u = np.concatenate([start.scaled_part[c.pairs], start.weight[c.rows], start.excess[c.limits]])
        v = np.concatenate([start.slack[c.pairs], start.idle[c.rows], start.room[c.limits]])
        root = np.sqrt(mu)
        self.u = np.maximum(u, _LEAST_FACTOR * mu / np.maximum(v, root))
        self.v = np.maximum(v, mu / np.maximum(self.u, root))
        p, rows = len(c.pairs), slice(len(c.pairs), len(c.pairs) + len(c.rows))
        log_rows = start.log_rows[c.rows] + np.log(self.u[rows] / u[rows])
        self.conditions, self.pairs, self.rows, self.limits = c, slice(0, p), rows, slice(rows.stop, len(u))
        self._move(start.tasks[c.pairs] + (self.u - u)[:p] * np.minimum(start.total[c.user], c.gamma), log_rows)

    def _move(self, tasks: Array, log_rows: Array) -> None:
        """Set tasks and log prices, and evaluate the conditions f and the factors u of pairs there."""
        c, excess = self.conditions, np.zeros(len(self.conditions.polytope.users))
        excess[c.limits] = self.u[self.limits]
        at = c.at(tasks, log_rows, excess)
        if len(c.limits):  # prices of binding limits follow from prices of rows
            needed = np.full(len(excess), -np.inf)
            active = self.u[self.pairs] > self.v[self.pairs]
            np.maximum.at(needed, c.user[active], (excess[c.user] - at.slack)[active])
            needed = np.where((needed > excess) & (at.room < _NEAR_BOUND), needed, excess)
            at = replace(at, excess=needed, slack=at.slack + (needed - excess)[c.user])
            self.u[self.limits] = needed[c.limits]
        self.here, self.u[self.pairs] = at, at.scaled_part
        self.f = np.concatenate([at.slack, at.idle, at.room[c.limits]])

    @property
    def error(self) -> float:
        """Largest min(u, v), or violation of a constraint; infinite if a condition is not finite."""
        at, c = self.here, self.conditions
        values = np.concatenate([at.part, at.weight, at.excess[c.limits]])
        violations = np.where(self.f < 0, -self.f, np.minimum(values, self.f))
        return float(violations.max(initial=0.0)) if np.isfinite(self.f).all() else np.inf

    def step(self) -> bool:
        """Take a predictor-corrector step in place; False, without a step, if it is singular or not finite."""
        products, largest = self.u * self.v, float(np.abs(self.f - self.v).max())
        mu, solve = float(products.mean()), self._newton_solver()
        if solve is None:
            return False
        d, du, dv = self._direction(solve, -products)
        t = self._longest(d, du, dv)
        blocked = not t >= SHORT_STEP
        affine_mu = float(((self.u + t * du) * (self.v + t * dv)).mean())
        centring = 1.0 if blocked else min(max((affine_mu / mu) ** 3, LEAST_CENTRING), 1.0)
        target = max(centring * mu, _LEAST_MU**2, min(_PER_RESIDUAL * largest**2, mu))
        second_order = 0.0 if blocked else du * dv
        d, du, dv = self._direction(solve, np.minimum(target - second_order, 10 * target) - products)
        t = self._longest(d, du, dv)
        t = min(
            1.0,
            t * (min(max(_TO_BOUNDARY, 1 - target), 1 - _FROM_BOUNDARY) if t > LONG_STEP else _CAUTIOUS),
        )
        if not np.isfinite(t) or not np.isfinite(d).all():
            return False
        self.u, self.v = self.u + t * du, self.v + t * dv
        at = self.here
        self._move(
            at.tasks + t * d[self.pairs] * at.total[self.conditions.user], at.log_rows + np.log1p(t * d[self.rows])
        )
        return True

    def _direction(self, solve: Solve, wanted: Array) -> tuple[Array, Array, Array]:
        r"""Newton direction d of the unknowns, and changes of the factors u and v, for `wanted` changes of products.

        .. math:: u\,dv + v\,du = wanted, \qquad du = unit \cdot d, \qquad dv = J d + f - v

        with the conditions f, which equal v at a feasible point, their Jacobian J, and `unit`, the derivatives of u in
        the unknowns.
        """
        direct = wanted / self.u
        d = solve(direct - (self.f - self.v))
        return d, self.unit * d, direct - self.diagonal * d

    def _longest(self, d: Array, du: Array, dv: Array) -> float:
        """Longest step, at most 1, with positive u and v, that changes log costs and log user tasks by at most 3."""
        decreases = max(float((-du / self.u).max()), float((-dv / self.v).max()), 1.0)
        totals = np.bincount(self.conditions.user, d[self.pairs])
        price_change = np.abs(d[self.rows]) * np.minimum(self.u[self.rows], 1.0)
        largest = max(float(np.abs(totals).max()), float(price_change.max(initial=0.0)), TINY)
        return min(1 / decreases, 3.0 / largest)

    def _newton_solver(self) -> Solve | None:
        r"""Solver for Newton's matrix :math:`J + \mathrm{diag}(unit\,v/u)`, (unknowns,) to (unknowns,).

        Rows of the matrix are divided by the larger of 1 and their entry of the diagonal v/u, which is kept in
        `diagonal` (unknowns,). The factored matrix is regularized, since tasks and prices need not be unique; solutions
        are refined by the matrix without regularization.

        Returns
        -------
        Solve or None
            None if a matrix of at most `DENSE` unknowns, which is factored whole, is singular. From a larger matrix
            pairs are eliminated.
        """
        self.diagonal = self.unit * self.v / self.u
        equations, others = self.jacobian()
        if len(self.u) <= DENSE:
            return self._dense_solver([*equations.in_own_tasks(), *others])
        return self._eliminating_solver(others)

    def _dense_solver(self, jacobian: Entries) -> Solve | None:
        """Solver by LU factors of the whole dense matrix, given the entries of J; None if it is singular."""
        size, row_scale = len(self.u), 1 / np.maximum(1.0, self.diagonal)
        row, column, value = listed(jacobian)
        matrix = np.bincount(row * size + column, value, size * size).astype(float).reshape(size, size)
        np.einsum("ii->i", matrix)[:] += self.diagonal
        matrix *= row_scale[:, None]
        solve = _lu_solver(matrix.copy(), np.full(size, _REGULARIZATION_DENSE))
        return None if solve is None else _refined_solver(solve, lambda x: np.asarray(matrix @ x), row_scale)

    def _eliminating_solver(self, others: Entries) -> Solve:
        """Solver by elimination of pairs; `others` are the entries of J besides the slopes, which are dense blocks."""
        size, row_scale = len(self.u), 1 / np.maximum(1.0, self.diagonal)
        user, slope, matrix = self.conditions.user, self.here.slope, assembled(others, (size, size))

        def product(x: Array) -> Array:
            """Rows of the matrix, scaled, times x."""
            image = matrix @ x + self.diagonal * x
            image[self.pairs] += slope * np.bincount(user, x[self.pairs])[user]
            return np.asarray(row_scale * image)

        return _refined_solver(self._eliminated(1 / row_scale), product, row_scale)

    @property
    def unit(self) -> Array:
        """Derivatives of the factors u in the unknowns: parts of users' tasks, log prices, and prices of limits."""
        at = self.here
        return np.concatenate([at.scaled_part / at.part, self.u[self.rows], np.ones(len(self.conditions.limits))])

    def jacobian(self) -> tuple[Equations, Entries]:
        """Equations, with a dense block for each user `in_own_tasks`, and all other derivatives of the factors v."""
        c, at, polytope = self.conditions, self.here, self.conditions.polytope
        pairs, rows, limits = (np.zeros(len(one), dtype=bool) for one in (polytope.gamma, polytope.row_server, at.room))
        pairs[c.pairs], rows[c.rows], limits[c.limits] = True, True, True
        cost, log_rows, none = np.zeros(len(pairs)), np.full(len(rows), -np.inf), np.zeros(len(limits), dtype=bool)
        cost[c.pairs], log_rows[c.rows] = at.cost, at.log_rows
        sets = pairs, pairs & False, rows, rows & False, limits, none, none
        prices = Prices(log_rows, cost, pairs)
        active = Active(polytope, c.criterion, at.total, cost, *sets, np.zeros(len(none), np.intp), limits, (prices,))
        equations = Equations(active, spanning=False)
        row, column, value = listed(equations.others())
        falls = np.concatenate([-np.ones(len(c.rows)), -(at.total / polytope.limit)[c.limits]])
        sign = np.append(np.ones(len(c.pairs)), falls)
        return equations, [(row, column, sign[row] * value)]

    def _eliminated(self, unscale: Array) -> Solve:
        r"""Solver of the regularized matrix by the Schur complement of `algebra`, after limits are eliminated.

        With the diagonals :math:`\epsilon = unit\,v/u` of pairs, rows and limits, the relative use
        :math:`k_n = x_n / q_n` of a limit, and shares theta of rows in costs, the equations for
        :math:`d\delta_{ni} = dx_{ni}/x_n`, :math:`d\log\lambda` and :math:`d\xi` are

        .. math::
            \epsilon_{ni}\,d\delta_{ni} + slope_{ni} \sum_j d\delta_{nj}
            + \tfrac1A \sum_r \theta_{nir}\,d\log\lambda_{ir} + d\xi_n = g_{ni},

            \epsilon_{ir}\,d\log\lambda_{ir} - \sum_n \frac{x_n d_{nr}}{c_{ir}}\,d\delta_{ni} = g_{ir}, \qquad
            \epsilon_n\,d\xi_n - k_n \sum_j d\delta_{nj} = g_n.

        Eliminating :math:`d\xi_n` adds :math:`k_n / \epsilon_n` to the slope. Equations of pairs are then divided by
        their slopes, so that the price of a user in `algebra` is :math:`-\sum_j d\delta_{nj}`, and values of pairs are
        slope times A times cost, so that unknowns of rows are changes of prices, not of log prices.

        Parameters
        ----------
        unscale : (unknowns,), factors of the rows of the matrix that undo the scaling of right-hand sides
        """
        c, at = self.conditions, self.here
        users, pairs, row = len(at.total), c.all_pairs, (c.polytope.row_server[c.rows], c.polytope.row_resource[c.rows])
        diagonal = self.diagonal + _REGULARIZATION
        limit_use, limit_diagonal = np.zeros(users), np.ones(users)  # k and epsilon; 0 and 1 without a limit
        limit_use[c.limits], limit_diagonal[c.limits] = (at.total / c.polytope.limit)[c.limits], diagonal[self.limits]
        slope = np.maximum(at.slope + (limit_use / limit_diagonal)[c.user], LEAST_SLOPE)
        log_price = np.full(pairs.inverse.shape, -np.inf)
        log_price[row] = at.log_rows
        # Prices (servers, resources) relative to the largest price of their server, as logs may exceed the range.
        prices, idle = np.zeros(log_price.shape), np.full(log_price.shape, np.inf)
        prices[row] = np.exp(np.maximum(log_price - log_price.max(axis=1, keepdims=True), -LOG_RANGE))[row]
        idle[row] = diagonal[self.rows] / prices[row]
        value = slope * c.scale * np.maximum(pairs.cost(prices), TINY)
        total = at.total[c.present] / c.unit  # (users with a pair,), in the units of `pairs`
        weight = slope / diagonal[self.pairs] * pairs.of_user(total)
        equations = algebra.Equations(pairs.with_value(value), weight, idle, total, np.zeros(len(total)))

        def solve(given: Array) -> Array:
            """Changes (unknowns,) of fractions of tasks, log prices and prices of limits; see the equations above."""
            given, of_limits, of_rows = given * unscale, np.zeros(users), np.zeros(log_price.shape)
            of_limits[c.limits], of_rows[row] = given[self.limits], given[self.rows]
            of_pairs = (given[self.pairs] - (of_limits / limit_diagonal)[c.user]) / slope
            of_rows += equations.pairs.use(weight * of_pairs)
            price_change, user_change, _ = equations.solve(of_rows, -pairs.sums(weight * of_pairs), 0.0)
            task_change = weight * (of_pairs - equations.pairs.slack(price_change, user_change))
            parts = task_change / pairs.of_user(total)
            excess = (of_limits + limit_use * np.bincount(c.user, parts, users)) / limit_diagonal
            return np.concatenate([parts, (price_change / np.maximum(prices, TINY))[row], excess[c.limits]])

        return solve


def _lu_solver(matrix: Array, diagonal: Array) -> Solve | None:
    """Solver for a dense matrix, to which `diagonal` is added in place; None if the sum is singular."""
    np.einsum("ii->i", matrix)[:] += diagonal
    factors, order, info = lapack.dgetrf(matrix)
    return None if info else lambda given: lapack.dgetrs(factors, order, given)[0]


def _refined_solver(approximate: Solve, product: Solve, scale: Array) -> Solve:
    """Solver for the matrix of `product`, by iterative refinement of `approximate`; right-hand sides times `scale`."""

    def solve(given: Array) -> Array:
        given = given * scale
        found = approximate(given)
        residual = given - product(found)
        for _ in range(_PATIENCE):
            size = float(np.abs(residual).max())
            if not size > _SOLVED * float(np.abs(given).max()):
                break
            improved = found + approximate(residual)
            residual = given - product(improved)
            if not float(np.abs(residual).max()) < 0.5 * size:
                break
            found = improved
        return np.asarray(found)

    return solve
