"""The interior point for stacks of problems: start by mirror descent, Mehrotra's steps, certificates on the way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..model._arrays import Array, Index, Mask
from .active_set import refined
from .judge import backward_errors
from .newton import System
from .state import Direction, Measured, State, measured
from .system import Stack, of_some


def begun(q: Stack, norm: float) -> State:
    """Starting point by mirror descent: prices follow use, fractions follow worth over cost."""
    crowd = np.maximum(np.add.reduce(q.usable, axis=0), 1)
    z = np.where(q.usable, 0.7 / crowd, 0.0)
    xi = None if q.limited is None else np.zeros(q.limit.shape)
    gain = np.where(q.usable, q.gain, -np.inf)
    log_v = np.zeros(0)
    for step in range(25):
        if xi is not None:
            full = np.maximum(q.of_limits(z), 1e-300)
            z = z * (0.7 / np.maximum(full, 0.7))[:, None]
            xi = np.maximum(xi + 0.7 * np.maximum(np.log(full / 0.7), -1), 0.0)
        level = q.ratio * np.log(q.user_tasks(z))
        value = gain - (level if xi is None else level + xi)[:, None]
        if step == 0:
            log_v = np.repeat(np.maximum(np.maximum.reduce(value, axis=0), -1e3)[None], len(q.rows), axis=0)
        change = np.log(np.maximum(q.used(z), 1e-300) / 0.7)
        log_v = log_v + 0.7 * np.minimum(np.maximum(change, -1), 1)
        z = np.minimum(z * np.exp(np.minimum(np.maximum(0.7 * (value - q.costs(log_v)[0]), -2), 2)), 1.0)
    x = q.user_tasks(z)
    z = np.where(q.usable, np.maximum(z, np.minimum(0.02 * x[:, None] / q.size, 0.07 / crowd)), 0.0)
    z = z * (0.9 / np.maximum(np.maximum.reduce(q.used(z), axis=0), 0.9))
    left = None
    if xi is not None:
        z = z * (0.9 / np.maximum(q.of_limits(z), 0.9))[:, None]
        xi = np.where(q.limited, np.maximum(xi, 0.1), 0.0)
        left = np.where(q.limited, np.maximum(1 - q.of_limits(z), 0.1), 1.0)
    # A row that idles costs the first user to whom that matters a part of what it pays: Newton's method sees it.
    least = np.minimum.reduce(q.costs(log_v)[0] - q.log_use / q.power, axis=1)
    log_v = np.where(q.rows, np.maximum(log_v, least + np.log(0.3) / q.power), 0.0)
    idle = np.where(q.rows, np.maximum(1 - q.used(z), 0.1), 1.0)
    at = State(z, z, np.ones(idle.shape), idle, xi, left, log_v, np.minimum(q.power, norm))
    at.s = np.where(q.usable, np.maximum(q.slacks(z, log_v, xi, at.norm)[1], 0.1), 1.0)
    return at


def _mu_after(q: Stack, at: State, now: Measured, d: Direction, length: Array, count: Array) -> Array:
    there = at.after(d, length)
    mu = np.add.reduce(there.z * there.s / now.omega, axis=(0, 1)) + np.add.reduce(there.m * there.w * q.rows, (0, 1))
    return np.asarray((mu if there.xi is None else mu + np.add.reduce(there.xi * there.left, axis=0)) / count)


def stepped(q: Stack, at: State, now: Measured, count: Array, soft: float) -> tuple[State, Measured, Array]:
    """Take one predictor-corrector step: the next state, its residuals, and the step length."""
    mu = now.mu
    norm = np.minimum(q.power, np.maximum(at.norm, soft / mu))
    if (norm > at.norm).any():
        at.norm = norm
        now = measured(q, at, count)
    system = System(q, at, now)
    d = system.direction(np.zeros_like(mu), None)
    full = np.minimum(at.longest(d), 1.0)
    target = np.maximum((_mu_after(q, at, now, d, full, count) / mu) ** 3, 0.5 * (1 - full) ** 3)
    target = np.minimum(np.maximum(target, 1e-6), 0.5) * mu
    target = np.where(mu > 1e-4, np.maximum(target, 0.005 * now.residual), target)
    d = system.direction(np.maximum(target, 1e-22), d, full * full)
    length = np.minimum(at.longest(d) * np.maximum(0.95, 1 - np.sqrt(10 * mu)), 1.0)
    for _ in range(8):
        new = at.after(d, length)
        then = measured(q, new, count)
        worse = ~(then.residual + then.mu <= 2 * (now.residual + mu) + 1e-9)
        if not worse.any():
            break
        length = np.where(worse, length / 2, length)
    return new, then, length


@dataclass
class Answers:
    """Solutions of a stack: fractions (N, K, B), log prices of whole capacities (R, K, B), errors and steps (B,)."""

    z: Array
    log_rows: Array
    error: Array
    steps: Index

    def better(self, at: Index, z: Array, log_rows: Array, error: Array) -> None:
        """Keep solutions of smaller error, by problem."""
        some = error < self.error[at]
        self.z[..., at[some]], self.log_rows[..., at[some]] = z[..., some], log_rows[..., some]
        self.error[at[some]] = error[some]


@dataclass
class _Run:
    """Problems of a stack that are not finished, all at the same iteration."""

    q: Stack
    at: State
    now: Measured
    count: Array
    live: Index
    last: Array  # (B,), the error of the last look
    waited: Index  # (B,), looks that gained little

    def only(self, go: Mask) -> None:
        """Drop the other problems."""
        if not go.all():
            self.q, self.at, self.now = self.q.some(go), of_some(self.at, go), of_some(self.now, go)
            self.count, self.live = self.count[go], self.live[go]
            self.last, self.waited = self.last[go], self.waited[go]


def solved(q: Stack, tol: float, aim: float, most: int = 60) -> Answers:
    """Solve a stack: a run ends at an error of `aim` or when it stalls; above `tol` there is a second run.

    Sums over rows have an exponent of at least 4 (8), and soft/mu: prices that are far below others are seen.
    """
    found = Answers(
        np.zeros(q.gamma.shape),
        np.full(q.rows.shape, -np.inf),
        np.full(len(q.alpha), np.inf),
        np.zeros(len(q.alpha), np.intp),
    )
    nobody = ~q.usable.any(axis=(0, 1))
    found.error[nobody] = 0.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        for norm, soft in ((4.0, 0.005), (8.0, 0.02)):
            todo = np.flatnonzero(~(found.error <= tol))
            if len(todo):
                _attempt(q if len(todo) == len(q.alpha) else q.some(todo), todo, found, aim, most, norm, soft)
    return found


def _attempt(q: Stack, live: Index, found: Answers, aim: float, most: int, norm: float, soft: float) -> None:
    count = np.add.reduce(q.usable, axis=(0, 1)) + np.add.reduce(q.rows, axis=(0, 1))
    count = np.asarray(count if q.limited is None else count + np.add.reduce(q.limited, axis=0), dtype=float)
    at = begun(q, norm)
    nothing = np.full(len(live), np.inf), np.zeros(len(live), np.intp)
    run = _Run(q, at, measured(q, at, count), count, live, *nothing)
    for _ in range(most):
        look = run.now.mu < 1e-7
        if look.any():
            _looked(run, look, found, aim)
            run.only(~(found.error[run.live] <= aim) & (run.waited <= 5))
        if not len(run.live):
            return
        run.at, run.now, length = stepped(run.q, run.at, run.now, run.count, soft)
        found.steps[run.live] += 1
        run.only(length > 1e-8)
        if not len(run.live):
            return


def _looked(run: _Run, look: Mask, found: Answers, aim: float) -> None:
    """Certify iterates, and refine those whose error no longer falls."""
    q, at, now = run.q, run.at, run.now
    if not look.all():
        q, at, now = q.some(look), of_some(at, look), of_some(now, look)
    live, before = run.live[look], run.last[look]
    log_v = at.log_v(q)
    z, rows = np.where((now.part < at.s) & (now.part < 1e-6), 0.0, at.z), np.where(q.rows, q.power * log_v, -np.inf)
    error = backward_errors(q, z, rows, on_the_way=True)
    found.better(live, z, rows, error)
    for k in np.flatnonzero((error > np.maximum(1e-9, 0.1 * before)) & np.isfinite(before)):
        one = np.arange(len(live)) == k
        own = of_some(at, one)
        binding = None if own.xi is None else (own.xi > own.left) & q.limited[..., one]
        pairs, rows_on = (now.part > at.s)[..., one] & q.usable[..., one], (own.m > own.w) & q.rows[..., one]
        found.better(live[one], *refined(q.some(one), own.z, log_v[..., one], own.xi, pairs, rows_on, binding, aim))
    run.waited[look] = np.where(error < 0.9 * before, 0, run.waited[look] + 1)
    run.last[look] = error
