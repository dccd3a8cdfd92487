"""Newton's equations of the game at one point of the interior point, and steps from there (`interior`)."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...engines.linalg import _pairs, gondzio, structured
from ..model import _kernels
from ..model.equilibrium_system import EquilibriumPoint, EquilibriumSystem

#: For alpha > 1: below, steps do not get fewer.
CORRECTORS = gondzio.CorrectorOptions(most=5)
#: In small matrices a step costs no more than a corrector.
ROWS_PER_CORRECTOR = 200

Array = NDArray[np.float64]
Steps = tuple[Array, Array, Array, Array, Array]  # of tasks, slacks, prices (relative), levels' prices (relative), idle


class KKTSystem:
    """The equations at one point: prices in the power e, whose logarithms are those of v^a."""

    def __init__(
        self,
        equations: EquilibriumSystem,
        point: EquilibriumPoint,
        a: float,
        e: float,
        single: bool,
    ) -> None:
        self.equations, self.point, self.a, self.e = equations, point, a, e
        # Of few rows factors in double precision cost no more than refinements.
        self.single = single and point.mu > 1e-7 and equations.row.size >= 250
        self.true, self.share, _ = equations.priced(point, a)
        self.total, self.slope = equations.totals(point.log_level, point.mu)
        self.used = equations.used(point.tasks)
        parts = equations.parts(point, self.share, self.true, self.used)
        self.measure = parts if e == a else parts ** (e / a)
        self.gap = np.add.reduceat(point.tasks, equations.start[:-1]) - self.total
        self.excess = np.where(equations.row, self.used + point.idle - 1, 0.0)
        self.average = self.mean(point.tasks, point.slack, point.idle * self.measure)

    def mean(self, tasks: Array, slack: Array, idle: Array) -> float:
        """The average of all products, of pairs and of resources."""
        q = self.equations
        of_pairs = float((q.sums(tasks * slack) / self.total).sum()) / q.power
        return (of_pairs + float(idle[q.row].sum())) / (len(tasks) + int(q.row.sum()))

    @property
    def error(self) -> float:
        """How far the point is from an equilibrium."""
        return self.equations.error(self.point, self.true, self.largest, self.total, self.used)

    def backward(self, tau: float) -> float:
        """The backward error of the point, which knows the larger factor of a product."""
        return self.equations.backward(self.point, self.true, self.largest, self.total, self.used, tau)

    @cached_property
    def largest(self) -> Array:
        """The largest part of each resource in what somebody pays for a task, (servers, resources)."""
        return self.equations.largest_parts(self.equations.wanted(self.point, self.share, self.true))

    def residual(self, sums: Array | None = None, use: Array | None = None) -> float:
        """What is wrong with the equations that do not involve mu, but for what went with pairs that left."""
        q, at = self.equations, self.point
        sums = np.zeros(len(self.gap)) if sums is None else sums
        use = np.zeros(self.excess.shape) if use is None else use
        of_pairs = np.maximum.reduceat(np.abs(at.slack - self.true) * at.tasks, q.start[:-1])
        of_users = np.maximum(of_pairs, np.abs(self.gap + sums)) / self.total
        return float(max(of_users.max(), np.abs(self.excess + use).max()))

    @cached_property
    def right(self) -> Array:
        """By how much slacks grow with the relative growth of prices, (pairs, resources)."""
        return np.asarray(((1 + self.true) * (self.equations.power / self.e))[:, None] * self.share)

    @cached_property
    def factors(self) -> structured.Factors | structured.ServersFirst:
        """The prices' matrix, users eliminated, factorised."""
        q, mu = self.equations, self.point.mu
        return structured.factor(
            q.start,
            q.server,
            self.point.tasks / self.point.slack,
            q.per_task,
            self.right,
            self.slope,
            np.where(q.row, self.point.idle + min(1e-11, mu), 1.0),
            least=(0.0 if mu > 1e-4 else 1e-5) * self.slope,
            single=self.single,
        )

    def corrected(self, target: float, aim: Steps) -> Steps:
        """Steps to products equal to `target`; `aim` (steps to zero) corrects for what is not linear in them.

        Gondzio's correctors then bring products that leave their neighbourhood on a longer step back into it.
        """
        q, at = self.equations, self.point
        pairs, rows = aim[0] * aim[1], self.measure * aim[2] * aim[4]
        steps, most = self.newton(target, pairs, rows), q.row.size // ROWS_PER_CORRECTOR
        if not (q.alpha > 1 and most):
            return steps
        unit = q.power * np.repeat(self.total, np.diff(q.start))

        def retried(steps: Steps, lengths: gondzio.Lengths) -> Steps:
            nonlocal pairs, rows
            (far,), more = lengths, np.empty(len(at.tasks))
            low, high = CORRECTORS.low * target, CORRECTORS.high * target
            _pairs.beyond(at.tasks / unit, at.slack, steps[0] / unit, steps[1], far, low, high, more)
            product = (at.idle + far * steps[4]) * self.measure * (1 + far * steps[2])
            pairs = pairs - more * unit
            rows = rows - np.where(q.row, gondzio.beyond(product, target, CORRECTORS), 0.0)
            return self.newton(target, pairs, rows)

        return gondzio.corrected(steps, retried, lambda tried: (self.longest(tried),), CORRECTORS, most)[0]

    def newton(self, target: float, pairs: Array | None = None, rows: Array | None = None) -> Steps:
        """Steps to products equal to `target`, up to those of steps themselves (`pairs`, and `rows` of resources)."""
        q, at = self.equations, self.point
        pairs = np.zeros(len(at.tasks)) if pairs is None else pairs
        rows = np.zeros(at.idle.shape) if rows is None else rows
        rx, c0 = np.empty(len(at.tasks)), np.empty(len(self.total))
        wanted, rhs = np.empty(rows.shape), np.empty(rows.shape)
        of_pairs = q.start, q.server, q.per_task, at.tasks, at.slack, self.true, pairs
        of_users, of_rows = (self.total, self.gap, self.slope), (q.row, self.excess, self.measure, at.idle, rows)
        _kernels.right_hand(*of_pairs, *of_users, *of_rows, target, q.power, rx, c0, wanted, rhs)
        d_price = np.where(q.row, self.factors.solve(rhs.ravel()).reshape(rhs.shape), 0.0)
        d_tasks, d_slack, d_level = np.empty_like(rx), np.empty_like(rx), np.empty_like(c0)
        state = (q.start, q.server, self.right, at.tasks, at.slack, self.true, self.slope, rx, c0, d_price)
        _kernels.direction(*state, d_tasks, d_slack, d_level)
        return d_tasks, d_slack, d_price, d_level, wanted - at.idle * d_price

    def longest(self, steps: Steps) -> float:
        """The longest step, at most 1, after which nothing is negative."""
        at = self.point
        fastest = _kernels.fastest(self.equations.row, at.tasks, at.slack, at.idle, *steps)
        return 1 / max(float(fastest), 1.0)

    def damped(self, steps: Steps, target: float) -> float:
        """A length of these steps, to products equal to `target`, after which all stays positive and of its size."""
        t = max(0.9, 1 - target) * self.longest(steps)
        return min(t, 3.0 * max(self.equations.power, 1.0) / max(float(np.abs(steps[3]).max()), 1e-300), 1.0)

    def moved_products(self, steps: Steps, t: float) -> tuple[Array, Array, Array]:
        """Tasks, slacks, and products of resources after a step, to the first order."""
        at = self.point
        idle = (at.idle + t * steps[4]) * self.measure * (1 + t * steps[2])
        return at.tasks + t * steps[0], at.slack + t * steps[1], idle

    def moved(self, steps: Steps, t: float) -> EquilibriumPoint:
        """The point after a step."""
        at, grown = self.point, 1 + t * steps[3]
        return EquilibriumPoint(
            tasks=at.tasks + t * steps[0],
            slack=(at.slack + t * steps[1]) / grown[self.equations.user],
            log_price=at.log_price + np.log1p(t * steps[2]) / self.e,
            log_level=at.log_level - np.log(grown) / self.equations.power,
            idle=at.idle + t * steps[4],
            mu=at.mu,
            power=at.power,
        )

    def searched(self, steps: Steps, t: float, target: float) -> tuple[float, EquilibriumPoint]:
        """A step after which the equations are less wrong than before, or a short one."""
        before = self._merit(self.point, self.measure, target)[0]
        for _ in range(12):
            moved = self.moved(steps, t)
            after, least = self._merit(moved, self.measure * (1 + t * steps[2]), target)
            if after <= (1 - 0.1 * t) * before and least > 1e-4:
                break
            t *= 0.6
        return t, moved

    def _merit(self, point: EquilibriumPoint, measure: Array, target: float) -> tuple[float, float]:
        """Norm of the residuals, and the least product relative to the average."""
        q = self.equations
        true = q.priced(point, self.a)[0]
        total = q.totals(point.log_level, target)[0]
        part = point.tasks / total[q.user]
        of_pairs = part * point.slack
        off = (point.slack - true) / (1 + np.minimum(point.slack, true)) * part
        squares = ((of_pairs - target * q.power) ** 2 + off**2).sum()
        products = (point.idle * measure)[q.row]
        gap = np.add.reduceat(point.tasks, q.start[:-1]) / total - 1
        excess = (q.used(point.tasks) + point.idle - 1)[q.row]
        squares = squares / q.power**2 + ((products - target) ** 2).sum() + (gap**2).sum() + (excess**2).sum()
        average = (of_pairs.sum() / q.power + products.sum()) / (len(point.tasks) + len(products))
        return float(np.sqrt(squares)), float(min(of_pairs.min() / q.power, products.min()) / average)
