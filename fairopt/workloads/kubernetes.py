"""Reader of Kubernetes clusters from the output of `kubectl get nodes,pods,namespaces -A -o json`.

Servers are ready and schedulable nodes. Their capacity is the allocatable amount of each resource minus the requests of
DaemonSets and system namespaces. A user is the set of pods of a namespace, and a queue in it, with equal requests and
placement constraints, since the mean over different pods would be a demand of no actual pod. `pods` is a resource,
of which each pod requests one. Running pods use their reserved amounts, and the pods of suspended jobs count as
waiting.

`data/kubernetes_fields.toml` lists the documented fields, and marks fields that are used and fields that get a note.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from ..base import files
from ..base.errors import DataError
from ..base.libraries import of_an_extra
from ..base.names import listed
from ._fields import Fields, kept_type
from ._fields import table as fields_of
from ._kube import (
    Key,
    Object,
    Rule,
    amounts,
    at,
    condition,
    key_of,
    labels,
    may_run,
    most,
    name_of,
    requests,
    rules,
    table,
    tables,
    units,
)
from ._kube_claims import Claims, volume_claims
from ._kube_queues import GATES, Pods, Queue, Queues
from ._kube_tree import queues as declared
from ._snapshot import Amounts, Shape, Snapshot, objects, of_shapes, quantity
from .sources import reader

__all__ = ["items", "kubernetes", "may_run", "quantity", "requests", "snapshot"]

_REMEDY = "write it with: kubectl get nodes,pods,namespaces -A -o json"
_SPACE = re.compile(r"[\s,]*")
_ITEMS = re.compile(r'"items"\s*:\s*\[')
_STATED = re.compile(r'"(kind|apiVersion)"\s*:\s*"([^"]*)"')
#: Namespaces whose pods belong to the cluster itself.
SYSTEM = ("kube-system", "kube-public", "kube-node-lease")
#: Metadata in which equal pods differ.
_OWN = ("name", "uid", "resourceVersion", "creationTimestamp", "generation", "selfLink")
#: Kinds of owners whose pods are part of a node, so that they reduce its capacity.
_OF_NODES = ("DaemonSet", "Node")


def items(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of all lists `items` of a file, as written by `kubectl get -o json`, one at a time.

    The items of a typed list such as `PodList` do not state their kind; it follows from the kind of the list.

    Raises
    ------
    DataError
        The file cannot be read or has no such list, or an item is truncated or invalid; the message has the index of
        the item.
    """
    text = files.read(path, "snapshot")
    try:
        whole = msgspec.json.decode(text, type=_List)
    except (msgspec.DecodeError, RecursionError):  # the file has the outputs of several commands, or is damaged
        yield from _scanned(text, path)
        return
    of = {"kind": whole.kind, "apiVersion": whole.apiVersion}
    for number, raw in enumerate(whole.items, 1):
        try:
            head = msgspec.json.decode(raw, type=_Head)
            named = head.kind or whole.kind.removesuffix("List")
            item = _decoder(_kind({"kind": named, "apiVersion": head.apiVersion})).decode(raw)
        except (msgspec.DecodeError, RecursionError):
            item = json.loads(bytes(raw))
            if not isinstance(item, dict):
                raise DataError(f"{path}: item {number} of items is {str(item)[:40]!r}; it must be an object") from None
        yield _named(item, of)


def _scanned(text: str, path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of the lists in a text one by one, up to the first damaged object."""
    found, before = _ITEMS.search(text), 0
    if found is None:
        raise DataError(f"{path} has no list 'items'; {_REMEDY}")
    decode = json.JSONDecoder().raw_decode
    while found is not None:
        at, listed_here = found.end(), list[Any]()
        while not text.startswith("]", at := _SPACE.match(text, at).end()):  # type: ignore[union-attr]
            try:
                item, at = decode(text, at)
            except (ValueError, RecursionError) as error:
                number = len(listed_here) + 1
                raise DataError(f"{path}: item {number} of items is cut off or damaged: {error}") from None
            listed_here.append(item)
        end = text.find("}", at) + 1 or len(text)  # a file may state the kind of a list after its items
        of = dict(_STATED.findall(text[before : found.start()]) + _STATED.findall(text[at:end]))
        yield from (_named(item, of) for item in objects({"items": listed_here}, "items", path, _REMEDY))
        found, before = _ITEMS.search(text, at), at


def _named(item: dict[str, Any], of: Mapping[str, Any]) -> dict[str, Any]:
    """Add the kind and API version of the enclosing list to an object that states no kind."""
    if "kind" in item:
        return item
    return {"kind": str(of.get("kind")).removesuffix("List"), "apiVersion": of.get("apiVersion")} | item


class _List(msgspec.Struct):
    """List of objects, each not yet decoded."""

    items: list[msgspec.Raw]
    kind: str = ""
    apiVersion: str = ""


class _Head(msgspec.Struct):
    """Kind and API version of an object, decoded before the object itself."""

    kind: str = ""
    apiVersion: str | None = None


@cache
def _decoder(kind: str | None) -> msgspec.json.Decoder[Any]:
    """Decoder of objects of a kind; of pods, which are numerous, only fields that are used or noted are decoded."""
    return msgspec.json.Decoder(kept_type("kubernetes", kind) if kind == "Pod" else Any)


@dataclass
class _Objects:
    """Relevant objects of a snapshot."""

    nodes: list[Object] = field(default_factory=list)
    allocatable: list[Amounts] = field(default_factory=list)
    away: list[Object] = field(default_factory=list)  # nodes that accept no pods
    pods: list[Pods] = field(default_factory=list)
    others: dict[str, list[Object]] = field(default_factory=lambda: defaultdict(list))
    report: Counter[str] = field(default_factory=Counter)
    fields: Fields = field(default_factory=lambda: Fields("kubernetes"))
    alike: dict[str, Pods] = field(default_factory=dict)


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
        The weight of a namespace outside of queues, 1, applies to `each` of its users, or is `shared` equally among
        them. The weight of a queue is shared.
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
    """Build the cluster of the objects `of`; `where` names their source in errors, which are those of `kubernetes`."""
    seen = _Objects()
    for item in of:
        _process(item, seen, frozenset(system))
    nodes = seen.nodes
    if not nodes:
        raise DataError(f"{where} has no node that is ready and schedulable; it has {_counted(seen.report)}")
    known: dict[Key | None, Object] = {key_of(kind, one): one for kind, some in seen.others.items() for one in some}
    claims, queues = Claims(known, seen.others["ResourceSlice"]), Queues(known, seen.others)
    for pod in seen.pods:
        claims.use(pod.thing)
    for pod in list(queues.missing(pod.thing for pod in seen.pods if not pod.leaving)):
        with files.inside(f"pods of {name_of(pod.thing)!r}"):
            pod.request, pod.of_system = requests(pod.thing), name_of(pod.thing, "namespace") in system
            seen.pods.append(pod)
    for pod in seen.pods:
        if pod.thing["spec"].get("resourceClaims") and (devices := claims.devices(pod.thing)):
            pod.request = pod.request + devices
    capacities = _capacities(seen, claims)
    entries = declared(seen.others, queues.unknown)
    shapes = _shapes(seen, weights, claims, queues, capacities, entries)
    if not shapes:
        raise DataError(
            f"{where} has no pod that runs or waits outside of {', '.join(system)}; {_counted(seen.report)}"
        )
    about = f"Kubernetes ({Path(where).name}): {{}} users (namespace and shape) on {len(nodes)} nodes"
    found = of_shapes(
        shapes, [name_of(node) for node in nodes], capacities, max_tasks, about, seen.report, "/",
        "no node may run it",
        f"{where}: no node may run any of the pods; look at their selectors and the nodes' taints", entries, "vector",
    )  # fmt: skip
    counts = {"users whose pods no node may run, left out": len(found.left_out)}
    counts |= {"pods running": sum(shape.held.total() for shape in shapes)}
    counts |= {"pods pending": sum(shape.waiting.total() + shape.capped.total() for shape in shapes)}
    unknown = claims.unknown | queues.unknown
    more = [f"{what}: {listed(list(dict.fromkeys(whose)))}." for what, whose in unknown.items()]
    return replace(found, report=dict(found.report) | counts, notes=(*found.notes, *more, *seen.fields.notes()))


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
    loader: Any = None

    def refused() -> None:
        """Reject aliases: nine in each of nine nested lists would expand to billions of objects."""
        raise DataError(f"{path} line {loader.line + 1} is an alias of what is written elsewhere; {_REMEDY}")

    try:
        loader, documents = yaml.SafeLoader(files.read(path, "snapshot")), []
        loader.fetch_alias = refused
        while loader.check_data():
            documents.append(loader.get_data())
    except (yaml.YAMLError, RecursionError) as error:
        raise DataError(f"{path} is not valid YAML: {str(error)[:200]}") from None
    return [_named(one, found) for found in documents or [None] for one in objects(found, "items", path, _REMEDY)]


def _process(item: Object, seen: _Objects, system: frozenset[str]) -> None:
    """Process one object of the snapshot; errors state its name."""
    kind = _kind(item)
    metadata = item.get("metadata")
    who, space = (metadata.get("name"), metadata.get("namespace")) if isinstance(metadata, dict) else (None, None)
    if kind is None:
        seen.report[f"objects of kind {item.get('kind')}, left out"] += 1
        return
    seen.report[f"objects of kind {kind}"] += 1
    before = len(seen.pods)
    with files.inside(f"{kind} {who!r}"):
        if kind == "Node":
            _node(item, seen)
        elif kind == "Pod":
            _pod(item, seen, system)
        elif fields_of("kubernetes")[kind].get("used"):
            seen.others[kind].append(item)
    if kind != "Pod" or (len(seen.pods) > before and not seen.pods[-1].of_system):
        seen.fields.see(kind, item, f"{space}/{who}" if space else str(who))


def _kind(item: Object) -> str | None:
    """Name of an object's kind in the table of fields: `kind`, or `kind.group` if groups share it; None if unknown."""
    known, kind, version = fields_of("kubernetes"), str(item.get("kind")), item.get("apiVersion")
    group = str(version).rpartition("/")[0]
    for name in (kind, f"{kind}.{group}"):
        if name in known and (version is None or known[name].get("group", "") == group):
            return name
    return None


def _node(node: Object, seen: _Objects) -> None:
    ready = condition(node, "Ready").get("status") == "True"
    accepts = ready and not at(node, "spec.unschedulable")
    if not accepts:
        seen.report[f"nodes that are not {'schedulable' if ready else 'ready'}, left out"] += 1
    if accepts or at(node, "metadata.name"):
        kept = {"metadata": {"labels": dict(labels(node)), "name": name_of(node)}}
        (seen.nodes if accepts else seen.away).append(kept | {"spec": {"taints": at(node, "spec.taints")}})
    if accepts:
        seen.allocatable.append(amounts(node, "status.allocatable"))


def _pod(pod: Object, seen: _Objects, system: frozenset[str]) -> None:
    """Read a pod: its reserved or requested amounts, placement constraints, queue, and reason for waiting."""
    metadata, spec, status = (table(pod, key) for key in ("metadata", "spec", "status"))
    host, space = str(spec.get("nodeName") or ""), name_of(pod, "namespace")
    leaving = bool(metadata.get("deletionTimestamp"))
    if status.get("phase") in ("Succeeded", "Failed") or (leaving and not host):
        seen.report["pods that have ended, left out"] += 1
        return
    metadata = {key: value for key, value in metadata.items() if key != "managedFields"}
    daemon = any(one.get("kind") in _OF_NODES for one in tables(metadata, "ownerReferences"))
    alike = repr([{key: value for key, value in spec.items() if key != "nodeName"}, status, not host])
    if alike not in seen.alike:
        seen.alike[alike] = _alike(pod, bool(host))
    one, of_system = seen.alike[alike], daemon or space in system
    thing = {"metadata": metadata, **one.thing}
    seen.pods.append(replace(one, thing=thing, host=host, of_system=of_system, leaving=leaving))


def _alike(pod: Object, runs: bool) -> Pods:
    """Data of a pod that are equal for all pods with its specification and status."""
    spec = table(pod, "spec")
    names = ("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints", "resourceClaims")
    kept: dict[str, Any] = {key: spec[key] for key in names if spec.get(key)}
    kept["containers"] = [{"ports": tables(one, "ports")} for one in tables(spec, "containers")]
    kept["volumes"] = [one for one in tables(spec, "volumes") if one.get("ephemeral") or "persistentVolumeClaim" in one]
    gates = [str(one.get("name")) for one in tables(spec, "schedulingGates") if not runs]
    own = [gate for gate in gates if not gate.startswith(GATES)]
    why = condition(pod, "PodScheduled")
    waiting = str(why.get("message") or why.get("reason") or "") if why.get("status") == "False" else ""
    said, capped = (", ".join(f"scheduling gate {gate}" for gate in some) for some in (gates, own))
    thing = {"spec": kept, "status": {"resourceClaimStatuses": at(pod, "status.resourceClaimStatuses")}}
    return Pods(thing, 1, bool(gates) and not own, said or waiting, capped, request=requests(pod))


def _shapes(
    seen: _Objects,
    weights: str,
    claims: Claims,
    queues: Queues,
    capacities: Sequence[Mapping[str, float]],
    entries: dict[tuple[str, ...], dict[str, Any]],
) -> list[Shape]:
    """Group pods into users in order of appearance; pods beyond a limit of their group count as capped."""
    known: dict[str, tuple[bool, ...]] = {}
    found: dict[tuple[Any, ...], tuple[Shape, Queue]] = {}
    read: dict[tuple[Any, ...], tuple[Shape, Queue, tuple[Rule, ...]]] = {}
    ruled: dict[Rule, list[tuple[Shape, Object]]] = defaultdict(list)
    parts = defaultdict[Rule, Counter[str]](Counter)
    for pod in seen.pods:
        if pod.of_system:
            seen.report["pods of the system, taken off their nodes"] += pod.count
            continue
        thing = pod.thing
        # Pods that differ by name alone belong to one user, unless their workloads or volumes are found by name.
        named = seen.others["Workload"] or thing["spec"].get("volumes")
        metadata = [item for item in thing["metadata"].items() if named or item[0] not in _OWN]
        same = id(thing["spec"]), id(pod.request), repr(metadata), pod.queued
        if same not in read:
            namespace, queue, limits = name_of(thing, "namespace"), queues.of(thing), tuple(rules(thing))
            if (key := repr(_place(pod, queue))) not in known:
                may = queues.nodes(thing, queue, seen.nodes) if pod.queued else may_run(thing, seen.nodes)
                near = claims.nodes(thing, seen.nodes)
                known[key] = tuple(one and other for one, other in zip(may, near, strict=True))
            alike = (namespace, queue, tuple(sorted(pod.request.items())), known[key], limits)
            if alike not in found:
                asks = {what: units(what, amount) for what, amount in pod.request.items()}
                found[alike] = Shape(namespace, asks, known[key]), queue
                for rule in limits:
                    ruled[rule].append((found[alike][0], thing))
            read[same] = *found[alike], limits
        shape, queue, limits = read[same]
        for rule in limits:
            parts[rule][rule.part] += pod.count
        _add(pod, shape, queue, queues)
    several = Counter(space for space, _ in {(shape.owner, queue.name) for shape, queue in found.values()})
    shapes = Counter((shape.owner, queue) for shape, queue in found.values())
    for shape, queue in found.values():
        own, count = ("Namespace", shape.owner, queue.name), shapes[shape.owner, queue]
        bounds = entries.get(own[:2], {})
        if bounds and several[shape.owner] > 1:
            queues.unknown["The quota of a namespace limits its pods in each of several queues"].append(shape.owner)
        if bounds or own in entries:
            entries[own] = {"weight": 1.0 if weights == "shared" else count} | bounds | entries.get(own, {})
            entries[own]["parent"] = queue.within
        shape.queue = own if own in entries else queue.within
        shape.weight /= count if weights == "shared" and shape.queue != own else 1
        shape.owner += f"/{queue.name}" if several[shape.owner] > 1 and queue.name else ""
    _cap(ruled, parts, seen, capacities)
    return sorted((shape for shape, _ in found.values()), key=lambda shape: shape.owner)


def _place(pod: Pods, queue: Queue) -> list[object]:
    """Data of a pod that determine its eligible nodes; pods with equal data are grouped."""
    spec, volumes = table(pod.thing, "spec"), volume_claims(pod.thing)
    return [spec.get("nodeSelector"), spec.get("tolerations"), table(spec, "affinity").get("nodeAffinity"), volumes,
            volumes and name_of(pod.thing, "namespace"), pod.queued and queue.within]  # fmt: skip


def _add(pod: Pods, shape: Shape, queue: Queue, queues: Queues) -> None:
    """Count a pod as a running, waiting or capped task of its user."""
    if pod.host:
        shape.held[pod.host] += pod.count
        shape.leaving += pod.count * pod.leaving
    elif pod.capped or (pod.queued and queue.stopped):
        shape.capped[pod.capped or queue.stopped] += pod.count
    else:
        shape.waiting[(pod.queued and queues.reason(pod.thing)) or pod.waiting] += pod.count


def _cap(
    ruled: Mapping[Rule, Sequence[tuple[Shape, Object]]], parts: Mapping[Rule, Counter[str]], seen: _Objects,
    capacities: Sequence[Mapping[str, float]],
) -> None:  # fmt: skip
    """Limit the pods of each group to the number that its rule permits, serving users in order of appearance."""
    for rule, some in ruled.items():
        used = sum(shape.held.total() - shape.leaving for shape, _ in some)
        for shape, thing in some:
            fits = [
                int(may and min(has.get(what, 0.0) * (1 + 1e-9) // asks for what, asks in shape.asks.items() if asks))
                for may, has in zip(shape.eligible, capacities, strict=True)
            ]
            permitted = most(rule, thing, [*seen.nodes, *seen.away], [*fits, *[0] * len(seen.away)], shape.held)
            permitted = sum(min(count, permitted) for count in parts[rule].values())
            runs = shape.held.total() - shape.leaving
            shape.cap(max(permitted - used, 0) + runs, f"{rule}: {permitted} at once")
            used += shape.wanted - runs


def _capacities(seen: _Objects, claims: Claims) -> list[dict[str, float]]:
    """Capacities of nodes, including devices that pods claim, minus the reserved amounts of system pods."""
    taken: dict[str, Amounts] = defaultdict(Counter)
    for pod in seen.pods:
        if pod.of_system and pod.host:
            taken[pod.host] += pod.request
    rows = []
    for node, has in zip(seen.nodes, seen.allocatable, strict=True):
        name = name_of(node)
        left = {
            what: units(what, amount - taken[name][what])
            for what, amount in (has + claims.offers.get(name, Counter())).items()
        }
        rows.append({what: max(0.0, amount) for what, amount in left.items()})
    return rows


def _counted(report: Mapping[str, int]) -> str:
    return ", ".join(f"{what}: {number}" for what, number in report.items()) or "nothing"
