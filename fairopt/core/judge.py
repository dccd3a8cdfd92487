"""Componentwise backward error of a stack of solutions, vectorised; `certificates.backward` has the definition."""

from __future__ import annotations

import numpy as np

from ..certificates import backward
from ..model._arrays import Array, Mask
from .system import Stack

_LEVELS, _COARSE = backward.LEVELS, backward.COARSE
#: In an unfinished run further thresholds tau are tried only if the error at the first threshold is at most this value,
#: since larger errors hardly depend on tau.
_PROMISING = 1e-4


class Point:
    """Fractions z (N, K, B) and log prices of whole capacities (R, K, B) to be certified, with derived quantities.

    Attributes
    ----------
    total, unit : (N, B), user tasks, and the unit of `part`: user tasks, or at alpha = 0 the sum of monopoly tasks
    part : (N, K, B), tasks of pairs as a fraction of the unit
    idle : (R, K, B), idle fractions of capacities
    marginal, room : (N, K, B), log marginal utilities of a task; (N, B), unused fractions of limits
    possible : (B,), False where some user has no tasks, so that its marginal utility is infinite
    """

    def __init__(self, q: Stack, z: Array, log_rows: Array) -> None:
        self.q, self.z, self.log_rows = q, z, log_rows
        tasks = z * q.gamma
        total = np.add.reduce(tasks, axis=1) + q.unused
        self.total = total
        # At alpha = 0 a user may have no tasks, as its marginal utility is finite: the unit is then its monopoly tasks.
        self.unit = np.where(q.alpha > 0, total, np.add.reduce(q.gamma, axis=1) + q.unused)
        self.possible = (self.unit > 0).all(axis=0) & np.isfinite(total).all(axis=0)
        self.unit = np.where(self.unit > 0, self.unit, 1.0)
        self.part = tasks / self.unit[:, None]
        self.idle = np.where(q.rows, 1 - q.used(z), np.inf)
        self.marginal = q.log_marginal - (q.alpha * np.log(np.where(total > 0, total, 1.0)))[:, None]
        self.log_gamma = np.log(np.where(q.usable, q.gamma, 1.0))
        with np.errstate(invalid="ignore"):
            self.room = np.where(np.isfinite(q.limit), np.maximum(1 - total / q.limit, 0.0), np.inf)

    def some(self, chosen: Mask) -> Point:
        """Restrict to the problems of a mask (B,)."""
        found = object.__new__(Point)
        found.q = self.q.some(chosen)
        for name in ("z", "log_rows", "total", "unit", "part", "idle", "marginal", "log_gamma", "room"):
            setattr(found, name, getattr(self, name)[..., chosen])
        return found

    def at(self, tau: float, fitted: bool) -> Array:
        """Backward errors (B,) at threshold tau, with prices as given or (`fitted`) in the best-fitting unit.

        Errors that are not a number become infinite.
        """
        q = self.q
        priced = (self.idle <= tau) & (self.log_rows > -np.inf)
        terms = q.log_use + np.where(priced, self.log_rows, -np.inf)[:, None]
        largest = np.maximum.reduce(terms, axis=0)
        largest[np.isneginf(largest)] = 0.0
        price = largest + np.log(np.add.reduce(np.exp(terms - largest), axis=0)) - self.log_gamma
        assigned = self.z > 0
        if q.game:
            error, dropped = self._of_pairs(price, assigned, tau, fitted)
        else:
            error, dropped = self._of_users(price, assigned, tau, fitted)
        violation = np.abs(np.where(priced, self.idle, np.minimum(self.idle, 0.0)))
        error = np.maximum(error, np.maximum.reduce(violation, axis=(0, 1)))
        if dropped.any():
            dropped_part = np.add.reduce(np.where(dropped, self.part, 0.0), axis=1)
            dropped_use = np.where(priced, q.used(np.where(dropped, self.z, 0.0)), 0.0)
            error = np.maximum(error, np.maximum(dropped_part.max(axis=0), dropped_use.max(axis=(0, 1))))
        return np.where(np.isnan(error), np.inf, error)

    def _of_users(self, price: Array, assigned: Mask, tau: float, fitted: bool) -> tuple[Array, Mask]:
        """Errors (B,) of a welfare program at threshold tau, and the pairs (N, K, B) whose tasks count as zero.

        The log marginal utility of every user is compared with its least log cost, and the difference divided by A. The
        log cost of each pair that keeps its tasks is compared with the least log cost of its user.
        """
        q = self.q
        cheapest = np.where(q.usable, price, np.inf).min(axis=1)
        excess_cost = np.where(assigned & (price > cheapest[:, None]), price - cheapest[:, None], 0.0)
        able = q.unused == 0
        misfit = np.where(able, self.marginal[:, 0] - cheapest, 0.0)
        active = self.total > tau * self.unit
        if fitted:
            finite = np.isfinite(misfit) & able
            misfit = misfit - _midrange(misfit, finite & (self.room > tau), finite & active, 0)
        misfit = misfit / q.power
        error = np.where(misfit > 0, np.minimum(misfit, self.room), np.where(active, -misfit, 0.0))
        dropped = assigned & ((excess_cost > tau) | ~active[:, None])
        kept = np.where(dropped, 0.0, excess_cost).max(axis=(0, 1))
        return np.maximum(np.where(able, error, 0.0).max(axis=0), kept), dropped

    def _of_pairs(self, price: Array, assigned: Mask, tau: float, fitted: bool) -> tuple[Array, Mask]:
        """Errors (B,) of a game at threshold tau, and the pairs (N, K, B) whose tasks count as zero.

        The cost of every pair is compared with the user's marginal utility on that server, in logarithms over A.
        """
        q = self.q
        misfit = np.where(q.usable, self.marginal - price, -np.inf)
        room = self.room[:, None]
        if fitted:
            finite = np.isfinite(misfit)
            unlimited = finite & (room > tau)
            high = np.where(unlimited, misfit, -np.inf).max(axis=0)
            # Pairs with a small part of the tasks and a large excess cost are dropped, and must not affect the fit.
            kept = finite & (self.part > np.maximum(tau, (high - misfit) / q.power))
            misfit = misfit - _midrange(misfit, unlimited, kept, 0)
        misfit = misfit / q.power
        dropped = assigned & (misfit < -tau)
        error = np.where(misfit > 0, np.minimum(misfit, room), np.where(assigned & ~dropped, -misfit, 0.0))
        return error.max(axis=(0, 1)), dropped


def _midrange(values: Array, upper: Mask, lower: Mask, axis: int) -> Array:
    """Midrange of the largest value in the mask `upper` and the smallest in `lower`; 0 where both are empty."""
    high = np.where(upper, values, -np.inf).max(axis=axis)
    low = np.where(lower, values, np.inf).min(axis=axis)
    high, low = np.where(np.isfinite(high), high, low), np.where(np.isfinite(low), low, high)
    return np.where(np.isfinite(high), (high + low) / 2, 0.0)


def backward_errors(q: Stack, z: Array, log_rows: Array, early: bool = False) -> Array:
    """Backward errors (B,) of fractions at log prices of whole capacities (R, K, B), -inf for a zero price.

    With `early`, for iterates of an unfinished run, coarse thresholds are skipped, as large errors need not be exact.
    The error is infinite where some user has no tasks, unless alpha is 0.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        point = Point(q, z, log_rows)
        best, possible = np.full(len(q.alpha), np.inf), point.possible
        for tau in (*_LEVELS, *(() if early else _COARSE)):
            possible = possible & (best > tau)
            screened = early and _LEVELS[0] > tau
            for fitted in (False, True):
                pending = possible & (best <= _PROMISING) if screened else possible
                pending = pending & (best > tau)
                if pending.all():
                    best = np.minimum(best, point.at(tau, fitted))
                elif pending.any():
                    best[pending] = np.minimum(best[pending], point.some(pending).at(tau, fitted))
    return best


def infeasibility(q: Stack, z: Array) -> Array:
    """Largest relative overuse (B,) of a row or limit (`certificates.feasibility`); infinite for infinite tasks."""
    over = np.maximum(np.where(q.rows, q.used(z), 0.0).max(axis=(0, 1)) - 1, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        total = np.add.reduce(z * q.gamma, axis=1)
        above = np.where(total > 0, total / np.maximum(q.limit, np.finfo(float).tiny), 0.0).max(axis=0) - 1
    return np.where(np.isfinite(total).all(axis=0), np.maximum(over, above), np.inf)
