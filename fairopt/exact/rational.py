"""Max-min of a small cluster, the largest sum of shares and PS-DSF in rational arithmetic: no rounding.

Users who need 1e-13 of what blocks them, at numbers over eight decades, cannot be told from users who are free, nor be
proved to be blocked, by sums of doubles. Data are doubles and so rational: successive linear programs in integers
(`simplex`) give the exact optimum and the prices that prove it. Who uses it need not trust it: prices prove tasks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..model._arrays import Array, Mask
from ..model.cluster import Cluster
from ..model.criterion import Criterion
from .simplex import Dictionary, TooMuch

#: Arrays of `Fraction`.
Numbers = NDArray[np.object_]
#: Denominators that answers of small whole numbers have, at most, and how far doubles may be from such fractions.
_DENOMINATOR, _NEAR = 10_000, 1e-9


#: So many words of integers may be computed, a few seconds.
WORK = 2e7


def numbers(values: Array) -> Numbers:
    """Doubles as the rational numbers that they are."""
    return np.array([Fraction(value) for value in values.ravel().tolist()], dtype=object).reshape(values.shape)


def zeros(*shape: int) -> Numbers:
    """Fractions, all 0."""
    return np.full(shape, Fraction(0), dtype=object)


def may_run(cluster: Cluster, limits: Array) -> Mask:
    """(users, servers): where users run something within limits (users,)."""
    return np.asarray(cluster.usable & (limits > 0)[:, None])


def _placed(values: Mapping[int, Fraction], pairs: Sequence[tuple[int, int]], users: int, servers: int) -> Numbers:
    """Tasks, (users, servers), from variables of pairs by number; those that are not there are 0."""
    tasks = zeros(users, servers)
    for k, value in values.items():
        if k < len(pairs):
            tasks[pairs[k]] = value
    return tasks


def on_one(cluster: Cluster, criterion: Criterion, server: int) -> tuple[Cluster, Criterion]:
    """One server of those that share on their own."""
    alone = cluster.select(servers=[cluster.servers[server]])
    return alone, replace(criterion, share=criterion.share[:, server], scope="pool")


class Exact(NamedTuple):
    """An exact optimum, and what proves each level."""

    tasks: Numbers  # (users, servers)
    prices: Numbers  # (rounds, servers, resources), per unit
    limits: Numbers  # (rounds, users), per task of users at their limits


class _Row(NamedTuple):
    """`sum entries[column] y <= bound`, and what it is about: a server and a resource, or a user."""

    kind: str
    about: tuple[int, ...]
    entries: dict[int, Fraction]
    bound: Fraction


def tried(cluster: Cluster, limits: Array, part: float = 1.0) -> bool:
    """Is it worth trying with a part of `WORK`? No more than a first guess."""
    usable = may_run(cluster, limits)
    rows = cluster.capacity.size + np.count_nonzero(usable.any(axis=1)) + np.count_nonzero(np.isfinite(limits))
    guess = float(len(usable)) ** 3 if cluster.shape[1] == 1 else float(rows) ** 3 * np.count_nonzero(usable)
    # The cube of the rows by the columns may be four times too high.
    return bool(guess <= 4.0 * part * WORK)


def leximin(cluster: Cluster, criterion: Criterion, limits: Array, part: float = 1.0) -> Exact | None:
    """The optimum over the servers of a cluster, `None` where it would take more than a part of `WORK`.

    Nor is there one where there are floors, or for somebody who can run and whose share is infinite, as a file may say.
    The last ones are remembered, as a judge asks for what an engine has just found.
    """
    usable = may_run(cluster, limits)
    known = np.isfinite(criterion.share[usable.any(axis=1)]).all() and not criterion.floor.any()
    if not known or not tried(cluster, limits, part):
        return None
    if cluster.shape[1] == 1:
        return _filled(cluster, criterion, limits)
    data = (cluster.capacity, cluster.demand, usable, criterion.share, criterion.weight, limits)
    return _leximin(cluster.shape, tuple(np.asarray(values, dtype=float).tobytes() for values in data), part * WORK)


@lru_cache(maxsize=8)
def _leximin(shape: tuple[int, int, int], data: tuple[bytes, ...], work: float) -> Exact | None:
    """Every round raises the common level t of the users that are left, `phi_n t <= u_n sum_i x_ni`, to the largest
    that the others at their levels leave; whose row has a price is done.
    """
    users, servers, resources = shape
    capacity, demand, usable = (
        numbers(np.frombuffer(part)).reshape(-1, columns)
        for part, columns in zip(data[:3], (resources, resources, servers), strict=True)
    )
    pairs = [(int(n), int(i)) for n, i in np.argwhere(usable)]
    rows, level = list(_capacities(capacity, demand, pairs)), len(pairs)
    rows += _levels(pairs, *(np.frombuffer(part).tolist() for part in data[3:]))
    rising = [level + 1 + k for k, row in enumerate(rows) if row.kind == "level"]
    rounds: list[tuple[Numbers, Numbers]] = []
    try:
        program = Dictionary((row[2:] for row in rows), level + 1, work)
        while rising:
            program.maximise(level)
            price = program.prices()
            prices, of_limit = zeros(servers, resources), zeros(users)
            into = {"capacity": prices, "limit": of_limit}
            for at, row in enumerate(rows, level + 1):
                if at in price and row.kind in into:
                    into[row.kind][row.about] = price[at]
            rounds.append((prices, of_limit))
            done = next(slack for slack in rising if slack in price)
            rising = [slack for slack in rising if slack not in price]
            if rising:
                program.hold(level, done, rising)
    except TooMuch:
        return None
    proofs = [np.array([each[k] for each in rounds], dtype=object) for k in (0, 1)]
    tasks = _placed(program.values(), pairs, users, servers)
    found = Exact(tasks, proofs[0].reshape(-1, servers, resources), proofs[1].reshape(-1, users))
    for part in found:
        part.setflags(write=False)
    return found


def _levels(pairs: list[tuple[int, int]], share: list[float], weight: list[float], most: list[float]) -> Iterator[_Row]:
    """Of every user the limit, if it has one, and the level, whose column is behind those of the pairs."""
    for user in sorted({n for n, _ in pairs}):
        own = [k for k, (n, _) in enumerate(pairs) if n == user]
        if most[user] < math.inf:
            yield _Row("limit", (user,), dict.fromkeys(own, Fraction(1)), Fraction(most[user]))
        entries = dict.fromkeys(own, -Fraction(share[user]) / Fraction(weight[user]))
        yield _Row("level", (user,), entries | {len(pairs): Fraction(1)}, Fraction(0))


def _filled(cluster: Cluster, criterion: Criterion, limits: Array) -> Exact:
    """One server: all levels rise together until a limit is met or a resource is full, whose price is then a proof."""
    users, _, resources = cluster.shape
    demand, left = numbers(cluster.demand), numbers(cluster.capacity[0])
    rising = np.flatnonzero(cluster.usable[:, 0] & (limits > 0))
    rate, stop = zeros(users), np.full(users, np.inf, dtype=object)
    rate[rising] = numbers(criterion.weight[rising]) / numbers(criterion.share[rising])
    limited = rising[np.isfinite(limits[rising])]
    stop[limited] = numbers(limits[limited]) / rate[limited]
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


def _capacities(capacity: Numbers, demand: Numbers, pairs: list[tuple[int, int]]) -> Iterator[_Row]:
    """Those that somebody uses."""
    for (i, r), most in np.ndenumerate(capacity):
        used = {k: demand[n, r] for k, (n, j) in enumerate(pairs) if j == i and demand[n, r]}
        if used:
            yield _Row("capacity", (i, r), used, most)


def unique_optimum(cluster: Cluster, share: Mapping[int, Fraction], limits: Mapping[int, Fraction]) -> Numbers | None:
    """`x[n,i]` that maximise `sum_n share_n x_n`, (users, servers); `None` if others do too, or it takes too much.

    Parameters
    ----------
    share : of every user who can run, by number
    limits : of those who have one
    """
    runs = cluster.usable & np.array([limits.get(n, 1) > 0 for n in range(len(cluster.users))])[:, None]
    pairs = [(int(n), int(i)) for n, i in np.argwhere(runs)]
    if not pairs:
        return zeros(*runs.shape)
    total = len(pairs)  # the column of the sum
    rows = [row[2:] for row in _capacities(numbers(cluster.capacity), numbers(cluster.demand), pairs)]
    for n, limit in limits.items():
        rows.append(({k: Fraction(1) for k, (m, _) in enumerate(pairs) if m == n}, limit))
    gain = {k: -share[n] for k, (n, _) in enumerate(pairs)}
    rows.append((gain | {total: Fraction(1)}, Fraction(0)))
    # So many words of integers may be computed, about a second.
    program = Dictionary((row for row in rows if row[0]), total + 1, 1e7)
    try:
        program.maximise(total)
        values = program.values()
        if not program.unique():
            return None
    except TooMuch:
        return None
    return _placed(values, pairs, *runs.shape)


def nearest_psdsf(cluster: Cluster, tasks: Array) -> Numbers | None:
    """`x[n,i]` as fractions with small denominators, if these are PS-DSF exactly; `None` if not."""
    found = np.array([Fraction(value).limit_denominator(_DENOMINATOR) for value in tasks.ravel()], dtype=object)
    found = found.reshape(tasks.shape)
    if (np.abs(found.astype(float) - tasks) > _NEAR * (1 + np.abs(tasks))).any():
        return None
    return found if is_psdsf(cluster, found) else None


def is_psdsf(cluster: Cluster, tasks: Numbers) -> bool:
    """Are tasks PS-DSF? In fractions, by its definition.

    They are feasible, and for every usable (n, i), unless n has all its tasks, a resource r that n demands is used up
    on i such that `s[n,i] / phi_n >= s[m,i] / phi_m` for every m with `x[m,i] d[m,r] > 0`.

    Source: Khamse-Ashari et al., ICC 2017, definition 4; `s[n,i] = x_n / gamma[n,i]`.
    """
    demand, capacity, weight = (numbers(values) for values in (cluster.demand, cluster.capacity, cluster.weight))
    total, usable = tasks.sum(axis=1), cluster.usable
    if (tasks < 0).any() or (tasks[~usable] != 0).any() or (total > cluster.max_tasks).any():
        return False
    idle = capacity - np.array([[(tasks[:, i] * d).sum() for d in demand.T] for i in range(tasks.shape[1])])
    if (idle < 0).any():
        return False
    users, servers, resources = cluster.shape

    def level(n: int, i: int) -> Fraction:
        alone = min(capacity[i, r] / demand[n, r] for r in range(resources) if demand[n, r] > 0)
        return Fraction(total[n] / alone / weight[n])

    def blocks(n: int, i: int, r: int) -> bool:
        others = [m for m in range(users) if tasks[m, i] * demand[m, r] > 0]
        return idle[i, r] == 0 and demand[n, r] > 0 and all(level(n, i) >= level(m, i) for m in others)

    return all(
        any(blocks(n, i, r) for r in range(resources))
        for n in range(users)
        for i in range(servers)
        if usable[n, i] and total[n] < cluster.max_tasks[n]
    )
