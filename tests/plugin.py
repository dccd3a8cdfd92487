"""A plug-in with one of everything; the tests copy it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from fairopt import Cluster, Criterion
from fairopt.mechanisms import Mechanism
from fairopt.model.criterion import criterion
from fairopt.result.metrics import measure
from fairopt.workloads import Snapshot, generator


@dataclass(frozen=True)
class EvenTasks(Mechanism):
    """Max-min of the numbers of tasks, a `factor` of no consequence times."""

    name = "even-tasks"
    title = "even tasks"
    source = "nobody"

    factor: float = 1.0

    def criterion(self, cluster: Cluster) -> Criterion:
        return criterion(cluster, self.factor * np.ones(len(cluster.users)), np.inf, "servers")


@generator("squares", "servers of the same size")
def squares(rng: np.random.Generator, users: int = 3, size: float = 10.0, wide: bool = False) -> Snapshot:
    """Demands from 1 to 2."""
    cluster = Cluster(np.full((2, 2), size), rng.uniform(1, 2, (users, 2)) * (2 if wide else 1))
    return Snapshot(cluster, f"{users} users", {})


@measure
def spread(allocation) -> float:  # type: ignore[no-untyped-def]
    """Most tasks in parts of the fewest."""
    return float(allocation.user_tasks.max() / allocation.user_tasks.min())


NEEDS = ("plugged",)


def figure(results, width: float = 3.0) -> Figure:  # type: ignore[no-untyped-def]
    """Spread by cell."""
    drawn = Figure(figsize=(width, 2))
    drawn.subplots().plot(results.of("plugged").cells["spread"].to_numpy())
    return drawn
