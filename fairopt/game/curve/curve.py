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
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ... import _clock
from ...certificates.backward import backward_error
from ...core.settled import settled
from ...engines.welfare.served import everybody_served
from ...errors import SolverError
from ...model._arrays import Array
from ...model.problem import Problem
from . import _begin, _steps
from ._system import Active, Game, Place
from .options import OPTIONS, CurveOptions

#: Why the curve was not followed to the end.
_NO_START = "no regular equilibrium was found near alpha = 1"
_SPENT = "the curve takes more steps than allowed"
#: A crossing of which the error is above this is solved again: only the change of the data has given some pairs tasks.
_FINE = 1e-11
_LATE = "it takes too long"
_LARGE = "the cluster has more pairs (user, server) than CurveOptions.most_pairs"


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
    """Jump of the first crossing: the curve turns back at `alpha`, and crosses it again elsewhere."""

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
    bar: Any = None,
) -> Curve:
    """Follow the curve of a game (`problem`, whose alpha is not read) from alpha = 1 to the last of some alphas.

    Parameters
    ----------
    alphas : all above 1, or all below, finite and positive
    seconds : CPU time, looked at now and then
    bar : a progress bar, whose `n` becomes the part of the way in percent
    """
    up = max(alphas) > 1
    end = max(alphas) if up else min(alphas)
    served = everybody_served(problem.polytope)
    if served is not None and len(served):
        # Everybody has all tasks that it may have: nothing has a price, whatever alpha is.
        tasks, free = problem.polytope.allocation(served), np.full(problem.cluster.capacity.shape, -np.inf)
        crossings = tuple(Crossing(one, 1, 0.0, tasks, free) for one in sorted(alphas, reverse=not up))
        return Curve(crossings, (), True, "", 0, end)
    if len(problem.polytope.gamma) > options.most_pairs:
        return Curve((), (), False, _LARGE, 0, 1.0)
    near = min(options.near, max(end, 1 / end))
    begun = _begin.begun(problem, near if up else 1 / near)
    if begun is None:
        return Curve((), (), False, _NO_START, 0, near if up else 1 / near)
    last = _clock.cpu() + seconds
    for shorter in (1.0, 0.3):  # once more by shorter steps where a run fails
        targets = np.log(np.array(sorted(alphas)))
        run = _steps.Run(begun[0], begun[1].copied(), targets, up, options, shorter)
        most, reason = int(options.steps_per_pair * (len(begun[0].user) + 10) * (1 + abs(np.log(end)))), None
        while reason is None:
            reason = run.step()
            if bar is not None and run.steps % 50 == 0:
                bar.n = round(100 * run.at.theta / float(np.log(end)))
                bar.refresh()
            if reason is None and (run.steps >= most or _clock.cpu() > last):
                reason = _SPENT if run.steps >= most else _LATE
        found = _curve(problem, run, sorted(alphas), reason)
        if reason in ("", _LATE):
            break
    if bar is not None:
        bar.n = round(100 * float(np.log(found.alpha) / np.log(end)))
        bar.refresh()
    return found


def _curve(problem: Problem, run: _steps.Run, alphas: Sequence[float], reason: str) -> Curve:
    """Result of a run, on the unperturbed data."""
    crossings, exact = [], Game.of(problem)
    for at, index in run.crossings:
        alpha = alphas[int(np.abs(run.targets - at.theta).argmin())]
        error, tasks, log_rows = _refined(problem, alpha, exact, at)
        crossings.append(Crossing(alpha, index, error, tasks, log_rows))
    whole = np.zeros((2, problem.cluster.shape[0]))
    jumps = []
    for theta, *ends in run.jumps:
        whole[:, problem.polytope.users] = np.array(ends) * run.g.largest
        jumps.append(Jump(float(np.exp(theta)), *whole.copy()))
    return Curve(tuple(crossings), tuple(jumps), not reason, reason, run.steps, float(np.exp(run.at.theta)))


def _refined(problem: Problem, alpha: float, g: Game, at: Place) -> tuple[float, Array, Array]:
    """The certificate, tasks (users, servers) and log prices of whole capacities (servers, resources) of a crossing.

    `g` are the data as they are.
    """
    polytope, rule, there = problem.polytope, replace(problem.criterion, alpha=alpha), at.copied()
    unknowns = Active(g, there)
    if _steps.corrected(unknowns, there, np.empty(0), unknowns.whole, at.theta, 1e-14)[1] is None:
        there = at

    def judged(z: Array, log_rows: Array) -> tuple[float, Array, Array]:
        tasks = polytope.allocation(polytope.inside(z))
        error = backward_error(polytope, rule, tasks, log_rows).error
        return error, tasks, polytope.by_server(log_rows, unused=-np.inf)

    found = judged(np.maximum(there.z, 0.0), there.log_prices(alpha))
    if found[0] > _FINE:
        with suppress(SolverError):
            active = settled(polytope, rule, found[1], there.log_prices(alpha), None)
            better = judged(active.part * active.total[g.user] / polytope.gamma, active.prices[0].log_rows)
            found = min(found, better, key=lambda one: one[0])
    return found
