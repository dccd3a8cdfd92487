"""Trees of queues of Kubernetes: Kueue, Volcano, KAI, and namespaces with a ResourceQuota.

Source: the API types that `_kube_queues` names, and the documentation of Kueue ("Cohort", "Fair Sharing"), of Volcano
("Hierarchical Queue", and the design document of the plug-in hdrf), and of KAI ("Scheduling Queues").
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any

from ..base import files
from ._kube import Object, amounts, at, key_of, name_of, tables, text, units
from ._snapshot import Amounts, Key, path, quantity

_KUEUE, _SHARE = ("ClusterQueue", "Cohort"), ("spec.fairSharing.weight",)
_KAI = "Queue.scheduling.run.ai"
#: Resources of KAI queues, in the order in which their weights are read, with names and units in Kubernetes.
_UNITS = {"gpu": ("nvidia.com/gpu", Decimal(1)), "cpu": ("cpu", Decimal("1e-3")), "memory": ("memory", Decimal("1e6"))}
#: Kinds of queues: kind of the parent, fields with the name of the parent, and fields with the weight, of which the
#: first that is stated counts.
_KINDS = {
    "ClusterQueue": ("Cohort", ("spec.cohortName", "spec.cohort"), _SHARE),
    "Cohort": ("Cohort", ("spec.parentName", "spec.parent"), _SHARE),
    "Queue": ("Queue", ("spec.parent",), ("spec.weight",)),
    _KAI: (_KAI, ("spec.parentQueue",), tuple(f"spec.resources.{one}.overQuotaWeight" for one in _UNITS)),
}
_PATH, _WEIGHTS = (f"metadata.annotations[volcano.sh/{name}]" for name in ("hierarchy", "hierarchy-weights"))
_ENDLESS = Decimal("Infinity")
Entry = dict[str, Any]


def queues(objects: Mapping[str, Sequence[Object]], remarks: Mapping[str, list[str]]) -> dict[Key, Entry]:
    """Queues of a snapshot by key, with the fields of `model.queues.Queue`.

    Settings of queues that the fields cannot express are added to `remarks`.
    """
    found: dict[Key, Entry] = defaultdict(dict)
    for kind, (above, parents, weights) in _KINDS.items():
        for one in objects.get(kind, ()):
            with files.inside(f"{kind} {name_of(one)!r}"):
                entry = found[key_of(kind, one)]
                parent = next(filter(None, (text(one, path) for path in parents)), "")
                entry["parent"] = (above, "", parent) if parent and (kind, parent) != ("Queue", "root") else None
                shares = [float(quantity(share)) for path in weights if (share := at(one, path)) is not None]
                entry |= {"weight": shares[0]} if shares else {}
                if len({*shares}) > 1:
                    remarks["Queues whose weights differ by resource count with the first of these"].append(
                        name_of(one)
                    )
                if kind not in _KUEUE:
                    _bound(kind, one, entry, found)
                if any(at(one, f"spec.resources.{resource}.quota") == -1 for resource in _UNITS):
                    remarks["Queues with a quota of -1 (no limit) count as queues without a quota"].append(name_of(one))
    _kueue(objects, found, remarks)
    hard: dict[Key, dict[str, Decimal]] = defaultdict(dict)
    for one in objects.get("ResourceQuota", ()):
        for what, amount in amounts(one, "spec.hard").items() if not at(one, "spec.scopes") else ():
            limit, name = hard["Namespace", name_of(one, "namespace")], what.removeprefix("requests.")
            limit[name.removeprefix("count/")] = min(limit.get(name, amount), amount)
    for key, given in hard.items():
        found[key]["limit"] = _in_units(given)
    for one in objects.get("LocalQueue", ()):
        if (share := at(one, _SHARE[0])) is not None:
            found["Namespace", name_of(one, "namespace"), name_of(one)]["weight"] = float(quantity(share))
    return found


def _in_units(given: Mapping[str, Decimal]) -> dict[str, float]:
    return {what: units(what, amount) for what, amount in given.items() if amount < _ENDLESS}


def _bound(kind: str, queue: Object, entry: Entry, found: dict[Key, Entry]) -> None:
    """Add the bounds and priority of a queue of Volcano or KAI to `entry`.

    The queues above it that an annotation of Volcano names are added to `found`, with their weights and parents.
    """
    priority = at(queue, "spec.priority")
    usual = 100 if kind == _KAI else 0
    entry["priority"] = float(priority - usual) if isinstance(priority, int) else 0.0
    if kind == _KAI:
        for bound in ("quota", "limit"):
            given = {one: at(queue, f"spec.resources.{one}.{bound}") for one in _UNITS}
            stated = {_UNITS[one]: quantity(amount) for one, amount in given.items() if amount not in (None, -1)}
            entry[bound] = _in_units({name: amount * unit for (name, unit), amount in stated.items()})
        return
    entry["quota"] = _in_units(amounts(queue, "spec.deserved") | amounts(queue, "spec.guarantee.resource"))
    entry["limit"] = _in_units(amounts(queue, "spec.capability"))
    line, weights = (text(queue, where).strip("/").split("/") for where in (_PATH, _WEIGHTS))
    above = None
    for k in range(1, len(line)):
        key = ("hierarchy", *line[1 : k + 1])
        of = found[key] if k < len(line) - 1 else entry
        of |= {"parent": above} | ({"weight": float(quantity(weights[k]))} if k < len(weights) else {})
        above = key


def _kueue(objects: Mapping[str, Sequence[Object]], found: dict[Key, Entry], remarks: Mapping[str, list[str]]) -> None:
    """Add to `found` the quotas of Kueue, summed over flavors, and the limits that follow from them.

    The quota of a cohort is the sum of the quotas below it, which is also its limit if it has no parent. A queue
    without a cohort cannot borrow. Other queues borrow up to their limits; below a cohort without a parent they cannot
    borrow what their siblings do not lend.
    """
    total, kept, withheld, most = (defaultdict[Key | None, Amounts](Counter) for _ in range(4))
    for own, one in [(key_of(kind, one), one) for kind in _KUEUE for one in objects.get(kind, ())]:
        for what, nominal, borrows, lends in _flavors(one):
            for above in path(own, found):
                total[above][what] += nominal
            most[own][what] += borrows
            if lends < nominal:
                kept[own][what] += nominal - lends
                withheld[found[own]["parent"]][what] += nominal - lends
                said = "Queues do not lend all that they leave; several others together may seem to get it"
                remarks[said].append(own[-1])
    for key in [key for key in dict.fromkeys([*total, *found]) if key and key[0] in _KUEUE]:
        limit: dict[str, Decimal] = dict(total[key])
        parent: Key | None = found[key].get("parent")
        for what in total[parent] if parent else ():
            hidden = withheld[parent][what] - kept[key][what]
            nearest = hidden and not found.get(parent or key, {}).get("parent")
            limit[what] = min(total[key][what] + most[key].get(what, _ENDLESS),
                              total[parent][what] - hidden if nearest else _ENDLESS)  # fmt: skip
        found[key] |= {"quota": _in_units(total[key]), "limit": _in_units(limit)}


def _flavors(queue: Object) -> Iterator[tuple[str, Decimal, Decimal, Decimal]]:
    """Yield each resource of a queue by flavor: its name, nominal quota, and limits of borrowing and of lending.

    A limit that is not stated is infinite.
    """
    flavors = chain.from_iterable(tables(group, "flavors") for group in tables(queue, "spec.resourceGroups"))
    for one in chain.from_iterable(tables(flavor, "resources") for flavor in flavors):
        given = [at(one, what) for what in ("nominalQuota", "borrowingLimit", "lendingLimit")]
        borrows, lends = (_ENDLESS if amount is None else quantity(amount) for amount in given[1:])
        yield text(one, "name"), quantity(given[0] or 0), borrows, lends
