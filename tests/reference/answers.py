"""The exact answer of a global program or of the game near a given one, proved in eighty digits or not given.

Who uses it need not trust the search: `refuted` checks what it returns against the conditions.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal

import numpy as np
from engines.exact import maximise
from numpy.typing import NDArray
from scipy.optimize import nnls

from fairopt.cluster import Cluster

from .active import Root, polished
from .conditions import Conditions, Decimals, conditions, decimals, log, many_digits, refuted, rough_log
from .interior import MANNERS, Manner, State, System, descend

Array = NDArray[np.float64]
Kind = Literal["global", "game"]

#: To how much relative all conditions hold, and how much the next Newton step may still change anybody's tasks.
WITHIN = Decimal("1e-16")
#: How many rough answers are followed to the end: each that leads nowhere takes seconds.
ATTEMPTS = 3


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
    `log_prices` (servers, resources), of whole capacities: a hint. It gives up after about so many
    `seconds`.
    """
    end = time.perf_counter() + seconds
    with many_digits():
        u = dominant_shares(cluster) if share is None else np.array([Decimal(s) for s in share], dtype=object)
        of = conditions(cluster, alpha, None if kind == "game" else u)
        if not len(of.user):
            nothing = np.zeros(cluster.shape[:2])
            return Reference(nothing, nothing.sum(axis=1), np.full(cluster.capacity.shape, -np.inf), 0.0)
        best, least, tried = None, np.inf, 0
        # With limits equilibria of the game are no points: a server need not know what another leaves of a limit.
        alone = not any(limit < Decimal("Infinity") for limit in of.limit)
        for unit, start, manner in _starts(of, near, log_prices):
            system = System(of, unit, exact=False)
            with np.errstate(all="ignore"):
                rough = start if manner is None else descend(system, start, "1e-9", "1e-9", manner, True, end=end)
            if rough is None:
                continue
            found = _answer(of, polished(system, rough))
            if found is None and manner is not None:
                found, tried = _inside(of, unit, rough, end), tried + 1
            if found is None:
                if tried == ATTEMPTS:
                    break
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


def _inside(of: Conditions, unit: Decimals, rough: State, end: float) -> Reference | None:
    """By the interior point in decimals; the equations are tried on the way, when more is known of which hold."""
    system = System(of, unit, exact=True)
    for central in (False, True):
        at: State | None = rough.decimal()
        for until in ("1e-14", "1e-20", "1e-28", "1e-38"):
            at = descend(system, at, until, "1e-18", MANNERS[0], central, 100, end)
            if at is None:
                break
            found = _answer(of, polished(system, at))
            if found is not None:
                return found
        if at is not None:
            last = system.direction(at, Decimal(0), central=False)
            step = max(abs(system.total(last.x) / system.total(at.x))) if last is not None else Decimal("Infinity")
            return _answer(of, Root(at.x * unit[of.user], system.log_prices(at), step))
    return None


def _answer(of: Conditions, root: Root | None) -> Reference | None:
    if root is None or root.step > WITHIN or refuted(of, root.tasks, root.log_prices, WITHIN) is not None:
        return None
    table = np.zeros(of.shape[:2])
    table[of.user, of.server] = root.tasks.astype(float)
    user_tasks, prices = of.tasks_of(root.tasks).astype(float), root.log_prices.astype(float)
    return Reference(table, user_tasks, prices, float(root.step))


def _starts(
    of: Conditions, near: Array | None, log_prices: Array | None
) -> Iterator[tuple[Decimals, State, Manner | None]]:
    """Units, a state and how to go on from there; `None`: the equations at once, as it is nearly an answer."""
    if near is not None:
        x = decimals(np.maximum(near[of.user, of.server], 0.0))
        unit = of.tasks_of(x)
        if all(unit[of.user] > 0):
            unit = np.array([max(value, Decimal("1e-300")) for value in unit], dtype=object)
            system = System(of, unit, exact=False)
            prices = _supporting(of, x) if log_prices is None else log_prices
            parts = (x / unit[of.user]).astype(float)
            yield unit, _direct(system, parts, prices), None
            for mu in (1e-9, 1e-6, 1e-4, 1e-2):
                yield unit, _warm(system, parts, prices, mu), MANNERS[0]
    unit, x = _filled(of)
    system = System(of, unit, exact=False)
    parts = (x / unit[of.user]).astype(float)
    start = State(parts, system.theta / parts, np.ones(system.taken.shape[1]), 1 - parts @ system.taken)
    for manner in MANNERS:
        yield unit, start, manner


def _given(system: System, x: Array, log_prices: Array) -> tuple[Array, Array, Array, Array]:
    """v, w, (rows,), s, (pairs,), of tasks and prices, as they are; and which rows have prices."""
    v = np.full(system.taken.shape[1], 1e-60)
    capacities = len(system.server)
    given = log_prices[system.server, system.resource] - system.base[system.server].astype(float)
    given = np.where(np.isnan(given), -np.inf, given)
    v[:capacities] = np.exp(np.clip(given / max(system.alpha, 1.0), -60, 3))
    limits = system.priced[:, capacities:]
    with np.errstate(all="ignore"):
        slack = system.slack(x, np.maximum(v, 1e-60))[0]
        missing = np.maximum(-np.expm1(system.alpha * np.minimum(slack, 0)), 0) ** (1 / max(system.alpha, 1.0))
    for k in range(limits.shape[1]):
        v[capacities + k] = missing[limits[:, k]].max()
    slack = np.maximum(system.slack(x, np.maximum(v, 1e-60))[0], 0.0)
    has = np.concatenate([np.isfinite(given), v[capacities:] > 1e-6])
    return v, np.maximum(1 - x @ system.taken, 0.0), slack, has


def _direct(system: System, x: Array, log_prices: Array) -> State:
    """Tasks and prices as they are, s and w such that they say who has tasks and which rows have prices."""
    v, w, slack, has = _given(system, x, log_prices)
    whole = system.same @ x
    used = (x > 1e-5 * whole) | ((x > 1e-9 * whole) & (slack < 1e-9))
    return State(x, np.where(used, 0.0, np.inf), v, np.where(has & (w < 1e-5), 0.0, np.inf))


def _warm(system: System, x: Array, log_prices: Array, mu: float) -> State:
    """On the path at mu, as near to given tasks and prices as that allows."""
    root = float(np.sqrt(mu))
    v, w, _, _ = _given(system, x, log_prices)
    priced = v >= w
    v, w = np.where(priced, np.maximum(v, root), 0.0), np.where(priced, 0.0, np.maximum(w, root))
    v, w = np.where(priced, v, mu / np.where(priced, 1.0, w)), np.where(priced, mu / np.where(priced, v, 1.0), w)
    slack = np.maximum(system.slack(x, v)[0], 0.0)
    used = x / system.theta >= slack
    x = np.where(used, np.maximum(x, root * system.theta), mu * system.theta / np.maximum(slack, root))
    return State(x, mu * system.theta / x, v, w)


def _filled(of: Conditions) -> tuple[Decimals, Decimals]:
    """Half of what every server would give if it had one resource: users' tasks, (users,), and tasks (pairs,).

    Where `lambda / gamma_ni = m_ni` for all, `x_ni` is as `exp(kappa_ni)`, `kappa = (worth + log gamma) / alpha`.
    """
    gamma = 1 / of.use.max(axis=1)
    level = (of.worth + log(gamma)) / of.alpha
    x = np.full(len(gamma), Decimal(0), dtype=object)
    for i in set(of.server.tolist()):
        own = np.flatnonzero(of.server == i)
        part = np.array([(value - max(level[own])).exp() for value in level[own]], dtype=object)
        x[own] = part / sum(part / gamma[own]) / 2
    total = of.tasks_of(x)
    some = total > 0
    unit = np.where(some, np.minimum(total, of.limit / 2), Decimal(1))
    return unit, x * (unit / np.where(some, total, Decimal(1)))[of.user]


def _supporting(of: Conditions, x: Decimals) -> Array:
    """Log prices that come close to what tasks cost where they are: of full rows, server by server.

    They cost their marginals, and those of a user at its limit no more: in a global program what they cost elsewhere.
    """
    total, found = of.tasks_of(x), np.full(of.shape[1:], -np.inf)
    full = np.asarray(of.used(x) > Decimal("0.99999"), dtype=bool)
    log_marginal = (of.worth - of.alpha * log(total)[of.user]).astype(float)
    part = (x / total[of.user]).astype(float)
    known = np.asarray(total < of.limit * Decimal("0.999999"), dtype=bool)[of.user]
    left = set(of.server.tolist())
    while left:
        ready = [i for i in left if (known & (of.server == i) & (part > 1e-9)).any()]
        if not ready and of.game:
            break  # any price does that is low enough
        for i in ready[:1] or list(left)[:1]:
            left.remove(i)
            own = np.flatnonzero((of.server == i) & (known if ready else True) & ((part > 1e-9) | (not ready)))
            found[i] = _fit(of.use[own], log_marginal[own], part[own], full[i])
            if not of.game:
                every = np.flatnonzero(of.server == i)
                with np.errstate(divide="ignore"):
                    cost = np.logaddexp.reduce(rough_log(of.use[every]) + found[i], axis=1)
                for j, price in zip(every, cost, strict=True):
                    own = of.user == of.user[j]
                    if part[j] > 1e-9 and not known[j] and np.isfinite(price):
                        log_marginal[own], known[own] = price, True
    return found


def _fit(use: Decimals, log_marginal: Array, part: Array, full: NDArray[np.bool_]) -> Array:
    """Log prices of a server's full rows, of all if none is: nonnegative least squares."""
    top = max(log_marginal - rough_log(use.max(axis=1)))
    with np.errstate(all="ignore"):
        rows = np.where(full | ~full.any(), np.exp(rough_log(use) + (top - log_marginal)[:, None]), 0.0)
        weight = np.sqrt(np.maximum(part, 1e-12)) / np.maximum(rows.max(axis=1), 1.0)
        if not np.isfinite(rows).all():
            return np.full(use.shape[1], -np.inf)
        return np.asarray(np.log(nnls(rows * weight[:, None], weight)[0]) + top)


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
