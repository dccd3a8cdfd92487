"""Newton's method on the equations of a guessed active set: few steps, each with more digits than the last.

Where it is known which pairs have tasks (P) and which rows have prices (R), an exact answer is a root of equations:

    log x_n + (log p_j + t_n - worth_j) / alpha = 0,  p_j = sum_R use_jk y_k    for pairs j = (n, i) in P,
    1 - sum_P taken_jk x_j = 0                                                  for rows k in R.

t_n >= 0, by how much tasks are worth more than they cost, is the price of a limit (in the game every pair has one).
Residuals are decimals, so that they have all digits; their derivative is in doubles, which costs digits of a step and
none of the answer. Splits and prices that are not unique make it singular: the shortest step is taken. Pairs or rows
whose equations contradict the others leave them.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from .conditions import NOTHING, Conditions, Decimals, Index, decimals, exp, log

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Gone = tuple[Mask, Mask]

#: Residuals of a root, after which one more step is measured and not taken; what ties to rounding may keep more.
SUFFICIENT, AT_MOST = Decimal("1e-20"), Decimal("1e-17")
#: Steps for one guess.
STEPS = 24
#: The first of them may be far off: no price is taken away yet.
SOFT = 8
#: Singular values below such a part of the largest are none: what ties exactly is singular to rounding.
RANK = 1e-12
#: In the game, how much less tasks move than prices where either could: near equilibria may be others.
STAY = 1e-3
#: A limit below such a t may have none.
LIMITED = Decimal("1e-6")
#: t where nothing has a price: large, so that a price that comes in may be small.
FREE = Decimal(60)
#: An error that is not below such a part of the last one stays.
NEARLY = Decimal("0.99")


class EquilibriumSystem:
    """x (pairs,) and y (rows,): tasks, prices of capacities, and t of limits; no units."""

    def __init__(self, of: Conditions, near: Array, log_prices: Array) -> None:
        needed = np.zeros(of.shape[1:], dtype=bool)
        np.logical_or.at(needed, of.server, of.use > 0)
        self.of, self.x = of, decimals(np.maximum(near[of.user, of.server], 0.0))
        self.server, self.resource = np.nonzero(needed)  # of the rows that are capacities
        self.count = len(self.server)
        limited = np.flatnonzero(np.array([of.limit[n] < Decimal("Infinity") for n in of.user], dtype=bool))
        owners = [[j] for j in limited] if of.game else [np.flatnonzero(of.user == n) for n in {*of.user[limited]}]
        self.use = np.full((len(self.x), self.count), Decimal(0), dtype=object)
        self.taken = np.full((len(self.x), self.count + len(owners)), Decimal(0), dtype=object)
        for k, (i, r) in enumerate(zip(self.server, self.resource, strict=True)):
            own = np.flatnonzero(of.server == i)
            self.use[own, k] = self.taken[own, k] = of.use[own, r]
        given = decimals(log_prices[self.server, self.resource])
        prices = exp(np.where([value.is_nan() for value in given], NOTHING, given))
        self.y = np.concatenate([prices, np.full(len(owners), Decimal(0), dtype=object)])
        #: Whose t a limit's row is, (pairs, limits).
        self.owned = np.zeros((len(self.x), len(owners)), dtype=bool)
        cost, log_marginal = self.use @ prices, self.log_marginal()
        for k, own in enumerate(owners):
            self.owned[own, k] = True
            n = of.user[own[0]]
            self.taken[of.user == n, self.count + k] = 1 / of.limit[n]
            least = min(cost[own])  # 0: the limit alone holds somebody back
            self.y[self.count + k] = max(log_marginal[own[0]] - least.ln(), Decimal(0)) if least else FREE

    def log_marginal(self) -> Decimals:
        """`log m_ni`, (pairs,)."""
        return np.asarray(self.of.worth - self.of.alpha * log(self.of.tasks_of(self.x))[self.of.user])

    def guess(self) -> tuple[Mask, Mask]:
        """Pairs with tasks and rows with prices, as they are now."""
        part = (self.x / self.of.tasks_of(self.x)[self.of.user]).astype(float)
        dear = ((log(self.price()) - self.log_marginal()) / self.of.alpha).astype(float)
        idle = (1 - self.x @ self.taken).astype(float)
        priced = np.asarray(self.y > np.where(np.arange(len(self.y)) < self.count, Decimal(0), LIMITED), dtype=bool)
        return (part > 1e-5) | ((part > 1e-9) & (dear < 1e-9)), priced & (idle < 1e-5)

    def price(self) -> Decimals:
        """What a task costs, times `e^t`, (pairs,)."""
        factor = np.array([t.exp() if t else Decimal(1) for t in self.owned @ self.y[self.count :]], dtype=object)
        return np.asarray((self.use @ self.y[: self.count]) * factor)

    def solve(self, pairs: Mask, rows: Mask) -> Decimal | tuple[Mask, Mask] | None:
        """How much a last step would change a user's tasks; or another guess; `None`: it does not converge."""
        of, last = self.of, Decimal("Infinity")
        self.x[~pairs], self.y[~rows] = Decimal(0), Decimal(0)
        own, full = np.flatnonzero(pairs), np.flatnonzero(rows)
        taken = self.taken[np.ix_(own, full)]
        for k in range(STEPS):
            total = of.tasks_of(self.x)
            price = self.price()[own]
            # A limit alone may hold somebody back: where nothing has a price, tasks cost nothing.
            free = np.asarray(price == 0, dtype=bool)
            if any(total[of.user] <= 0) or (free & ~(self.owned[own] & rows[self.count :]).any(axis=1)).any():
                return None
            x_n = total[of.user[own]]
            error = np.where(free, Decimal(0), _level(of, own, total, np.where(free, Decimal(1), price)))
            right = np.concatenate([error, 1 - self.x[own] @ taken])
            size = max(abs(right))
            stays = size > last / 10 and (last < Decimal("1e-6") or (k > 2 and size > last * NEARLY))
            last = size
            scale = np.sqrt(np.maximum((self.x[own] / x_n).astype(float), 1e-8))
            scale *= STAY if of.game else 1.0
            matrix = self._derivative(own, full, x_n, scale, free)
            if not np.isfinite(matrix).all():
                return None
            unit = size if size > 0 else Decimal(1)
            if stays and size > AT_MOST:
                gone = self._pivot(own, full, right)
                return None if gone is None else self._without(pairs, rows, own, full, gone)
            found = np.linalg.lstsq(matrix, -(right / unit).astype(float), rcond=RANK)[0]
            dx = decimals(found[: len(own)] * scale) * x_n * unit
            dy = decimals(found[len(own) :] * max(float(of.alpha), 1.0)) * unit
            if size <= SUFFICIENT or stays:
                change = np.full(len(self.x), Decimal(0), dtype=object)
                change[own] = dx
                return max(abs(of.tasks_of(change)[of.user] / total[of.user]))
            gone = self._move(own, full, dx, dy, soft=k < SOFT)
            if gone is not None:
                return self._without(pairs, rows, own, full, gone)
        return None

    def _derivative(self, own: Index, full: Index, x_n: Decimals, scale: Array, free: Mask) -> Array:
        """Of the equations by `dx_j / (x_n scale_j)` and by `dy_k / y_k`, for limits dt, over max(alpha, 1)."""
        capacity, user, alpha = full < self.count, self.of.user[own], float(self.of.alpha)
        cost = (self.use[own] @ self.y[: self.count])[:, None]
        part = self.use[np.ix_(own, full[capacity])] * self.y[full[capacity]] / np.where(cost == 0, Decimal(1), cost)
        slope = np.concatenate([part.astype(float), self.owned[np.ix_(own, full[~capacity] - self.count)]], axis=1)
        by_price = slope * (max(alpha, 1.0) / alpha)
        by_tasks = (user[:, None] == user[None, :]) * scale
        by_price[free], by_tasks[free] = 0, 0
        taken = (self.taken[np.ix_(own, full)] * x_n[:, None]).astype(float) * scale[:, None]
        return np.block([[by_tasks, by_price], [-taken.T, np.zeros((len(full), len(full)))]])

    def _pivot(self, own: Index, full: Index, wrong: Decimals) -> Gone | None:
        """What leaves where equations contradict each other: tasks move to where they are cheap, prices off idle rows.

        Errors that no step lessens are orthogonal to all that x and y can do, so that a move by them, over p_j or y_k,
        changes no other equation much.
        """
        level, rest = wrong[: len(own)], wrong[len(own) :]
        dx, dy = np.full(len(own), Decimal(0), dtype=object), np.full(len(full), Decimal(0), dtype=object)
        if max(abs(level)) > max(abs(rest), default=0):
            price = (self.use @ self.y[: self.count])[own]
            by = -level / np.where(price == 0, Decimal("Infinity"), price)
            dx = by / max(abs(by)) * max(self.x[own]) * 1000
        else:
            y = np.where(full < self.count, self.y[full], Decimal(1))
            by = -rest / y
            dy = by / max(abs(by)) * 1000
        return self._move(own, full, dx, dy)

    def _move(self, own: Index, full: Index, dx: Decimals, dy: Decimals, soft: bool = False) -> Gone | None:
        """As far as nothing falls below zero; what does then. `soft`: prices become small, and not zero."""
        x, y, capacity = self.x[own], self.y[full], full < self.count
        falls = capacity & soft & np.asarray(dy < Decimal("-0.5"), dtype=bool)
        factor = np.where(falls, exp(np.maximum(dy, Decimal(-5))), 1 + dy)
        ends = np.concatenate([_ends(x, dx), _ends(np.where(capacity, Decimal(1), y), np.where(falls, 0 * dy, dy))])
        part = min(min(ends, default=Decimal(1)), Decimal(1), 3 / max([Decimal(1), *dy[capacity]]))
        self.x[own] = x + part * dx
        self.y[full] = np.where(capacity, y * (1 + part * (factor - 1)), y + part * dy)
        gone = np.asarray(ends <= part, dtype=bool)
        return (gone[: len(own)], gone[len(own) :]) if gone.any() else None

    @staticmethod
    def _without(pairs: Mask, rows: Mask, own: Index, full: Index, gone: Gone) -> tuple[Mask, Mask]:
        pairs, rows = pairs.copy(), rows.copy()
        pairs[own[gone[0]]], rows[full[gone[1]]] = False, False
        return pairs, rows


def _ends(value: Decimals, by: Decimals) -> Decimals:
    """Steps after which values are zero."""
    falls = np.asarray(by < 0, dtype=bool)
    return np.where(falls, value / np.where(falls, -by, Decimal(1)), Decimal("Infinity"))


def _level(of: Conditions, own: Index, total: Decimals, price: Decimals) -> Decimals:
    """`log x_n + (log p - worth) / alpha`: to the third order `2 (z - 1) / (z + 1)` of `z = p x_n^alpha / e^worth`."""
    power = np.array([(of.alpha * t.ln()).exp() if t > 0 else Decimal(0) for t in total], dtype=object)
    ratio = price * power[of.user[own]] / of.value[own]
    near = np.asarray((ratio > Decimal("0.8")) & (ratio < Decimal("1.25")), dtype=bool)
    far = np.where(near, Decimal(0), log(np.where(near, Decimal(1), ratio)))
    return np.asarray(np.where(near, 2 * (ratio - 1) / (ratio + 1), far) / of.alpha)
