"""Clusters that several of these tests draw, and the game's equations on one."""

from __future__ import annotations

import numpy as np

import fairopt as fo
from fairopt.core.game.equilibrium_system import EquilibriumSystem
from fairopt.model.merging import merge
from fairopt.model.polytope import Polytope

#: Three equilibria at alpha = 3, one of which gives everybody more than the others do (docs/equilibria.md), and the two
#: that are stable.
SEVERAL = fo.Cluster([[20, 11, 2], [3, 9, 4]], [[1, 9, 8], [3, 8, 1], [16, 8, 1]], weight=(2, 1, 2))
FIRST, LAST = np.array([0.4693006, 0.7415440, 1.2304929]), np.array([0.4332609, 0.6877588, 127 / 104])
#: Jumps at alpha = 17.9491.
JUMPS = fo.Cluster([[11, 9], [8, 8]], [[6, 1], [1, 5]])


def plain(seed: int, users: int = 5, servers: int = 3, resources: int = 2) -> fo.Cluster:
    """Positive numbers of one magnitude."""
    rng = np.random.default_rng(seed)
    return fo.Cluster(rng.uniform(0.5, 5, (servers, resources)), rng.uniform(0.5, 5, (users, resources)))


def integers(seed: int, users: int, servers: int) -> fo.Cluster:
    """Small integers, many zero demands."""
    rng = np.random.default_rng(seed)
    demand = rng.integers(0, 3, (users, 4)).astype(float)
    demand[~demand.any(axis=1), rng.integers(4)] = 1.0
    return fo.Cluster(10.0 * rng.integers(1, 5, (servers, 4)), demand)


def equations(cluster: fo.Cluster, alpha: float) -> EquilibriumSystem:
    """Those of the cluster in which proportional users and servers are one."""
    merged = merge(cluster).cluster
    polytope = Polytope(merged, merged.max_tasks)
    return EquilibriumSystem(polytope, merged.weight[polytope.users], alpha)
