"""Strategy-proofness in demands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from ..model.cluster import Cluster
from ._base import Case, Deviation, Numbers, Property
from ._bundles import only, true_tasks
from ._misreports import differs_only, lies


class StrategyProofness(Property):
    """Nobody has more tasks of its true demand after reporting another demand.

        x_n >= min(q_n, sum_{i: e[n,i]} x'[n,i] min_{r: d[n,r] > 0} d'[n,r]/d[n,r])

    Weights are not reported. A report may have zeros where the truth has none: then what is given runs nothing that is
    true, and a lie is worth what its given tasks run of true ones, where n may run in truth. More than `q_n` tasks are
    worth no more than `q_n`.

    Source: Ghodsi et al., NSDI 2011.
    """

    name = "strategy-proofness"
    definition = "no report of another demand gives a user more tasks of its true demand"
    compares = True
    about: ClassVar[tuple[str, ...]] = ("demand",)

    def deviations(self, cluster: Cluster, rng: np.random.Generator) -> Iterator[Deviation]:
        return (Deviation(reported, (cluster.users[user],)) for reported, user in lies(cluster, self.about, rng))

    def admits(self, cluster: Cluster, deviation: Deviation) -> bool:
        return len(deviation.users) == 1 and differs_only(cluster, deviation.cluster, deviation.users, self.about)

    def dues(self, case: Case) -> tuple[Numbers, Numbers]:
        return case.user_tasks, only(case.changed[0].users, case.cluster, true_tasks(case))

    def words(self, user: str, has: str, due: str) -> str:
        return f"{user} has {has} tasks when it says the truth, and {due} when it lies"
