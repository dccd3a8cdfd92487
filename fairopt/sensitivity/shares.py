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
    """By demands (users, resources); by log C_r (users, resources), or by log c_ir (users, servers, resources)."""

    by_demand: Array
    by_pool: Array
    by_server: Array | None = None


def apportioned(largest: Mask) -> list[Array]:
    """(..., resources): all to the first of those that are largest; where some tie, divided over them at random too."""
    first = np.zeros(largest.shape)
    np.put_along_axis(first, largest.argmax(axis=-1)[..., None], 1.0, axis=-1)
    if not (largest.sum(axis=-1) > 1).any():
        return [first]
    random = np.where(largest, np.random.default_rng(0).random(largest.shape), first)
    return [first, random / random.sum(axis=-1, keepdims=True)]


def share_derivatives(cluster: Cluster, rule: ShareRule) -> list[ShareDerivative]:
    """How shares follow from the data of a cluster, not at all where nobody knows; in two ways where resources tie."""
    none = np.zeros(cluster.demand.shape)
    share = cluster.share_per_task
    with np.errstate(divide="ignore", invalid="ignore"):
        if rule == "dominant":
            close = share >= share.max(axis=1, keepdims=True) * (1 - TIED)
            return [ShareDerivative(part, -part) for part in apportioned(close)]
        if rule == "asset":
            part = np.nan_to_num(share / share.sum(axis=1, keepdims=True))
            return [ShareDerivative(part, -part)]
        if rule == "alone":
            gamma = cluster.gamma0
            part = np.nan_to_num(gamma / gamma.sum(axis=1, keepdims=True))[:, :, None]
            room = np.where(cluster.demand[:, None] > 0, cluster.capacity / cluster.demand[:, None], np.inf)
            ways = apportioned((room <= gamma[:, :, None] * (1 + TIED)) & (part > 0))
            return [ShareDerivative((part * way).sum(axis=1), none, -part * way) for way in ways]
    if rule == "demand":
        return [ShareDerivative(none + (np.arange(cluster.shape[2]) == 0), none)]
    return [ShareDerivative(none, none)]
