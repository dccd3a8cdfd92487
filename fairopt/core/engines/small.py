"""Small problems: the dense method of their kind by criterion, up to which size it is fastest, and its answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from ...base import clock
from ...model._arrays import Array
from ...model.cluster import Cluster
from ...model.criterion import Criterion
from ...model.problem import Problem
from .. import maxmin
from ..solution import Run, Solution
from ..solve import Found, finite

#: What kernels solve: max-min over a pool or servers (`leximin`), inside every server, finite alpha, the largest sum of
#: shares (alpha = 0), the game's limit.
Kind = Literal["leximin", "per_server", "global", "efficient", "game", "psdsf"]

#: Pairs (user, server) up to which kernels are faster than the engines for large problems: theirs is dense algebra.
LARGEST: dict[Kind, int] = {
    "leximin": 450,
    "per_server": 10_000,
    "global": 300,
    "efficient": 800,
    "game": 500,
    "psdsf": 400,
}
#: The same above this alpha, where ties of many pairs cost steps.
_STEEP, _LARGEST_STEEP = 5.0, {"global": 80, "game": 250}


#: Kernels of concave programs with alpha of at most `_GENTLE` count usable pairs only, where there are at most `_ROWS`
#: rows, a resource of a server each, and `_PAIRS` pairs in all: their algebra is dense in rows.
_GENTLE, _ROWS, _PAIRS = 2.0, 120, 10_000
#: Most numbers in a tableau of max-min: beyond it the interior point of large problems is faster.
_TABLEAU = 40_000


def small_enough(kind: Kind, pairs: int, alpha: float) -> bool:
    """True if the kernel is usually the fastest, by the number of pairs, usable or not."""
    steep = alpha > _STEEP and kind in _LARGEST_STEEP
    return pairs <= (min(LARGEST[kind], _LARGEST_STEEP[kind]) if steep else LARGEST[kind])


def fastest(kind: Kind, cluster: Cluster, alpha: float) -> bool:
    """True if the kernel is the fastest for a cluster: its pairs, or its usable pairs, are few."""
    users, servers, resources = cluster.shape
    pairs = users * servers
    if kind == "leximin" and pairs * (users + servers * resources) > _TABLEAU:
        return False
    if small_enough(kind, pairs, alpha):
        return True
    concave = (kind == "global" and alpha <= _GENTLE) or (kind == "game" and alpha == 1)
    gentle = concave and servers * resources <= _ROWS and pairs <= _PAIRS
    return gentle and int(np.count_nonzero(cluster.usable)) <= LARGEST["global"]


def kind_of(rule: Criterion) -> Kind | None:
    """Kernel for a criterion; `None` for floors, the game at alpha = 0, and other welfare."""
    if type(rule) is not Criterion or rule.floor.any():
        return None
    if rule.alpha == 0:
        return "efficient" if rule.scope in ("pool", "servers") else None
    if np.isinf(rule.alpha):
        kinds: dict[str, Kind] = {"pool": "leximin", "servers": "leximin", "per_server": "per_server", "game": "psdsf"}
        return kinds[rule.scope]
    if rule.scope == "per_server":
        return None
    return "game" if rule.scope == "game" else "global"


#: Kernels go on to this error, where last digits need not be looked for, but never end above that part of a tolerance.
_FINE, _AIM = 1e-12, 0.1
#: An error that says that the last digits are found.
_DIGITS = 1e-10
#: Users who lack less than this part of their task count are held by it.
_BINDS = 1e-6


class Together:
    """Alphas at which one cluster is to be shared: as a start, the kernel of finite alpha answers them at once."""

    def __init__(self, alphas: Sequence[float]) -> None:
        self.alphas = alphas
        self.cluster: Cluster | None = None
        self.found: dict[float, tuple[Found, float]] = {}

    def at(self, problem: Problem, kind: Kind, tol: float, aim: float) -> tuple[Found, float] | None:
        """Result of a problem as a stack of one, and its part of the seconds; None for another cluster."""
        cluster, alpha = problem.cluster, problem.criterion.alpha
        if self.cluster is None:
            self.cluster, begun = cluster, clock.now()
            some = [one for one in {alpha, *self.alphas} if 0 < one < np.inf and fastest(kind, cluster, one)]
            every = finite([problem] * len(some), tol, aim, np.array(some))
            each = (clock.now() - begun) / max(int(every.steps.sum()), 1)
            for k, one in enumerate(some):
                found = Found(every.tasks[[k]], every.certificate[[k]], every.log_rows[[k]], every.steps[[k]])
                self.found[one] = found, each * int(every.steps[k])
        return self.found.get(alpha) if cluster is self.cluster else None


def solutions(problem: Problem, tol: float, engine: str, warm: object = None) -> Iterator[Solution]:
    """The answer of a kernel, if the problem is small and the kernel's own certificate reaches `tol`."""
    kind, servers = kind_of(problem.criterion), problem.cluster.shape[1]
    # Of several optima at alpha = 0 the interior point finds one that depends on no order; single servers are filled.
    filled = kind == "per_server" or (kind == "leximin" and servers == 1)
    if kind in (None, "efficient", "psdsf") or filled:
        return
    if not fastest(kind, problem.cluster, problem.criterion.alpha):
        return
    begun = clock.now()
    if kind == "leximin":
        by, found = "dense simplex", maxmin.leximin([problem])
        tasks, certificate, steps, seconds = found.tasks, found.certificate, found.rounds, clock.now() - begun
        with np.errstate(divide="ignore"):
            log = np.log(found.prices[0])
    else:
        by, errors = "dense interior point", (_AIM * tol, min(_AIM * tol, _FINE))
        known = warm.at(problem, kind, *errors) if isinstance(warm, Together) else None
        (tasks, certificate, log, steps), seconds = known or (finite([problem], *errors), clock.now() - begun)
        log = log[0]
        # Where a task count binds equilibria of the game are many: none, so that size does not choose.
        bound = (tasks[0].sum(axis=1) >= problem.limits * (1 - _BINDS)) & (problem.limits > 0)
        if kind == "game" and bound.any():
            return
    error, log = float(certificate[0]), _per_unit(problem, log)
    if error <= tol:
        run, fine = Run(by, seconds), error <= _DIGITS
        yield Solution(tasks[0], None, engine, (run,), 0.0, int(steps[0]), "converged", log=log, fine=fine)


def in_levels(problem: Problem, tol: float, engine: str) -> Iterator[Solution]:
    """The best that the kernel of finite alpha finds, if anything, whatever the size: prices in money may be too far
    apart for the engines of large problems."""
    begun = clock.now()
    found = finite([problem], tol, _AIM * tol)
    error, log = float(found.certificate[0]), _per_unit(problem, found.log_rows[0])
    if np.isfinite(error):
        status = "converged" if error <= tol else "not converged"
        run = Run("dense interior point", clock.now() - begun)
        rough = error > tol
        yield Solution(found.tasks[0], None, engine, (run,), 0.0, int(found.steps[0]), status, log=log, rough=rough)


def _per_unit(problem: Problem, log_rows: Array) -> Array:
    """Log prices of whole capacities (..., servers, resources) to those per resource unit, -inf for none."""
    nothing = np.full(log_rows.shape, -np.inf)
    with np.errstate(divide="ignore"):
        return np.asarray(
            np.subtract(log_rows, np.log(problem.cluster.capacity), out=nothing, where=log_rows > -np.inf)
        )
