"""Native engines of the global mechanisms, which solve a criterion directly, without a modelling language.

If all task limits can be attained together, prices are zero, and no optimization is needed (`served`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ...base import clock
from ...model._arrays import Array
from ...model.criterion import ConcaveWelfare, Criterion, FairnessEfficiency
from ...model.polytope import Polytope
from ...model.problem import Problem
from ..solution import Solution
from . import maxmin, small

#: Number of iterations in which the weight of every server is divided by a power of its utilization (`_ITERATIONS`),
#: exponent of this power (`_DAMPING`), and lower bound of utilizations, so that weights of nearly idle servers remain
#: bounded (`_LEAST_UTILIZATION`).
_ITERATIONS, _DAMPING, _LEAST_UTILIZATION = 30, 0.5, 1e-3


def served(problem: Problem, engine: str) -> Iterator[Solution]:
    """Yield at most one solution: every user attains its task limit, and prices are zero.

    There is none if `everybody_served` finds no such allocation, or for criteria whose optimum may be another.
    """
    rule, begun = problem.criterion, clock.cpu()
    applies = type(rule) is Criterion or (rule.scope != "game" and len(problem.cluster.servers) == 1)
    if not applies or rule.scope == "per_server" or not np.isfinite(problem.limits).all():
        return
    found = everybody_served(problem.polytope)
    if found is not None and len(found):
        tasks, zero_prices = problem.polytope.allocation(found), np.full(problem.cluster.capacity.shape, -np.inf)
        log = zero_prices if np.isfinite(rule.alpha) else None
        seconds = clock.cpu() - begun
        yield Solution(tasks, None, engine, build=seconds, status="all task limits are attained", log=log, fine=True)


def everybody_served(polytope: Polytope) -> Array | None:
    """Fractions (pairs,) with which every user attains its limit; None if the heuristic does not find any.

    There are none if a limit is infinite, if limits cannot be attained together, or if a limit bounds a user's time.

    Users split their tasks in proportion to gamma times the weight of each server, which is reduced while the server is
    overloaded.
    """
    if not np.isfinite(polytope.limit).all() or (polytope.reach < polytope.limit).any() or len(polytope.timed):
        return None
    servers, owner = polytope.cluster.shape[1], polytope.pair_user
    total_demand = polytope.quota @ polytope.cluster.demand[polytope.users]
    if (total_demand > polytope.cluster.capacity.sum(axis=0)).any():
        return None
    server_weight = np.ones(servers)
    for _ in range(_ITERATIONS if servers > 1 else 1):
        pair_weight = server_weight[polytope.pair_server]
        reach = np.bincount(owner, polytope.gamma * pair_weight, len(polytope.users))
        fraction = pair_weight * (polytope.limit / reach)[owner]
        columns = (fraction * column for column in polytope.pair_use.T)
        utilization = np.max([np.bincount(polytope.pair_server, column, servers) for column in columns], axis=0)
        if (utilization <= 1).all():
            return np.asarray(fraction)
        server_weight = server_weight / np.maximum(utilization, _LEAST_UTILIZATION) ** _DAMPING
    return None


def handles(criterion: Criterion) -> bool:
    """True for max-min, concave welfare and fairness-efficiency over a pool or servers, and max-min on each server."""
    scopes = ("pool", "servers", "per_server") if np.isinf(criterion.alpha) else ("pool", "servers")
    return type(criterion) in (Criterion, FairnessEfficiency, ConcaveWelfare) and criterion.scope in scopes


def solutions(problem: Problem, tol: float, warm: object = None, sooner: Iterable[Solution] = ()) -> Iterator[Solution]:
    """Candidates of increasing cost; the first with a sufficient certificate is used.

    At finite alpha the candidates `sooner`, of another engine, precede those of the interior-point method. If limits
    bound the time of users, all candidates are those of `own_time`.
    """
    from . import welfare

    if len(problem.polytope.timed):
        from . import own_time

        yield from own_time.solutions(problem)
        return
    yield from served(problem, "native")
    yield from small.solutions(problem, tol, "native", warm)
    if np.isinf(problem.criterion.alpha):
        yield from maxmin.solutions(problem)
    else:
        yield from sooner
        yield from welfare.placed(problem, tol)
        yield from welfare.solutions(problem, tol, warm)
