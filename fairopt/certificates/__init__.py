"""Judgement: how good an allocation is, from (cluster, tasks, criterion) alone. It knows no engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..cluster import Cluster
from ..criteria import Criterion, virtual_share_per_task
from ..polytope import Polytope
from ..rational import tried
from ..split import Split
from ._certificate import Certificate, feasibility
from .blocking import Blocking, blocking
from .bottleneck import rises
from .concave import duality_gap
from .exactly import distances
from .game import exploitability
from .leximin import ENOUGH, lexicographic_rise
from .uneven import SEEN, advice, unevenness

__all__ = [
    "Blocking",
    "Certificate",
    "advice",
    "blocking",
    "duality_gap",
    "exploitability",
    "feasibility",
    "judge",
    "lexicographic_rise",
    "rises",
]

Array = NDArray[np.float64]

#: What is proved to this in doubles is, unless users are uneven.
_CLEAR = 1e-9
#: The part of the work on an exact optimum that is done only to make sure.
_CAUTION = 0.05

_MEASURE = {"pool": "duality gap", "servers": "duality gap", "each": "lexicographic rise", "game": "exploitability"}


def judge(
    cluster: Cluster, tasks: Array | Split, criterion: Criterion, prices: Array | None = None
) -> tuple[Certificate, Array | None]:
    """The certificate of `tasks` (users, servers), a table or split, under `criterion`, and the prices that prove it.

    `prices` (servers, resources) are a hint from whoever made the tasks: better ones make the bound sharper, wrong
    ones cannot make it pass. For max-min they may be one set per level, (levels, servers, resources). The prices
    returned are `None` where others, or none, prove it. Max-min of small clusters that doubles do not settle is
    measured from its exact optimum (`exactly`).
    """
    tasks = tasks if isinstance(tasks, Split) else np.asarray(tasks, dtype=float)
    if prices is not None and prices.ndim > 2 and not _is_maxmin(criterion):
        prices = None  # made for max-min: no hint here
    limits = criterion.limits(cluster)
    if criterion.scope == "each":
        limits = np.where(limits > 0, np.inf, 0.0)  # servers that do not coordinate keep no limit but zero
    feasible, where = feasibility(cluster, tasks, limits)
    if not np.isfinite(feasible):
        return Certificate(feasible, np.inf, _measure(criterion), where), None
    optimal, measure, proof, found = _optimality(cluster, tasks, criterion, limits, prices)
    return Certificate(feasible, optimal, measure, where if feasible > optimal else found), proof


def _is_maxmin(criterion: Criterion) -> bool:
    return bool(np.isinf(criterion.alpha)) and criterion.scope != "game"


def _measure(criterion: Criterion) -> str:
    return "lexicographic rise" if _is_maxmin(criterion) else _MEASURE[criterion.scope]


def _optimality(
    cluster: Cluster, tasks: Array | Split, criterion: Criterion, limits: Array, prices: Array | None
) -> tuple[float, str, Array | None, str]:
    """Optimality judged after merging proportional servers, which is exact when the tasks are split like them.

    And what it measures, the prices that prove it, and where it is largest.
    """
    split = tasks if isinstance(tasks, Split) else Split.from_table(cluster.merge(users=False), tasks)
    merging = split.merging
    merged, table, servers = merging.cluster, split.merged, cluster.servers
    if criterion.scope in ("each", "game") and not merging.trivial:
        if not isinstance(tasks, Split) and not split.matches(tasks):
            return _settled(cluster, tasks, criterion, limits, prices, cluster.servers)
        criterion = replace(criterion, share=virtual_share_per_task(merged))
    first = np.unique(merging.server_of, return_index=True)[1]
    hint = None if prices is None else prices[..., first, :]
    # Merged servers by a name that the cluster has.
    found = _settled(merged, table, criterion, limits, hint, [servers[i] for i in first])
    return found[0], found[1], merging.split_prices(found[2]), found[3]


def _settled(
    cluster: Cluster,
    tasks: Array,
    criterion: Criterion,
    limits: Array,
    prices: Array | None,
    servers: Sequence[str],
) -> tuple[float, str, Array | None, str]:
    """As `_judge` finds it, or from its distance to the optimum of a small cluster that is too uneven for doubles."""
    gaps, proof, found = _judge(cluster, tasks, criterion, limits, prices, servers)
    gap, measure = float(gaps.max()), _measure(criterion)
    if not _is_maxmin(criterion):
        return gap, measure, proof, found
    # Prices may seem to prove what is not so where users are lost in the rounding of others.
    proved = gap <= ENOUGH
    if proved and (criterion.scope == "each" or not _doubtful(cluster, criterion, limits, gap)):
        return gap, measure, proof, found
    asked = np.ones(1, dtype=bool) if proved else gaps > ENOUGH
    apart, where = distances(cluster, tasks, criterion, limits, asked, _CAUTION if proved else 1.0)
    i = int(apart.argmax())
    if apart[i] == np.inf or (apart[i] > ENOUGH and not proved):
        return gap, measure, proof, found
    found = f"largest for user {cluster.users[where[i]]!r}"
    found += f" on server {servers[i]!r}" if criterion.scope == "each" else ""
    rest = float(gaps[~asked].max(initial=0.0))  # servers where doubles do
    return max(float(apart[i]), rest), "distance from the optimum", proof if proved else None, found


def _doubtful(cluster: Cluster, criterion: Criterion, limits: Array, gap: float) -> bool:
    """Is more to be known for little work?"""
    if not tried(cluster, limits, _CAUTION):
        return False
    return gap > _CLEAR or unevenness(Polytope(cluster, limits), criterion)[0] < SEEN


def _judge(
    cluster: Cluster,
    tasks: Array,
    criterion: Criterion,
    limits: Array,
    prices: Array | None,
    servers: Sequence[str],
) -> tuple[Array, Array | None, str]:
    """What is open, by server where each is judged on its own, the prices that prove it, and where it is largest."""
    polytope = Polytope(cluster, limits)
    proof: Array | None
    if criterion.scope in ("game", "each"):
        gaps, proof, whom = exploitability(polytope, tasks, criterion, prices)
        i = int(np.argmax(gaps))
        found = f"largest for {whom[i]} on server {servers[i]!r}" if gaps[i] > 0 else "no server would deviate"
        return np.asarray(gaps), None if np.isinf(criterion.alpha) else proof, found
    if not np.isinf(criterion.alpha):
        gap, proof, where = duality_gap(polytope, tasks, criterion, prices)
        return np.array([gap]), proof, where
    if cluster.shape[1] > 1:
        most, proof, where = lexicographic_rise(polytope, tasks, criterion, prices)
        return np.array([most]), proof, where
    if not len(polytope.users):
        return np.zeros(1), None, "no user can run anything"
    users = polytope.users
    own = criterion.restrict(users)
    x = tasks[users, 0]
    rise = rises(cluster.demand[users], cluster.capacity[0], x, own.levels(x), x, limits[users])
    n = int(rise.argmax())
    return rise[[n]], None, f"largest for user {cluster.users[users[n]]!r}" if rise[n] > 0 else "nobody can rise"
