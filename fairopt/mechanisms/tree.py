"""Hierarchical fairness: a tree of weighted queues with quotas, limits and priorities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import DataError
from ..certificates import Certificate, feasibility
from ..certificates.stages import rise_when_stopped
from ..core.engines import tree as engine
from ..core.solution import Solution
from ..model._arrays import Array
from ..model.cluster import Cluster
from ..model.criterion import Criterion, criterion
from ..model.merging import Split
from ..model.polytope import Polytope
from ..model.problem import Problem
from ..model.queues import Combine, Filling, Queues
from ._base import Mechanism
from .alpha_fair import Share, share_of, share_per_task, share_rule
from .reference.program import Program, Statement, lexmaxmin


@dataclass(frozen=True)
class Tree(Mechanism):
    r"""Fill a tree of queues progressively: siblings rise in proportion to weight, until no user can rise.

    .. math:: \dot{\sigma}_n = \prod_{q \ni n} \frac{\phi_q}{\Phi_q}

    over the queues q on the path of user n from the root, the user itself included, with the sum :math:`\Phi_q` of the
    weights of q and of its siblings below which some user can still rise (`combine="sum"`), or such that a queue's
    dominant share rises by 1 if the queue does (`"vector"`). `Queues` defines quotas, limits, priorities and when a
    user stops. Without queues above them all users are siblings, and the result is DRFH.

    Parameters
    ----------
    queues : Queues, mapping, path or None
        The tree, its entries, or a file of these (TOML, JSON).
    share : str, array (users,) or callable
        Share per task, as in `AlphaFair`.
    combine : str
        "sum" or "vector".

    Properties: Pareto (a task more for anybody costs somebody a task).

    Source: Bhattacharya, Culler, Friedman, Ghodsi, Shenker, Stoica, "Hierarchical scheduling for diverse datacenter
    workloads", SoCC 2013 (doi:10.1145/2523616.2523637), of which "vector" is the continuous form.

    >>> import fairopt as fo
    >>> tree = fo.Queues({"lab": {"weight": 3}, "ann": {"parent": "lab"}, "bob": {"parent": "lab"}})
    >>> fo.Tree(tree).solve(fo.Cluster([[8]], [[1], [1], [1]], users=["ann", "bob", "eve"])).user_tasks.tolist()
    [3.0, 3.0, 2.0]
    """

    name = "tree"
    title = "tree"
    source = "Bhattacharya et al., SoCC 2013"
    properties = "queues with weights, quotas, limits, priorities"

    queues: Queues | Mapping[str, Any] | str | Path | None = None
    share: Share = "dominant"
    combine: Combine = "sum"

    def __post_init__(self) -> None:
        given = self.queues
        if isinstance(given, str | Path):
            given = Queues.load(given)
        object.__setattr__(self, "queues", given if isinstance(given, Queues) else Queues(given or {}))
        if self.combine not in ("sum", "vector"):
            raise DataError(f"combine is {self.combine!r}; it must be 'sum' or 'vector'")

    @classmethod
    def variants(cls) -> tuple[Mechanism, ...]:
        return ()  # without queues it is DRFH

    def filling(self, cluster: Cluster, users: Array) -> Filling:
        """The tree on a cluster, for the users that can run tasks, given by indices."""
        assert isinstance(self.queues, Queues)
        return Filling(self.queues, cluster, share_per_task(cluster, self.share), self.combine, users)

    def check(self, cluster: Cluster) -> None:
        self.filling(cluster, np.arange(len(cluster.users)))

    def program(self, p: Program) -> Statement:
        return lexmaxmin(share_of(p, self.share) / p.weight, p.constraints)

    def criterion(self, cluster: Cluster) -> Criterion:
        """Max-min with the weights of the first stage, to which the filling adds quotas, limits and later stages."""
        share = share_per_task(cluster, self.share)
        rates = self.filling(cluster, np.arange(len(cluster.users))).rates(np.ones(len(share), dtype=bool))
        weight = np.where(rates > 0, rates * share, cluster.weight)
        return criterion(cluster, share, np.inf, "servers", weight, share_rule=share_rule(self.share))

    def engines(self, criterion: Criterion | None = None) -> tuple[str, ...]:
        return ("filling",)

    def solutions(
        self, problem: Problem, engine_name: str, tol: float, solver: str | None, warm: object = None
    ) -> Iterator[Solution]:
        return engine.solutions(problem, self.filling(problem.cluster, problem.polytope.users))

    def stand_in(self, problem: Problem, engine: str, tol: float) -> Iterator[Solution] | None:
        return None

    def certify(
        self, cluster: Cluster, tasks: Array, log_prices: Array | None = None
    ) -> tuple[Certificate, Array | None]:
        """Certificate by the largest rise of a user at the moment at which the filling stops it."""
        feasible, where = feasibility(cluster, tasks)
        if not np.isfinite(feasible):
            return Certificate(feasible, np.inf, "rise when stopped", where), None
        split = Split.from_answer(cluster, tasks)
        merged = split.merging.cluster
        polytope = Polytope(merged, cluster.max_tasks)
        if not len(polytope.users):
            return Certificate(feasible, 0.0, "rise when stopped", "no user can run anything"), None
        x = polytope.user_tasks(polytope.fractions(split.merged))
        filling = self.filling(merged, polytope.users)
        over = filling.over_limits(x)
        if len(over) and over.max() > feasible:
            feasible, where = float(over.max()), f"largest for {filling.limited[int(over.argmax())]}, over its limit"
        prices = np.zeros((0, *merged.capacity.shape)) if log_prices is None else np.exp(log_prices)
        prices = prices.reshape(-1, len(cluster.servers), len(cluster.resources))[:, split.merging.first_server, :] \
            if log_prices is not None else prices
        rise = rise_when_stopped(polytope, filling, x, prices)
        n = int(rise.argmax())
        if rise[n] > feasible:
            where = f"largest for user {merged.users[polytope.users[n]]!r}"
        return Certificate(feasible, float(rise[n]), "rise when stopped", where), log_prices
