"""Strategy-proofness: of a user, in what it reports, and of groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..model._arrays import Array
from ..model.cluster import Cluster
from ._base import Case, Deviation, Dues, Numbers, Property, only, true_tasks

#: What users can lie about.
REPORTS = ("demand", "eligible", "max_tasks")
#: Amounts that are no whole numbers, or far apart, are multiplied by one of these.
_PARTS = (0.25, 0.5, 0.8, 0.9, 0.95, 1.05, 1.1, 1.25, 2.0, 4.0)


def misreport(cluster: Cluster, user: int, about: Sequence[str], rng: Generator) -> Cluster:
    """The cluster as if a user, by number, had reported something else about one of `REPORTS`.

    Of demands: one coordinate, or all of them, anew; whole numbers stay whole numbers.
    """
    what = about[int(rng.integers(len(about)))]
    if what == "demand":
        return cluster.derived(demand=_row(cluster.demand, user, _other_demand(cluster.demand[user], rng)))
    if what == "eligible":
        servers = cluster.eligible[user].copy()
        server = rng.integers(len(servers))
        servers[server] = not servers[server]
        return cluster.derived(eligible=_row(cluster.eligible, user, servers))
    most = cluster.gamma[user].sum() if np.isinf(cluster.max_tasks[user]) else cluster.max_tasks[user]
    reported = float(rng.choice([np.inf, max(1.0, np.floor(most / 2)), np.ceil(most), 2 * np.ceil(most) + 1, 1.0]))
    return cluster.derived(max_tasks=_row(cluster.max_tasks, user, reported))


def lies(cluster: Cluster, about: Sequence[str], rng: Generator) -> Iterator[tuple[Cluster, int]]:
    """Without end: the cluster after a lie of one user, and who it is."""
    while True:
        for user in rng.permutation(len(cluster.users)).tolist():
            yield misreport(cluster, user, about, rng), user


def differs_only(cluster: Cluster, other: Cluster, users: Sequence[str], about: Sequence[str]) -> bool:
    """True if two clusters differ only in what these users may misreport."""
    if other.shape != cluster.shape:
        return False
    reported = {name: np.array(getattr(cluster, name)) for name in about}
    liars = np.isin(cluster.users, users)
    for name, table in reported.items():
        table[liars] = getattr(other, name)[liars]
    return cluster.derived(**reported) == other


def _other_demand(demand: Array, rng: Generator) -> Array:
    reported = demand.copy()
    r = int(rng.integers(len(reported)))
    if (demand != np.floor(demand)).any() or demand.max() > 1000 * demand[demand > 0].min():
        return _other_amount(reported, r, rng)
    top = max(2.0, 2 * demand.max())
    kind = rng.integers(4)
    if kind == 0:
        reported[r] = max(reported[r] + rng.choice([-1.0, 1.0]), 0.0)
    elif kind == 1:
        reported[r] = rng.integers(top + 1)
    elif kind == 2:
        reported[r] = demand.max()
    else:
        reported = rng.integers(0, int(top) + 1, len(reported)).astype(float)
    return reported if reported.any() else np.maximum(demand, 1.0)


def _other_amount(demand: Array, r: int, rng: Generator) -> Array:
    """Measured amounts, such as cores and bytes: more or less of what is needed."""
    parts = rng.choice(_PARTS, len(demand)) if rng.integers(4) == 0 else 1.0
    demand *= parts
    if demand[r] > 0:
        demand[r] *= rng.choice(_PARTS)
    return demand


def _row(table: NDArray[np.generic], row: int, value: object) -> NDArray[np.generic]:
    changed = np.array(table)
    changed[row] = value
    return changed


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
    words = "{user} has {has} tasks when it says the truth, and {due} when it lies"
    compares = True
    about: ClassVar[tuple[str, ...]] = ("demand",)

    def deviations(self, cluster: Cluster, rng: Generator) -> Iterator[Deviation]:
        return (Deviation(reported, (cluster.users[user],)) for reported, user in lies(cluster, self.about, rng))

    def admits(self, cluster: Cluster, deviation: Deviation) -> bool:
        return len(deviation.users) == 1 and differs_only(cluster, deviation.cluster, deviation.users, self.about)

    def dues(self, case: Case) -> Dues:
        return case.user_tasks, only(case.changed[0].users, case.cluster, true_tasks(case))


class StrategyProofnessCounts(StrategyProofness):
    """Nobody has more of the tasks that it has to run after a report of another number of tasks.

    More than the true `q_n` tasks are worth no more than `q_n`; reports may be infinite. Demands, placement and weights
    are not reported.

    Source: ours, after the constrained max-min of Choosy.
    """

    name = "strategy-proofness-counts"
    definition = "no report of another number of tasks gives a user more tasks"
    about = ("max_tasks",)


class StrategyProofnessPlacement(StrategyProofness):
    """Nobody has more tasks of its true demand, on servers where they run, after a report of others.

    As for demands; tasks on servers where n may not run in truth are worth nothing. What a lie is worth depends on how
    tasks are split over servers; splits are those that the mechanism returns. Weights and task counts are not reported.

    Source: Ghodsi et al., EuroSys 2013 (Choosy); Wang et al., SC 2016 (TSF).
    """

    name = "strategy-proofness-placement"
    definition = "no report of another demand or of other servers gives a user more tasks"
    about = ("demand", "eligible")


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

    def deviations(self, cluster: Cluster, rng: Generator) -> Iterator[Deviation]:
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


class StrongGroupStrategyProofness(GroupStrategyProofness):
    """No coalition can lie so that nobody in it loses and one has more tasks: one who says the truth may be in it.

    As in the weak sense, but members need not gain. With zero demands a user may spoil what it has no use for in favour
    of another, at no loss.

    Source: Barbera, Berga, Moreno, JET 2010.
    """

    name = "strong-group-strategy-proofness"
    definition = "no coalition can lie so that nobody in it loses and one has more tasks"

    def dues(self, case: Case) -> Dues:
        return case.user_tasks, true_tasks(case)

    def loss(self, missing: Numbers, case: Case) -> int:
        """Whoever gains most, who may join the liars, if no liar loses; else the liar who loses most."""
        liars = np.flatnonzero(np.isin(case.cluster.users, case.changed[0].users))
        least = liars[np.argmin(missing[liars])]
        # Doubles cannot tell who loses less than this part of its tasks.
        loses = missing[least] < (0 if case.exact else -1e-7)
        return int(least if loses else np.argmax(missing))
