"""The curve of equilibria through alpha = 1, followed in tasks, prices and log alpha: crossings, indices, jumps.

    {(x, lambda, alpha): x is an equilibrium of alphaPF-VDS with prices lambda}

has, for almost all data, one component through the only equilibrium at alpha = 1: a curve, smooth but where pairs, rows
or limits enter or leave the active set. It may turn back in alpha (a fold); an alpha in a fold has several equilibria,
whose indices alternate along the curve. What `first` means: of all crossings of alpha the one that the curve comes to
first. Where it turns back, the first crossing jumps as alpha goes on.

Source: Keller, "Numerical solution of bifurcation and nonlinear eigenvalue problems" (1977); Allgower and Georg,
"Numerical Continuation Methods" (1990), chapters 6 and 12.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _clock
from ...model.problem import Problem
from .options import OPTIONS, CurveOptions
from .satisfied import satisfied
from .stack import stacked

Array = NDArray[np.float64]

#: How a run ended, by the numbers of `_follow`.
_REASONS = (
    "",
    "no regular equilibrium was found near alpha = 1",
    "no step along the curve is short enough",
    "the curve takes more steps than allowed",
    "the curve is not regular: exact ties",
    "it takes too long",
    "the cluster has more pairs (user, server) than CurveOptions.most_pairs",
)


@dataclass(frozen=True)
class Crossing:
    """An equilibrium where the curve has an alpha that was asked for.

    Attributes
    ----------
    index : +1 or -1; the sum over all equilibria at an alpha is +1, and one of index -1 is unstable
    certificate : the backward error (docs/certificates.md)
    """

    alpha: float
    index: int
    certificate: float
    tasks: Array = field(repr=False)  # (users, servers)
    log_rows: Array = field(repr=False)  # (servers, resources), log prices of whole capacities, -inf for none

    @property
    def user_tasks(self) -> Array:
        """(users,)."""
        return np.asarray(self.tasks.sum(axis=1))


@dataclass(frozen=True)
class Jump:
    """Where the first crossing jumps: the curve turns back at `alpha`, and comes there again elsewhere."""

    alpha: float
    before: Array  # (users,), tasks at the end nearer to alpha = 1, which is the answer at alpha itself
    after: Array


@dataclass(frozen=True)
class Curve:
    """A part of the curve, from alpha = 1 on.

    Attributes
    ----------
    crossings : in the order in which the curve has them
    arrived : did it come to the last alpha asked for?
    reason : why not
    alpha : where it ended
    """

    crossings: tuple[Crossing, ...]
    jumps: tuple[Jump, ...]
    arrived: bool
    reason: str
    steps: int
    alpha: float

    def at(self, alpha: float) -> tuple[Crossing, ...]:
        """All crossings of an alpha that was asked for, the first first."""
        return tuple(one for one in self.crossings if np.isclose(one.alpha, alpha, rtol=1e-12))


def follow(
    problem: Problem,
    alphas: Sequence[float],
    options: CurveOptions = OPTIONS,
    *,
    seconds: float = np.inf,
    most: int = 64,
    bar: Any = None,
) -> Curve:
    """Follow the curve of a game (`problem`, whose alpha is not read) from alpha = 1 to the last of some alphas.

    Parameters
    ----------
    alphas : all above 1, or all below, finite and positive
    seconds : CPU time, looked at now and then
    most : most crossings of each alpha, and most jumps
    bar : a progress bar, whose `n` becomes the part of the way in percent
    """
    up = max(alphas) > 1
    end = max(alphas) if up else min(alphas)
    if (still := satisfied(problem)) is not None:
        return _still(problem, sorted(alphas, reverse=not up), *still)
    if len(problem.polytope.gamma) > options.most_pairs:
        return Curve((), (), False, _REASONS[6], 0, 1.0)
    found = Curve((), (), False, _REASONS[1], 0, 1.0)
    for shorter in options.retries:
        found = _followed(problem, sorted(alphas), up, end, options, options.control(shorter), seconds, most, bar)
        if found.arrived or found.reason == _REASONS[5]:
            break
    return found


def _still(problem: Problem, alphas: Sequence[float], tasks: Array, error: float) -> Curve:
    """The curve where everybody has all tasks that it may have: nothing has a price, whatever alpha is."""
    free = np.full(problem.cluster.capacity.shape, -np.inf)
    return Curve(tuple(Crossing(one, 1, error, tasks, free) for one in alphas), (), True, "", 0, alphas[-1])


def _followed(
    problem: Problem,
    alphas: Sequence[float],
    up: bool,
    end: float,
    options: CurveOptions,
    control: Array,
    seconds: float,
    most: int,
    bar: Any,
) -> Curve:
    """One run."""
    from . import _begin, _follow, _point

    begun = _clock.cpu()
    data = [one[0] for one in stacked([problem])]
    near = min(options.near, max(end, 1 / end)) if up else max(1 / options.near, min(end, 1 / end))
    g, at, sound = _begin.begun(_point.cell_of(near, data), options.begin, options.begin_steps)
    if not sound:
        return Curve((), (), False, _REASONS[1], 0, near)
    pairs, rows, users = len(g.user), len(g.host), len(g.limit)
    records = most * len(alphas)
    z, log_price, xi = np.empty((records, pairs)), np.empty((records, rows)), np.empty((records, users))
    x, theta, index = np.empty((records, users)), np.empty(records), np.empty(records)
    jumps, jump_theta = np.empty((most, 2, users)), np.empty(most)
    memory, before, targets = _follow.memory_of(at, control), np.zeros(users), np.log(np.array(alphas))
    crossed = jumped = steps = 0
    budget = options.steps(pairs, end)
    while True:
        ended, more, turned, taken = _follow.follow(
            g, at, targets, up, min(options.chunk, budget - steps), control, memory, before,
            z[crossed:], log_price[crossed:], xi[crossed:], x[crossed:], theta[crossed:], index[crossed:],
            jumps[jumped:], jump_theta[jumped:],
        )  # fmt: skip
        crossed, jumped, steps = crossed + more, jumped + turned, steps + taken
        if bar is not None:
            bar.n = round(100 * float(at.theta[0]) / np.log(end))
            bar.refresh()
        late = _clock.cpu() - begun > seconds
        if ended != _follow.SPENT or steps >= budget or late:
            break
    reason = _REASONS[5] if late and ended == _follow.SPENT else _REASONS[ended]
    crossings = []
    for k in range(crossed):
        alpha = alphas[int(np.abs(targets - theta[k]).argmin())]
        tasks, log_rows = np.empty(problem.cluster.shape[:2]), np.empty(problem.cluster.capacity.shape)
        error = _point.refined(
            _point.cell_of(alpha, data), g, z[k], log_price[k], xi[k], options.begin, tasks, log_rows, options
        )
        crossings.append(Crossing(alpha, int(index[k]), float(error), tasks, log_rows))
    gamma = problem.cluster.gamma
    unit = np.where(problem.limits > 0, gamma.max(axis=1), 0.0)
    found = tuple(Jump(float(np.exp(jump_theta[k])), jumps[k, 0] * unit, jumps[k, 1] * unit) for k in range(jumped))
    return Curve(tuple(crossings), found, ended == _follow.ARRIVED, reason, steps, float(np.exp(at.theta[0])))
