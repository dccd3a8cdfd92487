"""Alpha-fair shares with floors: a fraction of the tasks under a partition by weight."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..base.errors import DataError
from ..model import _intake, _validate
from ..model._arrays import Array
from ..model.cluster import Cluster
from ..model.criterion import Criterion, criterion
from ..model.merging import merge
from ._base import Mechanism
from .reference.program import Program, Statement, f_alpha, lexmaxmin, maximise


@dataclass(frozen=True)
class GuaranteedAlphaFair(Mechanism):
    r"""Maximise alpha-fair welfare subject to floors: a fraction of each user's tasks under a partition by weight.

    .. math::
        \max_x \sum_n \phi_n f_\alpha(\sigma_n / \phi_n) \ \text{ where } x_n \ge \min(p\, b_n, q_n), \quad
        \sigma_n = x_n \max_r \frac{d_{nr}}{C_r}, \quad b_n = \frac{\phi_n}{\sum_m \phi_m} \sum_i \gamma_{ni}

    p is `part`. The benchmark :math:`b_n` of sharing incentive is the number of tasks that user n could run on its
    fraction, by weight, of every server on which it is eligible.

    Parameters
    ----------
    alpha : float
        0 (utilitarian) to infinity (max-min).
    part : float or sequence of float (users,)
        Fraction p >= 0 of the benchmark, for all users or for each user. Floors are feasible for p <= 1, since the
        partition by weight satisfies them.

    Raises
    ------
    DataError
        `part` is invalid, or the floors are infeasible together.

    Properties: sharing incentive for part >= 1, Pareto. alpha = infinity is DRFH with floors; part = 0 is `AlphaFair`.

    Source: defined here; the benchmark is defined in Khamse-Ashari et al., TPDS 2018, section 3 (arXiv:1712.10114).

    >>> import fairopt as fo
    >>> cluster = fo.Cluster([[6, 1], [1, 2]], [[1, 2], [1, 1]])
    >>> fo.GuaranteedAlphaFair(float("inf")).solve(cluster).user_tasks.round(3).tolist()
    [0.75, 1.25]
    """

    name = "guaranteed-alpha-fair"
    title = "guaranteed alpha-fair"
    source = "ours; sharing incentive as in PF"
    has_floors = True
    properties = "SI for part >= 1, PO"

    alpha: float = 2.0
    part: float | Sequence[float] = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", _validate.alpha(self.alpha))
        part = _intake.plain(self.part, "part")
        if part.ndim > 1 or not (np.isfinite(part) & (part >= 0)).all():
            raise DataError(f"part is {self.part!r}; it must be a number >= 0, or one per user")
        object.__setattr__(self, "part", part.item() if part.ndim == 0 else tuple(part.tolist()))

    @classmethod
    def trials(cls) -> tuple[Mechanism, ...]:
        return (cls(0.0, 0.5), cls(0.5, 0.9), cls(1.0), cls(50.0, 0.8), cls(math.inf), cls(math.inf, 0.6))

    def benchmark(self, cluster: Cluster) -> Array:
        """Tasks of each user under a partition of its eligible servers by weight, (users,)."""
        alone = merge(cluster, users=False).cluster.gamma.sum(axis=1)  # merging saves time on equal servers
        return np.asarray(cluster.weight / cluster.weight.sum() * alone)

    def program(self, p: Program) -> Statement:
        if self.alpha == math.inf:
            return lexmaxmin(p.dominant_share / p.weight, p.constraints)
        return maximise(p.weight @ f_alpha(p.dominant_share / p.weight, self.alpha), p.constraints)

    def criterion(self, cluster: Cluster) -> Criterion:
        users = len(cluster.users)
        if isinstance(self.part, tuple) and len(self.part) != users:
            raise DataError(
                f"part has {len(self.part)} numbers; give one for each of the {users} users, or one for all"
            )
        floor = np.minimum(np.asarray(self.part) * self.benchmark(cluster), cluster.max_tasks)
        return criterion(
            cluster, cluster.dominant_share_per_task, self.alpha, "servers", floor=floor, share_rule="dominant"
        )
