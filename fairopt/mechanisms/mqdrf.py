"""Multi-Level Queue DRF: DRF with a cap on dominant shares for every level of users."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..base.errors import DataError
from ..model._arrays import Index
from ..model.cluster import Cluster
from ..model.criterion import Criterion, criterion
from ._base import Mechanism
from ._claim import claim
from .reference.program import Program, Statement, lexmaxmin


@dataclass(frozen=True)
class MQDRF(Mechanism):
    r"""DRF with a cap on each user's dominant share, which depends on the level (age) of the user.

    .. math::
        \operatorname{lex\,max\,min}_n\ \sigma_n, \quad
        \sigma_n = x_n \max_r d_{nr} / C_r \le DK_k / N_k \ \text{ for n in level k}

    Parameters
    ----------
    shares : tuple of float (levels,)
        :math:`DK_1 \ge DK_2 \ge \dots > 0`, fraction of the cluster for each level.
    sizes : tuple of int (levels,), optional
        :math:`N_1 = \dots = N_{K-1} \le N_K`, largest number of users of each level. Default, for a single level: the
        number of users.
    levels : tuple of int (users,), optional
        Level 1..K of each user, of which 1 is the newest. Default: 1 for all users.

    Weights are ignored. The paper contradicts itself on the cap: equation (5) caps the sum over a level at
    :math:`DK_k / N_k`, while its theorem 1 and its experiment need the cap per user that is used here. Both caps
    coincide for :math:`N_k = 1`.

    Raises
    ------
    DataError
        Shares, sizes or levels are invalid, or a level has more users than its size.

    Properties: strategy-proofness (a user has at most :math:`DK_k / N_k` of every resource, whatever it reports). The
    paper also claims Pareto efficiency (theorem 3), which is false under a hard cap: in its experiment user 1 alone
    runs 20 tasks where 50 are feasible. It claims envy-freeness over time (theorem 4), which holds if levels change at
    the ends of slots of equal length, but not if they change at arrivals.

    Source: Liu, Liu, "Multi-Level Queue Dominant Resource Fairness in Cloud Computing", definition 1.

    >>> import fairopt as fo
    >>> fo.MQDRF((0.5,)).solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]])).user_tasks.tolist()
    [1.125, 0.75]
    """

    name = "mqdrf"
    title = "MQDRF"
    source = "Liu, Liu, definition 1"
    scope = "pool"
    uses_weights = False
    properties = "its paper says PO"
    claims = (
        *claim("dynamic-envy-freeness", source="docs/proofs.md, G"),
        *claim(
            *("strategy-proofness", "strategy-proofness-placement", "strategy-proofness-counts"),
            "group-strategy-proofness",
            source="docs/proofs.md, B",
        ),
        *claim(
            *("dynamic-sharing-incentive", "strong-group-strategy-proofness"),
            *("population-monotonicity", "resource-monotonicity"),
            source="docs/proofs.md, F",
            reserved=(0.0, 1.0),
        ),
        *claim("sharing-incentive", "envy-freeness", "pareto-optimality", holds=False),
    )

    shares: tuple[float, ...] = (1.0,)
    sizes: tuple[int, ...] | None = None
    levels: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("shares", "sizes", "levels"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, tuple(value))
        if not self.shares or min(self.shares) <= 0 or sorted(self.shares, reverse=True) != list(self.shares):
            raise DataError(
                f"shares {self.shares} must all be > 0 and must not increase from level to level: DK_1 >= DK_2 >= ..."
            )
        levels = len(self.shares)
        if self.sizes is None:
            if levels > 1:
                raise DataError("give sizes, the most users of each level, one per share")
        elif len(self.sizes) != levels or not 1 <= self.sizes[0] <= self.sizes[-1] or len({*self.sizes[:-1]}) > 1:
            raise DataError(
                f"sizes {self.sizes} must be whole numbers >= 1, one per share ({levels}); all must be equal, the last "
                "one at least that: N_1 = ... <= N_K"
            )

    @property
    def reserved(self) -> float:
        """Sum of the fractions `shares`; if it is at most 1, all caps are feasible together."""
        return math.fsum(self.shares)

    @classmethod
    def trials(cls) -> tuple[Mechanism, ...]:
        return (cls((1.5,)),)

    def queue(self, count: int) -> tuple[Index, Index]:
        """Levels of `count` users, (users,), from 1, and sizes of levels, (levels,)."""
        levels = np.ones(count, dtype=int) if self.levels is None else np.array(self.levels)
        return levels, np.array([count] if self.sizes is None else self.sizes)

    def program(self, p: Program) -> Statement:
        return lexmaxmin(p.dominant_share, p.constraints)

    def criterion(self, cluster: Cluster) -> Criterion:
        count = len(cluster.users)
        levels, sizes = self.queue(count)
        if levels.shape != (count,) or not np.isin(levels, np.arange(1, len(sizes) + 1)).all():
            raise DataError(
                f"levels must give each of the {count} users a level from 1 to {len(sizes)}; got {self.levels}"
            )
        crowd = np.bincount(levels, minlength=len(sizes) + 1)[1:]
        if (crowd > sizes).any():
            level = int(np.argmax(crowd > sizes))
            raise DataError(f"level {level + 1} holds {crowd[level]} users, more than its size {sizes[level]}")
        share = cluster.dominant_share_per_task
        cap = (np.array(self.shares) / sizes)[levels - 1] / share
        return criterion(cluster, share, np.inf, "pool", weight=np.ones(count), cap=cap)
