"""Where the search for an exact answer begins: at a given one, near it on the path, or with none in the middle."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog, nnls

from .conditions import Conditions, Decimals, decimals, log, rough_log
from .descent import MANNERS, Manner
from .interior import State, System

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
#: Pairs with tasks that are taken as they are.
MANY = 200


def starts(
    of: Conditions, near: Array | None, log_prices: Array | None
) -> Iterator[tuple[System, State, Manner | None]]:
    """A system, a state and how to go on from there; `None`: the equations at once, as it is nearly an answer."""
    if near is not None:
        x = decimals(np.maximum(near[of.user, of.server], 0.0))
        unit = of.tasks_of(x)
        if all(unit[of.user] > 0):
            unit = np.array([max(value, Decimal("1e-300")) for value in unit], dtype=object)
            system = System(of, unit, exact=False)
            prices = _supporting(of, x) if log_prices is None else log_prices
            parts = (x / unit[of.user]).astype(float)
            yield system, _direct(system, parts, prices), None
            for mu in (1e-9, 1e-6, 1e-4, 1e-2):
                yield system, _warm(system, parts, prices, mu), MANNERS[0]
    unit, x = _filled(of)
    system = System(of, unit, exact=False)
    parts = (x / unit[of.user]).astype(float)
    start = State(parts, system.theta / parts, np.ones(system.taken.shape[1]), 1 - parts @ system.taken)
    for manner in MANNERS:
        yield system, start, manner


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


def _thinned(system: System, x: Array, used: NDArray[np.bool_]) -> Array:
    """The same tasks by user and use by row, from fewer pairs: as good, and much faster where there are hundreds."""
    users, own = np.unique(system.user[used]), np.flatnonzero(used)
    if len(own) <= max(len(users) + system.taken.shape[1], MANY):
        return x
    rows = np.concatenate([(users[:, None] == system.user[own]).astype(float), system.taken[own].T])
    try:
        found, off = nnls(rows, rows @ x[own])
    except RuntimeError:  # too many steps
        return x
    if off > 1e-9:
        return x
    thin = np.zeros(len(x))
    thin[own] = found
    return thin


def _direct(system: System, x: Array, log_prices: Array) -> State:
    """Tasks and prices as they are, s and w such that they say who has tasks and which rows have prices."""
    v, w, slack, has = _given(system, x, log_prices)
    whole = system.same @ x
    used = (x > 1e-5 * whole) | ((x > 1e-9 * whole) & (slack < 1e-9))
    x = _thinned(system, x, used)
    used &= x > 0
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
        i = next(iter(ready or left))
        left.remove(i)
        here = of.server == i
        own = np.flatnonzero(here & (known if ready else True) & ((part > 1e-9) | (not ready)))
        if ready or not of.game:
            found[i] = _fit(of.use[own], log_marginal[own], part[own], full[i])
        own = np.flatnonzero(here)
        if of.game:
            found[i] = _between(of.use[own], log_marginal[own], part[own] > 1e-9, known[own], full[i], found[i])
            continue
        with np.errstate(divide="ignore"):
            cost = np.logaddexp.reduce(rough_log(of.use[own]) + found[i], axis=1)
        for j, price in zip(own, cost, strict=True):
            if part[j] > 1e-9 and not known[j] and np.isfinite(price):
                same = of.user == of.user[j]
                log_marginal[same], known[same] = price, True
    return found


def _between(use: Decimals, log_marginal: Array, used: Mask, known: Mask, full: Mask, found: Array) -> Array:
    """Prices in the middle of those that do in the game: high enough for who has nothing, low enough for limits.

    They are unique where users below their limits have tasks for each; else a linear program, of the widest margin.
    """
    some, low, high = used & known, known & ~used, used & ~known
    top = max(log_marginal - rough_log(use.max(axis=1)))
    with np.errstate(all="ignore"):
        rows = np.where(full, np.exp(rough_log(use) + (top - log_marginal)[:, None]), 0.0)
        cost = rows @ np.exp(found - top)
    right = (abs(cost[some] - 1) < 1e-5).all() and (cost[low] > 1).all() and (cost[high] < 1).all()
    if right or not full.any() or not np.isfinite(rows).all():
        return found
    size = np.maximum(rows.max(axis=1), 1.0)
    rows, one, count = rows / size[:, None], 1 / size, len(full)
    # Prices, the margin, and by how much equations are missed: those of answers that are not exact.
    sides = [(-rows[low], -one[low], one[low], None), (rows[high], one[high], one[high], None)]
    sides += [(rows[some], one[some], 0 * one[some], 0), (-rows[some], -one[some], 0 * one[some], 0)]
    missed = int(some.sum())
    upper = np.concatenate(
        [
            np.column_stack([a, margin, -np.eye(missed) if k is not None else np.zeros((len(a), missed))])
            for a, _, margin, k in sides
        ]
    )
    gain = np.concatenate([np.zeros(count), [-1.0], np.full(missed, 1e3)])
    bounds = [(0, None if is_full else 0) for is_full in full] + [(-1, 0.5)] + [(0, None)] * missed
    best = linprog(gain, upper, np.concatenate([b for _, b, _, _ in sides]), bounds=bounds)
    if best.status != 0:
        return found
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(best.x[:count]) + top)


def _fit(use: Decimals, log_marginal: Array, part: Array, full: Mask) -> Array:
    """Log prices of a server's full rows: nonnegative least squares."""
    if not full.any():
        return np.full(use.shape[1], -np.inf)
    top = max(log_marginal - rough_log(use.max(axis=1)))
    with np.errstate(all="ignore"):
        rows = np.where(full, np.exp(rough_log(use) + (top - log_marginal)[:, None]), 0.0)
        weight = np.sqrt(np.maximum(part, 1e-12)) / np.maximum(rows.max(axis=1), 1.0)
        if not np.isfinite(rows).all():
            return np.full(use.shape[1], -np.inf)
        return np.asarray(np.log(nnls(rows * weight[:, None], weight)[0]) + top)
