"""Claims of pods on devices and volumes: what they add to requests, and on which nodes they can be met.

Source: the Kubernetes documentation, "Dynamic Resource Allocation", "Persistent Volumes", and the API types of
`resource/v1` (`v1beta1` names some fields otherwise) and `storage/v1`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

from ._kube import Object, in_terms, labels, name_of, table, tables, whole
from ._snapshot import Amounts

_DRIVER = re.compile(r"""device\.driver\s*==\s*["']([^"']+)["']""")
_ATTRIBUTE = re.compile(r"""device\.attributes\[["']([^"']+)["']\]\.(\w+)\s*==\s*["']?([^"']+?)["']?""")
_ZONES = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_OLD = "failure-domain.beta.kubernetes.io/"


class Claims:
    """Claims of the pods of a snapshot, from its objects by kind.

    Attributes
    ----------
    unknown : dict of str to list of str
        What could not be used, with the pods or classes concerned.
    """

    def __init__(self, objects: Mapping[str, Sequence[Object]]) -> None:
        self._by_name: dict[tuple[str, Any, str], Object] = {
            (kind, table(one, "metadata").get("namespace"), name_of(one)): one
            for kind in ("ResourceClaim", "ResourceClaimTemplate", "PersistentVolumeClaim", "PersistentVolume",
                         "StorageClass", "DeviceClass") for one in objects.get(kind, ())
        }  # fmt: skip
        self._slices = objects.get("ResourceSlice", ())
        self._uses = Counter[tuple[str, Any, str]]()
        self.unknown: dict[str, list[str]] = defaultdict(list)

    def use(self, pod: Object) -> None:
        """Count a pod among those that share its claims."""
        self._uses.update(name for name, _ in self._claims(pod))

    def _claims(self, pod: Object) -> Iterator[tuple[tuple[str, Any, str], tuple[str, Any, str]]]:
        """Of each claim of a pod the claim itself and the template that it is made from."""
        namespace = table(pod, "metadata").get("namespace")
        made = {one.get("name"): one.get("resourceClaimName") for one in tables(pod, "status", "resourceClaimStatuses")}
        for one in tables(pod, "spec", "resourceClaims"):
            claim = one.get("resourceClaimName") or made.get(one.get("name"))
            template = one.get("resourceClaimTemplateName")
            yield ("ResourceClaim", namespace, str(claim)), ("ResourceClaimTemplate", namespace, str(template))

    def devices(self, pod: Object) -> Amounts:
        """Devices that a pod claims, by class; a claim that several pods share counts in equal parts."""
        found: Amounts = Counter()
        for name, template in self._claims(pod):
            if (claim := self._by_name.get(name)) is not None:
                for what, count in self._requests(claim):
                    found[what] += Decimal(count) / max(self._uses[name], 1)
            elif template in self._by_name:
                found.update(self._requests(table(self._by_name[template], "spec")))
            else:
                what = "Pods claim devices by a ResourceClaim that is not in the file; these devices are not counted"
                self.unknown[what].append(name_of(pod))
        return found

    def _requests(self, claim: Object) -> Amounts:
        """Devices of a claim by class: those allocated, else those requested; of alternatives the first."""
        asked: Amounts = Counter()
        classes: dict[str, str] = {}
        for request in tables(claim, "spec", "devices", "requests"):
            name, choices = str(request.get("name")), tables(request, "firstAvailable")
            classes |= {f"{name}/{one.get('name')}": self._resource(one.get("deviceClassName")) for one in choices}
            exact = (*choices, table(request, "exactly") or request)[0]
            if exact.get("deviceClassName") and not exact.get("adminAccess"):
                classes[name] = self._resource(exact["deviceClassName"])
                asked[classes[name]] += whole(exact.get("count"), "count", 1)
        results = tables(claim, "status", "allocation", "devices", "results")
        return Counter(classes[name] for one in results if (name := str(one.get("request"))) in classes) or asked

    def _resource(self, kind: object) -> str:
        """Name of the resource that stands for a class: the extended resource that it replaces, if any."""
        found = self._by_name.get(("DeviceClass", None, str(kind)), {})
        return str(table(found, "spec").get("extendedResourceName") or kind)

    def offered(self, asked: set[str]) -> dict[str, Amounts]:
        """Devices by node and class, of classes that are asked for or replace an extended resource."""
        newest = Counter[tuple[Any, Any]]()
        pools = [(table(one, "spec").get("driver"), table(one, "spec", "pool").get("name")) for one in self._slices]
        for key, one in zip(pools, self._slices, strict=True):
            newest[key] = max(newest[key], whole(table(one, "spec", "pool").get("generation"), "generation"))
        classes = {name: thing for (kind, _, name), thing in self._by_name.items() if kind == "DeviceClass"}
        classes |= {name: {} for name in asked - {self._resource(one) for one in classes}}
        found: dict[str, Amounts] = defaultdict(Counter)
        for name, thing in classes.items():
            meets = self._tests(name, thing)
            for key, one in zip(pools, self._slices, strict=True):
                spec = table(one, "spec")
                if whole(table(spec, "pool").get("generation"), "generation") == newest[key]:
                    for device in tables(spec, "devices"):
                        node = device.get("nodeName") or spec.get("nodeName")
                        if node and all(test(str(key[0]), device) for test in meets):
                            found[str(node)][self._resource(name)] += 1
        return found

    def _tests(self, name: str, thing: Object) -> list[Any]:
        """Conditions of a class on the driver and the attributes of devices; without any the driver's name is its."""
        tests: list[Any] = []
        for selector in tables(thing, "spec", "selectors"):
            for part in str(table(selector, "cel").get("expression")).split("&&"):
                if driver := _DRIVER.fullmatch(part.strip(" ()\n")):
                    tests.append(partial(_is_by, driver[1]))
                elif attribute := _ATTRIBUTE.fullmatch(part.strip(" ()\n")):
                    tests.append(partial(_has, attribute.groups()))
                else:
                    self.unknown["Conditions of a DeviceClass that are not understood count as met"].append(name)
        return tests or [partial(_is_by, name)]

    def nodes(self, pod: Object, nodes: Sequence[Object]) -> list[bool]:
        """Nodes from which a pod's volumes can be reached, by the nodes or zones of bound volumes."""
        may = [True] * len(nodes)
        for claim in volume_claims(pod):
            found = self._by_name.get(("PersistentVolumeClaim", table(pod, "metadata").get("namespace"), claim))
            spec = table(found or {}, "spec")
            volume = self._by_name.get(("PersistentVolume", None, str(spec.get("volumeName"))))
            if volume is not None:
                terms = table(volume, "spec", "nodeAffinity", "required")
                may = [one and (not terms or in_terms(tables(terms, "nodeSelectorTerms"), node)) and _near(volume, node)
                       for one, node in zip(may, nodes, strict=True)]  # fmt: skip
            elif found is None or spec.get("volumeName"):
                what = "Pods use volumes whose claim or volume is not in the file; they may run on fewer nodes"
                self.unknown[what].append(name_of(pod))
            elif kind := self._by_name.get(("StorageClass", None, str(spec.get("storageClassName")))):
                zones = []
                for term in tables(kind, "allowedTopologies"):
                    met = [{**one, "operator": "In"} for one in tables(term, "matchLabelExpressions")]
                    zones.append({"matchExpressions": met})
                may = [one and (not zones or in_terms(zones, node)) for one, node in zip(may, nodes, strict=True)]
        return may


def volume_claims(pod: Object) -> list[str]:
    """Names of the claims on volumes of a pod; those of ephemeral volumes are formed from its name."""
    found = []
    for one in tables(pod, "spec", "volumes"):
        if name := table(one, "persistentVolumeClaim").get("claimName"):
            found.append(str(name))
        elif one.get("ephemeral") and "name" in table(pod, "metadata"):
            found.append(f"{name_of(pod)}-{one.get('name')}")
    return found


def _near(volume: Object, node: Object) -> bool:
    """True if a node is in the zone and region that a volume's labels name."""
    for key in _ZONES:
        old = _OLD + key.rpartition("/")[2]
        zones = labels(volume).get(key, labels(volume).get(old))
        if zones is not None and labels(node).get(key, labels(node).get(old)) not in str(zones).split("__"):
            return False
    return True


def _is_by(driver: str, by: str, _: Object) -> bool:
    """True if a device is by this driver."""
    return by == driver


def _has(wanted: tuple[str, ...], driver: str, device: Object) -> bool:
    """True if a device has this value of an attribute, whose name is qualified unless it is the driver's."""
    domain, name, value = wanted
    attributes = table(device, "attributes") or table(device, "basic", "attributes")
    given = attributes.get(f"{domain}/{name}", attributes.get(name) if domain == driver else None)
    return isinstance(given, Mapping) and value in [str(one).lower() if isinstance(one, bool) else str(one)
                                                    for one in given.values()]  # fmt: skip
