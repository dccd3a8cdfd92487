"""Per-Server Dominant Share Fairness."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..model.cluster import Cluster
from ..model.criterion import Criterion
from ._claim import claim
from ._game import GameMechanism


@dataclass(frozen=True)
class PSDSF(GameMechanism):
    """Every server gives lexicographic max-min of virtual dominant shares, given what users have elsewhere.

        for every i:  lex max min_n  s[n,i] / phi_n,    s[n,i] = x_n / gamma[n,i],    x_n = sum_j x[n,j]

    x is PS-DSF iff for every usable pair (n,i) some resource that n needs is used up on i, and whoever uses it there
    has a weighted virtual dominant share at most that of n. Such x need not be unique. Returned is the limit of
    alphaPF-VDS for alpha to infinity, which does not depend on the order of users and servers nor on merging;
    with positive demands nobody has more tasks in any other PS-DSF allocation (docs/psdsf.md). Where zero demands or
    task counts keep the limit from being found, a note says so; the answer is then what best responses come to in an
    order that does not depend on the given one (`model/canonical.py`). The engines `best-response` and
    `declarative` return one that their iteration reaches.

    Properties: envy-freeness, sharing incentive, bottleneck fairness (per server). Not Pareto: with capacities
    (2,2), (1,2) and demands (3,2), (1,4) users have 2/3 and 1/2 tasks where both could have 2/3. Not strategy-proof
    (docs/properties.md).

    Source: Khamse-Ashari, Lambadaris, Kesidis, Urgaonkar, Zhao, ICC 2017 (arXiv 1611.00404), definition 4.
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

    def criterion(self, cluster: Cluster) -> Criterion:
        return self.game(cluster, np.inf)
