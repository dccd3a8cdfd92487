"""alphaPF-VDS: every server is alpha-proportionally fair in virtual dominant shares."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..core.game import selection
from ..core.game.curve import Crossing
from ..core.solution import Solution
from ..model import _validate
from ..model.cluster import Cluster
from ..model.criterion import Criterion
from ..model.problem import Problem
from ._base import ALPHAS, Mechanism
from ._claim import claim
from ._game import GameMechanism
from .reference.program import Program, Statement, f_alpha, lexmaxmin, maximise


@dataclass(frozen=True)
class AlphaPFVDS(GameMechanism):
    r"""Let every server i maximise alpha-fair welfare of virtual dominant shares over its column of x.

    .. math::
        \max_{x_{\cdot i}} \sum_n \phi_n f_\alpha(\sigma_{ni} / \phi_n), \quad
        \sigma_{ni} = \frac{x_n}{\gamma_{ni}}, \quad x_n = \sum_j x_{nj}

    The columns of other servers are given, and the allocation is a Nash equilibrium of the servers. At alpha = 1 the
    game is one convex program (CEEI on servers); alpha = infinity is `PSDSF`; at alpha = 0 the servers' linear programs
    are independent. For other alphas no potential exists in general. Convergence of best responses is then observed but
    not proved, and equilibria need not be unique, although multiplicity is rare (`fo.game.equilibria`,
    docs/equilibria.md). An allocation has the `index` of its equilibrium, and a note if other equilibria are not
    excluded. A curve of equilibria over alpha passes through the unique equilibrium at alpha = 1.

    Parameters
    ----------
    alpha : float
        0 to infinity.
    select : str
        Selection among several equilibria.
        `fast`: the equilibrium that the engine finds; on clusters of up to 500 (user, server) pairs an equilibrium of
        index -1, which is unstable, is replaced by a stable equilibrium.
        `curve`: the first equilibrium at alpha on the curve from alpha = 1, for up to 6,000 pairs.
        `welfare`: the equilibrium on the curve with the largest alpha-fair welfare of dominant shares.
        `best-response`: the limit of best responses of servers, continued in small steps of alpha from 1.

    Raises
    ------
    DataError
        alpha is negative or not a number, or the selection is unknown.

    Properties: envy-freeness and sharing incentive for alpha >= 1; without task limits bottleneck fairness (per server)
    for alpha > 0, and Pareto for alpha = 1. Not Pareto for large alpha (at 4 and 10 with capacities (2,2), (1,2)
    and demands (3,2), (1,4)), not strategy-proof (at alpha = 1 it is CEEI).

    Source: Khamse-Ashari, Lambadaris, Kesidis, Urgaonkar, Zhao, IEEE TPDS 29(12), 2018 (PF), sections 3 to 5
    (arXiv:1712.10114).

    >>> import fairopt as fo
    >>> fo.AlphaPFVDS(3).solve(fo.Cluster([[2, 2], [1, 2]], [[3, 2], [1, 4]])).user_tasks.round(3).tolist()
    [0.649, 0.675]
    """

    name = "alphapf-vds"
    title = "alphaPF-VDS"
    source = "Khamse-Ashari et al., TPDS 2018 (PF)"
    unique = False
    claims = (
        *claim("sharing-incentive", "envy-freeness", source="docs/proofs.md, D", alpha=(1, math.inf)),
        *claim("undominated-equilibrium", conditions=("no task counts",), source="docs/proofs.md, A", alpha=(1, 1)),
        *claim(
            "per-server-bottleneck-fairness",
            "single-resource-fairness",
            conditions=("no task counts",),
            source="PF, section 5; docs/proofs.md, J",
            alpha=(0.01, math.inf),
        ),
        *claim(
            "pareto-optimality",
            conditions=("no task counts",),
            source="PF, section 5; docs/proofs.md, H",
            alpha=(1, 1),
        ),
        *claim("sharing-incentive", "envy-freeness", holds=False, alpha=(0.1, 0.5)),
        *claim("pareto-optimality", holds=False, alpha=(2, 64)),
        *claim("strategy-proofness", "population-monotonicity", "resource-monotonicity", holds=False, alpha=(0.1, 8)),
    )

    alpha: float = 1.0
    select: str = "fast"

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", _validate.alpha(self.alpha))
        selection.selected(self.select)

    def equilibria(self, problem: Problem, tol: float, warm: object) -> Iterator[Solution]:
        given = vars(self).get("_crossing")
        if given is not None:
            return iter([selection.of_crossing(problem, given)])
        return selection.solutions(problem, tol, warm, self.select)

    def neighbours(self, problem: Problem, tol: float) -> Iterator[Solution]:
        return selection.neighbours(problem, tol)

    def at_crossing(self, crossing: Crossing) -> AlphaPFVDS:
        """Copy the mechanism such that it returns a given point of a curve, on the curve's merged cluster."""
        other = replace(self)
        vars(other)["_crossing"] = crossing  # not a field, so that mechanisms with equal parameters compare equal
        return other

    @classmethod
    def variants(cls) -> tuple[Mechanism, ...]:
        return (cls(1.0), cls(3.0))

    @classmethod
    def trials(cls) -> tuple[Mechanism, ...]:
        return tuple(cls(alpha) for alpha in ALPHAS)

    def program(self, p: Program) -> Statement:
        if self.alpha == math.inf:
            return lexmaxmin(p.virtual_share / p.weight, p.constraints)
        return maximise(p.weight @ f_alpha(p.virtual_share / p.weight, self.alpha), p.constraints)

    def criterion(self, cluster: Cluster) -> Criterion:
        return self.virtual_criterion(cluster, self.alpha)
