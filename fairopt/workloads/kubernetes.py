"""A Kubernetes cluster as `kubectl get nodes,pods,namespaces -A -o json` prints it.

Servers are nodes that are ready and schedulable, at what is allocatable less what DaemonSets and system namespaces take
there. A user is a namespace's pods of one shape (what they request, and where they may run): a mean of shapes would be
a demand that nobody has. `pods` is a resource, of which every pod takes one.

Source: the Kubernetes documentation, "Resource Management for Pods and Containers", "Init Containers", "Pod Overhead",
"Assigning Pods to Nodes", "Taints and Tolerations".
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._libraries import of_an_extra
from ..errors import DataError
from ..model.cluster import Cluster
from ._registry import reader
from ._snapshot import Snapshot, numbered

Object = Mapping[str, Any]
Amounts = dict[str, Decimal]

_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:([eE][+-]?[0-9]{1,3})|([numkMGTPE]|[KMGTPE]i))?")
_UNITS = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {unit: 1024 ** (k + 1) for k, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))}
#: No amount of anything is larger: an exabyte of bytes, in thousandths.
_MOST = Decimal(10) ** 21
_GIB = Decimal(1024**3)
_BYTES = ("memory", "ephemeral-storage")
#: Characters that are read at a time.
_CHUNK = 1 << 20
#: No item of a snapshot is longer: the most that Kubernetes stores of an object is 1.5 MiB.
_LONGEST = 1 << 25
_SPACE = re.compile(r"[\s,]*")
_ITEMS = re.compile(r'"items"\s*:\s*\[')
#: Namespaces whose pods are part of the cluster itself.
SYSTEM = ("kube-system", "kube-public", "kube-node-lease")
_VOLCANO = "volcano.sh/namespace.weight"
_KINDS = ("Node", "Pod", "Namespace", "ClusterQueue", "LocalQueue")


def quantity(value: object) -> Decimal:
    """`100m`, `1Gi`, `2e3`, `1.5`: exactly.

    Raises
    ------
    DataError
        It is none, is below 0 or beyond all measure.
    """
    found = (
        _QUANTITY.fullmatch(str(value))
        if isinstance(value, str | int | float) and not isinstance(value, bool)
        else None
    )
    if found is None:
        raise DataError(f"{str(value)[:40]!r} is not a quantity, such as 500m, 2 or 1.5Gi")
    number, power, unit = found.groups()
    if power is not None and abs(int(power[1:])) > 30:
        raise DataError(f"the quantity {str(value)[:40]!r} is beyond all measure")
    amount = Decimal(number + (power or ""))
    if unit in _BINARY:
        amount *= _BINARY[unit]
    elif unit:
        amount = amount.scaleb(_UNITS[unit])
    if not 0 <= amount <= _MOST:
        raise DataError(f"the quantity {str(value)[:40]!r} must be between 0 and 10^21")
    return amount


def amounts(table: object) -> Amounts:
    """Quantities by the names of resources."""
    return {str(name): quantity(value) for name, value in _table(table, "a table of resources").items()}


def requests(pod: Object) -> Amounts:
    """The request of a pod, `pods: 1` included.

        max(sum of containers and sidecars, max over init containers of itself and the sidecars before) + overhead

    A sidecar is an init container that is restarted always. A limit stands in where a request is missing; requests of
    the pod as a whole come before those of its containers.
    """
    spec = _table(pod.get("spec"), "spec")
    total: Amounts = {}
    for container in _tables(spec.get("containers"), "containers"):
        _add(total, _asked(container))
    sidecars: Amounts = {}
    most: Amounts = {}
    for container in _tables(spec.get("initContainers"), "initContainers"):
        if container.get("restartPolicy") == "Always":
            _add(sidecars, _asked(container))
            at_once = sidecars
        else:
            at_once = _sum(sidecars, _asked(container))
        most = {name: max(most.get(name, Decimal()), at_once.get(name, Decimal())) for name in {*most, *at_once}}
    _add(total, sidecars)
    total = {name: max(total.get(name, Decimal()), most.get(name, Decimal())) for name in {*total, *most}}
    total |= _asked(spec)
    _add(total, amounts(spec.get("overhead")))
    return total | {"pods": Decimal(1)}


def may_run(pod: Object, nodes: Iterable[Object]) -> list[bool]:
    """Nodes that a pod may run on: nodeSelector, required node affinity, taints it does not tolerate."""
    spec = _table(pod.get("spec"), "spec")
    wanted = _table(spec.get("nodeSelector"), "nodeSelector")
    affinity = _table(_table(spec.get("affinity"), "affinity").get("nodeAffinity"), "nodeAffinity")
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = None if required is None else _tables(_table(required, "node affinity").get("nodeSelectorTerms"), "terms")
    tolerations = _tables(spec.get("tolerations"), "tolerations")
    return [
        all(_labels(node).get(name) == value for name, value in wanted.items())
        and (terms is None or any(_term(term, node) for term in terms))
        and all(_tolerated(taint, tolerations) for taint in _taints(node))
        for node in nodes
    ]


def _placement(pod: Object) -> tuple[str, ...]:
    """Equal for pods that may run on the same nodes because they say the same."""
    spec = _table(pod.get("spec"), "spec")
    affinity = _table(spec.get("affinity"), "affinity").get("nodeAffinity")
    return tuple(repr(part) for part in (spec.get("nodeSelector"), affinity, spec.get("tolerations")))


def _labels(thing: Object) -> Object:
    """The labels of an object."""
    return _table(_table(thing.get("metadata"), "metadata").get("labels"), "labels")


def _name(thing: Object) -> str:
    """The name of an object.

    Raises
    ------
    DataError
        It has none.
    """
    found = _table(thing.get("metadata"), "metadata").get("name")
    if not isinstance(found, str) or not found:
        raise DataError(f"an object of kind {thing.get('kind')!r} has no metadata.name")
    return found


def _table(value: object, what: str) -> Object:
    """A table of an object; an empty one if it is not there."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise DataError(f"{what} is {str(value)[:40]!r}; it must be a table")
    return value


def _tables(value: object, what: str) -> list[Object]:
    """A list of tables; an empty one if it is not there."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, Mapping) for each in value):
        raise DataError(f"{what} is {str(value)[:40]!r}; it must be a list of tables")
    return value


def _asked(container: Object) -> Amounts:
    resources = _table(container.get("resources"), "resources")
    return amounts(resources.get("limits")) | amounts(resources.get("requests"))


def _add(into: Amounts, more: Amounts) -> None:
    """Add amounts to others."""
    for what, amount in more.items():
        into[what] = into.get(what, Decimal()) + amount


def _sum(first: Amounts, other: Amounts) -> Amounts:
    found = dict(first)
    _add(found, other)
    return found


def _taints(node: Object) -> list[Object]:
    taints = _tables(_table(node.get("spec"), "spec").get("taints"), "taints")
    return [taint for taint in taints if taint.get("effect") in ("NoSchedule", "NoExecute")]


def _tolerated(taint: Object, tolerations: list[Object]) -> bool:
    for each in tolerations:
        everything = each.get("key") in (None, "") and each.get("operator") == "Exists"
        same_key = everything or each.get("key") == taint.get("key")
        same_value = each.get("operator") == "Exists" or (each.get("value") or "") == (taint.get("value") or "")
        if same_key and same_value and each.get("effect") in (None, "", taint.get("effect")):
            return True
    return False


def _term(term: Object, node: Object) -> bool:
    """Does a node satisfy all expressions of a term? A term without any is satisfied by none."""
    expressions = _tables(term.get("matchExpressions"), "matchExpressions")
    fields = _tables(term.get("matchFields"), "matchFields")
    if not expressions and not fields:
        return False
    own = {"metadata.name": _name(node)}
    return all(_matches(each, _labels(node)) for each in expressions) and all(_matches(each, own) for each in fields)


def _matches(expression: Object, has: Object) -> bool:
    key, operator = expression.get("key"), expression.get("operator")
    values = expression.get("values") or []
    if not isinstance(values, list):
        raise DataError(f"values of the expression on {key!r} are {str(values)[:40]!r}; they must be a list")
    value = has.get(key) if isinstance(key, str) else None
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if operator in ("Gt", "Lt") and len(values) == 1:
        try:
            left, right = int(str(value)), int(str(values[0]))
        except ValueError:
            return False
        return left > right if operator == "Gt" else left < right
    raise DataError(f"the operator {str(operator)[:40]!r} of the expression on {key!r} is not known")


@dataclass
class Group:
    """Pods of a namespace that ask for the same and may run on the same nodes."""

    namespace: str
    request: Amounts
    eligible: tuple[bool, ...]
    running: int = 0
    pending: int = 0


def units(what: str, amount: Decimal) -> float:
    """Bytes as GiB, anything else as it is."""
    return float(amount / _GIB) if what in _BYTES or what.startswith("hugepages-") else float(amount)


def named(groups: list[Group]) -> list[str]:
    """`namespace` where it has one shape, else with what a pod asks for, and a number where that is not enough."""
    count = Counter(group.namespace for group in groups)
    names = [
        group.namespace if count[group.namespace] == 1 else f"{group.namespace}/{_shape(group)}" for group in groups
    ]
    return numbered(names)


def _shape(group: Group) -> str:
    parts = [f"{units(what, amount):g}{'GiB' if what == 'memory' else ' ' + what.rpartition('/')[2]}"
             for what, amount in sorted(group.request.items()) if amount and what != "pods"]  # fmt: skip
    return ", ".join(parts) or "nothing"


def items(path: Path) -> Iterator[dict[str, Any]]:
    """The objects in the list `items` of the object in a file, as `kubectl get -o json` writes it.

    Raises
    ------
    DataError
        The file cannot be read, has no such list, or is cut off or damaged in it: with the number of the item.
    """
    decode = json.JSONDecoder().raw_decode
    number = 0
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(_CHUNK)
            found = _ITEMS.search(text)
            while found is None:
                more = file.read(_CHUNK)
                if not more or len(text) > _LONGEST:
                    raise DataError(
                        f"{path} has no list 'items'; write it with: kubectl get nodes,pods,namespaces -A -o json"
                    )
                text += more
                found = _ITEMS.search(text)
            at = found.end()
            while True:
                at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
                if text[at : at + 1] == "]":
                    return
                try:
                    item, end = decode(text, at)
                except (ValueError, RecursionError) as error:
                    more = file.read(max(_CHUNK, len(text) - at))
                    if not more or len(text) - at > _LONGEST:
                        raise DataError(f"{path}: item {number + 1} of items is cut off or damaged: {error}") from None
                    text, at = text[at:] + more, 0
                    continue
                if not isinstance(item, dict):
                    raise DataError(f"{path}: item {number + 1} of items is {str(item)[:40]!r}; it must be an object")
                number += 1
                yield item
                at = end
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text (near item {number + 1}): {error.reason}") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None


@dataclass
class _Seen:
    """The objects of a snapshot that count."""

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
        servers=[_name(node) for node in nodes],
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
        yaml = of_an_extra("yaml")
    except DataError as error:
        raise DataError(f"{path} is YAML: {error}; or write JSON: kubectl ... -o json") from None
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
            weight = _table(_table(item.get("metadata"), "metadata").get("annotations"), "annotations")
            if _VOLCANO in weight:
                seen.weights[_name(item)] = _positive(weight[_VOLCANO])
        elif kind == "ClusterQueue":
            sharing = _table(_table(item.get("spec"), "spec").get("fairSharing"), "fairSharing")
            if "weight" in sharing:
                seen.weights[f"queue {_name(item)}"] = _positive(sharing["weight"])
        elif kind == "LocalQueue":
            queue = _table(item.get("spec"), "spec").get("clusterQueue")
            seen.queues[_namespace(item)] = str(queue)
    except DataError as error:
        metadata = item.get("metadata")
        who = metadata.get("name") if isinstance(metadata, dict) else None
        raise DataError(f"{kind} {who!r}: {error}") from None


def _node(node: Object, seen: _Seen) -> None:
    spec, status = _table(node.get("spec"), "spec"), _table(node.get("status"), "status")
    ready = any(one.get("type") == "Ready" and one.get("status") == "True"
                for one in _tables(status.get("conditions"), "conditions"))  # fmt: skip
    if not ready:
        seen.report["nodes that are not ready, left out"] += 1
    elif spec.get("unschedulable"):
        seen.report["nodes that are not schedulable, left out"] += 1
    else:
        _name(node)
        amounts(status.get("allocatable"))
        kept = {"labels": dict(_labels(node)), "name": _name(node)}
        seen.nodes.append({"kind": "Node", "metadata": kept, "spec": {"taints": spec.get("taints")},
                           "status": {"allocatable": status.get("allocatable")}})  # fmt: skip


def _pod(pod: Object, seen: _Seen, system: frozenset[str]) -> None:
    """Keep of a pod what counts: its namespace, request, placement, and where it runs."""
    status, spec = _table(pod.get("status"), "status"), _table(pod.get("spec"), "spec")
    phase = status.get("phase")
    if phase not in ("Running", "Pending"):
        seen.report["pods that have ended, left out"] += 1
        return
    namespace = _namespace(pod)
    owners = _tables(_table(pod.get("metadata"), "metadata").get("ownerReferences"), "ownerReferences")
    daemon = any(one.get("kind") == "DaemonSet" for one in owners)
    host = spec.get("nodeName") or ""
    kind = "own" if not daemon and namespace not in system else "system"
    key = _placement(pod)
    place = {"spec": {name: spec.get(name) for name in ("nodeSelector", "affinity", "tolerations")}}
    seen.pods.append((namespace, requests(pod), key, place, str(host), kind))


def _groups(seen: _Seen) -> list[Group]:
    """Users, in order of namespace and of what comes first in the snapshot."""
    known: dict[tuple[str, ...], tuple[bool, ...]] = {}
    found: dict[tuple[Any, ...], Group] = {}
    for namespace, request, key, place, host, kind in seen.pods:
        if kind == "system":
            seen.report["pods of the system, taken off their nodes"] += 1
            continue
        if key not in known:
            known[key] = tuple(may_run(place, seen.nodes))
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
            _add(taken[host], request)
    rows = []
    for node in seen.nodes:
        has = amounts(_table(node.get("status"), "status").get("allocatable"))
        less = taken.get(_name(node), {})
        rows.append([max(0.0, units(what, has.get(what, Decimal()) - less.get(what, Decimal()))) for what in resources])
    return np.array(rows, dtype=float)


def _weight(namespace: str, seen: _Seen) -> float:
    queue = seen.queues.get(namespace)
    return seen.weights.get(f"queue {queue}", seen.weights.get(namespace, 1.0))


def _positive(value: object) -> float:
    found = quantity(value)
    if found <= 0:
        raise DataError(f"the weight {value!r} must be above 0: a weight of 0 would give nothing to anybody")
    return float(found)


def _namespace(thing: Object) -> str:
    found = _table(thing.get("metadata"), "metadata").get("namespace")
    if not isinstance(found, str) or not found:
        raise DataError("it has no metadata.namespace; get the objects of all namespaces: kubectl get ... -A")
    return found


def _counted(report: Mapping[str, int]) -> str:
    return ", ".join(f"{what}: {number}" for what, number in report.items()) or "nothing"
