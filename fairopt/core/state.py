"""Iterates of the interior point, directions, and derived quantities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..model._arrays import Array
from .system import OfLimits, Stack


class Direction(NamedTuple):
    """Direction: relative changes of fractions z and prices m, xi, and changes of their slacks."""

    a: Array  # (N, K, B)
    b: Array  # (R, K, B)
    n: OfLimits  # (N, B)
    s: Array  # (N, K, B)
    w: Array  # (R, K, B)
    left: OfLimits  # (N, B)


@dataclass
class State:
    """Iterates of a stack; the axis of problems comes last."""

    z: Array  # (N, K, B), fractions
    s: Array  # (N, K, B), slacks of pairs
    m: Array  # (R, K, B), prices (v/unit)^min(A, 4)
    w: Array  # (R, K, B), what idles
    xi: OfLimits  # (N, B), prices of limits
    left: OfLimits  # (N, B), what limits leave
    log_unit: Array  # (R, K, B)
    norm: Array  # (B,), exponent of sums over rows, A at last

    def log_v(self, q: Stack) -> Array:
        """Log level prices of rows, (R, K, B)."""
        return self.log_unit + np.log(self.m) / np.minimum(q.power, 4.0)

    def after(self, d: Direction, length: Array) -> State:
        """Iterate after a part of a direction."""
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
        """Longest step (B,) that keeps all variables nonnegative."""
        falls = [d.a, d.s / self.s, d.b, d.w / self.w]
        if self.left is not None:
            falls += [d.n, d.left / self.left]
        worst = np.maximum.reduce([np.maximum.reduce(-one.reshape(-1, one.shape[-1]), axis=0) for one in falls])
        return np.asarray(1 / np.maximum(worst, 1e-300))


@dataclass
class Measured:
    """Quantities derived from an iterate: user tasks, actual slacks and use, residuals and mu."""

    x: Array  # (N, B)
    slack: Array  # (N, K, B)
    share: Array  # (R, N, K, B)
    part: Array  # (N, K, B), of a pair in its user's tasks
    omega: Array  # (N, K, B), a user whose tasks are a small part of a server counts by that part
    idle: Array  # (R, K, B)
    room: OfLimits  # (N, B)
    residual: Array  # (B,)
    mu: Array  # (B,)


def measured(q: Stack, at: State, count: Array) -> Measured:
    """Evaluate an iterate; residuals of pairs are weighted by their part in the user's tasks.

    Prices of limits take what a step leaves of their users' slacks, where prices of rows fall by decades.
    """
    x, slack, share = q.slacks(at.z, at.log_v(q), at.xi, at.norm)
    part = q.size * at.z / x[:, None]
    omega = np.where(q.usable, np.minimum(x[:, None] / q.size, 1.0), 1.0)
    idle, room = 1 - q.used(at.z), None
    mu = np.add.reduce(at.z * at.s / omega, axis=(0, 1)) + np.add.reduce(at.m * at.w * q.rows, axis=(0, 1))
    worst = [np.where(q.rows, np.abs(idle - at.w), 0.0)]
    if at.xi is not None:
        to = at.xi + np.add.reduce(part * (at.s - slack), axis=1)
        to = np.where(q.limited, np.minimum(np.maximum(to, at.xi / 2), at.xi * 2), 0.0)
        slack = slack + (to - at.xi)[:, None]
        at.xi, room = to, 1 - q.of_limits(at.z)
        mu = mu + np.add.reduce(at.xi * at.left, axis=0)
        worst.append((np.abs(room - at.left) * q.limited)[None])
    worst.append(np.abs(slack - at.s) * part)
    residual = np.maximum.reduce([np.maximum.reduce(one, axis=(0, 1)) for one in worst])
    return Measured(x, slack, share, part, omega, idle, room, residual, mu / count)
