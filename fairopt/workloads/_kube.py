"""Pods and nodes of Kubernetes: requests of pods, eligibility of nodes, and limits on pods per topology domain.

Source: the Kubernetes documentation, "Resource Management for Pods and Containers", "Init Containers", "Pod Overhead",
"Resize CPU and Memory Resources assigned to Containers", "Assigning Pods to Nodes", "Taints and Tolerations", "Pod
Topology Spread Constraints", and the API types of `core/v1`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ..base.errors import DataError
from ._fields import names
from ._snapshot import GIB, Amounts, quantity

Object = Mapping[str, Any]
Key = tuple[str, str, str]

_BYTES = ("memory", "ephemeral-storage")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_HOST = "kubernetes.io/hostname"


def amounts(value: object, path: str) -> Amounts:
    """Quantities by resource in the table at a path; empty if the table is missing."""
    return _parsed(table(value, path))


def _parsed(found: Object) -> Amounts:
    return Counter({str(name): quantity(amount) for name, amount in found.items()})


def units(what: str, amount: Decimal) -> float:
    """Amount of the resource `what`, with bytes converted to GiB and other units unchanged."""
    return float(amount / GIB) if what in _BYTES or what.startswith("hugepages-") else float(amount)


def at(value: Any, path: str) -> Any:
    """Value at a path (see `_fields`), or None; raise `DataError` if the path crosses anything but tables."""
    for k, key in enumerate(names(path)):
        if value is None:
            return None
        if not isinstance(value, dict):
            before = names(path)[k - 1] if k else "it"
            raise DataError(f"{before} is {str(value)[:40]!r}; it must be a table")
        value = value.get(key)
    return value


def _typed(value: Any, path: str, what: str, fits: Callable[[Any], bool]) -> Any:
    """Value at a path, which must satisfy `fits`, described by `what` in the error; None if it is missing."""
    found = at(value, path)
    if not (found is None or fits(found)):
        raise DataError(f"{names(path)[-1]} is {str(found)[:40]!r}; it must be {what}")
    return found


def _listed(kind: type) -> Callable[[Any], bool]:
    return lambda found: isinstance(found, list) and all(isinstance(each, kind) for each in found)


def table(value: Any, path: str) -> Object:
    """Table at a path; empty if it is missing."""
    return _typed(value, path, "a table", lambda found: isinstance(found, dict)) or {}


def tables(value: Any, path: str) -> list[Object]:
    """List of tables at a path; empty if it is missing."""
    return _typed(value, path, "a list of tables", _listed(dict)) or []


def labels(thing: Object) -> Object:
    """Labels of an object."""
    return table(thing, "metadata.labels")


def name_of(thing: Object, key: str = "name") -> str:
    """Name of an object, or its namespace if `key` is "namespace"; raise `DataError` if it is missing."""
    found = at(thing, f"metadata.{key}")
    if not isinstance(found, str) or not found:
        raise DataError(f"it has no metadata.{key}; get the objects of all namespaces: kubectl get ... -A")
    return found


def text(value: Any, path: str) -> str:
    """Text at a path; empty if it is missing."""
    return _typed(value, path, "a text", lambda found: isinstance(found, str)) or ""


def words(value: Any, path: str) -> list[str]:
    """List of texts at a path; empty if it is missing."""
    return _typed(value, path, "a list of texts", _listed(str)) or []


def whole(value: Any, path: str, default: int = 0) -> int:
    """Count >= 0 at a path; the default if it is missing."""
    found = _typed(value, path, "a whole number >= 0", lambda found: type(found) is int and 0 <= found < 10**9)
    return default if found is None else found


def key_of(kind: str, thing: Object) -> Key:
    """Key of an object: its kind, namespace (empty for objects of the whole cluster) and name."""
    return kind, text(thing, "metadata.namespace"), name_of(thing)


def condition(thing: object, kind: str) -> Object:
    """Condition of this type in the status of an object; empty if it is missing."""
    return next((one for one in tables(thing, "status.conditions") if one.get("type") == kind), {})


def requests(pod: Object) -> Amounts:
    """Requests of a pod by resource, including `pods: 1`; for a running pod, the reserved amounts.

        max(sum of containers and sidecars, max over init containers of its sum with earlier sidecars) + overhead

    A sidecar is an init container with restart policy Always. A limit replaces a missing request, and requests of the
    pod as a whole take precedence over those of its containers. While a pod is resized, each of its containers
    reserves the largest of the specified, the allocated and the actual request, or the larger of the last two if the
    resize is infeasible.
    """
    spec, status = table(pod, "spec"), table(pod, "status")
    resizes = condition(pod, "PodResizePending").get("reason") != "Infeasible"
    known = {text(one, "name"): one for key in ("initContainerStatuses", "containerStatuses")
             for one in tables(status, key)}  # fmt: skip

    def reserved(asks: Amounts, seen: object) -> Amounts:
        held = amounts(seen, "allocatedResources") | amounts(seen, "resources.requests")
        if not held:
            return asks
        return held | asks if resizes else Counter({**asks, **held})

    def of(container: Object) -> Amounts:
        return reserved(_container_requests(container), known.get(text(container, "name")))

    sidecars, most = Counter[str](), Counter[str]()
    for container in tables(spec, "initContainers"):
        sidecar = container.get("restartPolicy") == "Always"
        at_once = sidecars + (of(container) if sidecar else _container_requests(container))
        if sidecar:
            sidecars = at_once
        most |= at_once  # the union of counters is the maximum by resource
    total = sum(map(of, tables(spec, "containers")), sidecars) | most
    own = _container_requests(spec)
    return Counter({**total, **(reserved(own, status) if own else own)}) + amounts(spec, "overhead") + Counter(pods=1)


def _container_requests(container: Object) -> Amounts:
    return _parsed({**table(container, "resources.limits"), **table(container, "resources.requests")})


def may_run(pod: Object, nodes: Iterable[Object]) -> list[bool]:
    """Eligibility of a pod on each node: nodeSelector, required node affinity, and taints without toleration."""
    spec = table(pod, "spec")
    wanted, tolerations = table(spec, "nodeSelector"), tables(spec, "tolerations")
    affinity = table(spec, "affinity.nodeAffinity")
    terms = tables(affinity, f"{_REQUIRED}.nodeSelectorTerms")
    return [
        all(labels(node).get(name) == value for name, value in wanted.items())
        and (affinity.get(_REQUIRED) is None or in_terms(terms, node))
        and all(_tolerated(taint, tolerations) for taint in _taints(node))
        for node in nodes
    ]


def in_terms(terms: Sequence[Object], node: Object) -> bool:
    """True if a node satisfies one of the terms of a node selector; an empty term matches no node."""
    for term in terms:
        met = [_matches(each, labels(node)) for each in tables(term, "matchExpressions")]
        met += [_matches(each, {"metadata.name": name_of(node)}) for each in tables(term, "matchFields")]
        if met and all(met):
            return True
    return False


def selects(selector: object, has: Object) -> bool:
    """True if a selector selects the labels `has`; a missing selector selects nothing, an empty selector everything."""
    if selector is None:
        return False
    wanted = table({"labelSelector": selector}, "labelSelector")
    return all(has.get(name) == value for name, value in table(wanted, "matchLabels").items()) and all(
        _matches(each, has) for each in tables(wanted, "matchExpressions")
    )


def _taints(node: Object) -> list[Object]:
    return [taint for taint in tables(node, "spec.taints") if taint.get("effect") in ("NoSchedule", "NoExecute")]


def _tolerated(taint: Object, tolerations: list[Object]) -> bool:
    for each in tolerations:
        exists = each.get("operator") == "Exists"
        same_key = (exists and not each.get("key")) or each.get("key") == taint.get("key")
        if same_key and each.get("effect") in (None, "", taint.get("effect")) and (exists or _same_value(each, taint)):
            return True
    return False


def _same_value(toleration: Object, taint: Object) -> bool:
    value, given, operator = taint.get("value") or "", toleration.get("value") or "", toleration.get("operator")
    if operator in ("Gt", "Lt"):
        return _matches({"key": "value", "operator": operator, "values": [given]}, {"value": value})
    return bool(value == given)


def _matches(expression: Object, has: Object) -> bool:
    """True if the labels `has` satisfy an expression of a selector: a key, an operator and values."""
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


@dataclass(frozen=True)
class Rule:
    """Limit on the number of pods of a group in each domain; a domain is the set of nodes with one value of `key`.

    With `skew` 0 a domain runs at most one pod (anti-affinity, host ports). Otherwise a domain runs at most `skew` pods
    more than the domain with the fewest pods, whose number counts as 0 if there are fewer than `least` domains
    (topology spread). With `tainted` the domains include nodes whose taints the pod does not tolerate, and with
    `anywhere` nodes that the node affinity of the pod excludes.
    """

    what: str
    key: str
    group: str
    part: str = field(default="", compare=False)  # label value of the subgroup to which the rule applies
    skew: int = 0
    least: int = 0
    tainted: bool = True
    anywhere: bool = False

    def __str__(self) -> str:
        return f"{self.what} ({f'skew of at most {self.skew}' if self.skew else 'one'} by {self.key})"


def rules(pod: Object) -> Iterator[Rule]:
    """Yield the limits among pods of the same group: required anti-affinity, topology spread, and host ports."""
    spec, own, namespace = table(pod, "spec"), labels(pod), text(pod, "metadata.namespace")

    def group(term: Object) -> tuple[str, str]:
        keys = [own.get(key) for key in words(term, "matchLabelKeys")]
        return repr((namespace, term.get("labelSelector"))), repr(keys)

    for term in tables(spec, f"affinity.podAntiAffinity.{_REQUIRED}"):
        if against_itself(term, own, namespace):
            yield Rule("anti-affinity", text(term, "topologyKey"), *group(term))
    for one in tables(spec, "topologySpreadConstraints"):
        if one.get("whenUnsatisfiable") != "ScheduleAnyway" and selects(one.get("labelSelector"), own):
            skew, least = (whole(one, key, 1) for key in ("maxSkew", "minDomains"))
            tainted, anywhere = one.get("nodeTaintsPolicy") != "Honor", one.get("nodeAffinityPolicy") == "Ignore"
            yield Rule("topology spread", text(one, "topologyKey"), *group(one), skew, least, tainted, anywhere)
    for container in tables(spec, "containers"):
        for port in tables(container, "ports"):
            if port.get("hostPort"):
                bound = f"{port['hostPort']}/{port.get('protocol', 'TCP')}"
                yield Rule(f"host port {bound}", _HOST, bound)


def against_itself(term: Object, own: Object, namespace: object) -> bool:
    """True if a term of affinity selects pods that have the labels `own` and are in `namespace`."""
    spaces = words(term, "namespaces")
    here = namespace in spaces if spaces else term.get("namespaceSelector") in (None, {})
    apart = any(own.get(key) is not None for key in words(term, "mismatchLabelKeys"))
    return here and not apart and selects(term.get("labelSelector"), own)


def most(rule: Rule, pod: Object, nodes: Sequence[Object], fits: Sequence[int], away: Mapping[str, int]) -> int:
    """Largest number of pods of a group that a rule permits at once on otherwise empty nodes.

    Parameters
    ----------
    rule : Rule
    pod : Object
        A pod of the group.
    nodes : sequence
        All nodes, whether or not they accept pods.
    fits : sequence of int
        Number of pods that fit on each node; 0 if the node may not run them.
    away : mapping of str to int
        Pods of the group on nodes that accept no pods.
    """
    spec = {**({} if rule.anywhere else table(pod, "spec"))}
    spec["tolerations"] = [{"operator": "Exists"}] if rule.tainted else tables(pod, "spec.tolerations")
    counts = may_run({"spec": spec}, nodes)
    domains, free = defaultdict[str, int](int), 0
    for node, count, fit in zip(nodes, counts, fits, strict=True):
        domain = labels(node).get(rule.key, name_of(node) if rule.key == _HOST else None)
        if domain is None:  # nodes without the label are exempt from anti-affinity, and excluded by spread
            free += 0 if rule.skew else fit
        elif count or fit:
            domains[str(domain)] += fit + away.get(name_of(node), 0)
    if not rule.skew:
        return free + sum(count > 0 for count in domains.values())
    low = min(domains.values(), default=0) if len(domains) >= rule.least else 0
    return sum(min(count, low + rule.skew) for count in domains.values())
