"""Max-min fairness of numbers of tasks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..model.cluster import Cluster
from ..model.criterion import Criterion, criterion
from ._base import Mechanism
from ._claim import claim
from .reference.program import Program, Statement, lexmaxmin


@dataclass(frozen=True)
class TaskMaxMin(Mechanism):
    r"""Lexicographic max-min of the number of tasks.

    .. math:: \operatorname{lex\,max\,min}_n\ x_n / \phi_n

    With rates :math:`x_n` is work. The allocation depends on what a task is: a user gains by merging its tasks into
    larger tasks.

    Source: folklore; a baseline, with the share per task :math:`u_n = 1`.

    >>> import fairopt as fo
    >>> fo.TaskMaxMin().solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]])).user_tasks.tolist()
    [2.25, 2.25]
    """

    name = "task-maxmin"
    title = "task max-min"
    source = "baseline"
    counts_tasks = True
    properties = "depends on the size of a task"
    claims = (
        *claim("pareto-optimality", source="docs/proofs.md, H"),
        *claim(
            *("population-monotonicity", "resource-monotonicity"),
            conditions=("positive demands", "no placement constraints"),
            source="docs/proofs.md, I",
        ),
        *claim("sharing-incentive", "envy-freeness", "strategy-proofness", holds=False),
        *claim("bottleneck-fairness", "per-server-bottleneck-fairness", "single-resource-fairness", holds=False),
        *claim("population-monotonicity", "resource-monotonicity", holds=False),
    )

    def program(self, p: Program) -> Statement:
        return lexmaxmin(p.work / p.weight, p.constraints)

    def criterion(self, cluster: Cluster) -> Criterion:
        return criterion(cluster, np.ones(len(cluster.users)), np.inf, "servers", share_rule="constant")
