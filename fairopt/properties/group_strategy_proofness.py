"""Group strategy-proofness in the weak sense."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..model.cluster import Cluster
from ._base import Case, Deviation, Numbers
from ._misreports import differs_only, misreport
from .strategy_proofness import StrategyProofness


class GroupStrategyProofness(StrategyProofness):
    """No coalition gains by lies about demands, placement or task counts: not all of its members have more tasks.

    Members may lie about all of these at once; each lie is worth what it is for one user. Weights are not reported. The
    weak sense: a coalition in which one member gains nothing is no violation.

    Source: Barbera, Berga, Moreno, JET 2010; for dominant shares Parkes, Procaccia, Shah, EC 2012.
    """

    name = "group-strategy-proofness"
    definition = "no coalition can lie so that all its members have more tasks"
    about = ("demand", "eligible", "max_tasks")

    def domain(self, cluster: Cluster) -> str:
        return "" if len(cluster.users) > 1 else "there is one user"

    def deviations(self, cluster: Cluster, rng: np.random.Generator) -> Iterator[Deviation]:
        while True:
            size = int(rng.integers(1, min(3, len(cluster.users)) + 1))
            users = rng.choice(len(cluster.users), size, replace=False).tolist()
            reported = cluster
            for user in users:
                reported = misreport(reported, user, self.about, rng)
            yield Deviation(reported, tuple(cluster.users[user] for user in users))

    def admits(self, cluster: Cluster, deviation: Deviation) -> bool:
        return bool(deviation.users) and differs_only(cluster, deviation.cluster, deviation.users, self.about)

    def loss(self, missing: Numbers, case: Case) -> int:
        """The liar who gains least."""
        members = np.flatnonzero(np.isin(case.cluster.users, case.changed[0].users))
        return int(members[np.argmin(missing[members])])
