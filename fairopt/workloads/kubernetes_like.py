"""`kubernetes-like`: a synthetic Kubernetes cluster, as objects in the format of `kubectl get -o json`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..model._arrays import Mask
from ..scheduling.workload import Whole
from ._draw import Count, Room
from ._snapshot import Snapshot
from .kubernetes import snapshot
from .sources import generator

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


@generator("kubernetes-like", "a Kubernetes cluster, made up")
def kubernetes_like(
    rng: np.random.Generator, nodes: Count = 100, pods: Count = 1000, namespaces: Count = 10, max_tasks: bool = True
) -> Snapshot:
    """Draw nodes with and without GPUs, and pods of namespaces of different sizes.

    Some pods need a GPU model, and some have ended. Pods run where their requests fit, and the others wait. Users are
    formed as by `kubernetes`: pods of one namespace and shape.
    """
    return snapshot(drawn(rng, nodes, pods, namespaces), "kubernetes-like", max_tasks=max_tasks)


def drawn(rng: np.random.Generator, nodes: int, pods: int, namespaces: int) -> Iterator[dict[str, Any]]:
    """Yield the objects: namespaces, nodes, a pod of the DaemonSet on each, and pods."""
    for k in range(namespaces):
        weight = {"volcano.sh/namespace.weight": str(1 + k % 3)} if k % 3 else {}
        yield {"kind": "Namespace", "metadata": {"name": f"team{k + 1}", "annotations": weight}}
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
    if daemon:
        metadata["ownerReferences"] = [{"kind": "DaemonSet", "name": "agent"}]
    phase = "Succeeded" if ended else "Running" if host else "Pending"
    return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase}}
