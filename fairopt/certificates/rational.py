"""Max-min, the largest sum of shares, and PS-DSF of small clusters in exact rational arithmetic.

In floating point, a user that demands 1e-13 of a bottleneck cannot be distinguished from a user that does not need it.
Data are floating-point numbers and hence rational: successive linear programs in integers give the exact optimum, and
prices that prove it, so that the result can be verified independently.

In a dictionary of the simplex method, `den x_B + T x_N = b`, all entries are subdeterminants of the initial integers,
so that every division of a pivot is exact and no fractions need to be reduced (Edmonds 1967, Bareiss 1968).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..model._arrays import Array, Mask
from ..model.cluster import Cluster
from ..model.criterion import Criterion

Row = list[int]


class TooMuch(Exception):
    """Exception for a computation that exceeds the limit of work."""


class Dictionary:
    """Simplex dictionary of `rows y <= bounds, y >= 0` with bounds >= 0, initially at the vertex y = 0.

    A row is a mapping from columns to nonzero entries, and a bound, all fractions; every row is scaled to integers.
    The indices of variables are the columns, followed by a slack for each row. `work` limits the total number of
    machine words that are computed; a pivot beyond this limit raises `TooMuch`.
    """

    def __init__(self, rows: Iterable[tuple[Mapping[int, Fraction], Fraction]], width: int, work: float) -> None:
        self.table: list[Row] = []  # the last entry of a row is its bound
        self.scale: dict[int, int] = {}  # scale of each slack's row
        for slack, (entries, bound) in enumerate(rows, width):
            scale = math.lcm(bound.denominator, *(value.denominator for value in entries.values()))
            self.table.append([int(value * scale) for value in (*(entries.get(k, 0) for k in range(width)), bound)])
            self.scale[slack] = scale
        self.den, self.unit, self.work = 1, 1, work  # bounds are numerators over `den * unit`
        self.free, self.basic = list(range(width)), list(self.scale)
        self.goal: Row = [0] * (width + 1)

    def maximise(self, *variables: int) -> None:
        """Maximise the sum of nonbasic variables by Dantzig's pivot rule, and Bland's rule after degenerate steps."""
        self.goal = [0] * len(self.goal)
        for variable in variables:
            self.goal[self.free.index(variable)] = -self.den
        still = 0
        while True:
            enter = [j for j, price in enumerate(self.goal[:-1]) if price < 0]
            if not enter:
                return
            if still > len(self.goal):
                j = min(enter, key=lambda j: self.free[j])
            else:
                j = min(enter, key=lambda j: self.goal[j])
            i = self._leaving(j)
            still = still + 1 if self.table[i][-1] == 0 else 0
            self.pivot(i, j)

    def _leaving(self, j: int) -> int:
        """Row that limits the increase of a column's variable; among ties, the row of the smallest basic variable.

        Raises `ValueError` if no row does.
        """
        best = -1
        for i, row in enumerate(self.table):
            if row[j] > 0:
                now = self.table[best]
                longer = row[-1] * now[j] - now[-1] * row[j] if best >= 0 else -1
                if longer < 0 or (longer == 0 and self.basic[i] < self.basic[best]):
                    best = i
        if best < 0:
            raise ValueError("the linear program is unbounded")
        return best

    def values(self) -> dict[int, Fraction]:
        """Values of basic variables; all other variables are zero."""
        whole = self.den * self.unit
        return {name: Fraction(row[-1], whole) for name, row in zip(self.basic, self.table, strict=True)}

    def prices(self) -> dict[int, Fraction]:
        """Nonzero reduced costs of nonbasic variables; reduced costs of slacks are the prices of rows."""
        each = zip(self.free, self.goal[:-1], strict=True)
        return {name: Fraction(price * self.scale.get(name, 1), self.den) for name, price in each if price}

    def unique(self) -> bool:
        """True if this vertex is the unique optimal solution.

        Variables with positive reduced costs are zero at all optimal solutions, and are removed permanently. The vertex
        is unique if the largest sum of the remaining nonbasic variables is zero.
        """
        priced = self.prices()
        kept = [j for j, name in enumerate(self.free) if name not in priced]
        self.free = [self.free[j] for j in kept]
        self.table = [[*(row[j] for j in kept), row[-1]] for row in self.table]
        self.goal = [0] * (len(kept) + 1)
        self.maximise(*self.free)
        return self.goal[-1] == 0

    def hold(self, variable: int, slack: int, rows: Sequence[int]) -> None:
        """Fix the maximised variable at its value, and replace it by a new variable with coefficient 1 in `rows`.

        The variable `slack`, which has a positive price, enters the basis.
        """
        value = self.values()[variable]
        j = self.free.index(slack)
        self.pivot(self.basic.index(variable), j)
        part, whole = (value * self.unit).as_integer_ratio()
        self.unit *= whole
        nonbasic = [(k, self.scale[name]) for k, name in enumerate(self.free) if name in rows]
        for i, row in enumerate(self.table):
            row[-1] = row[-1] * whole - row[j] * part
            own = self.scale[self.basic[i]] * self.den if self.basic[i] in rows else 0
            row[j] = sum(by * row[k] for k, by in nonbasic) + own

    def pivot(self, i: int, j: int) -> None:
        """Pivot: exchange the variables of row i and column j, whose entry is positive; `TooMuch` beyond `work`."""
        own, den = self.table[i], self.den
        at = own[j]
        self.work -= len(own) * len(self.table) * (1 + at.bit_length() // 64)
        if self.work < 0:
            raise TooMuch

        def less(row: Row) -> Row:
            by = row[j]
            if by == 0:
                return [at * a // den for a in row] if at != den else row
            row = [(at * a - by * b) // den for a, b in zip(row, own, strict=True)]
            row[j] = -by
            return row

        self.table = [row if k == i else less(row) for k, row in enumerate(self.table)]
        self.goal = less(self.goal)
        own[j] = den
        self.den = at
        self.basic[i], self.free[j] = self.free[j], self.basic[i]


#: Arrays of `Fraction`.
Numbers = NDArray[np.object_]
#: Rational tasks are reconstructed from floating point with denominators up to `_DENOMINATOR`, if the relative
#: difference is at most `_NEAR`.
_DENOMINATOR, _NEAR = 10_000, 1e-9


#: Limit on the number of machine words that are computed, which corresponds to a few seconds.
WORK = 2e7


def numbers(values: Array | Mask) -> Numbers:
    """Exact fractions of floating-point numbers; infinite numbers are kept as floats."""
    plain = [value if math.isinf(value) else Fraction(value) for value in values.ravel().tolist()]
    return np.array(plain, dtype=object).reshape(values.shape)


def zeros(*shape: int) -> Numbers:
    """Array of zero fractions."""
    return np.full(shape, Fraction(0), dtype=object)


def may_run(cluster: Cluster, limits: Array | Numbers) -> Mask:
    """Mask (users, servers) of pairs that can have tasks within limits (users,)."""
    return np.asarray(cluster.usable & (limits > 0)[:, None])


def on_one(cluster: Cluster, criterion: Criterion, server: int) -> tuple[Cluster, Criterion]:
    """Cluster and criterion of a single server in the scope `per_server`."""
    alone = cluster.select(servers=[cluster.servers[server]])
    return alone, replace(criterion, share=criterion.share[:, server], scope="pool")


class Exact(NamedTuple):
    """Exact optimum, and the duals of each round."""

    tasks: Numbers  # (users, servers)
    prices: Numbers  # (rounds, servers, resources), per unit
    limits: Numbers  # (rounds, users), duals of task limits


def tried(cluster: Cluster, limits: Array, part: float = 1.0) -> bool:
    """Estimate whether exact arithmetic is possible within a fraction `part` of `WORK`; False if there are rates."""
    if cluster.rated:
        return False
    usable = may_run(cluster, limits)
    rows = cluster.capacity.size + np.count_nonzero(usable.any(axis=1)) + np.count_nonzero(np.isfinite(limits))
    guess = float(len(usable)) ** 3 if cluster.shape[1] == 1 else float(rows) ** 3 * np.count_nonzero(usable)
    # The cube of the number of rows times the number of columns overestimates the work by a factor of up to four.
    return bool(guess <= 4.0 * part * WORK)


def leximin(cluster: Cluster, criterion: Criterion, limits: Array, part: float = 1.0) -> Exact | None:
    """Exact max-min optimum over the servers of a cluster; None if it exceeds a fraction `part` of `WORK`.

    Also None with floors or rates, or if a quotient of weight and share is beyond the range of floating point.
    """
    usable = may_run(cluster, limits)
    runs = np.asarray(usable.any(axis=1))
    with np.errstate(over="ignore"):
        plain = criterion.weight[runs] / criterion.share[runs]
    if not ((plain > 1e-290) & (plain < 1e290)).all() or criterion.floor.any() or not tried(cluster, limits, part):
        return None
    rate = zeros(len(runs))
    rate[runs] = numbers(criterion.weight[runs]) / numbers(criterion.share[runs])
    return optimum(numbers(cluster.capacity), numbers(cluster.demand), usable, rate, numbers(limits), part)


def optimum(
    capacity: Numbers, demand: Numbers, usable: Mask, rate: Numbers, limits: Numbers, part: float = 1.0
) -> Exact | None:
    r"""Exact lexicographic max-min of :math:`x_n / \text{rate}_n`; None if it exceeds a fraction `part` of `WORK`.

    `usable` is the mask of (user, server) pairs, and `limits`, (users,), may be infinite. Results for several servers
    are cached, since the certificate requires the optimum that an engine has just computed.
    """
    if len(capacity) == 1:
        return _filled(capacity[0], demand, usable[:, 0], rate, limits)
    tables = (tuple(map(tuple, table)) for table in (capacity, demand, np.argwhere(usable).tolist()))
    return _raised(*tables, tuple(rate), tuple(limits), part * WORK)


#: Indices (user, server) of each variable.
Pairs = Sequence[Sequence[int]]
#: Constraints `sum entries[column] y <= bound`. A key is a kind, and the (server, resource) or user of the constraint.
Rows = dict[tuple[str, Any], tuple[dict[int, Fraction], Fraction]]


@lru_cache(maxsize=8)
def _raised(
    capacity: Sequence[Sequence[Fraction]], demand: Sequence[Sequence[Fraction]], pairs: Pairs,
    rate: Sequence[Fraction], limits: Sequence[Any], work: float,
) -> Exact | None:  # fmt: skip
    """Lexicographic max-min by rounds, each of which maximises the common level t of free users.

    The level is constrained by `rate_n t <= sum_i x_ni` for free users n. Users whose constraint has a positive price
    are fixed at the round's level. The result is None if the computation exceeds `work`.
    """
    rows, level, users = _limits(capacity, demand, pairs, limits), len(pairs), len(demand)
    for n, own in _columns(pairs).items():
        rows["level", n] = dict.fromkeys(own, -1 / rate[n]) | {level: Fraction(1)}, Fraction(0)
    slacks = dict(enumerate(rows, level + 1))
    rising = [slack for slack, (kind, _) in slacks.items() if kind == "level"]
    rounds: list[dict[str, Numbers]] = []
    try:
        program = Dictionary(rows.values(), level + 1, work)
        while rising:
            program.maximise(level)
            price = program.prices()
            into = {"capacity": zeros(len(capacity), len(capacity[0])), "limit": zeros(users), "level": zeros(users)}
            for slack, (kind, about) in slacks.items():
                into[kind][about] = price.get(slack, Fraction(0))
            rounds.append(into)
            done = next(slack for slack in rising if slack in price)
            rising = [slack for slack in rising if slack not in price]
            if rising:
                program.hold(level, done, rising)
    except TooMuch:
        return None
    prices, of_limit = (np.array([each[kind] for each in rounds], dtype=object) for kind in ("capacity", "limit"))
    tasks = _placed(program.values(), pairs, users, len(capacity))
    return Exact(tasks, prices.reshape(-1, len(capacity), len(capacity[0])), of_limit.reshape(-1, users))


def _placed(values: Mapping[int, Fraction], pairs: Pairs, users: int, servers: int) -> Numbers:
    """Tasks (users, servers) from the values of basic variables."""
    tasks = zeros(users, servers)
    for k, place in enumerate(pairs):
        tasks[tuple(place)] = values.get(k, Fraction(0))
    return tasks


def _columns(pairs: Pairs) -> dict[int, list[int]]:
    """Indices of pairs by user."""
    columns: dict[int, list[int]] = {}
    for k, (n, _) in enumerate(pairs):
        columns.setdefault(n, []).append(k)
    return columns


def _filled(capacity: Numbers, demand: Numbers, usable: Mask, rate: Numbers, limits: Numbers) -> Exact:
    """Progressive filling of one server: levels increase until a limit is active or a resource is exhausted."""
    left, rising = capacity, np.flatnonzero(usable)
    users, resources = demand.shape
    stop = zeros(users)
    stop[rising] = limits[rising] / rate[rising]
    tasks, full = zeros(users, 1), []
    while len(rising):
        requested = rate[rising] @ demand[rising]
        meets = {r: left[r] / requested[r] for r in range(resources) if requested[r]}
        level = min([*meets.values(), *stop[rising]])
        done = stop[rising] == level
        if not done.any():
            full.append(min(meets, key=meets.__getitem__))
            done = demand[rising, full[-1]] > 0
        tasks[rising[done], 0] = level * rate[rising[done]]
        left = left - tasks[rising[done], 0] @ demand[rising[done]]
        rising = rising[~done]
    prices = zeros(len(full), 1, resources)
    prices[range(len(full)), 0, full] = Fraction(1)
    return Exact(tasks, prices, zeros(len(full), users))


def _limits(
    capacity: Sequence[Sequence[Fraction]], demand: Sequence[Sequence[Fraction]], pairs: Pairs, limits: Sequence[Any]
) -> Rows:
    """Constraints by capacities that users can use, and by finite task limits."""
    rows: Rows = {}
    for i, most in enumerate(capacity):
        for r, bound in enumerate(most):
            used = {k: demand[n][r] for k, (n, j) in enumerate(pairs) if j == i and demand[n][r]}
            if used:
                rows["capacity", (i, r)] = used, bound
    for n, own in _columns(pairs).items():
        if limits[n] < math.inf:
            rows["limit", n] = dict.fromkeys(own, Fraction(1)), limits[n]
    return rows


def unique_optimum(cluster: Cluster, share: Numbers, limits: Numbers) -> Numbers | None:
    """Unique maximiser (users, servers) of `sum_n share_n x_n`; None if it is not unique or exceeds the limit of work.

    `share` and `limits` are (users,).
    """
    users, servers, _ = cluster.shape
    pairs = np.argwhere(may_run(cluster, limits)).tolist()
    if not pairs:
        return zeros(users, servers)
    total = len(pairs)  # column of the sum of shares
    rows = _limits(numbers(cluster.capacity).tolist(), numbers(cluster.demand).tolist(), pairs, limits.tolist())
    rows["gain", 0] = {k: -share[n] for k, (n, _) in enumerate(pairs)} | {total: Fraction(1)}, Fraction(0)
    # The limit of work corresponds to about a second.
    program = Dictionary(rows.values(), total + 1, 1e7)
    try:
        program.maximise(total)
        values = program.values()
        return _placed(values, pairs, users, servers) if program.unique() else None
    except TooMuch:
        return None


def nearest_psdsf(cluster: Cluster, tasks: Array) -> Numbers | None:
    """Round tasks (users, servers) to fractions with small denominators.

    The result is None if rounding changes tasks by more than `_NEAR`, or if the result is not exactly PS-DSF.
    """
    found = np.array([Fraction(value).limit_denominator(_DENOMINATOR) for value in tasks.ravel()], dtype=object)
    found = found.reshape(tasks.shape)
    if (np.abs(found.astype(float) - tasks) > _NEAR * (1 + np.abs(tasks))).any():
        return None
    return found if is_psdsf(cluster, found) else None


def is_psdsf(cluster: Cluster, tasks: Numbers) -> bool:
    r"""True if tasks (users, servers) satisfy the definition of PS-DSF, in exact arithmetic.

    The tasks must be feasible. For every usable pair (n, i), unless user n is at its task limit, some resource r that n
    demands must be exhausted on server i such that :math:`\sigma_{ni} / \phi_n \ge \sigma_{mi} / \phi_m` for every m
    with :math:`x_{mi} d_{mr} > 0`, where :math:`\sigma_{ni} = x_n / \gamma_{ni}`.

    Source: Khamse-Ashari et al., ICC 2017, definition 4 (arXiv:1611.00404).
    """
    demand, capacity, weight = (numbers(values) for values in (cluster.demand, cluster.capacity, cluster.weight))
    total, idle, needs = tasks.sum(axis=1), capacity - tasks.T @ demand, cluster.demand > 0
    if (
        (tasks < 0).any()
        or (tasks[~cluster.usable] != 0).any()
        or (total > cluster.max_tasks).any()
        or (idle < 0).any()
    ):
        return False
    level = zeros(*tasks.shape)  # virtual dominant shares over weights
    for n, i in np.argwhere(cluster.usable):
        level[n, i] = total[n] / (capacity[i, needs[n]] / demand[n, needs[n]]).min() / weight[n]
    for n, i in np.argwhere(cluster.usable & (total < cluster.max_tasks)[:, None]):
        above = (tasks[:, i] > 0) & (level[:, i] > level[n, i])
        if not (needs[n] & (idle[i] == 0) & ~needs[above].any(axis=0)).any():
            return False
    return True
