"""What is held, wanted and entitled in snapshots of Kubernetes, Kueue and Volcano; right values by hand.

Each input is the smallest that shows one kind of fault, with the value that its own rule gives.
"""

from __future__ import annotations

from typing import Any

import pytest

import fairopt as fo
from fairopt.workloads import Snapshot
from fairopt.workloads.kubernetes import snapshot
from workloads.test_kubernetes import Object, node, pod

CPU = {"cpu": "1"}
QUEUE = "kueue.x-k8s.io/queue-name"
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def several(count: int, space: str, asks: Object = CPU, host: str = "", meta: Any = (), **spec: Any) -> list[Object]:
    """Pods alike, with further metadata."""
    made = [pod(space, f"{space}{host}{k}", asks, host, **spec) for k in range(count)]
    return [one | {"metadata": one["metadata"] | dict(meta)} for one in made]


def nodes(count: int, cpu: str = "8", **labels: str) -> list[Object]:
    return [node(f"n{k + 1}", {"cpu": cpu, "pods": "110"}, None, "True", **labels) for k in range(count)]


def zoned(zones: str, cpu: str = "8") -> list[Object]:
    """A node in each zone of a text; a zone in capitals is cordoned."""
    made = [
        node(f"n{k}", {"cpu": cpu, "pods": "110"}, None, "True", **{ZONE: zone.lower()}) for k, zone in enumerate(zones)
    ]
    return [one | {"spec": {"unschedulable": zone.isupper()}} for one, zone in zip(made, zones, strict=True)]


def of(kind: str, name: str, space: str = "", status: Object | None = None, meta: Any = (), **spec: Any) -> Object:
    """An object; `api` among the fields of its spec is its version."""
    version = {"apiVersion": spec.pop("api")} if "api" in spec else {}
    metadata = {"name": name} | ({"namespace": space} if space else {}) | dict(meta)
    return {"kind": kind, "metadata": metadata, "spec": spec, "status": status or {}} | version


def sets(count: int, **spec: Any) -> list[Object]:
    template = {"spec": {"containers": [{"resources": {"requests": CPU}}]} | spec}
    return [{"name": "main", "count": count, "template": template}]


def job(count: int) -> Object:
    return {"parallelism": count, "template": sets(1)[0]["template"]}


def queues(**weights: Any) -> list[Object]:
    """For each name in `space_queue` form a LocalQueue and its ClusterQueue with this weight."""
    made = []
    for name, weight in weights.items():
        space, _, queue = name.partition("_")
        made.append(of("LocalQueue", queue, space, clusterQueue=f"cq-{queue}"))
        made.append(of("ClusterQueue", f"cq-{queue}", fairSharing={"weight": weight}))
    return made


def labelled(queue: str) -> Object:
    return {"labels": {QUEUE: queue}}


def apart(selector: Any = None, key: str = HOST, app: str = "w") -> Object:
    """Metadata and spec of pods with required anti-affinity, against themselves unless there is a selector."""
    term = {"topologyKey": key, "labelSelector": selector or {"matchLabels": {"app": app}}}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"meta": {"labels": {"app": app}}, "affinity": {"podAntiAffinity": rule}}


def spread(skew: int = 1, **more: Any) -> Object:
    rule = {"maxSkew": skew, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    rule |= {"labelSelector": {"matchLabels": {"app": "w"}}} | more
    return {"meta": {"labels": {"app": "w"}}, "topologySpreadConstraints": [rule]}


def resized(**more: Any) -> Object:
    """A pod that asks for one CPU, of which four are allocated."""
    four = {"name": "main", "allocatedResources": {"cpu": "4"}, "resources": {"requests": {"cpu": "4"}}}
    return pod("a", "r", CPU, "n1") | {"status": {"phase": "Running", "containerStatuses": [four | more]}}


def waits(message: str, pods: list[Object]) -> list[Object]:
    why = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return [one | {"status": one["status"] | {"conditions": [why]}} for one in pods]


def claimed(space: str, count: int, host: str = "", **spec: Any) -> list[Object]:
    claim = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}]}
    return several(count, space, host=host, **claim | spec)


def template(space: str, name: str = "one", **request: Any) -> Object:
    asked = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"} | request}
    return of("ResourceClaimTemplate", name, space, spec={"devices": {"requests": [asked]}})


def devices(host: str, count: int, **more: Any) -> Object:
    listed = [{"name": f"gpu{k}"} for k in range(count)]
    spec = {"driver": "gpu.example.com", "nodeName": host, "pool": {"name": host}, "devices": listed} | more
    return of("ResourceSlice", f"slice-{host}", **spec)


def volume(zone: str) -> Object:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    return of("PersistentVolume", f"pv-{zone}", nodeAffinity={"required": {"nodeSelectorTerms": [term]}})


def claim(zone: str, space: str = "a", **spec: Any) -> list[Object]:
    """A claim on a volume in a zone."""
    return [volume(zone), of("PersistentVolumeClaim", "data", space, volumeName=f"pv-{zone}", **spec)]


DATA = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
WAITS = {"conditions": [{"type": "QuotaReserved", "status": "False", "message": "insufficient unused quota"}]}
ADMITTED = {"conditions": [{"type": "Admitted", "status": "True"}]}
OWN_GATE = {"schedulingGates": [{"name": "example.com/wait"}]}
GATE = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}

#: By name the objects, what DRFH gives by user, and what runs or holds.
CASES: dict[str, tuple[list[Object], dict[str, float], dict[str, float]]] = {
    "K9 a resize in progress": (
        [*nodes(1), resized(), *several(8, "b")], {"a": 1, "b": 4}, {"a": 1, "b": 0},
    ),
    "K10 devices by claims": (
        [*nodes(2), devices("n1", 2), devices("n2", 2), template("a"), template("b"),
         *claimed("a", 2, "n1"), *claimed("a", 2), *claimed("b", 2, "n2"), *claimed("b", 2)],
        {"a": 2, "b": 2}, {"a": 2, "b": 2},
    ),
    "K11 what is being deleted holds and is not wanted": (
        [*nodes(1), *several(2, "a", host="n1", meta=DELETED), *several(2, "a", host="n1"), *several(8, "b")],
        {"a": 2, "b": 6}, {"a": 4, "b": 0},
    ),
    "K12 one a host": ([*nodes(2), *several(5, "w", **apart())], {"w": 2}, {"w": 0}),
    "K16 larger than any node": (
        [*nodes(1, "4"), *several(4, "a"), *several(1, "b", {"cpu": "8"})], {"a": 4, "b": 0}, {"a": 0, "b": 0},
    ),
    "Q1 a suspended job of Kueue": (
        [*nodes(1), *several(8, "a", host="n1"), of("Workload", "job", "b", WAITS, podSets=sets(8))],
        {"a": 4, "b": 4}, {"a": 8, "b": 0},
    ),
    "Q2 a queue of weight 0": (
        [*nodes(1), *queues(a_qa="0", b_qb="1"), *several(8, "a", meta=labelled("qa")),
         *several(5, "b", meta=labelled("qb"))],
        {"a": 3, "b": 5}, {"a": 0, "b": 0},
    ),
    "Q2 that others leave nothing": (
        [*nodes(1), *queues(a_qa="0", b_qb="1"), *several(8, "a", meta=labelled("qa")),
         *several(9, "b", meta=labelled("qb"))],
        {"a": 0, "b": 8}, {"a": 0, "b": 0},
    ),
    "Q3 the queue of the pod, not of the namespace": (
        [*nodes(1, "10"), *queues(s_qa="1", s_qb="9"), *several(10, "s", meta=labelled("qa")), *several(10, "o")],
        {"s": 5, "o": 5}, {"s": 0, "o": 0},
    ),
    "Q3 the other queue": (
        [*nodes(1, "10"), *queues(s_qb="9", s_qa="1"), *several(10, "s", meta=labelled("qb")), *several(10, "o")],
        {"s": 9, "o": 1}, {"s": 0, "o": 0},
    ),
    "Q6 queues of Volcano": (
        [*nodes(1), of("Queue", "big", weight=3), of("PodGroup", "g", "a", queue="big"),
         *several(8, "a", meta={"annotations": {"scheduling.k8s.io/group-name": "g"}}), *several(8, "b")],
        {"a": 6, "b": 2}, {"a": 0, "b": 0},
    ),
}  # fmt: skip


def entitled(found: Snapshot) -> dict[str, float]:
    return dict(zip(found.cluster.users, fo.DRFH().solve(found.cluster).arrays.user_tasks.tolist(), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_what_is_entitled_and_held(name: str) -> None:
    objects, tasks, held = CASES[name]
    found = snapshot(objects, "here")
    assert entitled(found) == pytest.approx(tasks, abs=1e-4)
    assert found.placement is not None
    assert dict(zip(found.cluster.users, found.placement.sum(axis=1), strict=True)) == held
