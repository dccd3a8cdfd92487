"""Per-Server Dominant Share Fairness: max-min of virtual dominant shares on every server."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..model.cluster import Cluster
from ..model.criterion import Criterion
from ._claim import claim
from ._game import GameMechanism
from .reference.program import Program, Statement, lexmaxmin


@dataclass(frozen=True)
class PSDSF(GameMechanism):
    r"""Lexicographic max-min of virtual dominant shares at every server, given the users' tasks on other servers.

    .. math::
        \operatorname{lex\,max\,min}_n\ \sigma_{ni} / \phi_n \ \text{ over } x_{\cdot i} \text{ for every server i},
        \quad \sigma_{ni} = x_n / \gamma_{ni}, \quad x_n = \sum_j x_{nj}

    Without task limits, x is PS-DSF if and only if for every usable pair (n, i) some resource that user n demands is
    exhausted on server i, and no user of that resource on i has a larger :math:`\sigma_{mi} / \phi_m` than n. Such x
    need not be unique. The allocation returned is the limit of alphaPF-VDS as alpha tends to infinity, which depends
    neither on the order of users and servers nor on merging; with positive demands it maximises every user's tasks over
    all PS-DSF allocations (docs/psdsf.md). If the limit is not found, because of zero demands or task limits, a note
    states this, and best responses in the canonical order (`model/canonical.py`) determine the allocation. The engines
    `best-response` and `declarative` return the limit of their own iteration.

    Properties: envy-freeness, sharing incentive, bottleneck fairness (per server). Not Pareto: with capacities
    (2,2), (1,2) and demands (3,2), (1,4) users have 2/3 and 1/2 tasks where both could have 2/3. Not strategy-proof
    (docs/properties.md).

    Source: Khamse-Ashari, Lambadaris, Kesidis, Urgaonkar, Zhao, ICC 2017, definition 4 (arXiv:1611.00404).

    >>> import fairopt as fo
    >>> fo.PSDSF().solve(fo.Cluster([[2, 2], [1, 2]], [[3, 2], [1, 4]])).user_tasks.round(3).tolist()
    [0.667, 0.5]
    """

    name = "ps-dsf"
    title = "PS-DSF"
    source = "Khamse-Ashari et al., ICC 2017"
    unique = False
    claims = (
        *claim("sharing-incentive", "envy-freeness", source="docs/proofs.md, D"),
        *claim("single-server-drf", source="ICC 2017; docs/proofs.md, J"),
        *claim(
            "per-server-bottleneck-fairness",
            "single-resource-fairness",
            conditions=("no task counts",),
            source="PF, section 5; docs/proofs.md, J",
        ),
        *claim("strategy-proofness", "pareto-optimality", "strong-sharing-incentive", holds=False),
        *claim("population-monotonicity", "resource-monotonicity", holds=False),
    )

    def program(self, p: Program) -> Statement:
        return lexmaxmin(p.virtual_share / p.weight, p.constraints)

    def criterion(self, cluster: Cluster) -> Criterion:
        return self.virtual_criterion(cluster, np.inf)
