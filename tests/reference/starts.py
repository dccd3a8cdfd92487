"""Where the search for an exact answer begins: at a given one, near it on the path, or with none in the middle."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from .conditions import Conditions, Decimals, decimals, log
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
    if near is not None and log_prices is not None:
        x = decimals(np.maximum(near[of.user, of.server], 0.0))
        unit = of.tasks_of(x)
        if all(unit[of.user] > 0):
            unit = np.array([max(value, Decimal("1e-300")) for value in unit], dtype=object)
            system = System(of, unit)
            parts = (x / unit[of.user]).astype(float)
            yield system, _direct(system, parts, log_prices), None
            for mu in (1e-9, 1e-6, 1e-4, 1e-2):
                yield system, _warm(system, parts, log_prices, mu), MANNERS[0]
    unit, x = _filled(of)
    system = System(of, unit)
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
