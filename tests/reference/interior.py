"""A primal-dual interior point for the conditions of an exact answer, in doubles: where to look for one.

Level form, for every alpha > 0; prices of whole capacities: `lambda_ir c_ir = exp(base_i) v_ir^a`, a = max(alpha, 1):

    s_ni = log x_n + (1/alpha) log (sum_r lambda_ir d_nr + eta_n) - (1/alpha) worth_ni >= 0,    x_ni s_ni = mu theta_ni,
    w_ir = 1 - sum_n x_ni d_nr / c_ir >= 0,    w_ir v_ir = mu.

The price eta of a user's limit is one more v, of the row `1 - x_n/q_n`; in the game every server has its own. Newton
steps on the unsquared system in (x, v), whose diagonals are s/x and w/v, so that neither small parts nor small slacks
are lost. theta is a pair's part of what the user may have, so that small servers are as central as large ones. Where
the iteration starts decides which equilibrium it finds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from .conditions import NOTHING, Conditions, Decimals, exp, log, rough_log

Array = NDArray[np.float64]


@dataclass(frozen=True)
class State:
    """x and s (pairs,), v and w (rows,): all positive."""

    x: Array
    s: Array
    v: Array
    w: Array

    def parts(self) -> tuple[Array, ...]:
        return self.x, self.s, self.v, self.w

    def moved(self, by: State, step: float) -> State:
        return State(*(a + step * b for a, b in zip(self.parts(), by.parts(), strict=True)))


class System:
    """The equations, with tasks in units of `unit` (users,)."""

    def __init__(self, of: Conditions, unit: Decimals) -> None:
        self.of, self.unit = of, unit
        self.user, self.alpha = of.user, float(of.alpha)
        pairs = len(of.user)
        self._last: tuple[Array, Array, tuple[Array, Array]] | None = None
        level = of.worth - (of.alpha - 1) * log(unit)[of.user]
        self.base = np.full(of.shape[1], NOTHING, dtype=object)
        np.maximum.at(self.base, of.server, level)
        level = level - self.base[of.server]
        use = of.use * unit[of.user][:, None]
        self.theta = np.minimum(1, 1 / use.max(axis=1)).astype(float)
        needed = np.zeros(of.shape[1:], dtype=bool)
        np.logical_or.at(needed, of.server, of.use > 0)
        self.server, self.resource = np.nonzero(needed)  # of the rows that are capacities
        limited = np.flatnonzero(np.array([of.limit[n] < Decimal("Infinity") for n in of.user], dtype=bool))
        owners = [[j] for j in limited] if of.game else [np.flatnonzero(of.user == n) for n in set(of.user[limited])]
        #: Part of a row that a unit of tasks takes, and the logarithm of what a unit of price costs.
        taken = np.full((pairs, len(self.server) + len(owners)), Decimal(0), dtype=object)
        cost = taken.copy()
        for k, (i, r) in enumerate(zip(self.server, self.resource, strict=True)):
            own = np.flatnonzero((of.server == i) & (of.use[:, r] > 0))
            taken[own, k] = cost[own, k] = use[own, r]
        for k, own in enumerate(owners, len(self.server)):
            n = of.user[own[0]]
            taken[of.user == n, k], cost[own, k] = unit[n] / of.limit[n], exp(level[own])
        self.level, self.taken, self.cost = (level / of.alpha).astype(float), taken.astype(float), rough_log(cost)
        self.same = (of.user[:, None] == of.user[None, :]).astype(float)
        self.priced = np.asarray(cost > 0, dtype=bool)

    def total(self, x: Array) -> Array:
        """x_n of every pair's user, (pairs,)."""
        return np.asarray(self.same @ x)

    def slack(self, x: Array, v: Array) -> tuple[Array, Array]:
        """s of every pair, (pairs,), and the part of each row in what a task costs, (pairs, rows)."""
        if self._last is None or self._last[0] is not x or self._last[1] is not v:
            cost = self.cost + max(self.alpha, 1.0) * np.log(v)
            top = cost.max(axis=1)
            part = np.where(self.priced, np.exp(np.where(self.priced, cost - top[:, None], 0.0)), 0.0)
            whole = part.sum(axis=1)
            slack = np.log(self.total(x)) + (np.log(whole) + top) / self.alpha - self.level
            self._last = x, v, (slack, part / whole[:, None])
        return self._last[2]

    def residual(self, at: State) -> float:
        """The largest error in the definitions of s and w."""
        wrong = [abs(self.slack(at.x, at.v)[0] - at.s), abs(1 - at.x @ self.taken - at.w)]
        return float(np.concatenate(wrong).max())

    def products(self, at: State) -> Array:
        return np.concatenate([at.x * at.s / self.theta, at.v * at.w])

    def direction(self, at: State, sigma: float) -> State | None:
        """The Newton step to residuals 0 and products sigma mu, in dx_ni / x_n and dv / v."""
        pairs, rows = self.taken.shape
        s, part = self.slack(at.x, at.v)
        total = self.total(at.x)
        matrix = np.block([[self.same, max(self.alpha, 1.0) / self.alpha * part], [(self.taken * total[:, None]).T,
                           np.diag(-at.w)]])  # fmt: skip
        matrix[np.arange(pairs), np.arange(pairs)] += at.s / at.x * total
        mu = self.products(at).mean()
        tasks, prices = sigma * mu * self.theta, np.full(rows, sigma * mu)
        right = np.concatenate([tasks / at.x - s, 1 - at.x @ self.taken - prices / at.v])
        size = abs(matrix).max(axis=1)
        try:
            found = np.linalg.solve(matrix / size[:, None], right / size)
        except np.linalg.LinAlgError:
            return None
        dx, dv = found[:pairs] * total, found[pairs:] * at.v
        return State(dx, (tasks - at.s * dx) / at.x - at.s, dv, (prices - at.w * dv) / at.v - at.w)

    def moves(self, at: State, by: State, step: float) -> Iterator[State]:
        """A step along a straight line; prices, tasks and prices along an exponential, where logarithms count."""
        straight = at.moved(by, step)
        yield straight
        v = at.v * np.exp(np.clip(step * by.v / at.v, -3, 3))
        yield replace(straight, v=v)
        yield replace(straight, v=v, x=at.x * np.exp(np.clip(step * by.x / at.x, -3, 3)))
