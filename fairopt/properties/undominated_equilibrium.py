"""Pareto domination between equilibria."""

from __future__ import annotations

import numpy as np

from ..mechanisms import Mechanism
from ..model.cluster import Cluster
from ._all_equilibria import all_equilibria, between, enumerable
from ._base import Case, Numbers, Property
from ._dominating import dominating

#: Users' tasks that differ by less than this part are the same.
_SAME = 1e-7


class UndominatedEquilibrium(Property):
    """No other equilibrium of the game gives somebody more tasks and nobody fewer.

    Weaker than Pareto optimality, since only equilibria compete: what servers could agree on without changing the
    rules. Equilibria are those that `fairopt.game.equilibria` finds, all there are on most small clusters.

    Weights, placement and zeros are those of the game. Where a task count binds, equilibria are continua, of which some
    are found.

    Source: ours; docs/equilibria.md.
    """

    name = "undominated-equilibrium"
    definition = "no other equilibrium gives somebody more tasks and nobody fewer"
    needs_all = True

    def unfit(self, mechanism: Mechanism | None) -> str:
        return "" if enumerable(mechanism) else "it is about alphaPF-VDS at finite alpha > 0"

    def domain(self, cluster: Cluster) -> str:
        return "" if cluster.runnable.any() else "nobody can run"

    def dues(self, case: Case) -> tuple[Numbers, Numbers]:
        has = case.user_tasks
        due = np.array(has, dtype=float)
        optimal = (dominating(case) <= due * (1 + _SAME)).all()  # then no equilibrium has to be looked for
        for other in () if optimal else all_equilibria(case.mechanism, case.cluster):
            if (other.user_tasks >= due * (1 - _SAME)).all():
                due = np.maximum(due, other.user_tasks)
        return has, due

    def bounds(self, low: Case, high: Case) -> tuple[Numbers, Numbers]:
        has = high.user_tasks
        due = low.user_tasks
        for other in all_equilibria(low.mechanism, low.cluster):
            least = between(other)
            if least is not None and (least >= np.maximum(due, has)).all():
                due = least
        return has, due

    def words(self, user: str, has: str, due: str) -> str:
        return f"{user} has {has} tasks; in another equilibrium it has {due} and nobody has fewer"
