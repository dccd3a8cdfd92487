"""Synthetic clusters of Kubernetes and Slurm, in the formats of `kubectl get -o json` and `--json`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fairopt.model._arrays import Mask
from fairopt.scheduling.workload import Whole
from fairopt.workloads import Snapshot, kubernetes, slurm

#: Kinds of nodes: probability, CPUs, GiB, GPUs, model of GPU.
_NODES = ((0.6, 16, 64, 0, ""), (0.25, 64, 256, 0, ""), (0.1, 32, 128, 4, "t4"), (0.05, 96, 768, 8, "a100"))
#: Shapes of pods: probability, milli-CPU, MiB, GPUs.
_SHAPES = (
    (0.4, 500, 512, 0),
    (0.3, 2000, 4 * 1024, 0),
    (0.15, 4000, 32 * 1024, 0),
    (0.1, 4000, 16 * 1024, 1),
    (0.05, 16000, 64 * 1024, 2),
)
#: Requests of the DaemonSet's pod on each node: milli-CPU, MiB, GPUs, pods.
_AGENT = (100, 256, 0, 1)
_PODS = 110  # allocatable pods of a node


class Room:
    """Free capacity of nodes, (nodes, resources), in integer units such as milli-CPU and MiB."""

    def __init__(self, capacity: Whole) -> None:
        self.left = np.array(capacity, dtype=np.int64)

    def take(self, asks: Sequence[int], tried: Whole, count: int = 1) -> list[int]:
        """Place one task on each of the first `count` feasible nodes of `tried`; on none if there are fewer."""
        need = np.asarray(asks, dtype=np.int64)
        fits = tried[(self.left[tried] >= need).all(axis=1)]
        chosen = [int(k) for k in dict.fromkeys(fits.tolist())][:count]
        if len(chosen) < count:
            return []
        self.left[chosen] -= need
        return chosen


def kubernetes_like(rng: np.random.Generator, nodes: int = 100, pods: int = 1000, namespaces: int = 10) -> Snapshot:
    """Draw nodes with and without GPUs, and pods of namespaces of different sizes.

    Some pods need a GPU model, and some have ended. Pods run where their requests fit, and the others wait. Users are
    formed as by `kubernetes`: pods of one namespace and shape.
    """
    return kubernetes.snapshot(drawn(rng, nodes, pods, namespaces), "kubernetes-like")


def drawn(rng: np.random.Generator, nodes: int, pods: int, namespaces: int) -> Iterator[dict[str, Any]]:
    """Yield the objects: namespaces and their queues, nodes, a pod of the DaemonSet on each, and pods."""
    for k in range(namespaces):
        yield {"kind": "Namespace", "metadata": {"name": f"team{k + 1}"}}
        yield {"kind": "Queue", "metadata": {"name": f"team{k + 1}"}, "spec": {"weight": 1 + k % 3}}
    kinds = rng.choice(len(_NODES), nodes, p=[kind[0] for kind in _NODES])
    ready = (np.arange(nodes) == 0) | (rng.random(nodes) > 0.01)
    room = Room(np.array([(1000 * cpus, 1024 * memory, gpus, _PODS) for _, cpus, memory, gpus, _ in _NODES])[kinds])
    room.left -= _AGENT
    for k, kind in enumerate(kinds.tolist()):
        yield _node(k, kind, bool(ready[k]))
        yield _pod("kube-system", f"agent-{k}", *_AGENT[:3], f"node{k + 1}", daemon=True)
    share = rng.dirichlet(np.ones(namespaces))
    shapes = rng.choice(len(_SHAPES), pods, p=[shape[0] for shape in _SHAPES])
    teams = rng.choice(namespaces, pods, p=share)
    open_to = _open_to(kinds, ready)
    for k, (shape, team) in enumerate(zip(shapes.tolist(), teams.tolist(), strict=True)):
        _, cpu, memory, gpus = _SHAPES[shape]
        model = ("t4", "a100")[k % 2] if gpus and rng.random() < 0.5 else ""
        ended, started = rng.random() < 0.05, rng.random() < 0.8
        nodes_tried = open_to[model if gpus else None]
        # Each pod tries eight random nodes.
        tried = nodes_tried[rng.integers(0, len(nodes_tried), 8)] if started and len(nodes_tried) else nodes_tried[:0]
        asks = (0, 0, 0, 0) if ended else (cpu, memory, gpus, 1)  # completed pods use no resources
        host = "".join(f"node{n + 1}" for n in room.take(asks, tried))
        yield _pod(f"team{team + 1}", f"pod-{k}", cpu, memory, gpus, host, model=model, ended=ended)


def _open_to(kinds: Whole, ready: Mask) -> dict[str | None, Whole]:
    """Nodes by accepted pods: for a GPU model, any model (""), or no GPU (None, as nodes with GPUs are tainted)."""
    models = np.array([kind[4] for kind in _NODES])[kinds]
    tests = {None: models == "", "": models != "", "t4": models == "t4", "a100": models == "a100"}
    return {model: np.flatnonzero(test & ready) for model, test in tests.items()}


def _node(k: int, kind: int, ready: bool) -> dict[str, Any]:
    _, cpus, memory, gpus, model = _NODES[kind]
    has = {"cpu": str(cpus), "memory": f"{memory * 1024 * 1024}Ki", "pods": str(_PODS)}
    if gpus:
        has["nvidia.com/gpu"] = str(gpus)
    taints = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}] if gpus else None
    return {
        "kind": "Node",
        "metadata": {"name": f"node{k + 1}", "labels": {"gpu": model} if model else {}},
        "spec": {"taints": taints} if taints else {},
        "status": {
            "allocatable": has,
            "capacity": has,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def _pod(
    namespace: str, name: str, cpu: int, memory: int, gpus: int, host: str, model: str = "", daemon: bool = False,
    ended: bool = False,
) -> dict[str, Any]:  # fmt: skip
    asks = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    spec: dict[str, Any] = {"containers": [{"name": "main", "resources": {"requests": asks, "limits": asks}}]}
    if gpus:
        spec["tolerations"] = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    if model:
        spec["nodeSelector"] = {"gpu": model}
    if host:
        spec["nodeName"] = host
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    metadata["annotations"] = {"scheduling.volcano.sh/queue-name": namespace}
    if daemon:
        metadata["ownerReferences"] = [{"kind": "DaemonSet", "name": "agent"}]
    phase = "Succeeded" if ended else "Running" if host else "Pending"
    return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase}}


def slurm_like(rng: np.random.Generator, nodes: int = 60, jobs: int = 300, accounts: int = 8) -> Snapshot:
    """Draw nodes of two partitions, one with GPUs, and jobs and arrays of accounts with different shares.

    Jobs run on nodes where they fit; the others wait, some arrays among them.
    """
    hosts: list[dict[str, Any]] = [
        {"name": f"n{k + 1:03d}", "state": ["IDLE"], "effective_cpus": 64, "real_memory": 256_000,
         "specialized_memory": 4096, "partitions": ["gpu" if k % 4 == 0 else "batch"], "features": [f"gen{k % 3}"],
         "tres": "cpu=64,mem=250G,gres/gpu=4" if k % 4 == 0 else "cpu=64,mem=250G"}
        for k in range(nodes)
    ]  # fmt: skip
    gpus = np.where(np.arange(nodes) % 4 == 0, 4, 0)
    room = Room(np.column_stack([np.full(nodes, 64), np.full(nodes, 256_000 - 4096), gpus]))
    listed: list[dict[str, Any]] = []
    for k in range(jobs):
        gpu, wide = rng.random() < 0.3, int(rng.choice([1, 1, 1, 2, 4]))
        cpus, memory = int(rng.choice([1, 4, 8, 16])), int(rng.choice([2, 8, 32]))
        asks = f"cpu={cpus * wide},mem={memory * wide}G,node={wide},billing={cpus * wide}"
        array, started = rng.random() < 0.1, rng.random() < 0.6
        tried = rng.permutation(np.flatnonzero(gpus)) if gpu else rng.permutation(nodes)
        on = room.take((cpus, 1024 * memory, int(gpu)), tried, wide) if started and not array else []
        listed.append({
            "job_id": k + 1, "account": f"lab{rng.integers(accounts) + 1}", "user_name": f"u{rng.integers(20)}",
            "partition": "gpu" if gpu else "batch,gpu", "node_count": {"set": True, "infinite": False, "number": wide},
            "job_state": ["RUNNING" if on else "PENDING"], "nodes": ",".join(str(hosts[n]["name"]) for n in on),
            "tres_req_str": asks + (f",gres/gpu={wide}" if gpu else ""), "array_task_string": "1-5" if array else "",
        })  # fmt: skip
    shares = [{"name": f"lab{k + 1}", "parent": "root", "shares": 1 + k % 3} for k in range(accounts)]
    return slurm.snapshot(hosts, listed, shares, "slurm-like")
