"""Pareto optimality."""

from __future__ import annotations

from ._base import Case, Numbers, Property
from ._dominating import dominating
from ._rising import gains


class ParetoOptimality(Property):
    """Nobody can have more tasks without another having fewer.

        no feasible x' has x'_n >= x_n for all n, and more for one

    Weights play no part. x' keeps placement constraints and task counts, so that a resource that stays idle because all
    who need it have all their tasks is no loss. Who has no tasks and could have some while nobody loses any is a
    violation of 1, the largest there is.

    Source: Ghodsi et al., NSDI 2011. A linear program decides; exactly, lexicographic max-min of `x'_n / x_n`.
    """

    name = "pareto-optimality"
    definition = "no feasible x' gives somebody more tasks and nobody fewer"
    needs_all = True

    def dues(self, case: Case) -> tuple[Numbers, Numbers]:
        return case.user_tasks, dominating(case)

    def bounds(self, low: Case, high: Case) -> tuple[Numbers, Numbers]:
        has = high.user_tasks
        return has, has + gains(low.cluster, low.tasks, high.tasks)

    def words(self, user: str, has: str, due: str) -> str:
        return f"{user} has {has} tasks; it could have {due} while nobody loses any"
