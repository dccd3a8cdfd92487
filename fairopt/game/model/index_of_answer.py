"""The index of an answer that has been certified: densely where it is small, else by sparse factors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...model.criterion import Criterion
from ...model.problem import Problem
from . import _index
from .active_newton import NewtonOptions, newton
from .equilibrium_system import EquilibriumSystem
from .index import index
from .near_set import active_set

Array = NDArray[np.float64]


@dataclass(frozen=True)
class AnswerIndexOptions:
    """Which answers have an index at once."""

    #: Up to this number of pairs (user, server) the index is found in a small part of the time of a solve.
    small: int = 500
    #: Certified tasks solve their equations nearly: the index needs no more digits than this.
    newton: NewtonOptions = NewtonOptions(target=1e-11, rounding=1.0)
    #: Above this alpha ties and prices next to zero are beyond what doubles tell apart.
    steep: float = 1e3


#: What is used unless a caller says otherwise.
OPTIONS = AnswerIndexOptions()


def has_index(problem: Problem) -> bool:
    """Is it a game of alpha-fair servers at an alpha in (0, 1000]? (At alpha = 1 tasks are unique: the index is 1.)"""
    rule = problem.criterion
    return type(rule) is Criterion and rule.scope == "game" and 0 < rule.alpha <= OPTIONS.steep


def index_of_answer(problem: Problem, tasks: Array, log_prices: Array | None) -> int | None:
    """+1, -1, or 0 where tasks are not locally unique; None where that is not known, as a limit binds.

    `tasks` (users, servers) and log prices per resource unit (servers, resources), as the certificate's proof has them.
    """
    if log_prices is None or not has_index(problem):
        return None
    cluster, alpha = problem.cluster, problem.criterion.alpha
    if alpha == 1:
        return 1
    if cluster.shape[0] * cluster.shape[1] <= OPTIONS.small:
        return _index.index(
            alpha, cluster.capacity, cluster.demand, cluster.gamma, cluster.weight, problem.limits, tasks, log_prices
        )
    polytope = problem.polytope
    system = EquilibriumSystem.of(polytope, problem.criterion)
    levels = polytope.by_server(polytope.log_row_prices(log_prices), unused=-np.inf) / alpha
    own = tasks[polytope.users[polytope.pair_user], polytope.pair_server] / system.largest[system.user]
    active, z = active_set(system, own, levels)
    if len(active.limits):
        return None
    solved = newton(active, z, options=OPTIONS.newton)
    return index(active, z if solved is None else solved)
