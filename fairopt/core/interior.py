"""The interior point for stacks of problems: start by mirror descent, Mehrotra's steps, certificates on the way."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from .judge import backward_errors
from .newton import Direction, System
from .system import Stack

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
LIFT=0.3
NORM=4.0
SOFT=.005


@dataclass
class State:
    """Where runs are; the axis of problems comes last."""

    z: Array  # (N, K, B), fractions
    s: Array  # (N, K, B), slacks of pairs
    m: Array  # (R, K, B), prices (v/unit)^min(A, 4)
    w: Array  # (R, K, B), what idles
    xi: Array | None  # (N, B), prices of limits
    left: Array | None  # (N, B), what limits leave
    log_unit: Array  # (R, K, B)
    norm: Array  # (B,), exponent of sums over rows

    def some(self, chosen: Mask) -> State:
        """Of some of the problems."""
        return State(*(None if one is None else one[..., chosen] for one in self._all()))

    def _all(self) -> list[Array | None]:
        return [getattr(self, one.name) for one in fields(self)]


def log_v(q: Stack, at: State) -> Array:
    """Log level prices of rows, (R, K, B)."""
    return at.log_unit + np.log(at.m) / np.minimum(q.power, 4.0)


def begun(q: Stack) -> State:
    """Mirror descent: prices follow use, fractions what a server is worth to the user over what it costs."""
    crowd = np.maximum(np.add.reduce(q.usable, axis=0), 1)
    z = np.where(q.usable, 0.7 / crowd, 0.0)
    xi = None if q.limited is None else np.zeros(q.limit.shape)
    gain = np.where(q.usable, q.gain, -np.inf)
    for step in range(40):
        if xi is not None:
            full = np.maximum(q.of_limits(z), 1e-300)
            z = z * (0.7 / np.maximum(full, 0.7))[:, None]
            xi = np.maximum(xi + 0.7 * np.maximum(np.log(full / 0.7), -1), 0.0)
        level = q.ratio * np.log(q.user_tasks(z))
        value = gain - (level if xi is None else level + xi)[:, None]
        if step == 0:
            log_unit = np.repeat(np.maximum(np.maximum.reduce(value, axis=0), -1e3)[None], len(q.rows), axis=0)
        log_unit = log_unit + 0.7 * np.clip(np.log(np.maximum(q.used(z), 1e-300) / 0.7), -1, 1)
        cost = q.costs(log_unit)[0]
        z = np.minimum(z * np.exp(np.clip(0.7 * (value - cost), -2, 2)), 1.0)
    x = q.user_tasks(z)
    with np.errstate(divide="ignore"):
        least = np.minimum(0.02 * x[:, None] / q.size, 0.07 / crowd)
    z = np.where(q.usable, np.maximum(z, least), 0.0)
    z = z * (0.9 / np.maximum(np.maximum.reduce(q.used(z), axis=0), 0.9))
    left = None
    if xi is not None:
        z = z * (0.9 / np.maximum(q.of_limits(z), 0.9))[:, None]
        xi = np.where(q.limited, np.maximum(xi, 0.1), 0.0)
        left = np.where(q.limited, np.maximum(1 - q.of_limits(z), 0.1), 1.0)
    use = q.used(z)
    m = np.ones(use.shape)
    w = np.where(q.rows, np.maximum(1 - use, 0.1), 1.0)
    # A row that idles costs the first user to whom that matters a part of what it pays.
    least = np.minimum.reduce(q.costs(log_unit)[0] - q.log_use / q.power, axis=1)
    log_unit = np.where(q.rows, np.maximum(log_unit, least + np.log(LIFT) / q.power), 0.0)
    at = State(z, z, m, w, xi, left, log_unit, np.minimum(q.power, NORM))
    at.s = np.where(q.usable, np.maximum(q.slacks(z, log_v(q, at), xi, at.norm)[1], 0.1), 1.0)
    return at


@dataclass
class Measured:
    """What follows from a state: user tasks, slacks and use as they are, and how far the state is from both."""

    x: Array  # (N, B)
    slack: Array  # (N, K, B)
    share: Array  # (R, N, K, B)
    part: Array  # (N, K, B), of a pair in its user's tasks
    omega: Array  # (N, K, B)
    idle: Array  # (R, K, B)
    room: Array | None  # (N, B)
    residual: Array  # (B,)
    mu: Array  # (B,)

    def some(self, chosen: Mask) -> Measured:
        """Of some of the problems."""
        return Measured(*(None if (one := getattr(self, each.name)) is None else one[..., chosen] for each in fields(self)))

    @classmethod
    def of(cls, q: Stack, at: State, count: Array) -> Measured:
        """Residuals of pairs count by their part in the user's tasks; `count` (B,) is that of all products."""
        x, slack, share = q.slacks(at.z, log_v(q, at), at.xi, at.norm)
        part = q.size * at.z / x[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            omega = np.where(q.usable, np.minimum(x[:, None] / q.size, 1.0), 1.0)
        idle = 1 - q.used(at.z)
        if at.xi is not None:
            # Prices of limits take what steps leave of their users' slacks, where the others' prices fall by decades.
            to = at.xi + np.add.reduce(part * (at.s - slack), axis=1)
            to = np.where(q.limited, np.clip(to, at.xi / 2, at.xi * 2), 0.0)
            slack = slack + (to - at.xi)[:, None]
            at.xi = to
        residual = np.maximum(
            np.maximum.reduce(np.abs(slack - at.s) * part, axis=(0, 1)),
            np.maximum.reduce(np.where(q.rows, np.abs(idle - at.w), 0.0), axis=(0, 1)),
        )
        mu = np.add.reduce(at.z * at.s / omega, axis=(0, 1)) + np.add.reduce(at.m * at.w * q.rows, axis=(0, 1))
        room = None
        if at.xi is not None:
            room = 1 - q.of_limits(at.z)
            residual = np.maximum(residual, np.maximum.reduce(np.abs(room - at.left) * q.limited, axis=0))
            mu = mu + np.add.reduce(at.xi * at.left, axis=0)
        return cls(x, slack, share, part, omega, idle, room, residual, mu / count)


def _counted(q: Stack) -> Array:
    count = np.add.reduce(q.usable, axis=(0, 1)) + np.add.reduce(q.rows, axis=(0, 1))
    return np.maximum(count if q.limited is None else count + np.add.reduce(q.limited, axis=0), 1)


def _longest(at: State, d: Direction) -> Array:
    """(B,), how far everything stays positive along a direction."""
    falls = [d.a, d.s / at.s, d.b, d.w / at.w]
    if at.xi is not None:
        falls += [d.n, d.left / at.left]
    worst = np.maximum.reduce([np.maximum.reduce(-one.reshape(-1, one.shape[-1]), axis=0) for one in falls])
    return 1 / np.maximum(worst, 1e-300)


def stepped(q: Stack, at: State, now: Measured, count: Array) -> tuple[State, Measured, Array]:
    """One predictor and corrector; the next state, what follows from it, and the length of the step."""
    mu = now.mu
    norm = np.minimum(q.power, np.maximum(at.norm, SOFT / mu))
    if (norm > at.norm).any():
        at.norm = norm
        now = Measured.of(q, at, count)
    system = System(q, at, now)
    zero = np.zeros_like(mu)
    d = system.direction(zero, None)
    full = np.minimum(_longest(at, d), 1.0)
    after = np.add.reduce(at.z * (1 + full * d.a) * (at.s + full * d.s) / now.omega * q.usable, axis=(0, 1))
    after += np.add.reduce(at.m * (1 + full * d.b) * (at.w + full * d.w) * q.rows, axis=(0, 1))
    if at.xi is not None:
        after += np.add.reduce(at.xi * (1 + full * d.n) * (at.left + full * d.left), axis=0)
    wanted = np.clip(np.maximum((after / count / mu) ** 3, 0.5 * (1 - full) ** 3), 1e-6, 0.5) * mu
    wanted = np.where(mu > 1e-4, np.maximum(wanted, 0.005 * now.residual), wanted)
    d = system.direction(np.maximum(wanted, 1e-22), d, full * full)
    full = _longest(at, d)
    length = np.minimum(full * np.maximum(0.95, 1 - np.sqrt(10 * mu)), 1.0)
    merit = now.residual + mu
    for _ in range(9):
        new = State(
            at.z * (1 + length * d.a),
            at.s + length * d.s,
            at.m * (1 + length * d.b),
            at.w + length * d.w,
            None if at.xi is None else at.xi * (1 + length * d.n),
            None if at.xi is None else at.left + length * d.left,
            at.log_unit,
            at.norm,
        )
        then = Measured.of(q, new, count)
        worse = ~(then.residual + then.mu <= 2 * merit + 1e-9)
        if not worse.any():
            break
        length = np.where(worse, length / 2, length)
    return new, then, length


@dataclass
class Answers:
    """Of a stack: fractions (N, K, B), log prices of whole capacities (R, K, B), errors and steps (B,)."""

    z: Array
    log_rows: Array
    error: Array
    steps: NDArray[np.intp]


def solved(q: Stack, aim: float, most: int = 60) -> Answers:
    """All problems of a stack, until errors are at most `aim` or nothing more is gained."""
    found = Answers(
        np.zeros(q.gamma.shape), np.full(q.rows.shape, -np.inf), np.full(q.count, np.inf), np.zeros(q.count, np.intp)
    )
    live = np.arange(q.count)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        at, count = begun(q), _counted(q)
        now = Measured.of(q, at, count)
        last, waited = np.full(q.count, np.inf), np.zeros(q.count, np.intp)
        for step in range(most + 1):
            over = np.zeros(len(live), bool)
            look = now.mu < 1e-7
            if look.any():
                _looked(q, at, now, look, live, found, aim, last, waited)
                over = (found.error[live] <= aim) | (waited > 5)
            if step == most:
                break
            found.steps[live] = step
            if over.all():
                break
            if over.any():
                go = ~over
                q, at, count, live, last, waited = q.some(go), at.some(go), count[go], live[go], last[go], waited[go]
                now = now.some(go)
            at, now, length = stepped(q, at, now, count)
            stuck = ~(length > 1e-10)
            if stuck.all():
                break
            if stuck.any():
                go = ~stuck
                q, at, count, live, last, waited = q.some(go), at.some(go), count[go], live[go], last[go], waited[go]
                now = now.some(go)
    return found


def _looked(q: Stack, at: State, now: Measured, look: Mask, live: Array, found: Answers, aim: float, last: Array, waited: Array) -> None:
    """Judge states, and after two looks that gain little their last digits."""
    from .active_set import refined

    if not look.all():
        q, at, now = q.some(look), at.some(look), now.some(look)
    who = live[look]
    z = np.where((now.part < at.s) & (now.part < 1e-6), 0.0, at.z)
    prices = log_v(q, at)
    rows = np.where(q.rows, q.power * prices, -np.inf)
    error = backward_errors(q, z, rows, aim)
    before = last[look]
    better = error < found.error[who]
    found.error[who[better]] = error[better]
    found.z[..., who[better]], found.log_rows[..., who[better]] = z[..., better], rows[..., better]
    again = (error > 1e-9) & (before < np.inf) & (before > 1e-9)
    for k in np.flatnonzero(again):
        one = slice(k, k + 1)
        held = None if at.xi is None else (at.xi > at.left)[..., one] & q.limited[..., one]
        e, zz, ll = refined(
            q.some(one), at.z[..., one], prices[..., one], None if at.xi is None else at.xi[..., one],
            ((now.part > at.s) & q.usable)[..., one], ((at.m > at.w) & q.rows)[..., one], held, aim,
        )
        if e < found.error[who[k]]:
            found.error[who[k]], found.z[..., who[k]], found.log_rows[..., who[k]] = e, zz[..., 0], ll[..., 0]
    waited[look] = np.where(error < 0.9 * before, 0, waited[look] + 1)
    last[look] = error
