"""Where `solve_many` and engines for problems of any size differ, for the tests of their agreement."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from families import FAMILIES, STYLES, draw
from kernels import without_kernels

import fairopt as fo
from fairopt.mechanisms import Mechanism
from fairopt.model.cluster import Cluster

TOL = 1e-8
#: Differences in tasks that need no reason, and by how much more than the certificate explains they may be.
SAME, FACTOR = 1e-6, 10.0
#: The families of all tests, and users, servers and resources at most.
ALL, MOST = (*FAMILIES, *STYLES), (4, 3, 3)


class Compared(NamedTuple):
    """How many problems there were, how many have no answer, and what is wrong with others, in words."""

    problems: int
    unanswered: int
    wrong: list[str]


def random_clusters(number: int) -> list[Cluster]:
    """So many clusters of every family."""
    return [draw(family, seed, *MOST) for family in ALL for seed in range(number)]


def compared(mechanism: Mechanism, clusters: list[Cluster]) -> Compared:
    """Solve all of them in both ways."""
    many = fo.solve_many(mechanism, clusters, tol=TOL)
    reasons = dict(many.failed)
    wrong, unanswered = [], 0
    for p, cluster in enumerate(clusters):
        if p in reasons:
            unanswered += "certificate" in reasons[p]
            continue
        seen, _ = mechanism.prepare(cluster)
        tasks = many.tasks[p, : len(seen.users), : len(seen.servers)]
        if text := difference(mechanism, cluster, seen, tasks):
            wrong.append(f"problem {p}: {text}")
    return Compared(len(clusters), unanswered, wrong)


def difference(mechanism: Mechanism, cluster: Cluster, seen: Cluster, tasks: np.ndarray) -> str:
    """What is wrong with tasks on the cluster that the mechanism sees; empty for nothing.

    Equilibria, PS-DSF and optima at alpha = 0 need not be unique: other ones are right if the judge of one problem says
    so, who looks for prices himself.
    """
    with without_kernels():
        alone = mechanism.solve(cluster, TOL, throw=False)
    apart = np.abs(tasks.sum(axis=1) - alone.arrays.user_tasks)
    off = float(np.max(np.divide(apart, alone.arrays.user_tasks, out=apart, where=alone.arrays.user_tasks > 0)))
    if off <= SAME or alone.flagged:
        return ""
    if alone.criterion.scope == "game" or alone.criterion.starves:
        residual = mechanism.certify(seen, tasks)[0].residual
        return "" if residual <= FACTOR * TOL else f"tasks differ by {off:.1e}, certified to {residual:.1e}"
    condition = alone.certificate.condition
    if condition == condition and off <= FACTOR * TOL * condition:
        return ""
    return f"tasks differ by {off:.1e}, condition {condition:.1e}"
