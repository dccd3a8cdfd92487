"""The per-server game under a user-defined utility."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from ..base.libraries import cp
from ..core.solution import Solution
from ..model.cluster import Cluster
from ..model.criterion import Criterion, criterion, virtual_share_per_task
from ..model.problem import Problem
from ..result.allocation import Allocation
from ._game import GameMechanism
from ._solve import within
from .concave_utility import check_function, concave, why
from .reference.program import Program, Statement, maximise
from .reference.utility import Utility, UtilitySlope, log1p

#: CPU seconds of best responses before the declarative engine is tried: the larger of `_SECONDS`, and
#: `_SECONDS_PER_PAIR` times the number of (user, server) pairs.
_SECONDS, _SECONDS_PER_PAIR = 2.0, 1e-3
#: Number of (user, server) pairs up to which the declarative engine is tried first.
_FEW = 20
#: Dynamic range (decades) of weighted monopoly tasks above which the error message names this range as the cause.
_DECADES = 6


@dataclass(frozen=True)
class ConcaveGame(GameMechanism):
    r"""Let every server i maximise welfare under a utility given as a CVXPY function, over its column of x.

    .. math::
        \max_{x_{\cdot i}} \sum_n \phi_n U(\sigma_{ni} / \phi_n), \quad
        \sigma_{ni} = x_n / \gamma_{ni}, \quad x_n = \sum_j x_{nj}

    The columns of other servers are given, and the allocation is a Nash equilibrium of the servers. It is found by best
    responses, in which U' is interpolated by power laws between 32,768 shares; for up to 20 (user, server) pairs best
    responses are computed in CVXPY, with a default tolerance of 1e-4. As for `AlphaPFVDS`, convergence of best
    responses is observed but not proved, and equilibria need not be unique.

    Parameters
    ----------
    utility : callable
        U, a function of a CVXPY expression, the levels :math:`\sigma_{ni} / \phi_n`, (users,), that returns an
        expression of the same shape. It applies elementwise, is concave by CVXPY's rules, increasing and
        differentiable, such as `cp.log1p` or `lambda s: -cp.exp(-s)`.

    `ConcaveGame(cp.log)` is `AlphaPFVDS(1)`, and `ConcaveGame(lambda s: -cp.inv_pos(s))` is `AlphaPFVDS(2)`. If U'(0)
    is finite, a user may be left without tasks. The units of shares and weights matter unless U is alpha-fair, so that
    proportional servers are not merged. The certificate is the game's backward error, with U'(t) in place of the
    :math:`t^{-\alpha}` of alpha-fairness.

    Raises
    ------
    DataError
        The utility is not callable, is not concave and increasing on the shares that a cluster allows, or depends on a
        user's position, as `s[0]` does.

    Properties: Pareto optimality on each server separately where U' > 0.

    Source: Khamse-Ashari et al., IEEE TPDS 29(12), 2018 (PF), section 3: servers with concave utilities
    (arXiv:1712.10114).

    >>> import cvxpy as cp, fairopt as fo
    >>> fo.ConcaveGame(cp.log).solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]])).user_tasks.round(3).tolist()
    [4.091, 1.636]
    """

    name = "concave-game"
    title = "concave game"
    source = "Khamse-Ashari et al., TPDS 2018 (PF), 3"
    unique = False
    relative_weights = False
    relative_shares = False
    properties = "each server efficient; of a utility given as a function"
    default_tol: ClassVar[float] = 1e-6
    merges_users: ClassVar[bool] = False

    utility: Utility = log1p

    def __post_init__(self) -> None:
        check_function(self.utility)

    @classmethod
    def trials(cls) -> tuple[ConcaveGame, ...]:
        return (cls(cp.log), cls(cp.sqrt))

    def engines(self, criterion: Criterion | None = None) -> tuple[str, ...]:
        # The loops of best responses must be compiled first, which takes longer than CVXPY for a small problem.
        rule = self._ordinary() if criterion is None else criterion
        small = rule is not None and rule.share.size <= _FEW
        return ("declarative", "best-response") if small else ("best-response", "declarative")

    def solutions(
        self, problem: Problem, engine: str, tol: float, solver: str | None, warm: object = None
    ) -> Iterator[Solution]:
        offers = super().solutions(problem, engine, tol, solver, warm)
        seconds = max(_SECONDS, _SECONDS_PER_PAIR * len(problem.polytope.gamma))
        return within(seconds, offers) if engine == "best-response" else offers

    def criterion(self, cluster: Cluster) -> Criterion:
        plain = criterion(cluster, partial(virtual_share_per_task, cluster), 1.0, "game")
        with np.errstate(invalid="ignore"):
            alone = cluster.monopoly_work.sum(axis=1)  # an upper bound on a user's work in any allocation
            most = np.where(cluster.usable, plain.levels(alone), 0.0)
        return concave(plain, self.utility, most)

    def reason(self, best: Allocation) -> str:
        scale = (best.cluster.gamma * best.cluster.weight[:, None])[best.cluster.usable]
        if (decades := np.log10(scale.max(initial=1.0) / scale.min(initial=1.0))) <= _DECADES:
            return why(best)
        return (
            f". The tasks that users could run alone span {decades:.0f} decades here; solvers of CVXPY resolve about "
            f"{_DECADES}: bring demands, capacities and weights closer together, or use AlphaPFVDS, whose "
            "engine resolves all of them"
        )

    def program(self, p: Program) -> Statement:
        utility = UtilitySlope(self.utility).expression(p.virtual_share / p.weight)
        return maximise(p.weight @ utility, p.constraints)
