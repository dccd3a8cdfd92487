"""Group strategy-proofness in the strong sense."""

from __future__ import annotations

import numpy as np

from ._base import Case, Numbers
from .group_strategy_proofness import GroupStrategyProofness

#: Doubles cannot tell who loses less than this part of its tasks.
_SLACK = 1e-7


class StrongGroupStrategyProofness(GroupStrategyProofness):
    """No coalition can lie so that nobody in it loses and one has more tasks.

    Source: Barbera, Berga, Moreno, JET 2010.
    """

    name = "strong-group-strategy-proofness"
    definition = "no coalition can lie so that nobody in it loses and one has more tasks"

    def loss(self, missing: Numbers, case: Case) -> int:
        """The member who gains most, if nobody loses; else the one who loses most."""
        members = np.flatnonzero(np.isin(case.cluster.users, case.changed[0].users))
        least = members[np.argmin(missing[members])]
        loses = missing[least] < (0 if case.exact else -_SLACK)
        return int(least if loses else members[np.argmax(missing[members])])
