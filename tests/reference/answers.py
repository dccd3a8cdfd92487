"""The exact answer of a global program or of the game near a given one, proved in eighty digits or not given.

Who uses it need not trust the search: `refuted` checks what it returns against the conditions.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal

import numpy as np
from engines.exact import maximise
from numpy.typing import NDArray

from fairopt.model.cluster import Cluster

from .active import Root, refined
from .conditions import Conditions, Decimals, conditions, decimals, many_digits, refuted, without_small
from .descent import descend
from .starts import starts

Array = NDArray[np.float64]
Kind = Literal["global", "game"]

#: To how much relative all conditions hold, and how much the next Newton step may still change anybody's tasks.
WITHIN = Decimal("1e-16")


@dataclass(frozen=True)
class Reference:
    """A proved answer, and by how much a last Newton step to mu = 0 would change anybody's tasks, relative."""

    tasks: Array  # (users, servers), rounded
    user_tasks: Array  # (users,), rounded
    log_prices: Array  # (servers, resources), of whole capacities, -inf for none; on the scale of the marginals
    step: float


def dominant_shares(cluster: Cluster) -> Decimals:
    """`u_n = max_r d_nr / sum_i c_ir`, (users,), not rounded to doubles; 1 for who needs what nobody has."""
    with many_digits():
        pool = decimals(cluster.capacity).sum(axis=0)
        need = decimals(cluster.demand)
        shares = [max((d / c for d, c in zip(row, pool, strict=True) if d > 0 and c > 0), default=1) for row in need]
        return np.array([Decimal(share) for share in shares], dtype=object)


def reference(
    cluster: Cluster,
    alpha: float,
    kind: Kind,
    share: Decimals | None = None,
    near: Array | None = None,
    log_prices: Array | None = None,
    seconds: float = math.inf,
) -> Reference | None:
    """The exact answer for 0 < alpha < infinity, `None` where none was found or proved.

    `global`: tasks are those of the program with shares per task u_n (default: dominant shares), which are unique by
    user. `game`: an equilibrium, reached from `near` (users, servers) as closely as it gets; others may exist.
    `log_prices` (servers, resources), of whole capacities, come with `near`. It gives up after about so many `seconds`.
    """
    end = time.perf_counter() + seconds
    with many_digits():
        u = dominant_shares(cluster) if share is None else np.array([Decimal(s) for s in share], dtype=object)
        of = conditions(cluster, alpha, None if kind == "game" else u)
        if not len(of.user):
            nothing = np.zeros(cluster.shape[:2])
            return Reference(nothing, nothing.sum(axis=1), np.full(cluster.capacity.shape, -np.inf), 0.0)
        best, least = None, np.inf
        # With limits equilibria of the game are no points: a server need not know what another leaves of a limit.
        alone = not any(limit < Decimal("Infinity") for limit in of.limit)
        for system, start, manner in starts(of, near, log_prices):
            with np.errstate(all="ignore"):
                rough = start if manner is None else descend(system, start, manner, end)
            found = None if rough is None else _answer(of, refined(system, rough))
            if found is None:
                continue
            if near is None or kind == "global":
                return found
            with np.errstate(divide="ignore", invalid="ignore"):
                away = np.nanmax(abs(np.log(found.user_tasks) - np.log(near.sum(axis=1))))
            if away < least:
                best, least = found, away
            if least < (1e-3 if alone else 1e-8) or time.perf_counter() > end:
                break
        return best


def _answer(of: Conditions, root: Root | None) -> Reference | None:
    if root is None or root.step > WITHIN:
        return None
    prices = root.log_prices
    if refuted(of, root.tasks, prices, WITHIN) is not None:
        prices = without_small(of, root.tasks, prices, WITHIN)
        if refuted(of, root.tasks, prices, WITHIN) is not None:
            return None
    table = np.zeros(of.shape[:2])
    table[of.user, of.server] = root.tasks.astype(float)
    user_tasks = of.tasks_of(root.tasks).astype(float)
    return Reference(table, user_tasks, prices.astype(float), float(root.step))


def best_welfare(cluster: Cluster, kind: Kind, share: Decimals | None = None) -> Fraction | list[Fraction]:
    """alpha = 0, where tasks need not be unique: the largest `sum_n u_n x_n` in fractions.

    `game`: of every server alone, the largest `sum_n x_ni / gamma_ni`; without task limits only, which couple servers.
    """
    capacity = [[Fraction(value) for value in row] for row in cluster.capacity.tolist()]
    demand = [[Fraction(value) for value in row] for row in cluster.demand.tolist()]
    limit = cluster.max_tasks.tolist()
    pairs = [
        (n, i)
        for n, needs in enumerate(demand)
        for i, whole in enumerate(capacity)
        if cluster.eligible[n, i] and limit[n] > 0 and all(c > 0 for c, d in zip(whole, needs, strict=True) if d > 0)
    ]
    if kind == "game":
        assert not np.isfinite(cluster.max_tasks).any(), "limits couple the servers"
        return [_program(capacity, demand, limit, [p for p in pairs if p[1] == i], None) for i in range(len(capacity))]
    u = [Fraction(s) for s in (dominant_shares(cluster) if share is None else share)]
    return _program(capacity, demand, limit, pairs, u)


def _program(
    capacity: list[list[Fraction]],
    demand: list[list[Fraction]],
    limit: list[float],
    pairs: list[tuple[int, int]],
    share: list[Fraction] | None,
) -> Fraction:
    if not pairs:
        return Fraction(0)
    value = [
        share[n] if share else max(d / c for d, c in zip(demand[n], capacity[i], strict=True) if d > 0)
        for n, i in pairs
    ]
    rows, bounds = [], []
    for i, whole in enumerate(capacity):
        for r, most in enumerate(whole):
            rows.append([demand[n][r] if k == i else Fraction(0) for n, k in pairs])
            bounds.append(most)
    for n in sorted({n for n, _ in pairs}):
        if limit[n] < float("inf"):
            rows.append([Fraction(int(n == m)) for m, _ in pairs])
            bounds.append(Fraction(limit[n]))
    return maximise(value, rows, bounds)[0]
