"""The engine `equilibrium`: which algorithm finds equilibria of the per-server game at which alpha.

alpha = 0: every server maximises the sum of its users' virtual dominant shares, which is one linear program each.

    maximise  sum_n z_n    subject to    sum_n D_nr z_n <= 1  (resources r),    0 <= z_n <= (q_n - y_n)/gamma_ni

z_n is the part of its monopoly tasks that n gets and y_n what other servers give it, which matters up to the task
count q_n alone. So servers choose in turn, each knowing what those before it gave: what later ones give leaves less
room, never less utility, and every choice stays the best. Answers differ where users tie, so that `solving` gives the
problem in an order of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ...base import clock
from ...base.libraries import optimize
from ...model._arrays import by_group
from ...model.problem import Problem
from ..engines import small
from ..engines.native import served
from ..solution import Run, Solution
from . import equilibria
from .equilibrium_system import EquilibriumSystem, solution
from .psdsf import PriceStart, limit

_OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def _linear(problem: Problem) -> Iterator[Solution]:
    """The equilibrium at alpha = 0, with prices of servers."""
    begun, polytope, cluster = clock.now(), problem.polytope, problem.cluster
    fractions, price, status = np.zeros(len(polytope.gamma)), np.zeros(cluster.capacity.shape), "converged"
    room = polytope.limit.copy()
    build = clock.now() - begun
    by_server, ends = by_group(polytope.pair_server, len(price))
    for i in range(len(price)):
        pairs = by_server[ends[i] : ends[i + 1]]
        if not len(pairs):
            continue
        mine, gamma = polytope.pair_user[pairs], polytope.gamma[pairs]
        most = room[mine] / gamma  # beside capacities, whose prices prove the answer
        use = polytope.pair_use[pairs].T
        answer = optimize.linprog(
            -np.ones(len(pairs)),
            A_ub=use,
            b_ub=np.ones(len(use)),
            bounds=np.column_stack([np.zeros(len(pairs)), most]),
            method="highs-ds",
            options=_OPTIONS,
        )
        if answer.status != 0:
            status = f"server {cluster.servers[i]!r}: {answer.message}"
            continue
        fractions[pairs] = np.clip(answer.x, 0.0, most)
        price[i] = np.maximum(-answer.ineqlin.marginals, 0.0)
        room[mine] = np.maximum(room[mine] - gamma * fractions[pairs], 0.0)
    tasks = polytope.allocation(polytope.inside(fractions))
    run = Run("HiGHS, dual simplex", clock.now() - begun - build)
    unit = np.divide(price, cluster.capacity, out=np.zeros_like(price), where=cluster.capacity > 0)
    yield Solution(tasks, unit, "equilibrium", (run,), build, len(price), status)


#: alpha of PS-DSF's system where the limit is not followed.
_LARGE = 64.0


def solutions(problem: Problem, tol: float, warm: object = None) -> Iterator[Solution]:
    """Ever better answers, for a judge to take the first good one, for alpha in [0, infinity]."""
    yield from served(problem, "equilibrium")
    if problem.criterion.alpha == 0:
        yield from _linear(problem)
    elif np.isinf(problem.criterion.alpha):
        yield from _psdsf(problem, tol, warm)
    else:
        yield from small.solutions(problem, tol, "equilibrium", warm)
        yield from equilibria.solutions(problem, tol, warm)


def _psdsf(problem: Problem, tol: float, warm: object) -> Iterator[Solution]:
    """alpha = infinity; where the answer may be one of many, `solving` gives the problem in an order of its own."""
    begun, polytope = clock.now(), problem.polytope
    prices = warm if isinstance(warm, PriceStart) else None
    method = EquilibriumSystem(polytope, problem.criterion.weight[polytope.users], _LARGE)
    for found in limit(method, tol, prices):
        offer = solution(method, found.tasks, None, found.by, found.steps, clock.now() - begun, tol)
        yield replace(offer, notes=found.notes, warm=found.prices)
