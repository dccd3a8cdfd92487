r"""Equations of the per-server game in level form, on the arrays of a polytope.

At level prices v the level of user n on server i, the number of tasks at which cost and marginal utility are equal, is

.. math:: l_{ni} = \phi_n \gamma_{ni} \Big(\sum_r D_{nir} v_{ir}^\alpha\Big)^{-1/\alpha},

and x is an equilibrium if :math:`X_n = \max_i l_{ni}`, attained wherever n has tasks, and priced rows are exhausted.
Tasks are in units of the user's largest gamma, and capacities are one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import cached_property, wraps
from typing import ParamSpec, TypeVar

import numpy as np

from ...base.loops import compiled
from ...model._arrays import Array, Index
from ...model.criterion import Criterion
from ...model.polytope import Polytope
from ..algebra import Pairs
from ..factors import LOG_NOTHING, UNDERFLOW
from ..solution import Run, Solution
from ..state import LARGEST_POWER

P = ParamSpec("P")
T = TypeVar("T")


def suppress_fp_warnings(generator: Callable[P, Iterator[T]]) -> Callable[P, Iterator[T]]:
    """Decorate a generator to suppress floating-point warnings in its own steps, but not in its caller's."""

    @wraps(generator)
    def stepped(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        items = generator(*args, **kwargs)
        while True:
            with np.errstate(all="ignore"):
                try:
                    item = next(items)
                except StopIteration:
                    return
            yield item

    return stepped


@compiled
def costs(server, use, log_gain, price, a, share, whole, level):  # type: ignore[no-untyped-def]
    r"""Fill in the costs of pairs in level form, each in a unit of its own that avoids overflow.

    With the log :math:`b_{ni}` of the unit, the terms `share` (pairs, resources), their sums `whole` (pairs,) and the
    log levels of tasks at a cost of one unit, `level` (pairs,), are

    .. math::
        D_{nir} v_{ir}^a / e^{b_{ni}}, \qquad \sum_r D_{nir} v_{ir}^a / e^{b_{ni}}, \qquad
        \log(\phi_n \gamma_{ni}) - b_{ni} / a

    The unit is :math:`v^a` of the server's highest price, or, where sums would underflow, the largest term of the pair.
    `price` (servers, resources) is log v.
    """
    servers, size = price.shape
    top, scaled = np.full(servers, -np.inf), np.empty((servers, size))
    for i in range(servers):
        for r in range(size):
            top[i] = max(top[i], a * price[i, r])
        for r in range(size):
            scaled[i, r] = np.exp(a * price[i, r] - top[i])
    for k in range(len(server)):
        i, above, total = server[k], top[server[k]], 0.0
        for r in range(size):
            share[k, r] = use[k, r] * scaled[i, r]
            total += share[k, r]
        if not total > UNDERFLOW:
            above, total = -np.inf, 0.0
            for r in range(size):
                if use[k, r] > 0:
                    above = max(above, np.log(use[k, r]) + a * price[i, r])
            for r in range(size):
                share[k, r] = np.exp(np.log(use[k, r]) + a * price[i, r] - above) if use[k, r] > 0 else 0.0
                total += share[k, r]
        whole[k] = total
        level[k] = log_gain[k] - above / a


@compiled
def exploitability(start, server, level, share, whole, tasks, limit, power, row, used):  # type: ignore[no-untyped-def]
    """Largest relative error of an equilibrium: tasks on servers of lower level, idle priced capacity, or overuse.

    `level` (pairs,) holds log levels, and `share / whole` (pairs, resources) the share of each resource in the cost of
    a task. Where the level l of a pair exceeds the user's tasks X, as at a task limit, its shares are multiplied by
    (X / l)^`power`. The result is infinite if the tasks of a user are not finite.
    """
    worst, parts = 0.0, np.zeros(row.shape)
    for n in range(len(start) - 1):
        total = 0.0
        for k in range(start[n], start[n + 1]):
            total += tasks[k]
        if not np.isfinite(total):
            return np.inf
        log_total = np.log(total)
        for k in range(start[n], start[n + 1]):
            above = log_total - level[k]
            worst = max(worst, min(-above, limit[n] / total - 1) if above < 0 else tasks[k] / total * above)
            part = (1.0 if above >= 0 else np.exp(power * above)) / whole[k]
            for r in range(row.shape[1]):
                parts[server[k], r] = max(parts[server[k], r], share[k, r] * part)
    for i in range(row.shape[0]):
        for r in range(row.shape[1]):
            if row[i, r]:
                worst = max(worst, (1 - used[i, r]) * parts[i, r], used[i, r] - 1)
    return worst


#: Smoothing parameter of the starting tasks (`_SMOOTHING`), and number of bisections for their levels (`_BISECTIONS`).
_SMOOTHING, _BISECTIONS = 0.3, 12


class EquilibriumSystem:
    """Equations of the game on one polytope, for one alpha in (0, infinity)."""

    def __init__(self, polytope: Polytope, weight: Array, alpha: float) -> None:
        self.polytope, self.alpha = polytope, alpha
        self.start: Index = polytope.start
        self.user, self.server = (
            polytope.pair_user,
            np.ascontiguousarray(polytope.pair_server),
        )  # every array of servers is contiguous, so that loops are compiled once
        self.use = polytope.pair_use
        self.largest = np.maximum.reduceat(polytope.gamma, self.start[:-1])
        self.gamma = polytope.gamma / self.largest[polytope.pair_user]
        self.log_gain = np.log(weight[polytope.pair_user]) + np.log(self.gamma)
        self.weight = weight
        self.limit = polytope.limit / self.largest
        self.limited: Index = np.flatnonzero(np.isfinite(self.limit))
        servers, resources = polytope.cluster.capacity.shape
        self.row = np.zeros((servers, resources), dtype=bool)
        self.row[polytope.row_server, polytope.row_resource] = True
        self.per_task, self.inverse = self.pairs.takes, self.pairs.inverse

    @cached_property
    def pairs(self) -> Pairs:
        """Pairs in the format of `core.algebra`."""
        cluster = self.polytope.cluster
        demand = cluster.demand[self.polytope.users] * self.largest[:, None]
        inverse = 1 / np.where(cluster.capacity > 0, cluster.capacity, np.inf)
        return Pairs(self.user, self.server, demand, inverse, per=self.polytope.per_work)

    @classmethod
    def of(cls, polytope: Polytope, criterion: Criterion) -> EquilibriumSystem:
        r"""Equations of the game, or of the KKT conditions of a welfare program, by the scope of a criterion.

        With shares u per task, optima of welfare are the equilibria of the game with
        :math:`(\phi_n^\alpha u_n^{1-\alpha} \gamma_{ni})^{1/\alpha}` in place of :math:`\phi_n \gamma_{ni}`.
        """
        found = cls(polytope, criterion.weight[polytope.users], criterion.alpha)
        if criterion.scope != "game":
            marginal = criterion.log_marginal(np.ones(len(criterion.weight)))[polytope.users]
            gain = (marginal[polytope.pair_user] + np.log(polytope.gamma)) / criterion.alpha
            found.log_gain = gain - np.log(found.largest)[polytope.pair_user]
        return found

    def at(self, alpha: float) -> EquilibriumSystem:
        """Copy of the game with another alpha; the arrays, which do not depend on alpha in a game, are shared."""
        other = copy(self)
        other.alpha = alpha
        return other

    def restricted(self, pairs: Index, users: Index | None = None, capacity: float = 1.0) -> EquilibriumSystem:
        """Copy restricted to some pairs, and to `users` if given, with all capacities multiplied by `capacity`."""
        other, whole = copy(self), self.pairs
        owner, demand = self.user[pairs], whole.demand
        if users is not None:
            owner, demand = np.searchsorted(users, owner), demand[users]
            other.largest, other.weight, other.limit = self.largest[users], self.weight[users], self.limit[users]
            other.limited = np.flatnonzero(np.isfinite(other.limit))
        other.user, other.server = owner, self.server[pairs]
        other.start = np.searchsorted(owner, np.arange(len(demand) + 1))
        other.gamma, other.log_gain = self.gamma[pairs], self.log_gain[pairs]
        other.use, other.per_task = self.use[pairs], self.per_task[pairs] / capacity
        other.inverse = self.inverse / capacity
        per = None if whole.per is None else whole.per[pairs]
        other.pairs = Pairs(other.user, other.server, demand, other.inverse, per=per)
        return other

    @property
    def positive(self) -> bool:
        """True if every user of a server demands all of its resources."""
        return bool(((self.use > 0) | ~self.row[self.server]).all())

    # -- parts of the equations ------------------------------------------------------------------

    def sums(self, of_pairs: Array) -> Array:
        """Sum over each user's pairs, (users,)."""
        return np.asarray(np.add.reduceat(of_pairs, self.start[:-1]))

    def used(self, tasks: Array) -> Array:
        """Utilization (servers, resources) by tasks (pairs,)."""
        return self.pairs.use(tasks)

    @property
    def power(self) -> float:
        """Exponent k of level prices in slacks, which are differences of v^k."""
        return min(self.alpha, LARGEST_POWER)

    def levels(self, log_price: Array, a: float) -> tuple[Array, Array, Array]:
        """Log levels (pairs,) with exponent a, and scaled terms (pairs, resources) and sums (pairs,) of costs."""
        level, share, whole = np.empty(len(self.gamma)), np.empty(self.use.shape), np.empty(len(self.gamma))
        price = np.where(self.row, log_price, 0.0)
        costs(self.server, self.use, self.log_gain, price, a, share, whole, level)
        return level - np.log(whole) / a, share, whole

    def begin(self, part: float = _SMOOTHING) -> Array:
        """Starting tasks (pairs,): a smoothed choice at equal prices, which uses about half of all capacity.

        `part` is the smoothing parameter: the larger, the more evenly a user's tasks are spread over servers.
        """
        users, k = self.user, self.power
        level = self.log_gain - np.log(self.use.sum(axis=1)) / k  # log level of a pair at equal prices
        best = np.maximum.reduceat(level, self.start[:-1])
        lower, upper = best + np.log1p(k * part) / k, best + np.log1p(k * part * np.diff(self.start)) / k
        for _ in range(_BISECTIONS):
            middle = (lower + upper) / 2
            total = np.add.reduceat(k * part / np.expm1(k * (middle[users] - level)), self.start[:-1])
            lower, upper = np.where(total > 1, middle, lower), np.where(total > 1, upper, middle)
        weight = 1 / np.expm1(np.minimum(k * (upper[users] - level), LOG_NOTHING))
        weight /= self.sums(weight)[users]
        tasks = weight * np.exp(upper - upper.max())[users]  # normalized, since levels may overflow at small alpha
        tasks = tasks * (0.5 / self.used(tasks)[self.row].mean())
        return np.asarray(tasks * np.minimum(1.0, 0.5 * self.limit / self.sums(tasks))[users])

    def exploitability(self, tasks: Array, log_price: Array) -> float:
        """Exploitability at tasks (pairs,) and log level prices (servers, resources), as in the certificate."""
        of_pairs = self.start, self.server, *self.levels(log_price, self.alpha), tasks
        return float(exploitability(*of_pairs, self.limit, self.power, self.row, self.used(tasks)))


def solution(
    method: EquilibriumSystem, tasks: Array, log_price: Array | None, by: str, steps: int, seconds: float, tol: float
) -> Solution:
    """Candidate from tasks (pairs,), in units of the user's largest gamma, and log level prices (servers, resources).

    Tasks are scaled down to capacities. The candidate counts as converged if its exploitability is at most `tol`;
    without prices, as at alpha = infinity, its exploitability is not computed here.

    Parameters
    ----------
    by : name of the method
    steps, seconds : number of its iterations, and CPU time
    """
    polytope = method.polytope
    found, log, status = polytope.allocation(polytope.inside(tasks / method.gamma)), None, "not measured"
    if log_price is not None:
        log = log_unit_prices(method, log_price)
        status = "converged" if method.exploitability(tasks, log_price) <= tol else "not converged"
    run = Run(by, seconds)
    return Solution(found, None, "equilibrium", (run,), 0.0, steps, status, log=log, rough=log is not None)


def log_unit_prices(method: EquilibriumSystem, log_price: Array) -> Array:
    r"""Log prices per resource unit (servers, resources) from level prices, :math:`\alpha \log v - \log c`.

    They are -inf for rows that no pair uses.
    """
    capacity = method.polytope.cluster.capacity
    return np.where(method.row, method.alpha * log_price - np.log(np.where(method.row, capacity, 1.0)), -np.inf)
