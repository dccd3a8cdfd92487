"""One small problem by the kernel of its kind, as an engine's answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import _clock
from ...certificates.ill_scaled import SEEN
from ...core.solve import finite
from ...model.problem import Problem
from ..base import Run, Solution
from . import kinds
from .options import LIMIT
from .stack import ALL, SHORT, Effort, Stacked, stacked

Array = NDArray[np.float64]


@dataclass(frozen=True)
class KernelOptions:
    """How far kernels for small problems go."""

    #: Kernels go on to this error, where last digits need not be looked for,
    fine: float = 1e-12
    #: but never end above this part of a tolerance.
    aim: float = 0.1
    #: An error that says that the last digits are found.
    digits: float = 1e-10
    #: Users who lack less than this part of their task count are held by it.
    binds: float = 1e-6
    #: Up to this number of pairs all attempts of a kernel are made.
    tiny: int = 30


#: What is used unless a caller says otherwise.
OPTIONS = KernelOptions()


class _Answer(NamedTuple):
    """Who found it, tasks (users, servers), the kernel's own certificate, log prices per resource unit, and steps."""

    by: str
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
    if kind in (None, "efficient") or not kinds.fastest(kind, problem.cluster, alpha) or _trivial(problem, kind):
        return  # of several optima at alpha = 0 the interior point finds one that depends on no order
    if kind == "psdsf" and pairs > OPTIONS.tiny and not (problem.cluster.demand > 0).all():
        return  # as a rule something is decided by rounding there
    begun = _clock.now()
    effort = ALL if pairs <= OPTIONS.tiny else SHORT
    build, begun = _clock.now() - begun, _clock.now()
    if kind == "leximin":
        found = _leximin(problem, stacked([problem]))
    elif kind == "psdsf":
        found = _limit(problem, tol, effort)
    else:
        found = _equilibrium(problem, kind, tol)
    fine = bool(found.certificate <= min(OPTIONS.digits, tol))
    if fine or (found.certificate <= tol and effort is ALL):
        run = Run(found.by, "converged", 0.0, _clock.now() - begun, float(found.certificate))
        log = found.log_prices
        yield Solution(found.tasks, None, engine, (run,), build, found.steps, "converged", log=log, fine=fine)


def _trivial(problem: Problem, kind: kinds.Kind) -> bool:
    """Is it answered exactly without a kernel: by water filling, or because one server has room for all tasks?"""
    cluster, limits = problem.cluster, problem.limits
    if kind == "per_server" or len(cluster.servers) > 1:
        return kind == "per_server"
    whole = kind == "global" and bool(np.isfinite(limits).all())
    return kind == "leximin" or (whole and bool((limits @ cluster.demand <= cluster.capacity[0]).all()))


def _leximin(problem: Problem, data: Stacked) -> _Answer:
    """Max-min over servers; none where rounding may hide a user."""
    from . import batches

    tasks, certificate, prices, scaling, rounds = batches.leximins(*data)
    with np.errstate(divide="ignore"):
        log = np.log(prices[0, : max(rounds[0], 0)])
    known = np.inf if scaling[0] < SEEN else certificate[0]
    return _Answer("dense simplex", tasks[0], known, _per_unit(problem, log), int(rounds[0]))


def _limit(problem: Problem, tol: float, effort: Effort) -> _Answer:
    """PS-DSF, where it is the limit for certain."""
    tasks, certificate, certain = limits([problem], min(OPTIONS.aim * tol, 1e-9), effort._replace(alphas=1, rounds=0))
    return _Answer("dense limit", tasks[0], certificate[0] if certain[0] else np.inf, None, 1)


def limits(problems: list[Problem], tol: float, effort: Effort) -> tuple[Array, Array, NDArray[np.bool_]]:
    """PS-DSF of problems of one shape: tasks, certificates, and whether they are limits for certain.

    From equilibria at one large alpha after the other, where those before did not lead to `tol`.
    """
    from . import batches

    data, count = stacked(problems), len(problems)
    tasks, certain = np.zeros(data.eligible.shape), np.zeros(count, dtype=bool)
    certificate = np.where([len(one.polytope.users) > 0 for one in problems], np.inf, 0.0)
    certain[certificate == 0] = True
    for alpha in LIMIT.large[: effort.alphas]:
        todo = np.flatnonzero(certificate > tol)
        if not len(todo):
            break
        found = finite([problems[k] for k in todo], LIMIT.reached, LIMIT.near, np.full(len(todo), alpha), effort.steps)
        near, log_rows = np.full(tasks.shape, np.nan), np.full(data.capacity.shape, -np.inf)
        good = found.certificate <= LIMIT.reached
        near[todo[good]], log_rows[todo[good]] = found.tasks[good], found.log_rows[good]
        batches.limits(*data, alpha, tol, effort.rounds, near, log_rows, tasks, certificate, certain)
    return tasks, certificate, certain


def _equilibrium(problem: Problem, kind: kinds.Kind, tol: float) -> _Answer:
    """Finite alpha. Where a task count binds equilibria of the game are many: none, so that size does not choose."""
    found = finite([problem], OPTIONS.aim * tol, min(OPTIONS.aim * tol, OPTIONS.fine))
    tasks, certificate = found.tasks[0], float(found.certificate[0])
    bound = (tasks.sum(axis=1) >= problem.limits * (1 - OPTIONS.binds)) & (problem.limits > 0)
    known = np.inf if kind == "game" and bound.any() else certificate
    return _Answer("dense interior point", tasks, known, _per_unit(problem, found.log_rows[0]), int(found.steps[0]))


def _per_unit(problem: Problem, log_rows: Array) -> Array:
    """Log prices of whole capacities (..., servers, resources) to those per resource unit, -inf for none."""
    nothing = np.full(log_rows.shape, -np.inf)
    with np.errstate(divide="ignore"):
        return np.asarray(
            np.subtract(log_rows, np.log(problem.cluster.capacity), out=nothing, where=log_rows > -np.inf)
        )
