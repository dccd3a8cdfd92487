"""Users who need so much less than others of the same capacity that rounding hides it."""

from __future__ import annotations

import numpy as np

from ..model._arrays import Array
from ..model._validate import LEAST
from ..model.cluster import Cluster
from ..model.criterion import Criterion
from ..model.polytope import Polytope
from .rational import tried

#: Below this part of what another needs a user's rise is a matter of the last digits of the other's tasks.
SEEN = 1e-7
#: Below this alpha tasks may span more than numbers hold.
SMALL = 1e-2
_SPAN = (
    ". At so small an alpha tasks may span more than numbers hold (they go like prices to the power -1/alpha): take "
    "alpha=0, or one from {least:g} on"
)


def spread(cluster: Cluster) -> tuple[float, str]:
    """The largest ratio of two numbers of a kind that are not 0, and the kind: weights, capacities or demands."""
    found = float(cluster.weight.max() / cluster.weight.min()), "weights"
    for amounts, kind in ((cluster.capacity, "capacities"), (cluster.demand, "demands")):
        part = amounts / np.maximum(amounts.max(axis=0), LEAST)  # of one resource
        found = max(found, (1 / float(part[part > 0].min(initial=1.0)), kind))
    return found


def beyond_doubles(cluster: Cluster, criterion: Criterion) -> str:
    """Say what is too far apart for a finite alpha; empty where nothing is."""
    ratio, kind = spread(cluster)
    # Marginal utilities further apart, in decades, are beyond doubles in any unit.
    if np.isinf(criterion.alpha) or criterion.stiffness * np.log10(ratio) < 308.0:
        return ""
    return (
        f". The largest of the {kind} is {ratio:.0e} times the smallest, and at alpha = {criterion.alpha:g} marginal "
        "utilities are then further apart than numbers reach: bring them closer together, or take alpha = inf"
    )


def ill_scaling(polytope: Polytope, criterion: Criterion) -> tuple[float, tuple[int, int, int, int] | None]:
    """The least `use_nr / use_mr` of two users of a server at equal levels, and n, m, the server and r.

    `use_nr = d_nr phi_n/u_n`.
    """
    share = criterion.share
    users, server = polytope.users[polytope.pair_user], polytope.pair_server
    if not len(users):
        return 1.0, None
    rate = criterion.weight[users] / (share[users] if share.ndim == 1 else share[users, server])
    use: Array = polytope.pair_use * (rate / polytope.gamma)[:, None]
    least = np.full(polytope.cluster.capacity.shape, np.inf)
    most = np.zeros(least.shape)
    np.minimum.at(least, server, np.where(use > 0, use, np.inf))
    np.maximum.at(most, server, use)
    part = np.divide(least, most, out=np.ones(least.shape), where=most > 0)
    if not (part < 1).any():
        return 1.0, None
    i, r = (int(at) for at in np.unravel_index(part.argmin(), part.shape))
    mine = np.flatnonzero((server == i) & (use[:, r] > 0))
    few, many = mine[use[mine, r].argmin()], mine[use[mine, r].argmax()]
    return float(part[i, r]), (int(users[few]), int(users[many]), i, r)


def advice(cluster: Cluster, criterion: Criterion) -> str:
    """The remedy where rounding hides a user of max-min, or a finite alpha may be beyond doubles; empty elsewhere.

    It hides one if of two users of a server, at equal levels, one needs less than 1e-7 of what the other needs of a
    resource.

    Parameters
    ----------
    cluster : what was solved
    criterion : of the same cluster
    """
    if np.isfinite(criterion.alpha) or criterion.scope == "game":
        small = 0 < criterion.alpha < SMALL
        return beyond_doubles(cluster, criterion) or (_SPAN.format(least=SMALL) if small else "")
    least, where = ill_scaling(Polytope(cluster, criterion.limits(cluster)), criterion)
    if where is None or least >= SEEN:
        return ""
    n, m, i, r = where
    alone = cluster if criterion.scope != "per_server" else cluster.select(servers=[cluster.servers[i]])
    remedy = "The native engine does without rounding on so small a cluster; or leave"
    if not tried(alone, criterion.limits(cluster)):
        remedy = "The cluster is too large to do without: leave"
    return (
        f". At equal levels user {cluster.users[n]!r} needs {least:.0e} of what user {cluster.users[m]!r} needs of "
        f"{cluster.resources[r]!r} of server {cluster.servers[i]!r}, which rounding hides. {remedy} "
        "one of them out, or bring their demands or weights closer together"
    )
