"""Group strategy-proofness in the strong sense."""

from __future__ import annotations

import numpy as np

from ._base import Case, Numbers
from ._bundles import true_tasks
from .group_strategy_proofness import GroupStrategyProofness

#: Doubles cannot tell who loses less than this part of its tasks.
_SLACK = 1e-7


class StrongGroupStrategyProofness(GroupStrategyProofness):
    """No coalition can lie so that nobody in it loses and one has more tasks: one who says the truth may be in it.

    As in the weak sense, but members need not gain. With zero demands a user may spoil what it has no use for in favour
    of another, at no loss.

    Source: Barbera, Berga, Moreno, JET 2010.
    """

    name = "strong-group-strategy-proofness"
    definition = "no coalition can lie so that nobody in it loses and one has more tasks"

    def dues(self, case: Case) -> tuple[Numbers, Numbers]:
        return case.user_tasks, true_tasks(case)

    def loss(self, missing: Numbers, case: Case) -> int:
        """Whoever gains most, who may join the liars, if no liar loses; else the liar who loses most."""
        liars = np.flatnonzero(np.isin(case.cluster.users, case.changed[0].users))
        least = liars[np.argmin(missing[liars])]
        loses = missing[least] < (0 if case.exact else -_SLACK)
        return int(least if loses else np.argmax(missing))
