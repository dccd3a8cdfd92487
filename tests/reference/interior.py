"""A primal-dual interior point for the conditions of an exact answer, in doubles first and in decimals at last.

Level form, for every alpha > 0; prices of whole capacities: `lambda_ir c_ir = exp(base_i) v_ir^a`, a = max(alpha, 1):

    s_ni = log x_n + (1/alpha) log (sum_r lambda_ir d_nr + eta_n) - (1/alpha) worth_ni >= 0,    x_ni s_ni = mu theta_ni,
    w_ir = 1 - sum_n x_ni d_nr / c_ir >= 0,    w_ir v_ir = mu.

The price eta of a user's limit is one more v, of the row `1 - x_n/q_n`; in the game every server has its own. Newton
steps on the unsquared system in (x, v), whose diagonals are s/x and w/v, so that neither small parts nor small slacks
are lost; mu goes to 1e-45, where also splits and prices that are not unique have half of these digits. theta is a
pair's part of what the user may have, so that small servers are as central as large ones. Where the iteration starts
decides which equilibrium it finds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .conditions import NOTHING, Conditions, Decimals, decimals, exp, log, rough_log
from .linear import solve

#: Doubles, or objects that are decimals.
Numbers = NDArray[Any]


@dataclass(frozen=True)
class State:
    """x and s (pairs,), v and w (rows,): all positive."""

    x: Numbers
    s: Numbers
    v: Numbers
    w: Numbers

    def parts(self) -> tuple[Numbers, ...]:
        return self.x, self.s, self.v, self.w

    def moved(self, by: State, step: Any) -> State:
        return State(*(a + step * b for a, b in zip(self.parts(), by.parts(), strict=True)))

    def decimal(self) -> State:
        return State(*(decimals(part) for part in self.parts()))


class System:
    """The equations in one kind of number, with tasks in units of `unit` (users,)."""

    def __init__(self, of: Conditions, unit: Decimals, exact: bool) -> None:
        def kind(values: Numbers) -> Numbers:
            return values if exact else values.astype(float)

        self.exact, self.of, self.unit = exact, of, unit
        self.user, self.alpha = of.user, of.alpha if exact else float(of.alpha)
        pairs = len(of.user)
        self._last: tuple[Numbers, Numbers, tuple[Numbers, Numbers]] | None = None
        level = of.worth - (of.alpha - 1) * log(unit)[of.user]
        self.base = np.full(of.shape[1], NOTHING, dtype=object)
        np.maximum.at(self.base, of.server, level)
        level = level - self.base[of.server]
        use = of.use * unit[of.user][:, None]
        self.theta = kind(np.minimum(1, 1 / use.max(axis=1)))
        needed = np.zeros(of.shape[1:], dtype=bool)
        np.logical_or.at(needed, of.server, of.use > 0)
        self.server, self.resource = np.nonzero(needed)  # of the rows that are capacities
        limited = np.flatnonzero(np.array([of.limit[n] < Decimal("Infinity") for n in of.user], dtype=bool))
        owners = [[j] for j in limited] if of.game else [np.flatnonzero(of.user == n) for n in set(of.user[limited])]
        #: Part of a row that a unit of tasks takes, and what a unit of price costs, in doubles the logarithm.
        taken = np.full((pairs, len(self.server) + len(owners)), Decimal(0), dtype=object)
        cost = taken.copy()
        for k, (i, r) in enumerate(zip(self.server, self.resource, strict=True)):
            own = np.flatnonzero((of.server == i) & (of.use[:, r] > 0))
            taken[own, k] = cost[own, k] = use[own, r]
        for k, own in enumerate(owners, len(self.server)):
            n = of.user[own[0]]
            taken[of.user == n, k], cost[own, k] = unit[n] / of.limit[n], exp(level[own])
        self.level, self.taken, self.cost = kind(level / of.alpha), kind(taken), cost if exact else rough_log(cost)
        same = of.user[:, None] == of.user[None, :]
        self.same = np.where(same, Decimal(1), Decimal(0)) if exact else same.astype(float)
        self.priced = np.asarray(cost > 0, dtype=bool)

    def number(self, value: str | float) -> Any:
        return Decimal(value) if self.exact else float(value)

    def total(self, x: Numbers) -> Numbers:
        """x_n of every pair's user, (pairs,)."""
        return np.asarray(self.same @ x)

    def slack(self, x: Numbers, v: Numbers) -> tuple[Numbers, Numbers]:
        """s of every pair, (pairs,), and the part of each row in what a task costs, (pairs, rows)."""
        if self._last is None or self._last[0] is not x or self._last[1] is not v:
            self._last = x, v, self._slack(x, v)
        return self._last[2]

    def _slack(self, x: Numbers, v: Numbers) -> tuple[Numbers, Numbers]:
        if self.exact:
            price = v if self.alpha <= 1 else exp(self.alpha * log(v))
            part = self.cost * price
            whole = part.sum(axis=1)
            total = log(self.of.tasks_of(x))[self.user]
            return total + log(whole) / self.alpha - self.level, part / whole[:, None]
        cost = self.cost + max(self.alpha, 1.0) * np.log(v)
        top = cost.max(axis=1)
        part = np.where(self.priced, np.exp(np.where(self.priced, cost - top[:, None], 0.0)), 0.0)
        whole = part.sum(axis=1)
        return np.log(self.total(x)) + (np.log(whole) + top) / self.alpha - self.level, part / whole[:, None]

    def residual(self, at: State) -> Any:
        """The largest error in the definitions of s and w."""
        wrong = [abs(self.slack(at.x, at.v)[0] - at.s), abs(1 - at.x @ self.taken - at.w)]
        return np.concatenate(wrong).max()

    def products(self, at: State) -> Numbers:
        return np.concatenate([at.x * at.s / self.theta, at.v * at.w])

    def direction(self, at: State, sigma: Any, central: bool) -> State | None:
        """The Newton step to residuals 0 and products sigma mu, or sigma times their own, in dx_ni / x_n and dv / v."""
        pairs, rows = self.taken.shape
        s, part = self.slack(at.x, at.v)
        total = self.total(at.x)
        matrix = np.full((pairs + rows, pairs + rows), self.number(0))
        matrix[:pairs, :pairs] = self.same
        every, row = np.arange(pairs), pairs + np.arange(rows)
        matrix[every, every] += at.s / at.x * total
        matrix[:pairs, pairs:] = max(self.alpha, self.number(1)) / self.alpha * part
        matrix[pairs:, :pairs] = (self.taken * total[:, None]).T
        matrix[row, row] = -at.w
        products = self.products(at)
        if central:
            products = products * self.number(0) + products.sum() / len(products)
        tasks, prices = sigma * products[:pairs] * self.theta, sigma * products[pairs:]
        right = np.concatenate([tasks / at.x - s, 1 - at.x @ self.taken - prices / at.v])
        found = solve(matrix, right)
        if found is None:
            return None
        dx, dv = found[:pairs] * total, found[pairs:] * at.v
        ds = (tasks - at.s * dx) / at.x - at.s
        dw = (prices - at.w * dv) / at.v - at.w
        return State(dx, ds, dv, dw)

    def moves(self, at: State, by: State, step: Any) -> Iterator[State]:
        """A step along a straight line; prices, tasks and prices along an exponential, where logarithms count."""
        grown, most = exp if self.exact else np.exp, self.number(3)
        straight = at.moved(by, step)
        yield straight
        v = at.v * grown(np.clip(step * by.v / at.v, -most, most))
        yield replace(straight, v=v)
        yield replace(straight, v=v, x=at.x * grown(np.clip(step * by.x / at.x, -most, most)))

    def log_prices(self, at: State) -> Decimals:
        """log lambda_ir c_ir of a state in decimals, (servers, resources)."""
        found = np.full(self.of.shape[1:], NOTHING, dtype=object)
        own = max(self.of.alpha, Decimal(1)) * log(at.v[: len(self.server)])
        found[self.server, self.resource] = self.base[self.server] + own
        return found
