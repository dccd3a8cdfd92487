"""Kubernetes' objects as a scheduler sees them: quantities, what a pod requests, which nodes it may run on.

Source: the Kubernetes documentation, "Resource Management for Pods and Containers", "Init Containers", "Pod Overhead",
"Assigning Pods to Nodes", "Taints and Tolerations".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from ..errors import DataError

Object = Mapping[str, Any]
Amounts = dict[str, Decimal]

_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:([eE][+-]?[0-9]{1,3})|([numkMGTPE]|[KMGTPE]i))?")
_UNITS = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {unit: 1024 ** (k + 1) for k, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))}
#: No amount of anything is larger: an exabyte of bytes, in thousandths.
_MOST = Decimal(10) ** 21


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
    return {str(name): quantity(value) for name, value in one(table, "a table of resources").items()}


def requests(pod: Object) -> Amounts:
    """What a pod asks for, `pods: 1` included.

        max(sum of containers and sidecars, max over init containers of itself and the sidecars before) + overhead

    A sidecar is an init container that is restarted always. A limit stands in where a request is missing; requests of
    the pod as a whole come before those of its containers.
    """
    spec = one(pod.get("spec"), "spec")
    total: Amounts = {}
    for container in several(spec.get("containers"), "containers"):
        add(total, _asked(container))
    sidecars: Amounts = {}
    most: Amounts = {}
    for container in several(spec.get("initContainers"), "initContainers"):
        if container.get("restartPolicy") == "Always":
            add(sidecars, _asked(container))
            at_once = sidecars
        else:
            at_once = _sum(sidecars, _asked(container))
        most = {name: max(most.get(name, Decimal()), at_once.get(name, Decimal())) for name in {*most, *at_once}}
    add(total, sidecars)
    total = {name: max(total.get(name, Decimal()), most.get(name, Decimal())) for name in {*total, *most}}
    total |= _asked(spec)
    add(total, amounts(spec.get("overhead")))
    return total | {"pods": Decimal(1)}


def may_run(pod: Object, nodes: Iterable[Object]) -> list[bool]:
    """Which nodes a pod may run on: nodeSelector, required node affinity, taints it does not tolerate."""
    spec = one(pod.get("spec"), "spec")
    wanted = one(spec.get("nodeSelector"), "nodeSelector")
    affinity = one(one(spec.get("affinity"), "affinity").get("nodeAffinity"), "nodeAffinity")
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = None if required is None else several(one(required, "node affinity").get("nodeSelectorTerms"), "terms")
    tolerations = several(spec.get("tolerations"), "tolerations")
    return [
        all(labels(node).get(name) == value for name, value in wanted.items())
        and (terms is None or any(_term(term, node) for term in terms))
        and all(_tolerated(taint, tolerations) for taint in _taints(node))
        for node in nodes
    ]


def placement_key(pod: Object) -> tuple[str, ...]:
    """Equal for pods that may run on the same nodes because they say the same."""
    spec = one(pod.get("spec"), "spec")
    affinity = one(spec.get("affinity"), "affinity").get("nodeAffinity")
    return tuple(repr(part) for part in (spec.get("nodeSelector"), affinity, spec.get("tolerations")))


def labels(thing: Object) -> Object:
    """The labels of an object."""
    return one(one(thing.get("metadata"), "metadata").get("labels"), "labels")


def name(thing: Object) -> str:
    """The name of an object.

    Raises
    ------
    DataError
        It has none.
    """
    found = one(thing.get("metadata"), "metadata").get("name")
    if not isinstance(found, str) or not found:
        raise DataError(f"an object of kind {thing.get('kind')!r} has no metadata.name")
    return found


def one(value: object, what: str) -> Object:
    """A table of an object; an empty one if it is not there."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise DataError(f"{what} is {str(value)[:40]!r}; it must be a table")
    return value


def several(value: object, what: str) -> list[Object]:
    """A list of tables; an empty one if it is not there."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, Mapping) for each in value):
        raise DataError(f"{what} is {str(value)[:40]!r}; it must be a list of tables")
    return value


def _asked(container: Object) -> Amounts:
    resources = one(container.get("resources"), "resources")
    return amounts(resources.get("limits")) | amounts(resources.get("requests"))


def add(into: Amounts, more: Amounts) -> None:
    """Add amounts to others."""
    for what, amount in more.items():
        into[what] = into.get(what, Decimal()) + amount


def _sum(first: Amounts, other: Amounts) -> Amounts:
    found = dict(first)
    add(found, other)
    return found


def _taints(node: Object) -> list[Object]:
    taints = several(one(node.get("spec"), "spec").get("taints"), "taints")
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
    expressions = several(term.get("matchExpressions"), "matchExpressions")
    fields = several(term.get("matchFields"), "matchFields")
    if not expressions and not fields:
        return False
    own = {"metadata.name": name(node)}
    return all(_matches(each, labels(node)) for each in expressions) and all(_matches(each, own) for each in fields)


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
