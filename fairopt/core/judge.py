"""The componentwise backward error of a stack of answers, by the definition in `certificates.backward`."""

from __future__ import annotations

import numpy as np

from ..certificates import backward
from ..model._arrays import Array, Mask
from .system import Stack

_FINE, _COARSE = backward.LEVELS, backward.COARSE
#: On the way smaller levels are tried where the first comes to this at most.
_NEAR = 1e-4


class Point:
    """Fractions and prices to be certified, with derived quantities."""

    def __init__(self, q: Stack, z: Array, log_rows: Array) -> None:
        self.q, self.z, self.log_rows = q, z, log_rows
        tasks = z * q.gamma
        total = np.add.reduce(tasks, axis=1) + q.unused
        # Where a first task is worth no more than others, users may have none: parts are those of what one could have.
        self.total = total
        self.unit = np.where(q.alpha > 0, total, np.add.reduce(q.gamma, axis=1) + q.unused)
        self.possible = (self.unit > 0).all(axis=0) & np.isfinite(total).all(axis=0)
        self.unit = np.where(self.unit > 0, self.unit, 1.0)
        self.part = tasks / self.unit[:, None]
        self.idle = np.where(q.rows, 1 - q.used(z), np.inf)
        self.marginal = q.log_worth - (q.alpha * np.log(np.where(total > 0, total, 1.0)))[:, None]
        self.log_gamma = np.log(np.where(q.usable, q.gamma, 1.0))
        with np.errstate(invalid="ignore"):
            self.room = np.where(np.isfinite(q.limit), np.maximum(1 - total / q.limit, 0.0), np.inf)

    def some(self, chosen: Mask) -> Point:
        """Restrict to some of the problems."""
        found = object.__new__(Point)
        found.q = self.q.some(chosen)
        for name in ("z", "log_rows", "total", "unit", "part", "idle", "marginal", "log_gamma", "room"):
            setattr(found, name, getattr(self, name)[..., chosen])
        return found

    def at(self, tau: float, fitted: bool) -> Array:
        """Errors (B,) at level tau, prices as given or in the best-fitting unit."""
        q = self.q
        live = (self.idle <= tau) & (self.log_rows > -np.inf)
        each = q.log_use + np.where(live, self.log_rows, -np.inf)[:, None]
        top = np.maximum.reduce(each, axis=0)
        top[np.isneginf(top)] = 0.0
        price = top + np.log(np.add.reduce(np.exp(each - top), axis=0)) - self.log_gamma
        there = self.z > 0
        if q.game:
            error, dropped = self._of_pairs(price, there, tau, fitted)
        else:
            error, dropped = self._of_users(price, there, tau, fitted)
        amiss = np.abs(np.where(live, self.idle, np.minimum(self.idle, 0.0)))
        error = np.maximum(error, np.maximum.reduce(amiss, axis=(0, 1)))
        if dropped.any():
            lost = np.add.reduce(np.where(dropped, self.part, 0.0), axis=1)
            unused = np.where(live, q.used(np.where(dropped, self.z, 0.0)), 0.0)
            error = np.maximum(error, np.maximum(lost.max(axis=0), unused.max(axis=(0, 1))))
        return np.where(np.isnan(error), np.inf, error)

    def _of_users(self, price: Array, there: Mask, tau: float, fitted: bool) -> tuple[Array, Mask]:
        """Welfare: the largest error of users and of kept pairs, and the dropped pairs."""
        q = self.q
        least = np.where(q.usable, price, np.inf).min(axis=1)
        dear = np.where(there & (price > least[:, None]), price - least[:, None], 0.0)
        runs = q.unused == 0
        off = np.where(runs, self.marginal[:, 0] - least, 0.0)
        active = self.total > tau * self.unit
        if fitted:
            known = np.isfinite(off) & runs
            off = off - _middle(off, known & (self.room > tau), known & active, 0)
        off = off / q.power
        error = np.where(off > 0, np.minimum(off, self.room), np.where(active, -off, 0.0))
        dropped = there & ((dear > tau) | ~active[:, None])
        kept = np.where(dropped, 0.0, dear).max(axis=(0, 1))
        return np.maximum(np.where(runs, error, 0.0).max(axis=0), kept), dropped

    def _of_pairs(self, price: Array, there: Mask, tau: float, fitted: bool) -> tuple[Array, Mask]:
        """The game: the largest error of pairs, and the dropped pairs."""
        q = self.q
        off = np.where(q.usable, self.marginal - price, -np.inf)
        room = self.room[:, None]
        if fitted:
            known = np.isfinite(off)
            hungry = known & (room > tau)
            high = np.where(hungry, off, -np.inf).max(axis=0)
            # Few tasks on a pair that is much too dear are dropped: they are not to move the others' prices.
            stay = known & (self.part > np.maximum(tau, (high - off) / q.power))
            off = off - _middle(off, hungry, stay, 0)
        off = off / q.power
        dropped = there & (off < -tau)
        error = np.where(off > 0, np.minimum(off, room), np.where(there & ~dropped, -off, 0.0))
        return error.max(axis=(0, 1)), dropped


def _middle(off: Array, upper: Mask, lower: Mask, axis: int) -> Array:
    """Midrange shift between the largest of `upper` and the smallest of `lower`; 0 where both are empty."""
    high = np.where(upper, off, -np.inf).max(axis=axis)
    low = np.where(lower, off, np.inf).min(axis=axis)
    high, low = np.where(np.isfinite(high), high, low), np.where(np.isfinite(low), low, high)
    return np.where(np.isfinite(high), (high + low) / 2, 0.0)


def backward_errors(q: Stack, z: Array, log_rows: Array, on_the_way: bool = False) -> Array:
    """Backward errors (B,) of fractions at log prices of whole capacities (R, K, B), -inf for a zero price.

    `on_the_way`: how wrong a bad answer is does not matter.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        point = Point(q, z, log_rows)
        best, going = np.full(len(q.alpha), np.inf), point.possible
        for tau in (*_FINE, *(() if on_the_way else _COARSE)):
            going = going & (best > tau)
            fine = on_the_way and _FINE[0] > tau
            for fitted in (False, True):
                todo = going & (best <= _NEAR) if fine else going
                todo = todo & (best > tau)
                if todo.all():
                    best = np.minimum(best, point.at(tau, fitted))
                elif todo.any():
                    best[todo] = np.minimum(best[todo], point.some(todo).at(tau, fitted))
    return best


def infeasibility(q: Stack, z: Array) -> Array:
    """Largest relative overuse (B,) of a row or a limit, as defined in `certificates.feasibility`."""
    over = np.maximum(np.where(q.rows, q.used(z), 0.0).max(axis=(0, 1)) - 1, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        total = np.add.reduce(z * q.gamma, axis=1)
        above = np.where(total > 0, total / np.maximum(q.limit, np.finfo(float).tiny), 0.0).max(axis=0) - 1
    return np.where(np.isfinite(total).all(axis=0), np.maximum(over, above), np.inf)
