"""Judgement: how good an allocation is, from (cluster, tasks, criterion) alone. It knows no engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..cluster import Cluster
from ..criteria import Criterion, virtual_share_per_task
from ..polytope import Polytope
from ..split import Split
from ._certificate import Certificate, feasibility
from .blocking import Blocking, blocking
from .bottleneck import rises
from .concave import duality_gap
from .game import exploitability
from .leximin import lexicographic_rise

__all__ = [
    "Blocking",
    "Certificate",
    "blocking",
    "duality_gap",
    "exploitability",
    "feasibility",
    "judge",
    "lexicographic_rise",
    "rises",
]

Array = NDArray[np.float64]

_MEASURE = {"pool": "duality gap", "servers": "duality gap", "each": "lexicographic rise", "game": "exploitability"}


def judge(
    cluster: Cluster, tasks: Array | Split, criterion: Criterion, prices: Array | None = None
) -> tuple[Certificate, Array | None]:
    """The certificate of `tasks` (users, servers), a table or split, under `criterion`, and the prices that prove it.

    `prices` (servers, resources) are a hint from whoever made the tasks: better ones make the bound sharper, wrong
    ones cannot make it pass. For max-min they may be one set per level, (levels, servers, resources). The prices
    returned are `None` where others, or none, prove it.
    """
    tasks = tasks if isinstance(tasks, Split) else np.asarray(tasks, dtype=float)
    if prices is not None and prices.ndim > 2 and not _is_maxmin(criterion):
        prices = None  # made for max-min: no hint here
    measure = "lexicographic rise" if _is_maxmin(criterion) else _MEASURE[criterion.scope]
    limits = criterion.limits(cluster)
    if criterion.scope == "each":
        limits = np.where(limits > 0, np.inf, 0.0)  # servers that do not coordinate keep no limit but zero
    feasible, where = feasibility(cluster, tasks, limits)
    if not np.isfinite(feasible):
        return Certificate(feasible, np.inf, measure, where), None
    optimal, proof, found = _optimality(cluster, tasks, criterion, limits, prices)
    return Certificate(feasible, optimal, measure, where if feasible > optimal else found), proof


def _is_maxmin(criterion: Criterion) -> bool:
    return bool(np.isinf(criterion.alpha)) and criterion.scope != "game"


def _optimality(
    cluster: Cluster, tasks: Array | Split, criterion: Criterion, limits: Array, prices: Array | None
) -> tuple[float, Array | None, str]:
    """Optimality judged after merging proportional servers, which is exact when the tasks are split like them."""
    split = tasks if isinstance(tasks, Split) else Split.from_table(cluster.merge(users=False), tasks)
    merging = split.merging
    if criterion.scope in ("each", "game") and not merging.trivial:
        if not isinstance(tasks, Split) and not split.matches(tasks):
            return _judge(cluster, tasks, criterion, limits, prices, cluster.servers)
        criterion = replace(criterion, share=virtual_share_per_task(merging.cluster))
    first = np.unique(merging.server_of, return_index=True)[1]
    servers = [cluster.servers[i] for i in first]  # merged ones by a name that the cluster has
    optimal, proof, found = _judge(
        merging.cluster, split.merged, criterion, limits, None if prices is None else prices[..., first, :], servers
    )
    return optimal, merging.split_prices(proof), found


def _judge(
    cluster: Cluster,
    tasks: Array,
    criterion: Criterion,
    limits: Array,
    prices: Array | None,
    servers: Sequence[str],
) -> tuple[float, Array | None, str]:
    polytope = Polytope(cluster, limits)
    if criterion.scope in ("game", "each"):
        gaps, proof, where = exploitability(polytope, tasks, criterion, prices)
        i = int(np.argmax(gaps))
        found = f"largest for {where[i]} on server {servers[i]!r}" if gaps[i] > 0 else "no server would deviate"
        return float(gaps[i]), None if np.isinf(criterion.alpha) else proof, found
    if not np.isinf(criterion.alpha):
        return duality_gap(polytope, tasks, criterion, prices)
    if cluster.shape[1] > 1:
        return lexicographic_rise(polytope, tasks, criterion, prices)
    if not len(polytope.users):
        return 0.0, None, "no user can run anything"
    users = polytope.users
    own = criterion.restrict(users)
    x = tasks[users, 0]
    rise = rises(cluster.demand[users], cluster.capacity[0], x, own.levels(x), x, limits[users])
    n = int(rise.argmax())
    return float(rise[n]), None, f"largest for user {cluster.users[users[n]]!r}" if rise[n] > 0 else "nobody can rise"
