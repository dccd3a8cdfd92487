r"""Global programs with task limits of users whose rates differ between servers, by a constraint on each user's time.

Such a limit bounds the time of a user, not its work, as the user may trade time on a slow server for time on a fast
server. Other engines, for which limits are bounds on work, do not apply.

Welfare at finite alpha > 0 is maximised by a primal-dual interior-point method for few rows. With fractions z of pairs,
work g, time tau and use D of a whole pair, prices lambda of rows, mu of own time and p of work, the conditions are

.. math:: s_{ni} = \sum_r D_{nir} \lambda_{ir} + \tau_{ni} \mu_n - g_{ni} p_n \ge 0 \perp z_{ni} \ge 0, \qquad
    1 - D z \ge 0 \perp \lambda \ge 0, \qquad 1 - \tau z \ge 0 \perp \mu \ge 0,

and p is the marginal utility of the user's work w, the sum of g z. The equations of a user, one for each of its servers
and one for its time, are solved by a stacked inversion, which leaves a dense system in the prices of rows. Products of
users are relative to their expenditure. Alpha is increased from 1, at most by factors of 2, from the last iterate, with
units in which each user's present work is 1.

Max-min is solved by linear programs. A common level t is feasible if and only if every user n can have the level
:math:`\min(t, \ell_n)`, with the level :math:`\ell_n` that n has alone. If t is infeasible, the prices of the program
that minimises the total shortage prove

.. math:: \sum_n p_n \min(t, \ell_n) \le \sum_r \lambda_r + \sum_n \mu_n

for every feasible t. The largest t that satisfies this inequality is tried next; these values decrease to the largest
feasible level in a few programs, independent of the number of users that attain their own bounds. Users with a price
are then frozen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...base import clock
from ...base.libraries import clarabel, sp
from ...model._arrays import Array
from ...model.criterion import Criterion
from ...model.polytope import Polytope
from ...model.problem import Problem
from ..accuracy import ACCURATE, NEGLIGIBLE, NEWTON_ROUNDING, REFINED, VISIBLE
from ..central_path import LEAST, LEAST_CENTRING, TO_BOUNDARY
from ..factors import TINY
from ..solution import Run, Solution

#: Largest number of rows (`_ROWS`), and of entries of the equations of users (`_ENTRIES`).
_ROWS, _ENTRIES = 1_000, 20_000_000
#: Largest number of Newton steps (`_STEPS`), shortest step that is accepted (`_SHORTEST`), mean complementarity product
#: at which alpha is increased (`_ROUGH`), largest change of the log ratio of two users' marginal utilities where alpha
#: is increased (`_TURN`), and largest fraction of the step to the boundary (`_NEAREST`): nearer ones end in rounding.
_STEPS, _SHORTEST, _ROUGH, _TURN, _NEAREST = 100, 1e-8, 1e-2, 8.0, 0.999


def solutions(problem: Problem) -> Iterator[Solution]:
    """Yield at most one candidate, for max-min, or for alpha-fair welfare at alpha > 0 with few rows.

    There is none for floors, for other welfare functions, or if the method fails.
    """
    rule, polytope, begun = problem.criterion, problem.polytope, clock.cpu()
    if type(rule) is not Criterion or rule.alpha == 0 or rule.floor.any():
        return
    if np.isinf(rule.alpha):
        solver, found = "CLARABEL", _levels(polytope, rule)
    else:
        sizes = np.diff(polytope.start) + 1.0
        if len(polytope.row_server) > _ROWS or sizes @ sizes > _ENTRIES:
            return
        with np.errstate(all="ignore"):
            solver, found = "interior point by users", _welfare(polytope, rule)
    if found is not None:
        tasks = polytope.allocation(polytope.inside(found[0]))
        run = Run(solver, clock.cpu() - begun)
        yield Solution(tasks, None, "native", (run,), 0.0, found[2], "converged", log=found[1])


class _Point(NamedTuple):
    """Iterate: fractions z and slacks s of pairs, prices lam and slacks v of rows, mu and u of own time, prices p.

    mu and u are 1 for users without a limit.
    """

    z: Array
    s: Array
    lam: Array  # (rows,)
    v: Array
    mu: Array  # (users,)
    u: Array
    p: Array  # (users,)


class _Program:
    """Program that maximises alpha-fair welfare of users' work, and its primal-dual interior-point method.

    Work of a user is measured in its `unit` (users,). At one unit of work its marginal welfare is `marginal` (users,).
    """

    def __init__(self, polytope: Polytope, unit: Array, marginal: Array, alpha: float) -> None:
        self.start, self.user, self.marginal, self.alpha = polytope.start[:-1], polytope.pair_user, marginal, alpha
        self.use, self.gain = polytope.use.T.tocsr(), polytope.gamma / unit[self.user]
        self.has = np.zeros(len(unit), dtype=bool)
        self.has[polytope.limited] = True
        self.time = np.where(self.has[self.user], polytope.instances / polytope.quota[self.user], 0.0)
        #: Position of each pair among the pairs of its user (`place`), and all combinations of two pairs of the same
        #: user (`both`).
        self.place = np.arange(len(self.user)) - polytope.start[self.user]
        same = sp.csr_matrix((np.ones(len(self.user)), (np.arange(len(self.user)), self.user)))
        self.both = (same @ same.T).tocoo()
        self.paid = marginal.sum() / self.use.shape[1]

    def sums(self, of_pairs: Array) -> Array:
        """Sums over each user's pairs, (users,)."""
        return np.asarray(np.add.reduceat(of_pairs, self.start))

    def begin(self, z: Array) -> _Point:
        """Interior point at fractions z, at which no capacity or own time is exhausted."""
        value = self.gain * self.marginal[self.user]
        lam = np.maximum(self.use.T @ (value * z), LEAST * self.paid) / np.maximum(self.use.T @ z, TINY)
        mu = np.where(self.has, self.marginal, 1.0)
        cost = self.use @ lam + self.time * mu[self.user]
        u = np.where(self.has, 1 - self.sums(self.time * z), 1.0)
        return _Point(z, np.maximum(cost - value, LEAST * value), lam, 1 - self.use.T @ z, mu, u, self.marginal)

    def gap(self, at: _Point) -> float:
        """Mean complementarity product, relative to expenditures."""
        of_users = np.bincount(self.user, at.z * at.s, len(self.marginal)) + np.where(self.has, at.mu * at.u, 0.0)
        total = (of_users / self.marginal).sum() + (at.lam * at.v).sum() / self.paid
        return float(total / (len(at.z) + len(at.lam) + np.count_nonzero(self.has)))

    def solved(self, at: _Point, accuracy: float) -> tuple[_Point, int]:
        """Iterate by Mehrotra's method until the gap is less than `accuracy`; return the point and number of steps.

        Iterations end early after `_STEPS` steps, or where rounding errors prevent progress.
        """
        zero = _Point(*(0 * one for one in at))
        steps = 0
        while steps < _STEPS:
            try:
                gap, newton = self.gap(at), _Newton(self, at)
                if gap < accuracy and newton.residual < max(10 * accuracy, REFINED):
                    break
                affine = newton.direction(0.0, zero)
                t = _longest(at, affine)
                ahead = self.gap(_moved(at, affine, t))
                affine = _Point(*(t * one for one in affine))  # products of longer steps do not occur
                change = newton.direction(min(max((ahead / gap) ** 3, LEAST_CENTRING), 0.5) * gap, affine)
            except np.linalg.LinAlgError:  # near a solution matrices may be singular by rounding
                break
            t = _longest(at, change)
            if not t > _SHORTEST:
                break
            at, steps = _moved(at, change, min(1.0, np.clip(1 - gap, TO_BOUNDARY, _NEAREST) * t)), steps + 1
        return at, steps


def _moved(at: _Point, change: _Point, t: float) -> _Point:
    return _Point(*(one + t * more for one, more in zip(at, change, strict=True)))


def _longest(at: _Point, change: _Point) -> float:
    """Longest step, at most 1, that keeps all variables nonnegative; NaN if numbers have overflowed."""
    return 1 / float(np.max([1.0, *((-more / one).max() for one, more in zip(at, change, strict=True))]))


class _Newton:
    """Newton's equations at a point."""

    def __init__(self, program: _Program, at: _Point) -> None:
        q, self.program, self.at = program, program, at
        user, w = q.user, q.sums(q.gain * at.z)
        self.dual = q.use @ at.lam + q.time * at.mu[user] - q.gain * at.p[user] - at.s
        self.rows = 1 - q.use.T @ at.z - at.v
        self.own = np.where(q.has, 1 - q.sums(q.time * at.z) - at.u, 0.0)
        #: Linearised marginal utility: `dp = misfit - slope dw`.
        off = np.log(q.marginal / at.p) - q.alpha * np.log(w)
        self.slope, self.misfit = q.alpha * at.p / w, at.p * off
        residuals = self.dual / (q.gain * at.p[user]), self.rows, self.own, off
        self.residual = max(float(np.abs(each).max()) for each in residuals)
        # Equations of each user in the changes of z and mu, padded to the largest number of servers.
        users, width = len(w), int(q.place.max()) + 1
        matrix, gain = np.zeros((users, width + 1, width + 1)), np.zeros((users, width))
        gain[user, q.place] = q.gain
        matrix[:, :width, :width] = gain[:, :, None] * (self.slope[:, None] * gain)[:, None]
        diagonal = np.ones((users, width))
        diagonal[user, q.place] = at.s / at.z
        matrix[:, np.arange(width), np.arange(width)] += diagonal
        matrix[user, q.place, width] = matrix[user, width, q.place] = q.time
        matrix[:, width, width] = np.where(q.has, -at.u / at.mu, -1.0)
        self.inverse, (i, j) = np.linalg.inv(matrix), (q.both.row, q.both.col)
        of_pairs = sp.csr_matrix((self.inverse[user[i], q.place[i], q.place[j]], (i, j)), shape=q.both.shape)
        self.schur = (q.use.T @ (of_pairs @ q.use)).toarray() + np.diag(at.v / at.lam)

    def _of_users(self, of_pairs: Array, of_time: Array) -> tuple[Array, Array]:
        """Solve the equations of users for changes of z and mu."""
        q, right = self.program, np.zeros(self.inverse.shape[:2])
        right[q.user, q.place], right[:, -1] = of_pairs, of_time
        found = (self.inverse @ right[:, :, None])[:, :, 0]
        return found[q.user, q.place], np.where(q.has, found[:, -1], 0.0)

    def direction(self, target: float, second: _Point) -> _Point:
        """Direction to complementarity products `target`, with the products of the direction `second` subtracted."""
        q, at, aim = self.program, self.at, target * self.program.marginal
        of_pairs = aim[q.user] - second.z * second.s - at.z * at.s
        of_rows = target * q.paid - second.lam * second.v - at.lam * at.v
        of_time = np.where(q.has, self.own - (aim - second.mu * second.u - at.mu * at.u) / at.mu, 0.0)
        taken = of_pairs / at.z - self.dual + q.gain * self.misfit[q.user]
        free = self._of_users(taken, of_time)[0]
        lam = np.linalg.solve(self.schur, q.use.T @ free - self.rows + of_rows / at.lam)
        z, mu = self._of_users(taken - q.use @ lam, of_time)
        p, u = self.misfit - self.slope * q.sums(q.gain * z), np.where(q.has, self.own - q.sums(q.time * z), 0.0)
        return _Point(z, (of_pairs - at.s * z) / at.z, lam, self.rows - q.use.T @ z, mu, u, p)


def _welfare(polytope: Polytope, rule: Criterion) -> tuple[Array, Array, int] | None:
    """Maximise welfare: fractions (pairs,), log prices per resource unit, number of Newton steps; None for overflow."""
    # At the start half of every server is divided evenly, and at most half of every user's time is used.
    even = 0.5 / np.bincount(polytope.pair_server)[polytope.pair_server]
    even = even * np.minimum(1.0, 0.5 / polytope.part_of_limit(polytope.gamma * even))[polytope.pair_user]
    own, alpha, steps, unit = rule.restrict(polytope.users), min(rule.alpha, 1.0), 0, polytope.user_tasks(even)
    at = None
    while True:
        log, turned = (replace(own, alpha=a).log_marginal(unit) + np.log(unit) for a in (alpha, alpha + 1))
        level = float(log.max() + np.log(np.exp(log - log.max()).mean()))
        program = _Program(polytope, unit, np.exp(log - level), alpha)
        at, more = program.solved(at or program.begin(even), NEWTON_ROUNDING if alpha == rule.alpha else _ROUGH)
        steps += more
        if not np.isfinite(at.z).all():
            return None
        if alpha == rule.alpha:
            return at.z, polytope.log_unit_prices(np.log(at.lam) + level), steps
        before, unit = unit, polytope.user_tasks(at.z)
        at = at._replace(p=at.p * unit / before)
        alpha = min(2 * alpha, alpha + _TURN / max(float(np.ptp(turned - log)), TINY), rule.alpha)


def _levels(polytope: Polytope, rule: Criterion) -> tuple[Array, Array, int] | None:
    """Max-min: fractions (pairs,), log prices (levels, servers, resources), number of programs; None for a failure."""
    own, users, pairs = rule.restrict(polytope.users), len(polytope.users), len(polytope.gamma)
    most, level, free = own.levels(polytope.reach), np.zeros(users), np.ones(users, dtype=bool)
    share = sp.diags(own.share / own.weight / most) @ polytope.tasks  # relative to the user's largest level
    limits = sp.vstack([polytope.use, polytope.use_of_limit])
    count, rows = limits.shape[0], len(polytope.row_server)
    least = -sp.identity(pairs + users)
    table = sp.vstack([sp.bmat([[limits, None], [-share, -sp.identity(users)]]), least], format="csc")
    cost, nothing = np.repeat([0.0, 1.0], [pairs, users]), sp.csc_matrix((pairs + users,) * 2)
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.tol_gap_abs, settings.tol_gap_rel, settings.tol_feas = False, *(ACCURATE,) * 3
    z, prices, programs = np.zeros(pairs), [], 0
    while free.any():
        t, price = float(most[free].max()), np.zeros(users)
        while True:
            level = np.where(free, np.minimum(t / most, 1.0), level)
            bounds = np.concatenate([np.ones(count), -level, np.zeros(pairs + users)])
            cones = [clarabel.NonnegativeConeT(len(bounds))]
            found, programs = (
                clarabel.DefaultSolver(nothing, cost, table, bounds, cones, settings).solve(),
                programs + 1,
            )
            z, dual = np.array(found.x)[:pairs], np.maximum(found.z, 0.0)
            if not np.isfinite(z).all():
                return None
            now, value = dual[count : count + users], dual[:count].sum()
            below = _affordable(now * free, most, float(value - (now * level)[~free].sum()))
            if not below < t * (1 - NEGLIGIBLE):
                break
            t, price, rows_price = below, now, dual[:rows]
        frozen = free & ((most <= t) | (price > VISIBLE * price.max()))
        if not frozen.any():
            return None
        if price.any():
            with np.errstate(divide="ignore"):
                prices.append(polytope.log_unit_prices(np.log(rows_price)))
        free &= ~frozen
    return z, np.array(prices or [np.full(polytope.cluster.capacity.shape, -np.inf)]), programs


def _affordable(price: Array, most: Array, value: float) -> float:
    """Level t with `sum(price min(t / most, 1)) = value`; the largest of `most` if the sum is always less."""
    order = np.argsort(most)
    price, most = price[order], most[order]
    slope = np.cumsum((price / most)[::-1])[::-1]
    below = np.cumsum(price) - price
    enough = below + slope * most >= value
    k = int(np.argmax(enough))
    return float((value - below[k]) / slope[k]) if enough[k] else float(most[-1])
