"""`slurm-like`: a made-up Slurm cluster, as objects of the shapes that `--json` prints."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from ._draw import Room, positive
from ._registry import generator
from ._snapshot import Snapshot
from .slurm import Object, snapshot

Count = Annotated[int, positive]


@generator("slurm-like", "a Slurm cluster, made up")
def slurm_like(rng: np.random.Generator, nodes: Count = 60, jobs: Count = 300, accounts: Count = 8) -> Snapshot:
    """Nodes of two partitions, one with GPUs, and jobs and arrays of accounts with different shares.

    Jobs run on nodes that have room for them; the others wait, arrays among them.
    """
    hosts: list[Object] = [
        {"name": f"n{k + 1:03d}", "state": ["IDLE"], "effective_cpus": 64, "real_memory": 256_000,
         "specialized_memory": 4096, "partitions": ["gpu" if k % 4 == 0 else "batch"], "features": [f"gen{k % 3}"],
         "tres": "cpu=64,mem=250G,gres/gpu=4" if k % 4 == 0 else "cpu=64,mem=250G"}
        for k in range(nodes)
    ]  # fmt: skip
    gpus = np.where(np.arange(nodes) % 4 == 0, 4, 0)
    room = Room(np.column_stack([np.full(nodes, 64), np.full(nodes, 256_000 - 4096), gpus]))
    listed: list[Object] = []
    for k in range(jobs):
        gpu, wide = rng.random() < 0.3, int(rng.choice([1, 1, 1, 2, 4]))
        cpus, memory = int(rng.choice([1, 4, 8, 16])), int(rng.choice([2, 8, 32]))
        asks = f"cpu={cpus * wide},mem={memory * wide}G,node={wide},billing={cpus * wide}"
        array, started = rng.random() < 0.1, rng.random() < 0.6
        tried = rng.permutation(np.flatnonzero(gpus)) if gpu else rng.permutation(nodes)
        runs = started and not array and bool(room.take((cpus, 1024 * memory, int(gpu)), tried, wide))
        listed.append({
            "job_id": k + 1, "account": f"lab{rng.integers(accounts) + 1}", "user_name": f"u{rng.integers(20)}",
            "partition": "gpu" if gpu else "batch,gpu", "node_count": {"set": True, "infinite": False, "number": wide},
            "job_state": ["RUNNING" if runs else "PENDING"],
            "tres_req_str": asks + (f",gres/gpu={wide}" if gpu else ""), "array_task_string": "1-5" if array else "",
        })  # fmt: skip
    weights = {f"lab{k + 1}": float(1 + k % 3) for k in range(accounts)}
    return snapshot(hosts, listed, weights, "slurm-like")
