"""Hierarchical fairness: a tree of weighted queues with quotas, limits and priorities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..base.names import listed
from ..core.engines import tree
from ..core.solution import Solution
from ..model.cluster import Cluster, expected
from ..model.criterion import Criterion
from ..model.problem import Problem
from ..model.queues import Combine, Queues
from ..model.tree_filling import tree_criterion
from ._base import Mechanism
from .alpha_fair import Share, share_of, share_per_task, share_rule
from .reference.program import Program, Statement, lexmaxmin


@dataclass(frozen=True)
class Tree(Mechanism):
    r"""Fill a tree of queues progressively: shares of siblings increase in proportion to their weights.

    .. math:: \dot{\sigma}_n = \prod_{q \ni n} \frac{\phi_q}{\Phi_q}

    over the queues q on the path from the root to user n, which is the last of them. For `combine="sum"`,
    :math:`\Phi_q` is the sum of the weights of q and of the siblings of q that contain a user whose tasks can still
    increase; for `"vector"`, it is such that the dominant share of every queue increases at the rate of the queue.
    `Queues` defines quotas, limits, priorities and when a user stops; filling ends when all users have stopped. Without
    queues all users are siblings, and with dominant shares the result is DRFH.

    Parameters
    ----------
    queues : Queues, mapping, path or None
        The tree, a mapping of its entries, or the path of a file of entries (TOML, JSON).
    share : str, array (users,) or callable
        Share per task, as in `AlphaFair`.
    combine : str
        "sum" or "vector".

    Raises
    ------
    DataError
        The file of queues cannot be read, or an entry is invalid (`Queues`).

    Properties: Pareto within quotas and limits of queues.

    Source: Bhattacharya, Culler, Friedman, Ghodsi, Shenker, Stoica, "Hierarchical scheduling for diverse datacenter
    workloads", SoCC 2013 (doi:10.1145/2523616.2523637); "vector" is the continuous form of its algorithm.

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
        if isinstance(self.queues, str | Path):
            object.__setattr__(self, "queues", Queues.load(self.queues))
        elif self.queues is not None and not isinstance(self.queues, Queues):
            object.__setattr__(self, "queues", Queues(self.queues))

    def __str__(self) -> str:
        """Label without the queues, which are too many to list."""
        return super().__str__() if self.queues is None else str(replace(self, queues=None))

    @classmethod
    def variants(cls) -> tuple[Mechanism, ...]:
        return ()  # comparisons include it only by name, since a tree without queues is DRFH

    def declared(self, queues: Queues, combine: Combine) -> Tree:
        """Return this tree if it has queues, and otherwise a tree with the given queues.

        `combine` applies if this tree has the default, "sum".
        """
        if self.queues is not None:
            return self
        return replace(self, queues=queues, combine=combine if self.combine == "sum" else self.combine)

    def check(self, cluster: Cluster) -> None:
        self.criterion(expected(cluster, "trees of queues"))

    def prepare(self, cluster: Cluster) -> tuple[Cluster, tuple[str, ...]]:
        """Return the cluster, and a note on entries without users, which may be misspelt names."""
        entries = {} if not isinstance(self.queues, Queues) else self.queues.queues
        used = set(cluster.users)
        for user in cluster.users:
            at = entries[user].parent if user in entries else None
            while at is not None and at not in used:
                used.add(at)
                at = entries[at].parent
        empty = [name for name in entries if name not in used]
        return cluster, (f"queues without users below them: {listed(empty, 5)}",) if empty else ()

    def program(self, p: Program) -> Statement:
        """State the program of the first stage of filling: the largest increase of all shares at the tree's rates."""
        return lexmaxmin(share_of(p, self.share) / p.weight, p.constraints)

    def criterion(self, cluster: Cluster) -> Criterion:
        queues = self.queues if isinstance(self.queues, Queues) else Queues({})
        share = share_per_task(cluster, self.share)
        return tree_criterion(cluster, share, queues, self.combine, share_rule(self.share))

    def engines(self, criterion: Criterion | None = None) -> tuple[str, ...]:
        return ("filling",)

    def solutions(
        self, problem: Problem, engine: str, tol: float, solver: str | None, warm: object = None
    ) -> Iterator[Solution]:
        return tree.solutions(problem)

    def stand_in(self, problem: Problem, engine: str, tol: float) -> Iterator[Solution] | None:
        return None
