"""The engine `equilibrium`: which algorithm finds equilibria of the per-server game at which alpha.

alpha = 0: every server maximises the sum of its users' virtual dominant shares, which is one linear program each.

    maximise  sum_n z_n    subject to    sum_n D_nr z_n <= 1  (resources r),    0 <= z_n <= (q_n - y_n)/gamma_ni

z_n is the part of its monopoly tasks that n gets and y_n what other servers give it, which matters up to the task
count q_n alone. So servers choose in turn, each knowing what those before it gave: what later ones give leaves less
room, never less utility, and every choice stays the best. The order is canonical, as answers differ where users tie.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import _clock
from .._libraries import optimize
from ..engines import small
from ..engines.base import Run, Solution
from ..engines.native import served
from ..model._arrays import by_group
from ..model.canonical import canonical
from ..model.polytope import Polytope
from ..model.problem import Problem
from .equilibrium import equilibria
from .model.equilibrium_system import EquilibriumSystem
from .psdsf import PriceStart, limit

_OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def _linear(problem: Problem) -> Iterator[Solution]:
    """The equilibrium at alpha = 0, with prices of servers."""
    begun = _clock.now()
    cluster = problem.cluster
    users, servers = canonical(cluster)
    ordered = cluster.select([cluster.users[n] for n in users], [cluster.servers[i] for i in servers])
    polytope = Polytope(ordered, problem.limits[users])
    fractions, price, status = np.zeros(len(polytope.gamma)), np.zeros(ordered.capacity.shape), "converged"
    room = polytope.limit.copy()
    build = _clock.now() - begun
    by_server, ends = by_group(polytope.pair_server, len(servers))
    for i in range(len(servers)):
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
            status = f"server {ordered.servers[i]!r}: {answer.message}"
            continue
        fractions[pairs] = np.clip(answer.x, 0.0, most)
        price[i] = np.maximum(-answer.ineqlin.marginals, 0.0)
        room[mine] = np.maximum(room[mine] - gamma * fractions[pairs], 0.0)
    tasks = np.zeros(cluster.shape[:2])
    tasks[np.ix_(users, servers)] = polytope.allocation(polytope.inside(fractions))
    run = Run("HiGHS, dual simplex", _clock.now() - begun - build)
    unit = np.divide(price, ordered.capacity, out=np.zeros_like(price), where=ordered.capacity > 0)
    prices = np.empty_like(unit)
    prices[servers] = unit
    yield Solution(tasks, prices, "equilibrium", (run,), build, len(servers), status)


#: alpha of PS-DSF's system where the limit is not followed.
_LARGE = 64.0
#: What PS-DSF's algorithms say of their answers: the judge alone knows.
_UNMEASURED = "not measured"


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
    begun, polytope = _clock.now(), problem.polytope
    prices = warm if isinstance(warm, PriceStart) else None
    method = EquilibriumSystem(polytope, problem.criterion.weight[polytope.users], _LARGE)
    for found in limit(method, tol, prices):
        run = Run(found.by, _clock.now() - begun)
        tasks = polytope.allocation(polytope.inside(found.tasks / method.gamma))
        yield Solution(tasks, None, "equilibrium", (run,), 0.0, found.steps, _UNMEASURED, found.notes, found.prices)
