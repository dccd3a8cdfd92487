r"""Primal-dual interior-point method for stacks of problems: Mehrotra's predictor-corrector method.

The complementarity products of `system` are driven to zero along the central path,

.. math:: z_{nk} s_{nk} = \mu \omega_{nk}, \qquad m_{kr} w_{kr} = \mu, \qquad \xi_n w_n = \mu, \qquad \mu \to 0,

from a starting point by mirror descent. Iterates with a small mu are certified by their backward error (`judge`), and
refined on their active set (`active_set`) once the error no longer decreases.

Source: S. Mehrotra, "On the implementation of a primal-dual interior point method" (1992), SIAM Journal on Optimization
2, 575-601. https://doi.org/10.1137/0802028
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..model._arrays import Array, Index, Mask
from .accuracy import NEGLIGIBLE, SINGLE_ROUNDING, VISIBLE
from .active_set import refined
from .central_path import (
    DAMPING,
    DESCENTS,
    FULL,
    HALVINGS,
    LARGE_MU,
    LEAST,
    LEAST_CENTRING,
    LEAST_OF_TASKS,
    LEAST_PART,
    LEAST_SHARE,
    LOAD,
    MERIT_ROUNDING,
    PATIENCE,
    PROGRESS,
    RESIDUAL_CENTRING,
    TO_BOUNDARY,
)  # fmt: skip
from .factors import LOG_RANGE, TINY
from .judge import backward_errors
from .newton import System
from .state import LARGEST_POWER, Direction, Measured, State, measured
from .system import Stack, select

#: First exponent of the sums over rows in costs, and lower bound of its product with mu, for each of two attempts
#: (`solved`). The second attempt solves problems in which the steps of the first attempt become short.
_ATTEMPTS = (LARGEST_POWER, 0.005), (2 * LARGEST_POWER, 0.02)
#: Largest number of iterations of an attempt (`_ITERATIONS`), and step length below which it ends (`_SHORTEST`).
_ITERATIONS, _SHORTEST = 60, 1e-8
#: Iterates are certified if mu is below this value.
_SMALL_MU = SINGLE_ROUNDING
#: Largest centring parameter.
_MOST_CENTRING = 0.5
#: Pairs with at most this part of their user's tasks, and a larger slack, get no tasks in a certified iterate.
_EMPTY = VISIBLE
#: An iterate is refined if its backward error exceeds `_REFINED_ABOVE`, and also the fraction `_CONVERGING` of the
#: error of the iterate before.
_REFINED_ABOVE, _CONVERGING = NEGLIGIBLE, 0.1


def starting_point(q: Stack, norm: float) -> State:
    r"""Starting point by mirror descent on log prices and log fractions, which are then moved away from their bounds.

    In each of `DESCENTS` iterations prices follow the use of rows, and fractions the reduced costs, with the target use
    `LOAD` = 0.7 and damping eta = `DAMPING` of bounded changes,

    .. math::
        \log v_{kr} \leftarrow \log v_{kr} + \eta \log \frac{\sum_n D_{nkr} z_{nk}}{0.7}, \qquad
        \log z_{nk} \leftarrow \log z_{nk} - \eta\, s_{nk},

    from an equal split of every server, and prices equal to the largest marginal utility on it. Prices of limits follow
    the use of limits in the same way.

    Parameters
    ----------
    norm : upper bound of the exponent of sums over rows in costs
    """
    contention = np.maximum(np.add.reduce(q.usable, axis=0), 1)
    z = np.where(q.usable, LOAD / contention, 0.0)
    xi = None if q.limited is None else np.zeros(q.limit.shape)
    gain = np.where(q.usable, q.gain, -np.inf)
    log_v = np.zeros(0)
    for iteration in range(DESCENTS):
        if xi is not None:
            limit_use = np.maximum(q.of_limits(z), TINY)
            z = z * (LOAD / np.maximum(limit_use, LOAD))[:, None]
            xi = np.maximum(xi + DAMPING * np.maximum(np.log(limit_use / LOAD), -1), 0.0)
        level = q.ratio * np.log(q.user_tasks(z))
        marginal = gain - (level if xi is None else level + xi)[:, None]
        if iteration == 0:
            log_v = np.repeat(np.maximum(np.maximum.reduce(marginal, axis=0), -LOG_RANGE)[None], len(q.rows), axis=0)
        change = np.log(np.maximum(q.used(z), TINY) / LOAD)
        log_v = log_v + DAMPING * np.minimum(np.maximum(change, -1), 1)
        z = np.minimum(z * np.exp(np.minimum(np.maximum(DAMPING * (marginal - q.costs(log_v)[0]), -2), 2)), 1.0)
    x = q.user_tasks(z)
    z = np.where(
        q.usable, np.maximum(z, np.minimum(LEAST_OF_TASKS * x[:, None] / q.size, LEAST_PART / contention)), 0.0
    )
    z = z * (FULL / np.maximum(np.maximum.reduce(q.used(z), axis=0), FULL))
    left = None
    if xi is not None:
        z = z * (FULL / np.maximum(q.of_limits(z), FULL))[:, None]
        xi = np.where(q.limited, np.maximum(xi, LEAST), 0.0)
        left = np.where(q.limited, np.maximum(1 - q.of_limits(z), LEAST), 1.0)
    # Costs have no derivative in the log of a price of zero: the share of every row in the cost of some pair is
    # therefore at least `LEAST_SHARE`.
    least = np.minimum.reduce(q.costs(log_v)[0] - q.log_use / q.power, axis=1)
    log_v = np.where(q.rows, np.maximum(log_v, least + np.log(LEAST_SHARE) / q.power), 0.0)
    idle = np.where(q.rows, np.maximum(1 - q.used(z), LEAST), 1.0)
    at = State(z, z, np.ones(idle.shape), idle, xi, left, log_v, np.minimum(q.power, norm))
    at.s = np.where(q.usable, np.maximum(q.slacks(z, log_v, xi, at.norm)[1], LEAST), 1.0)
    return at


def _mu_along(q: Stack, at: State, now: Measured, d: Direction, length: Array, count: Array) -> Array:
    """Mean scaled complementarity product mu (B,) after a step of a `length` (B,)."""
    trial = at.after(d, length)
    mu = np.add.reduce(trial.z * trial.s / now.omega, axis=(0, 1)) + np.add.reduce(trial.m * trial.w * q.rows, (0, 1))
    return np.asarray((mu if trial.xi is None else mu + np.add.reduce(trial.xi * trial.left, axis=0)) / count)


def predictor_corrector(q: Stack, at: State, now: Measured, count: Array, soft: float) -> tuple[State, Measured, Array]:
    """Take one predictor-corrector step; return the next iterate, its residuals, and the step length (B,).

    The step is halved, at most `HALVINGS` times, while the merit function, residual plus mu, more than doubles.
    `soft / mu` bounds the exponent of sums over rows from below, so that it tends to A with mu.
    """
    mu = now.mu
    norm = np.minimum(q.power, np.maximum(at.norm, soft / mu))
    if (norm > at.norm).any():
        at.norm = norm
        now = measured(q, at, count)
    system = System(q, at, now)
    d = system.direction(np.zeros_like(mu), None)
    affine_length = np.minimum(at.longest(d), 1.0)
    target = np.maximum((_mu_along(q, at, now, d, affine_length, count) / mu) ** 3, 0.5 * (1 - affine_length) ** 3)
    target = np.minimum(np.maximum(target, LEAST_CENTRING), _MOST_CENTRING) * mu
    target = np.where(mu > LARGE_MU, np.maximum(target, RESIDUAL_CENTRING * now.residual), target)
    d = system.direction(np.maximum(target, TINY), d, affine_length * affine_length)
    length = np.minimum(at.longest(d) * np.maximum(TO_BOUNDARY, 1 - np.sqrt(10 * mu)), 1.0)
    for _ in range(HALVINGS):
        trial = at.after(d, length)
        evaluation = measured(q, trial, count)
        worse = ~(evaluation.residual + evaluation.mu <= 2 * (now.residual + mu) + MERIT_ROUNDING)
        if not worse.any():
            break
        length = np.where(worse, length / 2, length)
    return trial, evaluation, length


@dataclass
class Answers:
    """Best iterates: fractions (N, K, B), log prices of whole capacities (R, K, B), errors (B,) and steps (B,)."""

    z: Array
    log_rows: Array
    error: Array
    steps: Index

    def better(self, at: Index, z: Array, log_rows: Array, error: Array) -> None:
        """Replace the solutions of the problems `at` (indices) where the given solutions have a smaller error."""
        improved = error < self.error[at]
        self.z[..., at[improved]], self.log_rows[..., at[improved]] = z[..., improved], log_rows[..., improved]
        self.error[at[improved]] = error[improved]


@dataclass
class _Run:
    """Unfinished problems of a stack, all at the same iteration."""

    q: Stack
    at: State
    now: Measured
    count: Array
    problem: Index
    last_error: Array  # (B,), backward error when last certified
    stalled: Index  # (B,), consecutive certifications without progress

    def only(self, go: Mask) -> None:
        """Keep the problems of the mask `go` (B,)."""
        if not go.all():
            self.q, self.at, self.now = self.q.some(go), select(self.at, go), select(self.now, go)
            self.count, self.problem = self.count[go], self.problem[go]
            self.last_error, self.stalled = self.last_error[go], self.stalled[go]


def solved(q: Stack, tol: float, aim: float, iterations: int = _ITERATIONS) -> Answers:
    """Solve a stack, with a second attempt for problems whose backward error exceeds `tol`.

    An attempt ends at a backward error of `aim`, or when the error no longer decreases. The exponent of sums over rows
    begins at 4 (second attempt: 8) and grows like soft/mu: at small exponents prices far below the prices of other rows
    still have a share in costs, and a derivative. Problems without a usable pair have no tasks, and the error 0.
    """
    answers = Answers(
        np.zeros(q.gamma.shape),
        np.full(q.rows.shape, -np.inf),
        np.full(len(q.alpha), np.inf),
        np.zeros(len(q.alpha), np.intp),
    )
    empty = ~q.usable.any(axis=(0, 1))
    answers.error[empty] = 0.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        for norm, soft in _ATTEMPTS:
            pending = np.flatnonzero(~(answers.error <= tol))
            if len(pending):
                _attempt(
                    q if len(pending) == len(q.alpha) else q.some(pending),
                    pending,
                    answers,
                    aim,
                    iterations,
                    norm,
                    soft,
                )
    return answers


def _attempt(q: Stack, problem: Index, answers: Answers, aim: float, iterations: int, norm: float, soft: float) -> None:
    """Iterate problems until they are solved, stall, or have used up their iterations; record the best in `answers`."""
    count = np.add.reduce(q.usable, axis=(0, 1)) + np.add.reduce(q.rows, axis=(0, 1))
    count = np.asarray(count if q.limited is None else count + np.add.reduce(q.limited, axis=0), dtype=float)
    at = starting_point(q, norm)
    history = np.full(len(problem), np.inf), np.zeros(len(problem), np.intp)
    run = _Run(q, at, measured(q, at, count), count, problem, *history)
    for _ in range(iterations):
        ready = run.now.mu < _SMALL_MU
        if ready.any():
            _certify(run, ready, answers, aim)
            run.only(~(answers.error[run.problem] <= aim) & (run.stalled <= PATIENCE))
        if not len(run.problem):
            return
        run.at, run.now, length = predictor_corrector(run.q, run.at, run.now, run.count, soft)
        answers.steps[run.problem] += 1
        run.only(length > _SHORTEST)
        if not len(run.problem):
            return


def _certify(run: _Run, ready: Mask, answers: Answers, aim: float) -> None:
    """Certify the iterates of the mask `ready` (B,), refine those whose backward error has stalled, and record them."""
    q, at, now = run.q, run.at, run.now
    if not ready.all():
        q, at, now = q.some(ready), select(at, ready), select(now, ready)
    problem, previous = run.problem[ready], run.last_error[ready]
    log_v = at.log_v(q)
    z, rows = np.where((now.part < at.s) & (now.part < _EMPTY), 0.0, at.z), np.where(q.rows, q.power * log_v, -np.inf)
    error = backward_errors(q, z, rows, early=True)
    answers.better(problem, z, rows, error)
    for k in np.flatnonzero((error > np.maximum(_REFINED_ABOVE, _CONVERGING * previous)) & np.isfinite(previous)):
        only = np.arange(len(problem)) == k
        iterate = select(at, only)
        binding = None if iterate.xi is None else (iterate.xi > iterate.left) & q.limited[..., only]
        pairs, rows_on = (now.part > at.s)[..., only] & q.usable[..., only], (iterate.m > iterate.w) & q.rows[..., only]
        answers.better(
            problem[only], *refined(q.some(only), iterate.z, log_v[..., only], iterate.xi, pairs, rows_on, binding, aim)
        )
    run.stalled[ready] = np.where(error < PROGRESS * previous, 0, run.stalled[ready] + 1)
    run.last_error[ready] = error
