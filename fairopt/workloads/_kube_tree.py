"""Trees of queues of Kubernetes: Kueue, Volcano, KAI, and namespaces with a ResourceQuota.

Source: as in `_kube_queues`; the documentation of Kueue, "Cohort" and "Fair Sharing"; of Volcano, "Hierarchical Queue"
and the design document of its plug-in hdrf; of KAI, "Scheduling Queues".
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from ..base import files
from ..base.errors import DataError
from ._kube import Object, amounts, at, key_of, name_of, table, tables, text, units
from ._snapshot import GIB, Amounts, Key, quantity

#: Kinds whose objects are queues, with the kind of their parents and the fields of parent and weight.
_KINDS = {
    "ClusterQueue": ("Cohort", ("spec.cohortName", "spec.cohort"), "spec.fairSharing.weight"),
    "Cohort": ("Cohort", ("spec.parentName", "spec.parent"), "spec.fairSharing.weight"),
    "Queue": ("Queue", ("spec.parent",), "spec.weight"),
    "Queue.scheduling.run.ai": ("Queue.scheduling.run.ai", ("spec.parentQueue",), ""),
}
_PATH = "metadata.annotations[volcano.sh/hierarchy]"
_WEIGHTS = "metadata.annotations[volcano.sh/hierarchy-weights]"
#: Resources of KAI, by which weights are looked for, with their names and units in Kubernetes.
_KAI = {"gpu": ("nvidia.com/gpu", 1.0), "cpu": ("cpu", 1e-3), "memory": ("memory", 1e6 / float(GIB))}
#: Default priority of KAI.
_USUAL = 100.0
_KUEUE = ("ClusterQueue", "Cohort")
_ENDLESS = Decimal("Infinity")
Entry = dict[str, Any]
#: Remarks on data that cannot be expressed, with the queues concerned.
Remarks = Mapping[str, list[str]]


def queues(objects: Mapping[str, Sequence[Object]], remarks: Remarks) -> dict[Key, Entry]:
    """Queues of a snapshot by key, with the fields of `Queue`."""
    found: dict[Key, Entry] = defaultdict(dict)
    for kind, (above, parents, weight) in _KINDS.items():
        for one in objects.get(kind, ()):
            with files.inside(f"{kind} {name_of(one)!r}"):
                entry = found[key_of(kind, one)]
                parent = next(filter(None, (text(one, path) for path in parents)), "")
                entry["parent"] = (above, "", parent) if parent and (kind, parent) != ("Queue", "root") else None
                if weight and (given := at(one, weight)) is not None:
                    entry["weight"] = float(quantity(given))
                if kind == "Queue":
                    _volcano(one, entry, found)
                elif not weight:
                    _kai(one, entry, remarks)
    _kueue(objects, found, remarks)
    hard: dict[str, dict[str, Decimal]] = defaultdict(dict)
    for one in objects.get("ResourceQuota", ()):
        if not (at(one, "spec.scopes") or at(one, "spec.scopeSelector")):
            limit = hard[name_of(one, "namespace")]
            for what, amount in amounts(one, "spec.hard").items():
                name = what.removeprefix("requests.").removeprefix("count/")
                limit[name] = min(limit.get(name, amount), amount)
    found |= {("Namespace", space): {"limit": _in_units(limit)} for space, limit in hard.items()}
    for one in objects.get("LocalQueue", ()):
        if (given := at(one, "spec.fairSharing.weight")) is not None:
            found["Namespace", name_of(one, "namespace"), name_of(one)]["weight"] = float(quantity(given))
    return found


def _in_units(given: Mapping[str, Decimal]) -> dict[str, float]:
    return {what: units(what, amount) for what, amount in given.items() if amount < _ENDLESS}


def _volcano(queue: Object, entry: Entry, found: dict[Key, Entry]) -> None:
    """Bounds and priority of a queue of Volcano, and the queues above it that its annotation names."""
    entry["priority"] = float(quantity(at(queue, "spec.priority") or 0))
    entry["quota"] = _in_units(amounts(queue, "spec.deserved") | amounts(queue, "spec.guarantee.resource"))
    entry["limit"] = _in_units(amounts(queue, "spec.capability"))
    path, weights = (text(queue, where).strip("/").split("/") for where in (_PATH, _WEIGHTS))
    keys = [("hierarchy", *path[1 : k + 1]) for k in range(1, len(path) - 1)]
    for k, key in enumerate([*keys, None] if len(path) > 1 else ()):
        of = found[key] if key else entry
        of["parent"] = keys[k - 1] if k else None
        if k + 1 < len(weights):
            of["weight"] = float(quantity(weights[k + 1]))


def _kai(queue: Object, entry: Entry, remarks: Remarks) -> None:
    """Bounds, weight and priority of a queue of KAI; -1 is no bound."""
    entry["priority"] = _number(at(queue, "spec.priority"), _USUAL) - _USUAL
    asked = {one: table(queue, f"spec.resources.{one}") for one in _KAI}
    weights = [_number(one["overQuotaWeight"], 1.0) for one in asked.values() if "overQuotaWeight" in one]
    entry |= {"weight": weights[0]} if weights else {}
    if len({*weights}) > 1:
        what = "Queues of KAI whose weights differ by resource count with the first of GPU, CPU, memory"
        remarks[what].append(name_of(queue))
    for bound in ("quota", "limit"):
        given = {one: _number(fields.get(bound), -1.0) for one, fields in asked.items()}
        entry[bound] = {_KAI[one][0]: amount * _KAI[one][1] for one, amount in given.items() if amount >= 0}
    if any(fields.get("quota") == -1 for fields in asked.values()):
        remarks["Queues of KAI with a quota of -1, for all there is, count as without a quota"].append(name_of(queue))


def _number(value: object, default: float) -> float:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e20:
        raise DataError(f"{str(value)[:40]!r} is not a number")
    return float(value)


def _kueue(objects: Mapping[str, Sequence[Object]], found: dict[Key, Entry], remarks: Remarks) -> None:
    """Quotas of Kueue, summed over flavors, and the limits that follow from them.

    A cohort guarantees the sum of the quotas below it, which is all that it has if nothing is above it. A queue without
    a cohort borrows nothing, others up to their limits, and at the top not what their siblings do not lend.
    """
    total, kept, withheld, most = (defaultdict[Key | None, Amounts](Counter) for _ in range(4))
    for one_key, one in [(key_of(kind, one), one) for kind in _KUEUE for one in objects.get(kind, ())]:
        for what, nominal, borrows, lends in _flavors(one):
            for above in _path(one_key, found):
                total[above][what] += nominal
            most[one_key][what] += borrows
            if lends < nominal:
                kept[one_key][what] += nominal - lends
                withheld[found[one_key]["parent"]][what] += nominal - lends
                what_is = "Queues do not lend all that they leave; several others together may seem to get it"
                remarks[what_is].append(one_key[-1])
    for key in [key for key in dict.fromkeys([*total, *found]) if key and key[0] in _KUEUE]:
        limit: dict[str, Decimal] = dict(total[key])
        parent: Key | None = found[key].get("parent")
        for what in total[parent] if parent else ():
            hidden = withheld[parent][what] - kept[key][what]
            nearest = hidden and not found.get(parent or key, {}).get("parent")
            limit[what] = min(total[key][what] + most[key].get(what, _ENDLESS),
                              total[parent][what] - hidden if nearest else _ENDLESS)  # fmt: skip
        found[key] |= {"quota": _in_units(total[key]), "limit": _in_units(limit)}


def _path(key: Key | None, found: Mapping[Key, Entry]) -> Iterator[Key]:
    """A queue and those above it."""
    passed = set[Key]()
    while key is not None and key not in passed:
        passed.add(key)
        yield key
        key = found.get(key, {}).get("parent")


def _flavors(queue: Object) -> Iterator[tuple[str, Decimal, Decimal, Decimal]]:
    """Resources of a queue by flavor, with nominal quota and the limits of borrowing and lending."""
    for group in tables(queue, "spec.resourceGroups"):
        for flavor in tables(group, "flavors"):
            for one in tables(flavor, "resources"):
                given = [at(one, what) for what in ("nominalQuota", "borrowingLimit", "lendingLimit")]
                borrows, lends = (_ENDLESS if amount is None else quantity(amount) for amount in given[1:])
                yield text(one, "name"), quantity(given[0] or 0), borrows, lends
