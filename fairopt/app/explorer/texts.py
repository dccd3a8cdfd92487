"""Python source that constructs a cluster and solves it with a mechanism."""

from __future__ import annotations

from pprint import pformat

import numpy as np

from ...mechanisms import Mechanism, _label
from ...model.cluster import Cluster


def solved(mechanism: Mechanism) -> str:
    """Python source that solves `cluster` with a mechanism."""
    return f'allocation = fo.mechanisms.one("{_label.written(mechanism)}").solve(cluster)\nprint(allocation)\n'


def head(cluster: Cluster) -> str:
    """Python source that constructs a cluster, or loads it from a file if it is large."""
    users, servers, resources = cluster.shape
    # A cluster of more than 4000 numbers would make the source unreadable.
    if (users + servers) * resources + users * servers * (cluster.constrained + cluster.rated) > 4000:
        made = ["# save the cluster file from the explorer first", 'cluster = fo.Cluster.load("cluster.toml")']
    else:
        plain = {"weight": (cluster.weight == 1).all(), "eligible": not cluster.constrained,
                 "max_tasks": np.isinf(cluster.max_tasks).all(), "rate": not cluster.rated}  # fmt: skip
        names = [one for one in ("capacity", "demand", "weight", "eligible", "max_tasks", "rate") if not plain.get(one)]
        given = {name: pformat(getattr(cluster, name).tolist(), width=100) for name in names}
        given |= {name: repr(list(getattr(cluster, name))) for name in ("resources", "users", "servers")}
        if "max_tasks" in given:
            given["max_tasks"] = given["max_tasks"].replace("inf", 'float("inf")')
        made = ["cluster = fo.Cluster(", *(f"    {name}={text}," for name, text in given.items()), ")"]
    return "\n".join(["import fairopt as fo", "", *made, ""])
