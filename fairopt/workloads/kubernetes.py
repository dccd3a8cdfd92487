"""Reader of Kubernetes clusters from the output of `kubectl get nodes,pods,namespaces -A -o json`.

Servers are ready and schedulable nodes, with their allocatable resources minus the requests of DaemonSets and of system
namespaces. A user is the set of pods of a namespace with equal requests and placement constraints, since a mean over
different pods would be a demand that none of them has. `pods` is a resource, of which each pod requests one.

Source: the Kubernetes documentation, "Resource Management for Pods and Containers", "Init Containers", "Pod Overhead",
"Assigning Pods to Nodes", "Taints and Tolerations".
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from ..base import files
from ..base.errors import DataError
from ..base.libraries import of_an_extra
from ..base.names import listed
from ._snapshot import GIB, Shape, Snapshot, objects, of_shapes, quantity
from .sources import reader

Object = Mapping[str, Any]
#: A `Counter` with Decimal values, which its stubs do not permit.
Amounts = Any

_BYTES = ("memory", "ephemeral-storage")
_SPACE = re.compile(r"[\s,]*")
_ITEMS = re.compile(r'"items"\s*:\s*\[')
#: Namespaces whose pods belong to the cluster itself.
SYSTEM = ("kube-system", "kube-public", "kube-node-lease")
_VOLCANO = "volcano.sh/namespace.weight"
_KINDS = ("Node", "Pod", "Namespace", "ClusterQueue", "LocalQueue", "ResourceQuota")


def amounts(table: object, *keys: str) -> Amounts:
    """Quantities by resource, from the nested table below these keys."""
    return Counter({str(name): quantity(value) for name, value in _table(table, *keys).items()})


def requests(pod: Object) -> Amounts:
    """Requests of a pod by resource, including `pods: 1`.

        max(sum of containers and sidecars, max over init containers of itself and the sidecars before) + overhead

    A sidecar is an init container with restart policy Always. A limit replaces a missing request, and requests of the
    pod as a whole take precedence over those of its containers.
    """
    spec, sidecars, most = _table(pod, "spec"), Counter[str](), Counter[str]()
    for container in _tables(spec, "initContainers"):
        at_once = sidecars + _container_requests(container)
        if container.get("restartPolicy") == "Always":
            sidecars = at_once
        most |= at_once  # the union of counters takes the maximum by resource
    total = sum(map(_container_requests, _tables(spec, "containers")), sidecars) | most
    return Counter({**total, **_container_requests(spec)}) + amounts(spec, "overhead") + Counter(pods=1)


def may_run(pod: Object, nodes: Iterable[Object]) -> list[bool]:
    """Eligibility of a pod on each node: nodeSelector, required node affinity, and taints without toleration."""
    spec, required = _table(pod, "spec"), "requiredDuringSchedulingIgnoredDuringExecution"
    wanted, tolerations = _table(spec, "nodeSelector"), _tables(spec, "tolerations")
    affinity = _table(spec, "affinity", "nodeAffinity")
    terms = _tables(affinity, required, "nodeSelectorTerms")
    return [
        all(_labels(node).get(name) == value for name, value in wanted.items())
        and (affinity.get(required) is None or any(_term(term, node) for term in terms))
        and all(_tolerated(taint, tolerations) for taint in _taints(node))
        for node in nodes
    ]


def _labels(thing: Object) -> Object:
    """Labels of an object."""
    return _table(thing, "metadata", "labels")


def _name(thing: Object, key: str = "name") -> str:
    """Name or namespace of an object."""
    found = _table(thing, "metadata").get(key)
    if not isinstance(found, str) or not found:
        raise DataError(f"it has no metadata.{key}; get the objects of all namespaces: kubectl get ... -A")
    return found


def _table(value: Any, *keys: str) -> Object:
    """Nested table below these keys; empty if it is missing."""
    for key in keys:
        value = value.get(key)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise DataError(f"{key} is {str(value)[:40]!r}; it must be a table")
    return cast("Object", value)


def _tables(value: Any, *keys: str) -> list[Object]:
    """List of tables below these keys; empty if it is missing."""
    found = _table(value, *keys[:-1]).get(keys[-1])
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(each, Mapping) for each in found):
        raise DataError(f"{keys[-1]} is {str(found)[:40]!r}; it must be a list of tables")
    return found


def _container_requests(container: Object) -> Amounts:
    return Counter({**amounts(container, "resources", "limits"), **amounts(container, "resources", "requests")})


def _taints(node: Object) -> list[Object]:
    return [taint for taint in _tables(node, "spec", "taints") if taint.get("effect") in ("NoSchedule", "NoExecute")]


def _tolerated(taint: Object, tolerations: list[Object]) -> bool:
    for each in tolerations:
        exists = each.get("operator") == "Exists"
        same_key = (exists and not each.get("key")) or each.get("key") == taint.get("key")
        same_value = exists or (each.get("value") or "") == (taint.get("value") or "")
        if same_key and same_value and each.get("effect") in (None, "", taint.get("effect")):
            return True
    return False


def _term(term: Object, node: Object) -> bool:
    """True if a node satisfies all expressions of a term; an empty term matches none."""
    met = [_matches(each, _labels(node)) for each in _tables(term, "matchExpressions")]
    met += [_matches(each, {"metadata.name": _name(node)}) for each in _tables(term, "matchFields")]
    return bool(met) and all(met)


def _matches(expression: Object, has: Object) -> bool:
    key, operator = expression.get("key"), expression.get("operator")
    values = expression.get("values") or []
    if not isinstance(values, list):
        raise DataError(f"values of the expression on {key!r} are {str(values)[:40]!r}; they must be a list")
    value = has.get(key) if isinstance(key, str) else None
    if operator in ("In", "NotIn"):
        return bool((value in values) == (operator == "In"))
    if operator in ("Exists", "DoesNotExist"):
        return bool((value is not None) == (operator == "Exists"))
    if operator in ("Gt", "Lt") and len(values) == 1:
        try:
            left, right = int(str(value)), int(str(values[0]))
        except ValueError:
            return False
        return left > right if operator == "Gt" else left < right
    raise DataError(f"the operator {str(operator)[:40]!r} of the expression on {key!r} is not known")


def units(what: str, amount: Decimal) -> float:
    """Convert bytes to GiB, and keep other units."""
    return float(amount / GIB) if what in _BYTES or what.startswith("hugepages-") else float(amount)


def items(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of all lists `items` of a file, as written by `kubectl get -o json`, one at a time.

    Raises
    ------
    DataError
        The file cannot be read or has no such list, or an item is truncated or invalid; the message has its number.
    """
    text = files.read(path, "snapshot")
    found = _ITEMS.search(text)
    if found is None:
        raise DataError(f"{path} has no list 'items'; write it with: kubectl get nodes,pods,namespaces -A -o json")
    decode = json.JSONDecoder().raw_decode
    while found is not None:  # the outputs of several commands may be concatenated
        at = found.end()
        for number in count(1):
            at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
            if text.startswith("]", at):
                break
            try:
                item, at = decode(text, at)
            except (ValueError, RecursionError) as error:
                raise DataError(f"{path}: item {number} of items is cut off or damaged: {error}") from None
            if not isinstance(item, dict):
                raise DataError(f"{path}: item {number} of items is {str(item)[:40]!r}; it must be an object")
            yield item
        found = _ITEMS.search(text, at)


@dataclass
class _Objects:
    """Relevant objects of a snapshot."""

    nodes: list[Object] = field(default_factory=list)
    allocatable: list[Amounts] = field(default_factory=list)
    pods: list[tuple[str, Amounts, Object, str, bool, bool]] = field(default_factory=list)
    weights: dict[str, float] = field(default_factory=dict)
    queues: dict[str, str] = field(default_factory=dict)
    quotas: dict[str, None] = field(default_factory=dict)  # namespaces with a quota, in order
    report: Counter[str] = field(default_factory=Counter)


@reader(
    "kubernetes",
    "a Kubernetes cluster: kubernetes:FILE, of kubectl get nodes,pods,namespaces -A -o json",
    folder="kubernetes",
)
def kubernetes(
    directory: str | Path,
    system: Sequence[str] = SYSTEM,
    weights: Literal["each", "shared"] = "each",
    max_tasks: bool = True,
    rng: np.random.Generator | None = None,
) -> Snapshot:
    """Read the nodes and pods of a snapshot, `FILE.json` or `FILE.yaml`, as a cluster.

    Resources are `cpu` [cores], `memory` [GiB], `pods`, and all others that some pod requests, such as `nvidia.com/gpu`
    or its slices (`nvidia.com/mig-1g.5gb`). Models of GPUs are placement constraints.

    Parameters
    ----------
    directory : str or Path
        File, or folder with one file.
    system : sequence of str
        Namespaces whose pods belong to the cluster, and reduce the capacity of their nodes.
    weights : str
        The weight of a namespace (`fairSharing.weight` of its Kueue queue, or Volcano's annotation, default 1) applies
        to `each` of its shapes, or is `shared` equally among them.
    max_tasks : bool
        Limit users to their running and pending pods; otherwise they have no limit.
    rng : Generator, optional
        Not used.

    Raises
    ------
    DataError
        The file cannot be read, has no eligible node or pod, or an object is invalid (the message has its name).
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
    """Build the cluster of these objects; `where` names their source in errors. See `kubernetes`."""
    seen = _Objects()
    for item in of:
        _process(item, seen, frozenset(system))
    nodes = seen.nodes
    if not nodes:
        raise DataError(f"{where} has no node that is ready and schedulable; it has {_counted(seen.report)}")
    shapes = _shapes(seen, weights)
    if not shapes:
        raise DataError(
            f"{where} has no pod that runs or waits outside of {', '.join(system)}; {_counted(seen.report)}"
        )
    about = f"Kubernetes ({Path(where).name}): {{}} users (namespace and shape) on {len(nodes)} nodes"
    found = of_shapes(
        shapes, [_name(node) for node in nodes], _capacities(seen), max_tasks, about, seen.report, "/",
        "no node may run it",
        f"{where}: no node may run any of the pods; look at their selectors and the nodes' taints",
    )  # fmt: skip
    counts = {"users whose pods no node may run, left out": len(found.left_out)}
    counts |= {"pods running": sum(shape.held.total() for shape in shapes)}
    counts |= {"pods pending": sum(shape.waiting.total() + shape.capped.total() for shape in shapes)}
    quota = f"A snapshot lacks pods that a quota refused: {listed(list(seen.quotas))} may want more than it shows."
    notes = (*found.notes, quota) if seen.quotas else found.notes
    return replace(found, report=dict(found.report) | counts, notes=notes)


def _file(path: Path) -> Path:
    if path.is_dir():
        found = sorted(one for one in path.iterdir() if one.suffix in (".json", ".yaml", ".yml"))
        if len(found) != 1:
            raise DataError(f"{path} holds {len(found)} snapshots; name one file: kubernetes:FILE")
        return found[0]
    return path


def _yaml(path: Path) -> Iterable[dict[str, Any]]:
    try:
        yaml = of_an_extra("yaml")
    except DataError as error:
        raise DataError(f"{path} is YAML: {error}; or write JSON: kubectl ... -o json") from None
    remedy = "write it with: kubectl get nodes,pods,namespaces -A -o yaml"
    loader: Any = None

    def refused() -> None:
        """Reject aliases: nine in each of nine nested lists would expand to billions of objects."""
        raise DataError(f"{path} line {loader.line + 1} is an alias of what is written elsewhere; {remedy}")

    try:
        loader, documents = yaml.SafeLoader(files.read(path, "snapshot")), []
        loader.fetch_alias = refused
        while loader.check_data():
            documents.append(loader.get_data())
    except (yaml.YAMLError, RecursionError) as error:
        raise DataError(f"{path} is not valid YAML: {str(error)[:200]}") from None
    return [one for found in documents or [None] for one in objects(found, "items", path, remedy)]


def _process(item: Object, seen: _Objects, system: frozenset[str]) -> None:
    """Process one object of the snapshot; errors state its name."""
    kind = item.get("kind")
    seen.report[f"objects of kind {kind}" if kind in _KINDS else "objects of other kinds, left out"] += 1
    metadata = item.get("metadata")
    who = metadata.get("name") if isinstance(metadata, dict) else None
    with files.inside(f"{kind} {who!r}"):
        if kind == "Node":
            _node(item, seen)
        elif kind == "Pod":
            _pod(item, seen, system)
        elif kind == "Namespace":
            weight = _table(item, "metadata", "annotations")
            if _VOLCANO in weight:
                seen.weights[_name(item)] = _positive(weight[_VOLCANO])
        elif kind == "ClusterQueue":
            sharing = _table(item, "spec", "fairSharing")
            if "weight" in sharing:
                seen.weights[f"queue {_name(item)}"] = _positive(sharing["weight"])
        elif kind == "ResourceQuota":
            seen.quotas[_name(item, "namespace")] = None
        elif kind == "LocalQueue":
            seen.queues[_name(item, "namespace")] = str(_table(item, "spec").get("clusterQueue"))


def _node(node: Object, seen: _Objects) -> None:
    spec = _table(node, "spec")
    ready = any(one.get("type") == "Ready" and one.get("status") == "True"
                for one in _tables(node, "status", "conditions"))  # fmt: skip
    if not ready:
        seen.report["nodes that are not ready, left out"] += 1
    elif spec.get("unschedulable"):
        seen.report["nodes that are not schedulable, left out"] += 1
    else:
        kept = {"labels": dict(_labels(node)), "name": _name(node)}
        seen.nodes.append({"metadata": kept, "spec": {"taints": spec.get("taints")}})
        seen.allocatable.append(amounts(node, "status", "allocatable"))


def _pod(pod: Object, seen: _Objects, system: frozenset[str]) -> None:
    """Extract the namespace, request, placement constraints and node of a pod."""
    spec = _table(pod, "spec")
    if _table(pod, "status").get("phase") not in ("Running", "Pending"):
        seen.report["pods that have ended, left out"] += 1
        return
    namespace = _name(pod, "namespace")
    daemon = any(one.get("kind") == "DaemonSet" for one in _tables(pod, "metadata", "ownerReferences"))
    affinity = {"nodeAffinity": _table(spec, "affinity").get("nodeAffinity")}
    place = {"spec": {name: spec.get(name) for name in ("nodeSelector", "tolerations")} | {"affinity": affinity}}
    host, of_system = str(spec.get("nodeName") or ""), daemon or namespace in system
    gated = not host and bool(spec.get("schedulingGates"))
    seen.pods.append((namespace, requests(pod), place, host, of_system, gated))


def _shapes(seen: _Objects, weights: str) -> list[Shape]:
    """Users by namespace, and in order of appearance."""
    known: dict[str, tuple[bool, ...]] = {}
    found: dict[tuple[Any, ...], Shape] = {}
    for namespace, request, place, host, of_system, gated in seen.pods:
        if of_system:
            seen.report["pods of the system, taken off their nodes"] += 1
            continue
        if (key := repr(place)) not in known:
            known[key] = tuple(may_run(place, seen.nodes))
        asks = {what: units(what, amount) for what, amount in request.items()}
        alike = (namespace, tuple(sorted(request.items())), known[key])
        shape = found.setdefault(alike, Shape(namespace, asks, known[key], _weight(namespace, seen)))
        if host:
            shape.held[host] += 1
        else:
            shape.waiting["a scheduling gate" if gated else ""] += 1
    if weights == "shared":
        several = Counter(shape.owner for shape in found.values())
        for shape in found.values():
            shape.weight /= several[shape.owner]
    return sorted(found.values(), key=lambda shape: shape.owner)


def _capacities(seen: _Objects) -> list[dict[str, float]]:
    """Capacities of nodes minus the requests of system pods."""
    taken: dict[str, Amounts] = defaultdict(Counter)
    for _, request, _, host, of_system, _ in seen.pods:
        if of_system and host:
            taken[host] += request
    rows = []
    for node, has in zip(seen.nodes, seen.allocatable, strict=True):
        less = taken[_name(node)]
        left = {what: units(what, amount - less[what]) for what, amount in has.items()}
        rows.append({what: max(0.0, amount) for what, amount in left.items()})
    return rows


def _weight(namespace: str, seen: _Objects) -> float:
    queue = seen.queues.get(namespace)
    return seen.weights.get(f"queue {queue}", seen.weights.get(namespace, 1.0))


def _positive(value: object) -> float:
    found = quantity(value)
    if found <= 0:
        raise DataError(f"the weight {value!r} must be above 0: a weight of 0 would give its user no tasks")
    return float(found)


def _counted(report: Mapping[str, int]) -> str:
    return ", ".join(f"{what}: {number}" for what, number in report.items()) or "nothing"
