"""Engine of small problems: dense methods by kind of criterion, and the sizes up to which they are fastest."""

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
from ..accuracy import CONVERGED, REFINED, VISIBLE
from ..solution import Run, Solution
from ..solve import Found, finite

#: Kinds of problems with a dense method: max-min over a pool or servers (`leximin`), max-min of every server by itself
#: (`per_server`), welfare at finite alpha > 0 (`global`) and at alpha = 0 (`efficient`), the game at finite alpha
#: (`game`), and its limit PS-DSF (`psdsf`).
Kind = Literal["leximin", "per_server", "global", "efficient", "game", "psdsf"]

#: Number of pairs (user, server) up to which dense methods are faster than the engines for large problems (measured).
LARGEST: dict[Kind, int] = {
    "leximin": 450,
    "per_server": 10_000,
    "global": 300,
    "efficient": 800,
    "game": 500,
    "psdsf": 400,
}
#: Alpha above which dense methods take many steps, as active sets are nearly degenerate (`_LARGE_ALPHA`), and numbers
#: of pairs up to which they are nevertheless fastest (`_LARGEST_AT_LARGE_ALPHA`).
_LARGE_ALPHA, _LARGEST_AT_LARGE_ALPHA = 5.0, {"global": 80, "game": 250}


#: For concave programs with alpha up to `_SMALL_ALPHA`, of at most `_MOST_ROWS` rows (server, resource) and
#: `_MOST_PAIRS` pairs, only usable pairs count, since the Schur complement is over rows.
_SMALL_ALPHA, _MOST_ROWS, _MOST_PAIRS = 2.0, 120, 10_000
#: Tableau entries of max-min above which the interior-point method for large problems is faster (measured).
_TABLEAU_ENTRIES = 40_000


def small_enough(kind: Kind, pairs: int, alpha: float) -> bool:
    """True if the dense method is usually the fastest, by the number of pairs, eligible or not."""
    large_alpha = alpha > _LARGE_ALPHA and kind in _LARGEST_AT_LARGE_ALPHA
    return pairs <= (min(LARGEST[kind], _LARGEST_AT_LARGE_ALPHA[kind]) if large_alpha else LARGEST[kind])


def fastest(kind: Kind, cluster: Cluster, alpha: float) -> bool:
    """True if the dense method is the fastest for a cluster, by the numbers of its pairs, usable pairs and rows."""
    users, servers, resources = cluster.shape
    pairs = users * servers
    if kind == "leximin" and pairs * (users + servers * resources) > _TABLEAU_ENTRIES:
        return False
    if small_enough(kind, pairs, alpha):
        return True
    concave = (kind == "global" and alpha <= _SMALL_ALPHA) or (kind == "game" and alpha == 1)
    few_rows = concave and servers * resources <= _MOST_ROWS and pairs <= _MOST_PAIRS
    return few_rows and int(np.count_nonzero(cluster.usable)) <= LARGEST["global"]


def kind_of(rule: Criterion) -> Kind | None:
    """Kind of a criterion; None for floors, the game at alpha = 0, other welfare functions, and finite `per_server`."""
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


#: Dense methods end at the backward error `_FINEST`, or at the fraction `_AIM_OF_TOL` of the tolerance if this is less.
_FINEST, _AIM_OF_TOL = CONVERGED, 0.1
#: Backward error below which no refinement is needed.
_TO_ROUNDING = REFINED
#: Relative slack of a task limit below which it counts as binding.
_BINDING = VISIBLE


class Together:
    """Warm start of a path in alpha: the dense method solves one cluster at all alphas as one stack."""

    def __init__(self, alphas: Sequence[float]) -> None:
        self.alphas = alphas
        self.cluster: Cluster | None = None
        self.found: dict[float, tuple[Found, float]] = {}

    def at(self, problem: Problem, kind: Kind, tol: float, aim: float) -> tuple[Found, float] | None:
        """Solution at the alpha of a problem, and its part of the CPU seconds.

        The first call solves its cluster at all alphas together; later calls return one of these solutions, or None for
        another cluster or another alpha.
        """
        cluster, alpha = problem.cluster, problem.criterion.alpha
        if self.cluster is None:
            self.cluster, begun = cluster, clock.cpu()
            alphas = [one for one in {alpha, *self.alphas} if 0 < one < np.inf and fastest(kind, cluster, one)]
            stack = finite([problem] * len(alphas), tol, aim, np.array(alphas))
            per_step = (clock.cpu() - begun) / max(int(stack.steps.sum()), 1)
            for k, one in enumerate(alphas):
                found = Found(stack.tasks[[k]], stack.certificate[[k]], stack.log_rows[[k]], stack.steps[[k]])
                self.found[one] = found, per_step * int(stack.steps[k])
        return self.found.get(alpha) if cluster is self.cluster else None


def solutions(problem: Problem, tol: float, engine: str, warm: object = None) -> Iterator[Solution]:
    """Yield at most one candidate, of the dense method that is fastest for a small problem.

    Max-min over several servers is solved by the dense simplex method, welfare and the game at finite alpha > 0 by the
    dense interior-point method, at all alphas of a path together if `warm` is a `Together`. There is no candidate where
    another engine is faster, or where another engine selects among several optima independently of the order of users:
    at alpha = 0, for PS-DSF, single servers, and games in which a limit binds. There is also no candidate if the
    certificate exceeds `tol`.
    """
    kind = kind_of(problem.criterion)
    if kind is None or not _applies(problem, kind, warm):
        return
    begun = clock.cpu()
    if kind == "leximin":
        method, filled = "dense simplex", maxmin.leximin([problem])
        with np.errstate(divide="ignore"):
            found = Found(filled.tasks, filled.certificate, np.log(filled.prices), filled.rounds)
        seconds = clock.cpu() - begun
    else:
        method, errors = "dense interior point", (_AIM_OF_TOL * tol, min(_AIM_OF_TOL * tol, _FINEST))
        of_path = warm.at(problem, kind, *errors) if isinstance(warm, Together) else None
        found, seconds = of_path or (finite([problem], *errors), clock.cpu() - begun)
        # If a limit binds, equilibria are not unique, and selection must not depend on the size of the problem.
        bound = (found.tasks[0].sum(axis=1) >= problem.limits * (1 - _BINDING)) & (problem.limits > 0)
        if kind == "game" and bound.any():
            return
    error, log = float(found.certificate[0]), _per_unit(problem, found.log_rows[0])
    if error <= tol:
        run, fine = Run(method, seconds), error <= _TO_ROUNDING
        tasks = problem.cluster.tasks_of(found.tasks[0])
        yield Solution(tasks, None, engine, (run,), 0.0, int(found.steps[0]), "converged", log=log, fine=fine)


def _applies(problem: Problem, kind: Kind, warm: object) -> bool:
    """True if the dense method supports the problem, is the fastest, and selects the same optimum as other engines."""
    # At alpha = 0 the interior-point method selects an optimum that does not depend on the order of users; single
    # servers are solved by progressive filling.
    if kind in ("efficient", "psdsf", "per_server") or (kind == "leximin" and problem.cluster.shape[1] == 1):
        return False
    # Dense methods do not support task limits of users with rates.
    if problem.cluster.rated and np.isfinite(problem.limits[problem.limits > 0]).any():
        return False
    # If the warm start comes from another engine, a task limit was probably active at the previous alpha, and probably
    # is active here.
    if kind == "game" and not (warm is None or isinstance(warm, Together)):
        return False
    return fastest(kind, problem.cluster, problem.criterion.alpha)


def in_levels(problem: Problem, tol: float, engine: str) -> Iterator[Solution]:
    """Yield the best iterate of the dense method in level prices, unless its error is not finite.

    Level prices represent a wider range of prices than the prices that other methods use.
    """
    begun = clock.cpu()
    found = finite([problem], tol, _AIM_OF_TOL * tol)
    error, log = float(found.certificate[0]), _per_unit(problem, found.log_rows[0])
    if np.isfinite(error):
        status = "converged" if error <= tol else "not converged"
        run = Run("dense interior point", clock.cpu() - begun)
        rough = error > tol
        tasks = problem.cluster.tasks_of(found.tasks[0])
        yield Solution(tasks, None, engine, (run,), 0.0, int(found.steps[0]), status, log=log, rough=rough)


def _per_unit(problem: Problem, log_rows: Array) -> Array:
    """Log prices per resource unit from log prices of whole capacities (..., servers, resources), -inf for zero."""
    minus_infinity = np.full(log_rows.shape, -np.inf)
    with np.errstate(divide="ignore"):
        return np.asarray(
            np.subtract(log_rows, np.log(problem.cluster.capacity), out=minus_infinity, where=log_rows > -np.inf)
        )
