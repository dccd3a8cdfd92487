"""Sources that `open_source` and `open_workload` know, by name. A source is registered by being defined.

@generator("uniform", "uniformly random users and servers")
def uniform(rng: np.random.Generator, users: int = 10, servers: int = 5) -> Snapshot: ...

@workload_generator("batch", "the same job over and over")
def batch(rng: np.random.Generator, jobs: int = 100) -> Workload: ...
"""

from __future__ import annotations

from ..scheduling.workload import Workload
from ._snapshot import Snapshot
from ._sources import Sources

#: Clusters as they are at an instant.
CLUSTERS: Sources[Snapshot] = Sources("source of clusters")
#: Jobs that arrive over time, and the servers for them.
WORKLOADS: Sources[Workload] = Sources("workload")

generator, reader = CLUSTERS.generator, CLUSTERS.reader
workload_generator, workload_reader = WORKLOADS.generator, WORKLOADS.reader
