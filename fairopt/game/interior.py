"""Equilibria of the per-server game by a primal-dual interior point, for every alpha in (0, infinity).

Unknowns: tasks x[n,i], level prices v[i,r] and every user's level `U_n` (what its tasks cost where they cost least).
With `p[n,i] = sum_r D[n,i,r] v[i,r]^a` the equilibrium conditions of theory.md section 3 read

    slack_ni = p_ni^(k/a) (U_n / (phi_n gamma_ni))^k - 1  >= 0,    x_ni slack_ni / X_n = k mu,   sum_i x_ni = X_n(U_n),
    idle_ir = 1 - sum_n x_ni D_nir / gamma_ni             >= 0,    idle_ir part_ir^(e/a)  = mu,

and mu goes to 0. `part_ir` is the average part that r has in the prices its users pay. k = min(alpha, 4): with
k = a the slacks are linear in v^a and ten to twenty Newton steps do (a convex program's, at alpha = 1). For larger
alpha the first phase measures prices in v^k, follows a = min(alpha, c/mu) and searches along the line; the second
goes on in v^a, in which resources can leave the price of a server at any alpha.

There is no proof of convergence (the game is not monotone), which is why the caller judges, and why there are several
attempts with other parameters. Steps and tests are in units of users' own tasks and resources' own users.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..engines import structured
from .equations import Equations, Point

Array = NDArray[np.float64]
Steps = tuple[Array, Array, Array, Array, Array]  # of tasks, slacks, prices (relative), levels' prices (relative), idle

#: Single precision is tried above the first mu; below the second, pairs of little weight are left out off the diagonal.
_SINGLE, _SPARSE, _LEAST_WEIGHT = 1e-7, 1e-4, 1e-5
_LEAST_MU = 1e-15
#: After so many short steps there is little hope left.
_JAMMED = 45


@dataclass(frozen=True)
class Found:
    """A point, how far it is from an equilibrium (relative, in tasks), after how many Newton steps."""

    point: Point
    error: float
    steps: int
    warm: Point | None = None  # a point on the way, to start from for another alpha
    notes: tuple[str, ...] = ()
    by: str = "interior point"  # what found it


@dataclass(frozen=True)
class Attempt:
    """Parameters of one run: `a <= homotopy/mu`, and below which mu the second phase starts."""

    homotopy: float
    second: float
    mu: float = 0.3


#: From a point of another alpha, at once in the second phase; such a point is kept where mu first falls below this.
FOLLOW, _KEPT = Attempt(np.inf, np.inf), 0.1

ATTEMPTS = (Attempt(0.1, 1e-3), Attempt(0.1, 3e-3), Attempt(0.03, 1e-2))


def run(
    equations: Equations, attempt: Attempt, tol: float, point: Point | None = None, max_steps: int = 150
) -> Iterator[Found]:
    """Newton steps; yields before each. Ends when the error is below `tol` or nothing moves any more."""
    alpha, k = equations.alpha, equations.power
    point = equations.begin(attempt.mu) if point is None else point.measured(k)
    still, short, second, warm, single = 0, 0, False, None, True
    for step_number in range(max_steps + 1):
        mu = point.mu
        a = alpha if second else min(alpha, max(attempt.homotopy / mu, k))
        if alpha > k and not second and ((a == alpha and mu < attempt.second) or still > 2):
            second, a, still = True, alpha, 0
            point = equations.lifted(point, a)
        here = _Here(equations, point, a, a if second else k, single)
        error = here.error if a == alpha else np.inf
        settled = mu <= _KEPT and step_number > 0 and (second or alpha <= k)
        warm = point if warm is None and settled else warm
        yield Found(point, error, step_number, warm)
        if error <= tol or still > 8 or short > _JAMMED or not np.isfinite(here.average):
            return
        aim = here.newton(0.0)
        t = here.longest(aim)
        after = here.mean(*here.moved_products(aim, t))
        centre = max(min(max((after / here.average) ** 3, 1e-6), 0.1), 0.5 * (1 - t) ** 3)
        single = here.factors.single or point.mu <= _SINGLE
        target = max(centre * here.average, _LEAST_MU, min(0.005 * here.residual, here.average))
        search = a > k and not second
        steps = here.newton(target) if search else here.newton(target, aim)
        t = max(0.9, 1 - target) * here.longest(steps)
        t = min(t, 3.0 * max(k, 1.0) / max(float(np.abs(steps[3]).max()), 1e-300), 1.0)
        t, moved = here.searched(steps, t, target) if search else (t, here.moved(steps, t))
        still = still + 1 if t < 3e-3 else 0
        short += t < 0.1
        point = replace(moved, mu=mu if search and t < 0.3 else target)


class _Here:
    """The equations at one point, linearised: prices in the power e, whose logarithms are those of v^a."""

    def __init__(self, equations: Equations, point: Point, a: float, e: float, single: bool) -> None:
        self.equations, self.point, self.a, self.e, self.single = equations, point, a, e, single
        self.true, self.share, _ = equations.priced(point, a)
        self.total, self.slope = equations.totals(point.log_level, point.mu)
        used = equations.used(point.tasks)
        self.measure = equations.parts(point, self.share, self.true, used) ** (e / a)
        self.gap = np.add.reduceat(point.tasks, equations.start[:-1]) - self.total
        self.excess = np.where(equations.row, used + point.idle - 1, 0.0)
        self.average = self.mean(point.tasks, point.slack, point.idle * self.measure)

    def mean(self, tasks: Array, slack: Array, idle: Array) -> float:
        """The average of all products, of pairs and of resources."""
        from . import _kernels

        q = self.equations
        pairs = _kernels.products(q.start, tasks, slack, self.total)[0] / q.power
        return float((pairs + idle[q.row].sum()) / (len(tasks) + q.row.sum()))

    @property
    def error(self) -> float:
        """How far the point is from an equilibrium."""
        largest = self.equations.largest_parts(self.equations.wanted(self.point, self.share, self.true))
        return self.equations.error(self.point, self.true, largest, self.total)

    @property
    def residual(self) -> float:
        """What is wrong with the equations that do not involve mu."""
        part = self.point.tasks / self.total[self.equations.polytope.pair_user]
        wrong = np.abs(self.point.slack - self.true) * part
        return float(max(wrong.max(), np.abs(self.gap / self.total).max(), np.abs(self.excess).max()))

    @cached_property
    def right(self) -> Array:
        """By how much slacks grow with the relative growth of prices, (pairs, resources)."""
        return np.asarray(((1 + self.true) * (self.equations.power / self.e))[:, None] * self.share)

    @cached_property
    def factors(self) -> structured.Factors:
        q, mu = self.equations, self.point.mu
        return structured.factor(
            q.start,
            q.server,
            self.point.tasks / self.point.slack,
            q.per_task,
            self.right,
            self.slope,
            np.where(q.row, self.point.idle + min(1e-11, mu), 1.0),
            least=(0.0 if mu > _SPARSE else _LEAST_WEIGHT) * self.slope,
            single=self.single and mu > _SINGLE,
        )

    def newton(self, target: float, aim: Steps | None = None) -> Steps:
        """Steps to products equal to `target`; `aim` (steps to zero) corrects for what is not linear in them."""
        from . import _kernels

        q, at = self.equations, self.point
        pairs = np.zeros(len(at.tasks)) if aim is None else aim[0] * aim[1]
        rows = 0.0 if aim is None else self.measure * aim[2] * aim[4]
        wanted = np.where(q.row, (target - rows) / self.measure - at.idle, 0.0)
        rhs = np.where(q.row, self.excess + wanted, 0.0)
        rx, c0 = np.empty(len(at.tasks)), np.empty(len(self.total))
        given = (q.start, q.server, q.per_task, at.tasks, at.slack, self.true, self.total, self.gap, self.slope)
        _kernels.right_hand(*given, target * q.power, pairs, rx, c0, rhs)
        rhs = np.where(q.row, rhs, 0.0)
        d_price = np.where(q.row, self.factors.solve(rhs.ravel()).reshape(rhs.shape), 0.0)
        d_tasks, d_slack, d_level = np.empty_like(rx), np.empty_like(rx), np.empty_like(c0)
        state = (q.start, q.server, self.right, at.tasks, at.slack, self.true, self.slope, rx, c0, d_price)
        _kernels.direction(*state, d_tasks, d_slack, d_level)
        return d_tasks, d_slack, d_price, d_level, wanted - at.idle * d_price

    def longest(self, steps: Steps) -> float:
        """The longest step, at most 1, after which nothing is negative."""
        from ..engines import _pairs

        rows, at = self.equations.row, self.point
        ones = np.ones(max(int(rows.sum()), len(steps[3])))
        pairs = (
            (at.tasks, steps[0]),
            (at.slack, steps[1]),
            (ones, steps[2][rows]),
            (ones, steps[3]),
            (at.idle[rows], steps[4][rows]),
        )
        return min(float(_pairs.longest(values[: len(change)], change)) for values, change in pairs)

    def moved_products(self, steps: Steps, t: float) -> tuple[Array, Array, Array]:
        """Tasks, slacks, and products of resources after a step, to the first order."""
        at = self.point
        idle = (at.idle + t * steps[4]) * self.measure * (1 + t * steps[2])
        return at.tasks + t * steps[0], at.slack + t * steps[1], idle

    def moved(self, steps: Steps, t: float) -> Point:
        """The point after a step."""
        at, grown = self.point, 1 + t * steps[3]
        return replace(
            at,
            tasks=at.tasks + t * steps[0],
            slack=(at.slack + t * steps[1]) / np.repeat(grown, np.diff(self.equations.start)),
            log_price=at.log_price + np.log1p(t * steps[2]) / self.e,
            log_level=at.log_level - np.log(grown) / self.equations.power,
            idle=at.idle + t * steps[4],
        )

    def searched(self, steps: Steps, t: float, target: float) -> tuple[float, Point]:
        """A step after which the equations are less wrong than before, or a short one."""
        before = self._merit(self.point, self.measure, target)[0]
        for _ in range(12):
            moved = self.moved(steps, t)
            after, least = self._merit(moved, self.measure * (1 + t * steps[2]), target)
            if after <= (1 - 0.1 * t) * before and least > 1e-4:
                break
            t *= 0.6
        return t, moved

    def _merit(self, point: Point, measure: Array, target: float) -> tuple[float, float]:
        """Norm of the residuals, and the least product relative to the average."""
        from . import _kernels

        q = self.equations
        true = q.priced(point, self.a)[0]
        total = q.totals(point.log_level, target)[0]
        squares, least, add = _kernels.merit(q.start, point.tasks, point.slack, true, total, target * q.power)
        products = (point.idle * measure)[q.row]
        gap = np.add.reduceat(point.tasks, q.start[:-1]) / total - 1
        excess = (q.used(point.tasks) + point.idle - 1)[q.row]
        squares = squares / q.power**2 + ((products - target) ** 2).sum() + (gap**2).sum() + (excess**2).sum()
        average = (add / q.power + products.sum()) / (len(point.tasks) + len(products))
        return float(np.sqrt(squares)), float(min(least / q.power, products.min()) / average)
