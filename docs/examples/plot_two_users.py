"""
What two users can have
=======================

The feasible set of two users on two servers that differ, with what three mechanisms give them and the path of alpha.
"""

import fairopt as fo

cluster = fo.Cluster([[9, 6], [4, 18]], [[1, 2], [2, 1]], resources=["CPU", "RAM"], users=["A", "B"])
path = fo.alpha_path(cluster, [0.1, 0.5, 1, 2, 8, float("inf")]).allocations
figure = fo.plot.two_users(
    fo.DRFH().solve(cluster), fo.PSDSF().solve(cluster), fo.TSF().solve(cluster), path=list(path)
)
