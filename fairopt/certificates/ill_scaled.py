"""Detection of data for which floating point cannot resolve the demands of some users."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..model._arrays import Array
from ..model._validate import LEAST
from ..model.cluster import Cluster
from ..model.criterion import Criterion, virtual_share_per_task
from ..model.merging import merge
from ..model.polytope import Polytope
from .rational import tried

#: Ratio of two users' demands below which rounding of the larger demand conceals an increase of the other user's tasks.
SEEN = 1e-7
#: Alpha below which tasks may exceed the range of floating point.
SMALL = 1e-2
_SPAN = (
    ". At so small an alpha tasks may span more than numbers hold (they go like prices to the power -1/alpha): take "
    "alpha=0, or one from {least:g} on"
)


def spread(cluster: Cluster) -> tuple[float, str]:
    """Largest dynamic range of weights, capacities or demands (by resource, without zeros), and its kind of data."""
    found = float(cluster.weight.max() / cluster.weight.min()), "weights"
    for amounts, kind in ((cluster.capacity, "capacities"), (cluster.demand, "demands")):
        part = amounts / np.maximum(amounts.max(axis=0), LEAST)
        found = max(found, (1 / float(part[part > 0].min(initial=1.0)), kind))
    return found


def beyond_doubles(cluster: Cluster, criterion: Criterion) -> str:
    """Describe data whose marginal utilities at finite alpha exceed the range of floating point; '' for other data."""
    ratio, kind = spread(cluster)
    # A range of more than 308 decades cannot be represented in any unit.
    if np.isinf(criterion.alpha) or criterion.stiffness * np.log10(ratio) < 308.0:
        return ""
    return (
        f". The largest of the {kind} is {ratio:.0e} times the smallest, and at alpha = {criterion.alpha:g} marginal "
        "utilities are then further apart than numbers reach: bring them closer together, or take alpha = inf"
    )


def ill_scaling(polytope: Polytope, criterion: Criterion) -> tuple[float, tuple[int, int, int, int] | None]:
    r"""Smallest ratio `use_nr / use_mr` of two users of a server at equal levels, with indices of n, m, server and r.

    The use at level 1 is :math:`\text{use}_{nr} = d_{nr} \phi_n / u_n`. Without a ratio below 1 the result is 1, None.
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
    """Advice for ill-conditioned data: '. ' and a sentence; '' for other data.

    Data are ill-conditioned for max-min if, at equal levels, a user of a server uses less than 1e-7 of the amount of a
    resource that another user uses. For finite alpha they are if marginal utilities exceed the range of floating point.

    Parameters
    ----------
    cluster : Cluster
    criterion : Criterion
        Criterion of the same cluster.

    >>> import fairopt as fo
    >>> cluster = fo.Cluster([[9, 18]], [[1, 4], [3, 1]])
    >>> fo.certificates.advice(cluster, fo.DRF().criterion(cluster))
    ''
    """
    if np.isfinite(criterion.alpha) or criterion.scope == "game":
        small = 0 < criterion.alpha < SMALL
        return beyond_doubles(cluster, criterion) or (_SPAN.format(least=SMALL) if small else "")
    merging = merge(cluster, servers=criterion.scale_free, users=False)
    if criterion.scope == "per_server":
        criterion = replace(criterion, share=virtual_share_per_task(merging.cluster))
    least, where = ill_scaling(Polytope(merging.cluster, criterion.limits(cluster)), criterion)
    if where is None or least >= SEEN:
        return ""
    n, m, i, r = where
    i = int(merging.first_server[i])
    alone = cluster if criterion.scope != "per_server" else cluster.select(servers=[cluster.servers[i]])
    remedy = "The native engine does without rounding on so small a cluster; or leave"
    if not tried(alone, criterion.limits(cluster)):
        remedy = "The cluster is too large to do without: leave"
    return (
        f". At equal levels user {cluster.users[n]!r} needs {least:.0e} of what user {cluster.users[m]!r} needs of "
        f"{cluster.resources[r]!r} of server {cluster.servers[i]!r}, which rounding hides. {remedy} "
        "one of them out, or bring their demands or weights closer together"
    )
