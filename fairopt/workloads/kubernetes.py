"""A Kubernetes cluster as `kubectl get nodes,pods,namespaces -A -o json` prints it.

Servers are nodes that are ready and schedulable, at what is allocatable less what DaemonSets and system namespaces take
there. A user is a namespace's pods of one shape (what they request, and where they may run): a mean of shapes would be
a demand that nobody has. `pods` is a resource, of which every pod takes one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..model.cluster import Cluster
from . import _kubernetes_objects as objects
from ._json_items import items
from ._kubernetes_objects import Amounts, Object
from ._kubernetes_users import Group, named, units
from ._registry import reader
from ._snapshot import Snapshot

#: Namespaces whose pods are part of the cluster itself.
SYSTEM = ("kube-system", "kube-public", "kube-node-lease")
_VOLCANO = "volcano.sh/namespace.weight"
_KINDS = ("Node", "Pod", "Namespace", "ClusterQueue", "LocalQueue")


@dataclass
class _Seen:
    """What a snapshot holds, as far as it counts."""

    nodes: list[Object] = field(default_factory=list)
    pods: list[tuple[str, Amounts, tuple[str, ...], Object, str, str]] = field(default_factory=list)
    weights: dict[str, float] = field(default_factory=dict)
    queues: dict[str, str] = field(default_factory=dict)
    report: Counter[str] = field(default_factory=Counter)


@reader(
    "kubernetes",
    "a Kubernetes cluster: kubernetes:FILE, of kubectl get nodes,pods,namespaces -A -o json",
    folder="kubernetes",
    stand_in="kubernetes-like",
)
def kubernetes(
    directory: str | Path,
    system: Sequence[str] = SYSTEM,
    weights: Literal["each", "shared"] = "each",
    max_tasks: bool = True,
    rng: np.random.Generator | None = None,
) -> Snapshot:
    """Nodes and pods of a snapshot, `FILE.json` or `FILE.yaml`, as a cluster.

    Resources: `cpu` [cores], `memory` [GiB], `pods`, and whatever else some pod requests, such as `nvidia.com/gpu` or
    slices of one (`nvidia.com/mig-1g.5gb`). Models of GPUs are a matter of where pods may run.

    Parameters
    ----------
    system
        Namespaces whose pods are part of the cluster: what they take is not there to be shared.
    weights
        A namespace's weight (Kueue's `fairSharing.weight` of its queue, Volcano's annotation, else 1) counts for
        `each` of its shapes, or is `shared` among them in equal parts: two levels of fairness are a choice.
    max_tasks
        Limit a user to its pods, running and pending. False: as if it had any number.

    Raises
    ------
    DataError
        The file cannot be read, or has no node or no pod that counts; an object that is damaged, by its name.
    """
    path = _file(Path(directory))
    of_file = _yaml(path) if path.suffix in (".yaml", ".yml") else items(path)
    return snapshot(of_file, str(path), system, weights, max_tasks)


def snapshot(
    of: Iterable[Object],
    where: str,
    system: Sequence[str] = SYSTEM,
    weights: Literal["each", "shared"] = "each",
    max_tasks: bool = True,
) -> Snapshot:
    """The cluster that these objects describe; `where` names their source in errors. See `kubernetes`."""
    seen = _Seen()
    for item in of:
        _take(item, seen, frozenset(system))
    nodes = seen.nodes
    if not nodes:
        raise DataError(f"{where} has no node that is ready and schedulable; it has {_counted(seen.report)}")
    groups = _groups(seen)
    if not groups:
        raise DataError(
            f"{where} has no pod that runs or waits outside of {', '.join(system)}; {_counted(seen.report)}"
        )
    names = sorted(
        {what for group in groups for what, amount in group.request.items() if amount} - {"cpu", "memory", "pods"}
    )
    resources = ["cpu", "memory", *names, "pods"]
    capacity = _capacity(seen, resources)
    demand = np.array([[units(what, group.request.get(what, Decimal())) for what in resources] for group in groups])
    eligible = np.array([group.eligible for group in groups], dtype=bool)
    some = np.asarray(capacity.any(axis=0) | demand.any(axis=0))
    users = named(groups)
    left_out = {users[n]: "no node may run it" for n in np.flatnonzero(~eligible.any(axis=1)).tolist()}
    kept = np.asarray(eligible.any(axis=1))
    seen.report["users whose pods no node may run, left out"] = len(left_out)
    if not kept.any():
        raise DataError(f"{where}: no node may run any of the pods; look at their selectors and the nodes' taints")
    count = Counter(group.namespace for group in groups)
    each = [_weight(group.namespace, seen) / (count[group.namespace] if weights == "shared" else 1) for group in groups]
    number = np.array([group.running + group.pending for group in groups], dtype=float)
    cluster = Cluster(
        capacity[:, some],
        demand[kept][:, some],
        weight=np.array(each)[kept],
        eligible=eligible[kept],
        max_tasks=number[kept] if max_tasks else None,
        resources=[what for what, there in zip(resources, some, strict=True) if there],
        users=[user for user, there in zip(users, kept, strict=True) if there],
        servers=[objects.name(node) for node in nodes],
    )
    seen.report["pods running"] = sum(group.running for group in groups)
    seen.report["pods pending"] = sum(group.pending for group in groups)
    about = f"Kubernetes ({Path(where).name}): {len(cluster.users)} users (namespace and shape) on {len(nodes)} nodes"
    running = {user: group.running for user, group, there in zip(users, groups, kept, strict=True) if there}
    return Snapshot(cluster, about, dict(seen.report), left_out, running)


def _file(path: Path) -> Path:
    if path.is_dir():
        found = sorted(one for one in path.iterdir() if one.suffix in (".json", ".yaml", ".yml"))
        if len(found) != 1:
            raise DataError(f"{path} holds {len(found)} snapshots; name one file: kubernetes:FILE")
        return found[0]
    return path


def _yaml(path: Path) -> Iterable[dict[str, Any]]:
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError:
        raise DataError(
            f"{path} is YAML, and the package PyYAML is not installed; write JSON: kubectl ... -o json"
        ) from None
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{path} is not valid YAML: {str(error)[:200]}") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    listed = found.get("items") if isinstance(found, Mapping) else None
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise DataError(f"{path} has no list 'items'; write it with: kubectl get nodes,pods,namespaces -A -o yaml")
    return listed


def _take(item: Object, seen: _Seen, system: frozenset[str]) -> None:
    """One object of the snapshot; an error names it."""
    kind = item.get("kind")
    seen.report[f"objects of kind {kind}" if kind in _KINDS else "objects of other kinds, left out"] += 1
    try:
        if kind == "Node":
            _node(item, seen)
        elif kind == "Pod":
            _pod(item, seen, system)
        elif kind == "Namespace":
            weight = objects.one(objects.one(item.get("metadata"), "metadata").get("annotations"), "annotations")
            if _VOLCANO in weight:
                seen.weights[objects.name(item)] = _positive(weight[_VOLCANO])
        elif kind == "ClusterQueue":
            sharing = objects.one(objects.one(item.get("spec"), "spec").get("fairSharing"), "fairSharing")
            if "weight" in sharing:
                seen.weights[f"queue {objects.name(item)}"] = _positive(sharing["weight"])
        elif kind == "LocalQueue":
            queue = objects.one(item.get("spec"), "spec").get("clusterQueue")
            seen.queues[_namespace(item)] = str(queue)
    except DataError as error:
        metadata = item.get("metadata")
        who = metadata.get("name") if isinstance(metadata, dict) else None
        raise DataError(f"{kind} {who!r}: {error}") from None


def _node(node: Object, seen: _Seen) -> None:
    spec, status = objects.one(node.get("spec"), "spec"), objects.one(node.get("status"), "status")
    ready = any(one.get("type") == "Ready" and one.get("status") == "True"
                for one in objects.several(status.get("conditions"), "conditions"))  # fmt: skip
    if not ready:
        seen.report["nodes that are not ready, left out"] += 1
    elif spec.get("unschedulable"):
        seen.report["nodes that are not schedulable, left out"] += 1
    else:
        objects.name(node)
        objects.amounts(status.get("allocatable"))
        kept = {"labels": dict(objects.labels(node)), "name": objects.name(node)}
        seen.nodes.append({"kind": "Node", "metadata": kept, "spec": {"taints": spec.get("taints")},
                           "status": {"allocatable": status.get("allocatable")}})  # fmt: skip


def _pod(pod: Object, seen: _Seen, system: frozenset[str]) -> None:
    """Keep of a pod what counts: its namespace, request, placement, and where it runs."""
    status, spec = objects.one(pod.get("status"), "status"), objects.one(pod.get("spec"), "spec")
    phase = status.get("phase")
    if phase not in ("Running", "Pending"):
        seen.report["pods that have ended, left out"] += 1
        return
    namespace = _namespace(pod)
    owners = objects.several(objects.one(pod.get("metadata"), "metadata").get("ownerReferences"), "ownerReferences")
    daemon = any(one.get("kind") == "DaemonSet" for one in owners)
    host = spec.get("nodeName") or ""
    kind = "own" if not daemon and namespace not in system else "system"
    key = objects.placement_key(pod)
    place = {"spec": {name: spec.get(name) for name in ("nodeSelector", "affinity", "tolerations")}}
    seen.pods.append((namespace, objects.requests(pod), key, place, str(host), kind))


def _groups(seen: _Seen) -> list[Group]:
    """Users, in order of namespace and of what comes first in the snapshot."""
    known: dict[tuple[str, ...], tuple[bool, ...]] = {}
    found: dict[tuple[Any, ...], Group] = {}
    for namespace, request, key, place, host, kind in seen.pods:
        if kind == "system":
            seen.report["pods of the system, taken off their nodes"] += 1
            continue
        if key not in known:
            known[key] = tuple(objects.may_run(place, seen.nodes))
        shape = (namespace, tuple(sorted(request.items())), known[key])
        group = found.setdefault(shape, Group(namespace, request, known[key]))
        if host:
            group.running += 1
        else:
            group.pending += 1
    return sorted(found.values(), key=lambda group: group.namespace)


def _capacity(seen: _Seen, resources: list[str]) -> NDArray[np.float64]:
    taken: dict[str, Amounts] = defaultdict(dict)
    for _, request, _, _, host, kind in seen.pods:
        if kind == "system" and host:
            objects.add(taken[host], request)
    rows = []
    for node in seen.nodes:
        has = objects.amounts(objects.one(node.get("status"), "status").get("allocatable"))
        less = taken.get(objects.name(node), {})
        rows.append([max(0.0, units(what, has.get(what, Decimal()) - less.get(what, Decimal()))) for what in resources])
    return np.array(rows, dtype=float)


def _weight(namespace: str, seen: _Seen) -> float:
    queue = seen.queues.get(namespace)
    return seen.weights.get(f"queue {queue}", seen.weights.get(namespace, 1.0))


def _positive(value: object) -> float:
    found = objects.quantity(value)
    if found <= 0:
        raise DataError(f"the weight {value!r} must be above 0: a weight of 0 would give nothing to anybody")
    return float(found)


def _namespace(thing: Object) -> str:
    found = objects.one(thing.get("metadata"), "metadata").get("namespace")
    if not isinstance(found, str) or not found:
        raise DataError("it has no metadata.namespace; get the objects of all namespaces: kubectl get ... -A")
    return found


def _counted(report: Mapping[str, int]) -> str:
    return ", ".join(f"{what}: {number}" for what, number in report.items()) or "nothing"
