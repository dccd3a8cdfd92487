r"""Engine `equilibrium`: selects by alpha the algorithm for equilibria of the per-server game.

At alpha = 0 every server maximises the sum of the virtual dominant shares of its users, by a linear program:

.. math:: \max \sum_n z_n \quad \text{s.t.} \quad \sum_n D_{nr} z_n \le 1, \quad 0 \le z_n \le (q_n - Y_n)/\gamma_{ni}.

:math:`z_n` is the fraction of its monopoly tasks that n gets, and :math:`Y_n` are its tasks on other servers, which
matter only through the limit :math:`q_n`. The programs are solved once, in the order of servers, with the tasks on
earlier servers as Y: tasks on later servers only tighten the bounds on z, within which earlier choices remain, so that
these remain optimal. Where users tie, solutions depend on the order of users and servers; the caller therefore passes
problems in a canonical order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ...base import clock
from ...model._arrays import by_group
from ...model.linear import minimise
from ...model.problem import Problem
from ..engines import small, welfare
from ..engines.native import served
from ..solution import Run, Solution
from . import crowd, equilibria
from .equilibrium_system import EquilibriumSystem, solution
from .psdsf import PriceStart, limit


def _sequential_programs(problem: Problem) -> Iterator[Solution]:
    """Yield one candidate at alpha = 0, by a linear program for each server, with prices per resource unit.

    Where a program fails, the server has no tasks, and the status names it.
    """
    begun, polytope, cluster = clock.cpu(), problem.polytope, problem.cluster
    fractions, price, status = np.zeros(len(polytope.gamma)), np.zeros(cluster.capacity.shape), "converged"
    room, instances = polytope.quota.copy(), polytope.instances
    build = clock.cpu() - begun
    by_server, ends = by_group(polytope.pair_server, len(price))
    for i in range(len(price)):
        pairs = by_server[ends[i] : ends[i + 1]]
        if not len(pairs):
            continue
        users_here, most = polytope.pair_user[pairs], instances[pairs]
        # Limits are bounds of variables, so that only capacities have prices, which prove optimality.
        available = room[users_here] / most
        use = polytope.pair_use[pairs].T
        optimum = minimise(-np.ones(len(pairs)), use, np.ones(len(use)), high=available, method="highs-ds")
        if optimum is None:
            status = f"the linear program of server {cluster.servers[i]!r} was not solved"
            continue
        fractions[pairs] = np.clip(optimum.x, 0.0, available)
        price[i] = optimum.prices
        room[users_here] = np.maximum(room[users_here] - most * fractions[pairs], 0.0)
    tasks = polytope.allocation(polytope.inside(fractions))
    run = Run("HiGHS, dual simplex", clock.cpu() - begun - build)
    unit_prices = np.divide(price, cluster.capacity, out=np.zeros_like(price), where=cluster.capacity > 0)
    yield Solution(tasks, unit_prices, "equilibrium", (run,), build, len(price), status)


#: Finite alpha of the equations with which PS-DSF is computed; only an initial allocation depends on it.
_FINITE_ALPHA = equilibria.LARGE_ALPHA


def solutions(problem: Problem, tol: float, warm: object = None) -> Iterator[Solution]:
    """Candidates for alpha in [0, infinity], of increasing cost; the first with a sufficient certificate is used."""
    yield from served(problem, "equilibrium")
    if problem.criterion.alpha == 0:
        yield from _sequential_programs(problem)
    elif np.isinf(problem.criterion.alpha):
        yield from _psdsf(problem, tol, warm)
    else:
        yield from small.solutions(problem, tol, "equilibrium", warm)
        if welfare.crowded(problem):
            yield from crowd.solutions(problem, tol, "equilibrium")
        yield from equilibria.solutions(problem, tol, warm)


def _psdsf(problem: Problem, tol: float, warm: object) -> Iterator[Solution]:
    """Candidates of `psdsf.limit` at alpha = infinity, with prices as a warm start for other users.

    Where allocations are not unique, the result depends on the order of users and servers; the caller passes problems
    in a canonical order.
    """
    begun, polytope = clock.cpu(), problem.polytope
    prices = warm if isinstance(warm, PriceStart) else None
    method = EquilibriumSystem(polytope, problem.criterion.weight[polytope.users], _FINITE_ALPHA)
    sample = None
    if welfare.crowded(problem) and method.positive:
        rule = replace(problem.criterion, alpha=_FINITE_ALPHA)
        sample = crowd.Users(Problem(problem.cluster, rule)).sample()
    for found in limit(method, tol, prices, sample):
        offer = solution(method, found.tasks, None, found.by, found.steps, clock.cpu() - begun, tol)
        yield replace(offer, notes=found.notes, warm=found.prices)
