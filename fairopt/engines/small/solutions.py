"""One small problem by the kernel of its kind, as an engine's answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import _clock
from ...certificates.ill_scaled import SEEN
from ...model.problem import Problem
from ..base import Run, Solution
from . import kinds
from .stack import ALL, SHORT, Stacked, stacked

Array = NDArray[np.float64]

#: Kernels go on to this error, where last digits need not be looked for, but never end above this part of a tolerance.
_FINE, _AIM = 1e-12, 0.1
#: An error that says that the last digits are found.
_DIGITS = 1e-10
#: Users who lack less than this part of their task count are held by it.
_BINDS = 1e-6
#: Up to this number of pairs all attempts of a kernel are made.
_TINY = 30


class _Answer(NamedTuple):
    """Tasks (users, servers), the kernel's own certificate, log prices per resource unit, and steps."""

    tasks: Array
    certificate: float
    log_prices: Array | None
    steps: int


def solutions(problem: Problem, tol: float, engine: str) -> Iterator[Solution]:
    """The answer of a kernel, if the problem is small and the kernel's own certificate reaches `tol`.

    Of all but the smallest problems with the last digits only, which other engines find as fast.
    """
    kind = kinds.kind_of(problem.criterion)
    pairs, alpha = problem.cluster.shape[0] * problem.cluster.shape[1], problem.criterion.alpha
    if kind is None or not kinds.small_enough(kind, pairs, alpha) or _trivial(problem, kind):
        return
    if kind == "psdsf" and pairs > _TINY and not (problem.cluster.demand > 0).all():
        return  # as a rule something is decided by rounding there
    begun = _clock.now()
    from . import batches

    data = stacked([problem])
    effort = ALL if pairs <= _TINY else SHORT
    build, begun = _clock.now() - begun, _clock.now()
    with np.errstate(divide="ignore"):
        log_capacity = np.log(problem.cluster.capacity)
    if kind == "leximin":
        found, name = _leximin(data, log_capacity), "dense simplex"
    elif kind == "psdsf":
        tasks, certificate, certain = batches.limits(*data, min(_AIM * tol, 1e-9), effort.steps, 1, 0)
        found, name = _Answer(tasks[0], certificate[0] if certain[0] else np.inf, None, 1), "dense limit"
    else:
        aims = _AIM * tol, min(_AIM * tol, _FINE)
        tasks, certificate, log_rows, steps = batches.equilibria(
            kind == "game", *data, np.array([problem.criterion.alpha]), *aims, effort.steps
        )
        found = _Answer(tasks[0], certificate[0], _per_unit(log_rows[0], log_capacity), int(steps[0]))
        name = "dense interior point"
        if kind == "game" and _limited(found.tasks, problem.limits):
            return
    fine = bool(found.certificate <= min(_DIGITS, tol))
    if fine or (found.certificate <= tol and effort is ALL):
        run = Run(name, "converged", 0.0, _clock.now() - begun, float(found.certificate))
        yield Solution(
            found.tasks,
            None,
            engine,
            (run,),
            build,
            found.steps,
            "converged",
            log=found.log_prices,
            fine=fine,
        )


def _trivial(problem: Problem, kind: kinds.Kind) -> bool:
    """Is it answered exactly without a kernel: by water filling, or because one server has room for all tasks?"""
    cluster, limits = problem.cluster, problem.limits
    if kind == "each" or len(cluster.servers) > 1:
        return kind == "each"
    whole = kind == "global" and bool(np.isfinite(limits).all())
    return kind == "leximin" or (whole and bool((limits @ cluster.demand <= cluster.capacity[0]).all()))


def _limited(tasks: Array, limits: Array) -> bool:
    """Does a task count bind? Then equilibria of the game are many, and that of the engine for any size is taken."""
    return bool(((tasks.sum(axis=1) >= limits * (1 - _BINDS)) & (limits > 0)).any())


def _leximin(data: Stacked, log_capacity: Array) -> _Answer:
    from . import batches

    tasks, certificate, prices, scaling, rounds = batches.leximins(*data)
    if scaling[0] < SEEN:
        return _Answer(tasks[0], np.inf, None, 0)
    with np.errstate(divide="ignore"):
        log = np.log(prices[0, : max(rounds[0], 0)])
    return _Answer(tasks[0], certificate[0], _per_unit(log, log_capacity), int(rounds[0]))


def _per_unit(log_rows: Array, log_capacity: Array) -> Array:
    """Log prices of whole capacities (..., servers, resources) to those per resource unit, -inf for none."""
    return np.asarray(
        np.subtract(log_rows, log_capacity, out=np.full(log_rows.shape, -np.inf), where=log_rows > -np.inf)
    )
