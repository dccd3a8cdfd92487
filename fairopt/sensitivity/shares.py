"""How the shares per task of global rules follow from demands and capacities: `d log u_n` by their logarithms.

dominant   u_n = max_r d_nr/C_r           by d_nr: 1 for the largest r; by c_ir: -c_ir/C_r for it
asset      u_n = sum_r d_nr/C_r           the same, each r with its part of the sum
alone      u_n = 1 / sum_i gamma0_ni      by d_nr: the part of the sum on servers where r sets gamma0; by c_ir: minus
demand     u_n = d_n0                     by d_n0: 1
constant   nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..model.cluster import Cluster
from ..model.criterion import ShareRule

Array = NDArray[np.float64]


@dataclass(frozen=True)
class TieOptions:
    """Which resources tie."""

    #: Resources tie if they are this close.
    tied: float = 1e-7


#: What is used unless a caller says otherwise.
OPTIONS = TieOptions()


@dataclass(frozen=True)
class ShareDerivative:
    """`by_demand` (users, resources); by capacities pooled (users, resources) or, of `alone`, by server.

    Attributes
    ----------
    known : is the rule one of those above
    by_pool : by log C_r (users, resources); by_server : by log c_ir (users, servers, resources), or None
    tied : (users, resources), resources that tie for the user's share
    """

    known: bool
    by_demand: Array
    by_pool: Array
    by_server: Array | None
    tied: NDArray[np.bool_]


def share_derivative(cluster: Cluster, rule: ShareRule) -> ShareDerivative:
    """How shares follow from the data of a cluster."""
    users, _, resources = cluster.shape
    none = np.zeros((users, resources))
    tied = np.zeros((users, resources), dtype=bool)
    share = cluster.share_per_task
    if rule == "dominant":
        with np.errstate(invalid="ignore"):
            close = share >= share.max(axis=1, keepdims=True) * (1 - OPTIONS.tied)
        part = np.eye(resources)[share.argmax(axis=1)]
        return ShareDerivative(True, part, -part, None, close & (close.sum(axis=1) > 1)[:, None])
    if rule == "asset":
        with np.errstate(invalid="ignore"):
            part = np.nan_to_num(share / share.sum(axis=1, keepdims=True))
        return ShareDerivative(True, part, -part, None, tied)
    if rule == "alone":
        return _alone(cluster)
    if rule == "demand":
        part = none.copy()
        part[:, 0] = 1.0
        return ShareDerivative(True, part, none, None, tied)
    return ShareDerivative(rule == "constant", none, none, None, tied)


def _alone(cluster: Cluster) -> ShareDerivative:
    gamma = cluster.gamma0
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.nan_to_num(gamma / gamma.sum(axis=1, keepdims=True))
        room = np.where(cluster.demand[:, None, :] > 0, cluster.capacity[None] / cluster.demand[:, None, :], np.inf)
        close = room <= gamma[:, :, None] * (1 + OPTIONS.tied)
    by_server = np.zeros(cluster.shape)
    n, i = np.indices(gamma.shape)
    by_server[n, i, room.argmin(axis=2)] = -part
    counted = close & (part > 0)[:, :, None]
    tied = (counted & (counted.sum(axis=2) > 1)[:, :, None]).any(axis=1)
    return ShareDerivative(True, -by_server.sum(axis=1), np.zeros(cluster.demand.shape), by_server, tied)
