"""Pictures of the site: what two users can have, and what a mechanism gives them."""

from __future__ import annotations

from matplotlib.figure import Figure

import fairopt as fo
from fairopt.mechanisms import Mechanism

#: One server for mechanisms of one pool; two that differ for all others.
POOL = fo.Cluster([[9, 18]], [[1, 4], [3, 1]], resources=["CPU", "RAM"], users=["A", "B"])
SERVERS = fo.Cluster([[9, 6], [4, 18]], [[1, 2], [2, 1]], resources=["CPU", "RAM"], users=["A", "B"])
CAPTION = "*The shaded area is what the two users can have; the mark is what the mechanism gives them. {cluster}*"


def two_users(mechanism: Mechanism) -> tuple[Figure, str]:
    """The picture and its caption; DRF, as the usual point of comparison, is on the pictures of others."""
    one_pool = mechanism.prepare(SERVERS)[0] is not SERVERS
    cluster = POOL if one_pool else SERVERS
    answers = [mechanism.solve(cluster)]
    other = fo.DRF() if one_pool else fo.DRFH()
    if type(mechanism) is not type(other):
        answers.append(other.solve(cluster))
    servers = " and ".join(str(tuple(map(float, row))) for row in cluster.capacity)
    demands = " and ".join(str(tuple(map(float, row))) for row in cluster.demand)
    said = f"Capacities {servers}, demands per task {demands}, of CPU and RAM."
    return fo.plot.two_users(*answers), CAPTION.format(cluster=said)
