"""Claims of pods on devices and volumes: the requests that they add, and the nodes that can satisfy them.

Source: the Kubernetes documentation, "Dynamic Resource Allocation", "Persistent Volumes", and the API types of
`resource/v1` (some fields have other paths in `v1beta1`).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property, partial
from itertools import chain

from ._kube import Key, Object, at, in_terms, labels, name_of, table, tables, text, whole
from ._snapshot import Amounts

_DRIVER = re.compile(r"""device\.driver\s*==\s*["']([^"']+)["']""")
_ATTRIBUTE = re.compile(r"""device\.attributes\[["']([^"']+)["']\]\.(\w+)\s*==\s*["']?([^"']+?)["']?""")
_ZONES = r"(topology|failure-domain\.beta)\.kubernetes\.io/(zone|region)"


@dataclass
class Claims:
    """Claims of the pods of a snapshot.

    Attributes
    ----------
    known : mapping of keys to objects
        Objects by kind, namespace and name.
    slices : sequence
        ResourceSlices.
    unknown : mapping of str to list of str
        Remarks on data that could not be used, each with the pods or classes concerned.
    """

    known: Mapping[Key | None, Object]
    slices: Sequence[Object]
    unknown: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    _uses: Counter[Key] = field(default_factory=Counter)

    def use(self, pod: Object) -> None:
        """Record a pod as a user of its claims, since the devices of a shared claim are divided among its pods."""
        self._uses.update(name for name, _ in _claims(pod) if name[2])

    def devices(self, pod: Object) -> Amounts:
        """Number of devices that a pod claims, by the resource name of their class.

        A shared claim is divided equally among its pods. Devices that no node offers are not counted, and remarked.
        """
        found: Amounts = Counter()
        for name, template in _claims(pod):
            asked = self._requests(self.known.get(name) or at(self.known.get(template), "spec"))
            for what, count in asked.items():
                found[what] += Decimal(count) / max(self._uses[name], 1)
            if not (asked and {*asked} <= {*chain(*self.offers.values())}):
                what = "Pods claim devices, and the claim or the ResourceSlices with such devices are not in the file"
                self.unknown[f"{what}; they are not counted"].append(name_of(pod))
        return Counter({what: count for what, count in found.items() if what in {*chain(*self.offers.values())}})

    def _requests(self, claim: object) -> Amounts:
        """Number of devices of a claim by resource: as allocated, otherwise as requested in the first alternative."""
        asked, classes = Counter[str](), dict[str, str]()
        for request in tables(claim, "spec.devices.requests"):
            exact = (*tables(request, "firstAvailable"), table(request, "exactly") or request)[0]
            if text(exact, "deviceClassName") and not exact.get("adminAccess"):
                name = classes[text(request, "name")] = self._resource(text(exact, "deviceClassName"))
                asked[name] += whole(exact, "count", 1)
        given = [text(one, "request") for one in tables(claim, "status.allocation.devices.results")]
        return Counter(classes[name] for one in given if (name := one.partition("/")[0]) in classes) or asked

    def _resource(self, kind: str) -> str:
        """Resource name of a device class: the extended resource that it declares, or otherwise its own name."""
        return text(self.known.get(("DeviceClass", "", kind)), "spec.extendedResourceName") or kind

    @cached_property
    def offers(self) -> Mapping[str, Amounts]:
        """Number of devices by node and resource, in the newest generation of each pool.

        There is a resource for each class of the file, and for each driver a class of all its devices.
        """
        age = partial(whole, path="spec.pool.generation")
        pools = [(text(one, "spec.driver"), text(one, "spec.pool.name"), one) for one in sorted(self.slices, key=age)]
        newest = {pool[:2]: age(pool[2]) for pool in pools}
        found: Mapping[str, Amounts] = defaultdict(Counter)
        named = [key[2] for key in self.known if key and key[0] == "DeviceClass"]
        for name in {*named, *(driver for driver, _ in newest)}:
            wanted = self._wanted(name)
            for driver, pool, one in pools:
                for device in tables(one, "spec.devices") if age(one) == newest[driver, pool] else ():
                    node = text(device, "nodeName") or text(one, "spec.nodeName")
                    if node and wanted.items() <= _facts(driver, device).items():
                        found[node][self._resource(name)] += 1
        return found

    def _wanted(self, kind: str) -> dict[str, str]:
        """Driver and attributes that a class requires; without known conditions, the name of the class is the driver.

        Conditions that are not understood are remarked and count as met.
        """
        found = {}
        for selector in tables(self.known.get(("DeviceClass", "", kind)), "spec.selectors"):
            for part in text(selector, "cel.expression").split("&&"):
                if driver := _DRIVER.fullmatch(part.strip(" ()\n")):
                    found["driver"] = driver[1]
                elif attribute := _ATTRIBUTE.fullmatch(part.strip(" ()\n")):
                    found[f"{attribute[1]}/{attribute[2]}"] = attribute[3]
                else:
                    self.unknown["Conditions of a DeviceClass that are not understood count as met"].append(kind)
        return found or {"driver": kind}

    def nodes(self, pod: Object, nodes: Sequence[Object]) -> list[bool]:
        """Mask of nodes on which a pod has access to its bound volumes, by node affinity and zones of the volumes.

        A volume that is not in the file restricts no node, and is remarked.
        """
        may = [True] * len(nodes)
        for claim in volume_claims(pod):
            found = self.known.get(("PersistentVolumeClaim", text(pod, "metadata.namespace"), claim))
            volume = self.known.get(("PersistentVolume", "", text(found, "spec.volumeName")))
            if volume is None and not (found and not text(found, "spec.volumeName")):
                what = "Pods use volumes whose claim or volume is not in the file; they may run on fewer nodes"
                self.unknown[what].append(name_of(pod))
            elif volume is not None:
                terms = at(volume, "spec.nodeAffinity.required") and tables(
                    volume, "spec.nodeAffinity.required.nodeSelectorTerms"
                )
                zones = [
                    (key, str(zone).split("__")) for key, zone in labels(volume).items() if re.fullmatch(_ZONES, key)
                ]
                may = [one and (terms is None or in_terms(terms, node))
                       and all(str(labels(node).get(key)) in some for key, some in zones)
                       for one, node in zip(may, nodes, strict=True)]  # fmt: skip
        return may


def _claims(pod: Object) -> Iterator[tuple[Key, Key]]:
    """Yield the key of each claim of a pod on devices, with the key of the template from which it is created."""
    if not at(pod, "spec.resourceClaims"):
        return
    space = text(pod, "metadata.namespace")
    made = {text(one, "name"): text(one, "resourceClaimName") for one in tables(pod, "status.resourceClaimStatuses")}
    for one in tables(pod, "spec.resourceClaims"):
        claim = text(one, "resourceClaimName") or made.get(text(one, "name"), "")
        yield ("ResourceClaim", space, claim), ("ResourceClaimTemplate", space, text(one, "resourceClaimTemplateName"))


def volume_claims(pod: Object) -> list[str]:
    """Names of the claims on volumes of a pod; names for ephemeral volumes are formed from the name of the pod."""
    volumes = tables(pod, "spec.volumes")
    own = [f"{name_of(pod)}-{one.get('name')}" for one in volumes if one.get("ephemeral")]
    return own + [name for one in volumes if (name := text(one, "persistentVolumeClaim.claimName"))]


def _facts(driver: str, device: Object) -> dict[str, str]:
    """Driver and attributes of a device; names of attributes are qualified by their domain, or by the driver."""
    facts = {"driver": driver}
    for name, given in (table(device, "attributes") or table(device, "basic.attributes")).items():
        for value in table({name: given}, f"[{name}]").values():
            facts[name if "/" in name else f"{driver}/{name}"] = (
                str(value).lower() if isinstance(value, bool) else str(value)
            )
    return facts
