"""Strategy-proofness of single users, by kind of report, and of groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..model._arrays import Array
from ..model.cluster import Cluster
from ._base import Case, Deviation, Dues, Numbers, Property, only, true_work

#: Kinds of data that users report.
REPORTS = ("demand", "eligible", "max_tasks")
#: Factors by which misreports multiply demands that are not integers, or that span a wide range.
_PARTS = (0.25, 0.5, 0.8, 0.9, 0.95, 1.05, 1.1, 1.25, 2.0, 4.0)


def reports(cluster: Cluster, about: Sequence[str]) -> Sequence[str]:
    """Names of the reported data: `about`, and rates if users report demands on a cluster with rates."""
    return [*about, "rate"] if cluster.rated and "demand" in about else about


def misreport(cluster: Cluster, user: int, about: Sequence[str], rng: Generator) -> Cluster:
    """Draw a misreport of a user, given by index, of one of the kinds `about` (`REPORTS`); return the changed cluster.

    A misreport changes one coordinate of the demand, or all of them; integers remain integers. One rate or all rates
    are multiplied by random factors, or all are reduced to the user's smallest positive rate. The eligibility on one
    server is inverted; the task limit becomes about half, once or twice the true limit (the monopoly tasks, if there is
    no limit), 1 or infinite.
    """
    about = reports(cluster, about)
    what = about[int(rng.integers(len(about)))]
    if what == "rate":
        return cluster.derived(rate=_row(cluster.rate, user, _other_rate(cluster.rate[user], rng)))
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


def misreports(cluster: Cluster, about: Sequence[str], rng: Generator) -> Iterator[tuple[Cluster, int]]:
    """Generate infinitely many clusters with a misreport of one user, and the index of the user."""
    while True:
        for user in rng.permutation(len(cluster.users)).tolist():
            yield misreport(cluster, user, about, rng), user


def differs_only(cluster: Cluster, other: Cluster, users: Sequence[str], about: Sequence[str]) -> bool:
    """True if two clusters differ only in data of the kinds `about` that `users` report."""
    if other.shape != cluster.shape:
        return False
    reported = {name: np.array(getattr(cluster, name)) for name in reports(cluster, about)}
    misreporting = np.isin(cluster.users, users)
    for name, table in reported.items():
        table[misreporting] = getattr(other, name)[misreporting]
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
    """Multiply measured amounts, such as cores and bytes, by random factors."""
    parts = rng.choice(_PARTS, len(demand)) if rng.integers(4) == 0 else 1.0
    demand *= parts
    if demand[r] > 0:
        demand[r] *= rng.choice(_PARTS)
    return demand


def _other_rate(rate: Array, rng: Generator) -> Array:
    kind, reported = rng.integers(3), rate.copy()
    if kind == 0:
        return np.asarray(reported * rng.choice(_PARTS, len(rate)))
    if kind == 1:
        return np.where(rate > 0, rate.min(where=rate > 0, initial=np.inf), 0.0)
    reported[int(rng.integers(len(rate)))] *= rng.choice(_PARTS)
    return reported


def _row(table: NDArray[np.generic], row: int, value: object) -> NDArray[np.generic]:
    changed = np.array(table)
    changed[row] = value
    return changed


class StrategyProofness(Property):
    r"""No user has more tasks of its true demand after a misreport of its demand.

    .. math:: x_n \ge \min\Big(q_n, \sum_{i : e_{ni}} x'_{ni} \min_{r : d_{nr} > 0} \frac{d'_{nr}}{d_{nr}}\Big)

    with the reported demand d', the tasks x' after the misreport, and the eligibility e. With rates, which are then
    reported as well, work replaces tasks, and true tasks run on the fastest servers first. Weights are not reported.
    The value of a misreport is the number of true tasks that the allocated resources can run on eligible servers, which
    is zero if the report has a zero demand where the true demand is positive. More than :math:`q_n` tasks count as
    :math:`q_n`.

    Source: Ghodsi et al., NSDI 2011 (doi:10.5555/1972457.1972490).
    """

    name = "strategy-proofness"
    definition = "no report of another demand gives a user more tasks of its true demand"
    words = "{user} has {has} tasks when it reports truthfully, and {due} when it misreports"
    compares = True
    in_work = True
    about: ClassVar[tuple[str, ...]] = ("demand",)

    def deviations(self, cluster: Cluster, rng: Generator) -> Iterator[Deviation]:
        return (Deviation(reported, (cluster.users[user],)) for reported, user in misreports(cluster, self.about, rng))

    def admits(self, cluster: Cluster, deviation: Deviation) -> bool:
        return len(deviation.users) == 1 and differs_only(cluster, deviation.cluster, deviation.users, self.about)

    def dues(self, case: Case) -> Dues:
        return case.work, only(case.changed[0].users, case.cluster, true_work(case))


class StrategyProofnessCounts(StrategyProofness):
    r"""No user has more tasks, up to its true limit, after a misreport of its task limit.

    .. math:: x_n \ge \min(q_n, x'_n)

    with the tasks x' after the misreport. Reports may be infinite. Demands, placement and weights are not reported.

    Source: defined here, after the constrained max-min of Choosy (doi:10.1145/2465351.2465387).
    """

    name = "strategy-proofness-counts"
    definition = "no report of another number of tasks gives a user more tasks"
    about = ("max_tasks",)


class StrategyProofnessPlacement(StrategyProofness):
    r"""No user has more tasks of its true demand after a misreport of its demand or eligibility.

    .. math:: x_n \ge \min\Big(q_n, \sum_{i : e_{ni}} x'_{ni} \min_{r : d_{nr} > 0} \frac{d'_{nr}}{d_{nr}}\Big)

    with the reported demand d', the tasks x' after the misreport, and the true eligibility e. The value of a misreport
    depends on the split of tasks over servers, which the mechanism determines. Weights and task limits are not
    reported.

    Source: Ghodsi et al., EuroSys 2013 (Choosy; doi:10.1145/2465351.2465387); Wang et al., SC 2016 (TSF).
    """

    name = "strategy-proofness-placement"
    definition = "no report of another demand or of other servers gives a user more tasks"
    about = ("demand", "eligible")


class GroupStrategyProofness(StrategyProofness):
    """No coalition has a misreport of demands, eligibility or task limits by which all its members have more tasks.

    Each member may misreport all three kinds of data, and values its resources as in `StrategyProofness`. Weights are
    not reported. This is the weak sense: if one member does not gain, the property is not violated.

    Source: Barbera, Berga, Moreno, J. Economic Theory 145, 2010; for dominant shares Parkes, Procaccia, Shah, EC 2012
    (doi:10.1145/2229012.2229075).
    """

    name = "group-strategy-proofness"
    definition = "no coalition can misreport such that all its members have more tasks"
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
        """Index of the misreporting user with the smallest gain."""
        members = np.flatnonzero(np.isin(case.cluster.users, case.changed[0].users))
        return int(members[np.argmin(missing[members])])


class StrongGroupStrategyProofness(GroupStrategyProofness):
    """No coalition has a misreport by which no member loses tasks, and some member gains tasks.

    Members may report truthfully. Unlike in the weak sense, not every member has to gain. With zero demands a user may
    affect resources that it does not demand in favour of another user, without a loss of its own.

    Source: Barbera, Berga, Moreno, J. Economic Theory 145, 2010.
    """

    name = "strong-group-strategy-proofness"
    definition = "no coalition can misreport such that no member has fewer tasks and one has more"

    def dues(self, case: Case) -> Dues:
        return case.work, true_work(case)

    def loss(self, missing: Numbers, case: Case) -> int:
        """Index of the user with the largest gain, or of the misreporting user with the largest loss, if any."""
        misreporting = np.flatnonzero(np.isin(case.cluster.users, case.changed[0].users))
        least = misreporting[np.argmin(missing[misreporting])]
        # Relative losses below 1e-7 are attributed to rounding.
        loses = missing[least] < (0 if case.exact else -1e-7)
        return int(least if loses else np.argmax(missing))
