"""How the shares per task of global rules follow from demands and capacities: `d log u_n` by their logarithms.

dominant   u_n = max_r d_nr/C_r           by d_nr: 1 for the largest r; by c_ir: -c_ir/C_r for it
asset      u_n = sum_r d_nr/C_r           the same, each r with its part of the sum
alone      u_n = 1 / sum_i gamma0_ni      by d_nr: the part of the sum on servers where r sets gamma0; by c_ir: minus
demand     u_n = d_n0                     by d_n0: 1
constant   nothing
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..model.cluster import Cluster
from ..model.criterion import ShareRule

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Resources tie if they are this close.
TIED = 1e-7


class ShareDerivative(NamedTuple):
    """By demands (users, resources); by capacities pooled (users, resources), or of `alone` by server.

    Attributes
    ----------
    by_pool : by log C_r; by_server : by log c_ir (users, servers, resources), or None
    tied : (users, resources), resources that tie for the user's share
    """

    by_demand: Array
    by_pool: Array
    by_server: Array | None
    tied: Mask


def apportioned(largest: Mask) -> tuple[Array, Array]:
    """(..., resources): all to the first of those that are largest, and divided over them at random."""
    first = np.zeros(largest.shape)
    np.put_along_axis(first, largest.argmax(axis=-1)[..., None], 1.0, axis=-1)
    several = largest.sum(axis=-1) > 1
    random = np.where(largest, np.random.default_rng(0).random(largest.shape), 0.0)
    with np.errstate(invalid="ignore"):
        return first, np.where(several[..., None], random / random.sum(axis=-1, keepdims=True), first)


def share_derivative(cluster: Cluster, rule: ShareRule) -> ShareDerivative:
    """How shares follow from the data of a cluster; not at all where nobody knows."""
    users, _, resources = cluster.shape
    none, untied = np.zeros((users, resources)), np.zeros((users, resources), dtype=bool)
    share = cluster.share_per_task
    with np.errstate(divide="ignore", invalid="ignore"):
        if rule == "dominant":
            close = share >= share.max(axis=1, keepdims=True) * (1 - TIED)
            part = np.eye(resources)[share.argmax(axis=1)]
            return ShareDerivative(part, -part, None, close & (close.sum(axis=1) > 1)[:, None])
        if rule == "asset":
            part = np.nan_to_num(share / share.sum(axis=1, keepdims=True))
            return ShareDerivative(part, -part, None, untied)
        if rule == "alone":
            gamma = cluster.gamma0
            part = np.nan_to_num(gamma / gamma.sum(axis=1, keepdims=True))[:, :, None]
            room = np.where(cluster.demand[:, None] > 0, cluster.capacity / cluster.demand[:, None], np.inf)
            close = (room <= gamma[:, :, None] * (1 + TIED)) & (part > 0)
            by_server = -part * (np.arange(resources) == room.argmin(axis=2)[:, :, None])
            tied = (close & (close.sum(axis=2) > 1)[:, :, None]).any(axis=1)
            return ShareDerivative(-by_server.sum(axis=1), none, by_server, tied)
    if rule == "demand":
        return ShareDerivative(np.eye(resources)[np.zeros(users, dtype=np.intp)], none, None, untied)
    return ShareDerivative(none, none, None, untied)
