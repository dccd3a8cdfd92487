"""Welfare under a user-defined utility: a concave, increasing function of the share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..base.errors import DataError
from ..base.libraries import cp
from ..model._arrays import Array
from ..model.cluster import Cluster
from ..model.criterion import ConcaveWelfare, Criterion, criterion
from ..result.allocation import Allocation
from ._base import Mechanism
from .alpha_fair import Share, share_of, share_per_task, share_rule
from .reference.program import Program, Statement, maximise
from .reference.utility import Utility, UtilitySlope, log1p

#: Elasticity `-d log U' / d log t` at a solution above which error messages name the steep utility as the cause; the
#: elasticity of `-exp(-k t)` is `k t`. Clusters with elasticities up to 16 were solved, and some above 60 were not.
_STEEP = 50.0


def check_function(utility: object) -> None:
    """Raise `DataError` unless the utility is callable."""
    if not callable(utility):
        raise DataError(f"utility is {utility!r}; it must be a function of a CVXPY expression: use cp.log1p")


def concave(plain: Criterion, utility: Utility, levels: Array) -> ConcaveWelfare:
    """Welfare criterion of a utility; `DataError` unless it is concave and increasing up to the largest of `levels`."""
    slope = UtilitySlope(utility)
    most = levels[np.isfinite(levels) & (levels > 0)]
    if len(most):
        slope.check(float(most.max()), levels.size)
    return ConcaveWelfare(**plain.plain, slope=slope)


def why(best: Allocation) -> str:
    """Likely cause of a missed tolerance: a flat utility, a steep utility, or a possible kink."""
    steepness = best.criterion.elasticity(best.arrays.work)
    worst = np.unravel_index(steepness.argmax(), steepness.shape)
    flat = np.argwhere(np.isneginf(best.criterion.log_marginal(best.arrays.work)))
    if len(flat) and steepness[worst] <= _STEEP:
        return (
            f". At the tasks of user {best.cluster.users[flat[0, 0]]!r} the utility is flat: more tasks add no "
            "welfare, so that many answers are as good, and prices are 0. Give a utility that increases on all shares"
        )
    if steepness[worst] <= _STEEP:
        return (
            ". If the utility has a kink near a user's share, it has many slopes there, and certificates, which use "
            "one, may refuse right answers: give a differentiable utility then"
        )
    return (
        f". At the weighted share {best.criterion.levels(best.arrays.work)[worst]:.3g} of user "
        f"{best.cluster.users[worst[0]]!r} the utility is as steep as that of alpha = {steepness[worst]:.0f}, and from "
        f"about {_STEEP:g} on solvers lose users of small marginal utility: give a flatter one, such as of a part of "
        "the share, or use AlphaFair or AlphaPFVDS, which are accurate at any alpha"
    )


@dataclass(frozen=True)
class ConcaveUtility(Mechanism):
    r"""Maximise welfare under a utility given as a CVXPY function.

    .. math:: \max_x \sum_n \phi_n U(\sigma_n / \phi_n), \quad \sigma_n = u_n x_n

    Parameters
    ----------
    utility : callable
        U, a function of a CVXPY expression, the levels :math:`\sigma_n / \phi_n`, (users,), that returns an expression
        of the same shape. It applies elementwise, is concave by CVXPY's rules, increasing and differentiable, such as
        `cp.log1p` or `lambda s: -cp.exp(-s)`.
    share, scope
        Parameters of `AlphaFair`, which define :math:`u_n`. The unit of shares matters, as U need not be homogeneous.

    `ConcaveUtility(cp.log)` is CEEI, and `ConcaveUtility(lambda s: -cp.inv_pos(s))` is `AlphaFair(2)`. If U'(0) is
    finite, a user may be left without tasks. The certificate is the backward error, with U'(t) in place of the
    :math:`t^{-\alpha}` of alpha-fairness (docs/certificates.md); examples are in docs/utilities.md.

    Raises
    ------
    DataError
        The utility is not callable, is not concave and increasing on the shares that a cluster allows, or depends on a
        user's position, as `s[0]` does.

    Properties: Pareto where U' > 0.

    Source: Kelly, "Charging and rate control for elastic traffic", 1997: users with concave utilities
    (doi:10.1002/ett.4460080106).

    >>> import cvxpy as cp, fairopt as fo
    >>> fo.ConcaveUtility(cp.log1p).solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]])).user_tasks.round(3).tolist()
    [4.091, 1.636]
    """

    name = "concave-utility"
    title = "concave utility"
    source = "Kelly 1997"
    relative_weights = False
    properties = "PO; of a utility given as a function"

    utility: Utility = log1p
    share: Share = "dominant"
    scope: Literal["servers", "pool"] = "servers"

    def __post_init__(self) -> None:
        check_function(self.utility)

    @classmethod
    def trials(cls) -> tuple[Mechanism, ...]:
        return (cls(cp.log), cls(lambda s: -cp.inv_pos(s)), cls(cp.sqrt, "dominant", "pool"))

    def criterion(self, cluster: Cluster) -> Criterion:
        rule = share_rule(self.share) if cluster.rated else "unknown"
        plain = criterion(cluster, share_per_task(cluster, self.share), 1.0, self.scope, share_rule=rule)
        # The pooled capacity bounds the tasks of any user.
        with np.errstate(divide="ignore", invalid="ignore"):
            alone = np.where(cluster.demand > 0, cluster.pooled_capacity / cluster.demand, np.inf).min(axis=1)
            alone = alone * cluster.rate.max(axis=1) if cluster.rated else alone
            return concave(plain, self.utility, plain.levels(alone))

    def reason(self, best: Allocation) -> str:
        return why(best)

    def program(self, p: Program) -> Statement:
        utility = UtilitySlope(self.utility).expression(share_of(p, self.share) / p.weight)
        return maximise(p.weight @ utility, p.constraints)
