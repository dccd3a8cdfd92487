"""One small problem by the dense method of its kind, as an engine's answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ... import _clock
from ...core import maxmin
from ...core.solve import Found, finite
from ...model._arrays import Array
from ...model.cluster import Cluster
from ...model.problem import Problem
from ..base import Run, Solution
from . import kinds

#: Kernels go on to this error, where last digits need not be looked for, but never end above that part of a tolerance.
_FINE, _AIM = 1e-12, 0.1
#: An error that says that the last digits are found.
_DIGITS = 1e-10
#: Users who lack less than this part of their task count are held by it.
_BINDS = 1e-6
#: Up to this number of pairs all attempts of a kernel are made.
_TINY = 30


class Together:
    """Alphas at which one cluster is to be shared: as a start, the kernel of finite alpha answers them at once."""

    def __init__(self, alphas: Sequence[float]) -> None:
        self.alphas = alphas
        self.cluster: Cluster | None = None
        self.found: dict[float, tuple[Found, float]] = {}

    def at(self, problem: Problem, kind: kinds.Kind, tol: float, aim: float) -> tuple[Found, float] | None:
        """Result of a problem as a stack of one, and its part of the seconds; None for another cluster."""
        cluster, alpha = problem.cluster, problem.criterion.alpha
        if self.cluster is None:
            self.cluster, begun = cluster, _clock.now()
            some = [one for one in {alpha, *self.alphas} if 0 < one < np.inf and kinds.fastest(kind, cluster, one)]
            every = finite([problem] * len(some), tol, aim, np.array(some))
            each = (_clock.now() - begun) / max(int(every.steps.sum()), 1)
            for k, one in enumerate(some):
                found = Found(every.tasks[[k]], every.certificate[[k]], every.log_rows[[k]], every.steps[[k]])
                self.found[one] = found, each * int(every.steps[k])
        return self.found.get(alpha) if cluster is self.cluster else None


def solutions(problem: Problem, tol: float, engine: str, warm: object = None) -> Iterator[Solution]:
    """The answer of a kernel, if the problem is small and the kernel's own certificate reaches `tol`.

    Of all but the smallest problems with the last digits only, which other engines find as fast.
    """
    kind, (users, servers, _) = kinds.kind_of(problem.criterion), problem.cluster.shape
    # Of several optima at alpha = 0 the interior point finds one that depends on no order; single servers are filled.
    filled = kind == "per_server" or (kind == "leximin" and servers == 1)
    if kind in (None, "efficient", "psdsf") or filled:
        return
    if not kinds.fastest(kind, problem.cluster, problem.criterion.alpha):
        return
    begun = _clock.now()
    if kind == "leximin":
        by, found = "dense simplex", maxmin.leximin([problem])
        tasks, certificate, steps, seconds = found.tasks, found.certificate, found.rounds, _clock.now() - begun
        with np.errstate(divide="ignore"):
            log = np.log(found.prices[0])
    else:
        by, errors = "dense interior point", (_AIM * tol, min(_AIM * tol, _FINE))
        known = warm.at(problem, kind, *errors) if isinstance(warm, Together) else None
        (tasks, certificate, log, steps), seconds = known or (finite([problem], *errors), _clock.now() - begun)
        log = log[0]
        # Where a task count binds equilibria of the game are many: none, so that size does not choose.
        bound = (tasks[0].sum(axis=1) >= problem.limits * (1 - _BINDS)) & (problem.limits > 0)
        if kind == "game" and bound.any():
            return
    error, log = float(certificate[0]), _per_unit(problem, log)
    fine = error <= min(_DIGITS, tol)
    if fine or (error <= tol and users * servers <= _TINY):
        run = Run(by, seconds)
        yield Solution(tasks[0], None, engine, (run,), 0.0, int(steps[0]), "converged", log=log, fine=fine)


def in_levels(problem: Problem, tol: float, engine: str) -> Iterator[Solution]:
    """The best that the kernel of finite alpha finds, if anything, whatever the size: prices in money may be too far
    apart for the engines of large problems."""
    begun = _clock.now()
    found = finite([problem], tol, _AIM * tol)
    error, log = float(found.certificate[0]), _per_unit(problem, found.log_rows[0])
    if np.isfinite(error):
        status = "converged" if error <= tol else "not converged"
        run = Run("dense interior point", _clock.now() - begun)
        rough = error > tol
        yield Solution(found.tasks[0], None, engine, (run,), 0.0, int(found.steps[0]), status, log=log, rough=rough)


def _per_unit(problem: Problem, log_rows: Array) -> Array:
    """Log prices of whole capacities (..., servers, resources) to those per resource unit, -inf for none."""
    nothing = np.full(log_rows.shape, -np.inf)
    with np.errstate(divide="ignore"):
        return np.asarray(
            np.subtract(log_rows, np.log(problem.cluster.capacity), out=nothing, where=log_rows > -np.inf)
        )
