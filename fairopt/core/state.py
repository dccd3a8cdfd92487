r"""Iterates, search directions and residuals of the primal-dual interior-point method `interior`.

For every complementarity condition an iterate has a variable and its slack, both positive: fractions z and slacks s of
pairs, prices m and slacks w of rows, prices xi and slacks `left` of limits. Prices are iterated as powers
:math:`m = (v/unit)^{\min(A, 4)}`, between the level v and the price :math:`v^A`, in which conditions are nearly linear.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..model._arrays import Array, Mask
from .factors import TINY
from .system import OfLimits, Stack

#: Largest exponent of level prices v in the variable m: prices v^A themselves span too many decades at large alpha.
LARGEST_POWER = 4.0
#: Fraction of a server below which the use of a pair is negligible, far below the rounding error of capacities.
_UNNOTICED = 1e-20


class Direction(NamedTuple):
    """Search direction: relative changes of the fractions z and the prices m and xi, and changes of their slacks."""

    a: Array  # (N, K, B), dz/z
    b: Array  # (R, K, B), dm/m
    n: OfLimits  # (N, B), dxi/xi
    s: Array  # (N, K, B)
    w: Array  # (R, K, B)
    left: OfLimits  # (N, B)


@dataclass
class State:
    """Primal-dual iterate of a stack; the axis of problems comes last."""

    z: Array  # (N, K, B), fractions
    s: Array  # (N, K, B), slacks of pairs
    m: Array  # (R, K, B), prices (v/unit)^min(A, 4)
    w: Array  # (R, K, B), slacks of rows, as fractions of capacities
    xi: OfLimits  # (N, B), prices of limits
    left: OfLimits  # (N, B), slacks of limits, as fractions of the limits
    log_unit: Array  # (R, K, B), log of the unit of v
    norm: Array  # (B,), exponent of sums over rows, which increases to A as mu decreases

    def log_v(self, q: Stack) -> Array:
        """Log prices v of rows as levels, (R, K, B)."""
        return self.log_unit + np.log(self.m) / np.minimum(q.power, LARGEST_POWER)

    def after(self, d: Direction, length: Array) -> State:
        """Iterate after a step of a `length` (B,) along a direction."""
        return State(
            self.z * (1 + length * d.a),
            self.s + length * d.s,
            self.m * (1 + length * d.b),
            self.w + length * d.w,
            None if self.xi is None else self.xi * (1 + length * d.n),
            None if self.left is None else self.left + length * d.left,
            self.log_unit,
            self.norm,
        )

    def longest(self, d: Direction) -> Array:
        """Ratio test: largest step lengths (B,) that keep all variables nonnegative."""
        decreases = [d.a, d.s / self.s, d.b, d.w / self.w]
        if self.left is not None:
            decreases += [d.n, d.left / self.left]
        largest = np.maximum.reduce([np.maximum.reduce(-one.reshape(-1, one.shape[-1]), axis=0) for one in decreases])
        return np.asarray(1 / np.maximum(largest, TINY))


@dataclass
class Measured:
    """Functions of an iterate: user tasks, slacks of the constraints, residuals, and the barrier parameter mu."""

    x: Array  # (N, B), user tasks in units of the largest gamma
    slack: Array  # (N, K, B), log cost minus log marginal utility, over A
    share: Array  # (R, N, K, B), shares of rows in the cost of a pair
    part: Array  # (N, K, B), fraction of the user's tasks that a pair has
    omega: Array  # (N, K, B), min(x/size, 1): scale of z, less than 1 for users with few tasks on a large server
    idle: Array  # (R, K, B), idle fraction of capacities
    room: OfLimits  # (N, B), unused fraction of limits
    residual: Array  # (B,), largest infeasibility
    mu: Array  # (B,), mean scaled complementarity product


def measured(q: Stack, at: State, count: Array) -> Measured:
    """Evaluate an iterate, with `count` (B,) complementarity conditions.

    Dual residuals of pairs are weighted by their fraction of the user's tasks. Prices of limits are first updated (in
    place), by at most a factor of two, to the values that cancel the weighted dual residuals of their users: Newton's
    method alone is slow where prices of rows decrease by decades. Tasks of users with negligible use are updated by
    `_followed`.
    """
    x, slack, share = q.slacks(at.z, at.log_v(q), at.xi, at.norm)
    unnoticed = np.logical_and.reduce(at.z < _UNNOTICED, axis=1) & (q.unused == 0)
    if q.limited is not None:
        unnoticed &= ~q.limited
    if unnoticed.any():
        x, slack = _followed(q, at, x, slack, unnoticed)
    part = q.size * at.z / x[:, None]
    omega = np.where(q.usable, np.minimum(x[:, None] / q.size, 1.0), 1.0)
    idle, room = 1 - q.used(at.z), None
    mu = np.add.reduce(at.z * at.s / omega, axis=(0, 1)) + np.add.reduce(at.m * at.w * q.rows, axis=(0, 1))
    violations = [np.where(q.rows, np.abs(idle - at.w), 0.0)]
    if at.xi is not None:
        limit_price = at.xi + np.add.reduce(part * (at.s - slack), axis=1)
        limit_price = np.where(q.limited, np.minimum(np.maximum(limit_price, at.xi / 2), at.xi * 2), 0.0)
        slack = slack + (limit_price - at.xi)[:, None]
        at.xi, room = limit_price, 1 - q.of_limits(at.z)
        mu = mu + np.add.reduce(at.xi * at.left, axis=0)
        violations.append((np.abs(room - at.left) * q.limited)[None])
    violations.append(np.abs(slack - at.s) * part)
    residual = np.maximum.reduce([np.maximum.reduce(violation, axis=(0, 1)) for violation in violations])
    return Measured(x, slack, share, part, omega, idle, room, residual, mu / count)


def _followed(q: Stack, at: State, x: Array, slack: Array, users: Mask) -> tuple[Array, Array]:
    r"""Move users of negligible use, a mask (N, B), to the central path at given prices; return new tasks and slacks.

    The iterate is changed in place. Tasks of these users do not affect prices, but may be off by decades in proportion
    to 1/alpha, of which a Newton step removes about one. On the central path the parts of a user's tasks are in
    proportion to mu/s, with the mean product mu of the other users.
    """
    pairs, others = q.usable & users[:, None], q.usable & ~users[:, None]
    products = np.where(others, at.z * at.s / np.minimum(x[:, None] / q.size, 1.0), 0.0)
    mu = np.maximum(np.add.reduce(products, axis=(0, 1)) / np.maximum(np.add.reduce(others, axis=(0, 1)), 1), TINY)
    least = np.minimum.reduce(np.where(pairs, slack, np.inf), axis=1)
    # Tasks remain within the range of doubles, and their use negligible.
    most = np.log(_UNNOTICED / np.maximum(np.maximum.reduce(at.z, axis=1), TINY))
    rise = np.where(users, np.clip((mu - least) / q.ratio, np.log(TINY / x), np.maximum(most, 0.0)), 0.0)
    x, slack = x * np.exp(rise), slack + (q.ratio * rise)[:, None]
    s = np.where(pairs, np.maximum(slack, mu), 1.0)
    part = np.where(pairs, mu / s, 0.0)
    part /= np.where(users, np.add.reduce(part, axis=1), 1.0)[:, None]
    at.z, at.s = np.where(pairs, x[:, None] * part / q.size, at.z), np.where(pairs, s, at.s)
    return x, slack
