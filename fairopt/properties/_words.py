"""A cluster and its change in a few lines."""

from __future__ import annotations

from typing import Any

from ..model.cluster import Cluster
from ._base import Deviation


def described(cluster: Cluster, deviation: Deviation | None) -> list[str]:
    """A cluster and its change in a few lines."""
    lines = [f"capacity {_rows(cluster.capacity)}, demand {_rows(cluster.demand)}"]
    if (cluster.weight != 1).any():
        lines.append(f"weight {_numbers(cluster.weight)}")
    if cluster.constrained:
        lines.append(f"eligible {_rows(cluster.eligible.astype(float))}")
    if (cluster.max_tasks < float("inf")).any():
        lines.append(f"task counts {_numbers(cluster.max_tasks)}")
    if deviation is not None:
        lines.append(changes(cluster, deviation))
    return lines


def changes(cluster: Cluster, deviation: Deviation) -> str:
    """What is different in the changed cluster, in words."""
    changed = deviation.cluster
    if len(changed.users) < len(cluster.users):
        return f"{' and '.join(deviation.users)} leaves"
    said = []
    for name, what in (("demand", "says demand"), ("eligible", "says eligible"), ("max_tasks", "says task count")):
        for n, user in enumerate(cluster.users):
            reported = getattr(changed, name)[n]
            if (reported != getattr(cluster, name)[n]).any():
                said.append(f"{user} {what} {_numbers(reported.reshape(-1).astype(float))}")
    if (changed.capacity != cluster.capacity).any():
        said.append(f"capacity grows to {_rows(changed.capacity)}")
    return "; ".join(said)


def _numbers(values: Any) -> str:
    return f"({', '.join(f'{value:g}' for value in values)})"


def _rows(table: Any) -> str:
    return f"({', '.join(map(_numbers, table))})"
