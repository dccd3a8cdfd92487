"""The conditions of an exact answer at finite alpha > 0, in decimal numbers of many digits.

Nothing of fairopt but the numbers of a cluster. With `p_ni = sum_r lambda_ir d_nr` and the marginals
`m_ni = phi_n^alpha gamma_ni^(alpha-1) x_n^-alpha` (game) or `phi_n^alpha u_n^(1-alpha) x_n^-alpha` (global), x is an
equilibrium, or optimal, with prices lambda if it is feasible, `p_ni >= m_ni` on usable pairs with equality where
`x_ni > 0`, and rows (i, r) with a price are full. A user at its limit q_n may have `p < m`: global, by the same factor
on all its pairs with tasks; game, by any, as each server has a multiplier of its own for it.
Source: the conditions of Karush, Kuhn and Tucker. Doubles are rational, and decimals hold them without rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from fairopt.model.cluster import Cluster

Array = NDArray[np.float64]
Index = NDArray[np.intp]
#: Arrays of `Decimal`.
Decimals = NDArray[np.object_]

#: Digits that are computed with.
DIGITS = 80
NOTHING = Decimal("-Infinity")
exp = np.frompyfunc(lambda value: value.exp(), 1, 1)
log = np.frompyfunc(lambda value: value.ln() if value else NOTHING, 1, 1)


def _rough_log(value: Decimal) -> float:
    if not value:
        return -math.inf
    digits = value.adjusted()
    return math.log(value.scaleb(-digits)) + digits * math.log(10)


_rough = np.frompyfunc(_rough_log, 1, 1)


def rough_log(values: Decimals) -> Array:
    """Logarithms of decimals >= 0 of any size, in doubles."""
    return np.asarray(_rough(values), dtype=float)


@contextmanager
def many_digits() -> Iterator[Context]:
    """Arithmetic of `DIGITS` digits, and of exponents without end: prices at alpha = 500 need them."""
    with localcontext(Context(prec=DIGITS, Emin=MIN_EMIN, Emax=MAX_EMAX)) as context:
        yield context


def decimals(values: Array) -> Decimals:
    """Doubles as the numbers that they are."""
    return np.array([Decimal(value) for value in np.ravel(values).tolist()], dtype=object).reshape(np.shape(values))


@dataclass(frozen=True)
class Conditions:
    """What an answer must fulfil, pair by pair: only users with a limit above 0, only servers that can run them."""

    alpha: Decimal
    game: bool
    shape: tuple[int, int, int]  # (users, servers, resources)
    user: Index  # (pairs,)
    server: Index  # (pairs,)
    use: Decimals  # (pairs, resources): d_nr / c_ir, the part of a capacity that one task takes
    worth: Decimals  # (pairs,): log m_ni + alpha log x_n
    limit: Decimals  # (users,): q_n, Decimal("Infinity") for none

    @cached_property
    def value(self) -> Decimals:
        """`m_ni x_n^alpha` (pairs,): at large alpha far beyond what doubles hold."""
        return np.asarray(exp(self.worth))

    def tasks_of(self, tasks: Decimals) -> Decimals:
        """`x_n`, (users,), of tasks (pairs,)."""
        total = np.full(self.shape[0], Decimal(0), dtype=object)
        np.add.at(total, self.user, tasks)
        return total

    def used(self, tasks: Decimals) -> Decimals:
        """Part of each capacity that tasks (pairs,) take, (servers, resources)."""
        total = np.full(self.shape[1:], Decimal(0), dtype=object)
        np.add.at(total, self.server, self.use * tasks[:, None])
        return total


def conditions(cluster: Cluster, alpha: float, share: Decimals | None) -> Conditions:
    """Those of the game (`share` None) or of the global program with the shares per task `u_n`, (users,).

    Call it with `many_digits`: gamma is a quotient, so that ties of the data are ties here.
    """
    capacity, demand = decimals(cluster.capacity), decimals(cluster.demand)
    weights = decimals(cluster.weight)
    power, pairs, use, worth = Decimal(alpha), [], [], []
    ln = cache(Decimal.ln)  # many are equal
    for n, needs in enumerate(demand):
        for i, whole in enumerate(capacity):
            if not cluster.eligible[n, i] or cluster.max_tasks[n] == 0 or any(whole[needs > 0] == 0):
                continue
            part = np.array([d / c if d > 0 else Decimal(0) for d, c in zip(needs, whole, strict=True)], dtype=object)
            log_share = ln(part.max() if share is None else share[n])
            pairs.append((n, i))
            use.append(part)
            worth.append(power * ln(weights[n]) + (1 - power) * log_share)
    index = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    return Conditions(
        power,
        share is None,
        cluster.shape,
        index[:, 0],
        index[:, 1],
        np.array(use, dtype=object).reshape(-1, cluster.shape[2]),
        np.array(worth, dtype=object),
        decimals(cluster.max_tasks),
    )


def refuted(of: Conditions, tasks: Decimals, log_prices: Decimals, within: Decimal) -> str | None:
    """Why tasks (pairs,) and log prices of whole capacities (servers, resources) are no proof; `None` if they are.

    A proof shows that all conditions hold to a relative `within`, and so exactly after changing the data by a few times
    that, once left out: tasks that make less than a part `within` of any user and of any row with a price; prices of
    rows that idle by more than it. Other prices count, however small: who is at its limit may pay next to nothing of
    what its tasks are worth.
    """
    total, use = of.tasks_of(tasks), of.used(tasks)
    if any(tasks < 0) or (use > 1 + within).any():
        return "not feasible"
    if any(t <= 0 or t > of.limit[n] * (1 + within) for n, t in zip(of.user, total[of.user], strict=True)):
        return "some user has no tasks, or more than its limit"
    least = (max(of.alpha, Decimal(1)) * within).exp()
    marginal = of.value / np.array([(of.alpha * t.ln()).exp() if t > 0 else Decimal(1) for t in total])[of.user]
    prices = np.full(use.shape, Decimal(0), dtype=object)
    for (i, r), price in np.ndenumerate(log_prices):
        if price > NOTHING and use[i, r] >= 1 - within:
            prices[i, r] = price.exp()
    dropped = np.full(len(tasks), False)
    dearness = (prices[of.server] * of.use).sum(axis=1) / marginal  # p_ni / m_ni
    for n in set(of.user.tolist()):
        own = np.flatnonzero(of.user == n)
        full = total[n] >= of.limit[n] * (1 - within)
        if not full and min(dearness[own]) < 1 / least:
            return f"user {n} would buy more"
        if of.game:
            dropped[own] = dearness[own] > least
        else:
            cheapest = min(dearness[own])
            dropped[own] = dearness[own] > cheapest * least
            if min(dearness[own]) > least:
                return f"user {n} pays too much"
    lost = np.where(dropped, tasks, Decimal(0))
    if any(lost_n > within * x_n for lost_n, x_n in zip(of.tasks_of(lost), total, strict=True)):
        return "tasks where they are too dear"
    if (of.used(lost)[prices > 0] > within).any():
        return "rows with a price filled by tasks that are too dear there"
    return None
