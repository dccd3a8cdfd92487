"""Task Share Fairness: max-min of tasks relative to monopoly tasks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from ..model._arrays import Array, ratio
from ..model.cluster import Cluster
from ..model.criterion import Criterion, criterion
from ._base import Mechanism
from ._claim import claim
from .reference.program import Program, Statement, lexmaxmin


def task_share_per_task(cluster: Cluster) -> Array:
    r"""Task share per task or unit of work, (users,).

    .. math:: 1 / \sum_i a_{ni} \gamma^0_{ni}

    Equal servers are evaluated once if the cluster has no rates.
    The share is infinite for users without monopoly tasks.
    """
    if cluster.rated:
        return ratio(1.0, (cluster.rate * cluster.gamma0).sum(axis=1), np.inf)
    count = Counter(map(tuple, cluster.capacity.tolist()))
    servers = tuple(str(k) for k in range(len(count)))
    kinds = cluster.derived(capacity=np.array([*count]), eligible=None, servers=servers)
    return np.asarray(ratio(1.0, kinds.gamma0 @ np.array([*count.values()]), np.inf))


@dataclass(frozen=True)
class TSF(Mechanism):
    r"""Lexicographic max-min of task shares, the tasks of a user relative to its monopoly tasks on all servers.

    .. math::
        \operatorname{lex\,max\,min}_n\ \sigma_n / \phi_n, \quad
        \sigma_n = \frac{x_n}{\sum_i \gamma^0_{ni}}, \quad \gamma^0_{ni} = \min_r c_{ir} / d_{nr}

    The monopoly tasks :math:`\gamma^0_{ni}` ignore placement constraints. With rates :math:`a_{ni}` the share is
    :math:`\sum_i a_{ni} x_{ni} / \sum_i a_{ni} \gamma^0_{ni}`, a share of work; on servers of one resource it is the
    normalised throughput of Gavel, up to a common factor.

    Properties: envy-freeness, Pareto, strategy-proofness; without placement constraints also sharing incentive. With
    placement constraints, every user has at least the tasks that the paper guarantees, but may have less than the
    benchmark :math:`\sum_i \gamma_{ni} \phi_n / \sum_m \phi_m` of sharing incentive: with capacities (10,10), (100,1),
    demands (1,1), (1,.01) and user 2 only on server 1, user 1 has 1 task, and the benchmark is 5.5. Not bottleneck
    fairness: with capacities (1,2), (3,1) and demands (1,3), (2,2) resource 2 is dominant for both users, whose shares
    of it are .6 and .4.

    Source: Wang, Li, Liang, Li, "Multi-resource fair sharing for datacenter jobs with placement constraints", SC 2016;
    for work Narayanan et al. (Gavel), OSDI 2020 (arXiv:2008.09213).

    >>> import fairopt as fo
    >>> fo.TSF().solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]])).user_tasks.tolist()
    [3.0, 2.0]
    """

    name = "tsf"
    title = "TSF"
    source = "Wang et al., SC 2016"
    claims = (
        *claim("envy-freeness", "pareto-optimality", source="SC 2016; docs/proofs.md, G"),
        *claim("single-server-drf", "single-resource-fairness", source="its definition; docs/proofs.md, J"),
        *claim(
            "strategy-proofness",
            "strategy-proofness-placement",
            "strategy-proofness-counts",
            "group-strategy-proofness",
            source="docs/proofs.md, B",
        ),
        *claim(
            "population-monotonicity",
            conditions=("positive demands", "no placement constraints"),
            source="docs/proofs.md, I",
        ),
        *claim("sharing-incentive", conditions=("no placement constraints",), source="docs/proofs.md, G"),
        *claim("sharing-incentive", "bottleneck-fairness", "per-server-bottleneck-fairness", holds=False),
        *claim("population-monotonicity", "resource-monotonicity", holds=False),
    )

    def program(self, p: Program) -> Statement:
        task_share = p.work_share(task_share_per_task(p.cluster), "task_share")
        return lexmaxmin(task_share / p.weight, p.constraints)

    def criterion(self, cluster: Cluster) -> Criterion:
        return criterion(cluster, task_share_per_task(cluster), np.inf, "servers", share_rule="alone")
