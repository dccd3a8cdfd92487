"""Kubernetes' snapshots: quantities, requests, placement, weights; damaged ones get a clear error."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up import drawn

import fairopt as fo
from fairopt.errors import DataError
from fairopt.workloads.kubernetes import items, may_run, quantity, requests, snapshot

Object = dict[str, Any]
GPU = "nvidia.com/gpu"


def node(name: str, has: Object, taints: list[Object] | None = None, ready: str = "True", **labels: str) -> Object:
    conditions = [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": ready}]
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {} if taints is None else {"taints": taints},
        "status": {"allocatable": has, "conditions": conditions},
    }


def pod(namespace: str, name: str, asks: Object | None = None, host: str = "", **spec: Any) -> Object:
    containers = [{"name": "main", "resources": {"requests": asks or {}}}]
    return {
        "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"containers": containers} | ({"nodeName": host} if host else {}) | spec,
        "status": {"phase": "Running" if host else "Pending"},
    }


def prod(name: str) -> Object:
    return {"metadata": {"namespace": "web", "name": name,
                         "annotations": {"scheduling.volcano.sh/queue-name": "prod"}}}  # fmt: skip


AGENT = {"namespace": "tools", "name": "agent", "ownerReferences": [{"kind": "DaemonSet", "name": "agent"}]}
NODES = [
    node("plain", {"cpu": "16", "memory": "64Gi", "pods": "110"}),
    node(
        "gpu",
        {"cpu": "32", "memory": "131072Mi", "pods": "110", GPU: "4"},
        [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}],
        model="t4",
    ),
    node("gone", {"cpu": "8", "memory": "8Gi"}, ready="Unknown"),
    node("drained", {"cpu": "8", "memory": "8Gi"}) | {"spec": {"unschedulable": True}},
]
PODS = [
    pod("web", "a", {"cpu": "500m", "memory": "1Gi"}, "plain") | prod("a"),
    pod("web", "b", {"cpu": "0.5", "memory": "1024Mi"}) | prod("b"),
    pod("ml", "train", {"cpu": "4", "memory": "16Gi", GPU: "1"}, "gpu", tolerations=[{"operator": "Exists"}],
        nodeSelector={"model": "t4"}),
    pod("ml", "clean", {"cpu": "1", "memory": "1Gi"}),
    pod("kube-system", "dns", {"cpu": "100m", "memory": "70Mi"}, "plain"),
    pod("tools", "agent", {"cpu": "1", "memory": "1Gi"}, "plain") | {"metadata": AGENT},
    pod("web", "old", {"cpu": "9"}, "plain") | {"status": {"phase": "Succeeded"}},
]  # fmt: skip
WEIGHTS = [
    {"kind": "Queue", "metadata": {"name": "prod"}, "spec": {"weight": 3}},
    {"kind": "ClusterQueue", "metadata": {"name": "research"}, "spec": {"fairSharing": {"weight": "500m"}}},
    {"kind": "LocalQueue", "metadata": {"name": "q", "namespace": "ml"}, "spec": {"clusterQueue": "research"}},
    {"kind": "Route", "metadata": {"name": "s", "namespace": "web"}},
]


def written(path: Path, objects: list[Object]) -> Path:
    path.write_text(json.dumps({"apiVersion": "v1", "items": objects, "kind": "List", "metadata": {}}))
    return path


def test_a_snapshot_becomes_a_cluster(tmp_path: Path) -> None:
    path = written(tmp_path / "snap.json", [*NODES, *PODS, *WEIGHTS])
    found = fo.open_source(f"kubernetes:{path}")
    cluster = found.cluster
    assert cluster.servers == ("plain", "gpu")
    assert cluster.resources == ("cpu", "memory", GPU, "pods")
    # The agent of a DaemonSet and the pod of a system namespace are not there to be shared.
    np.testing.assert_allclose(cluster.capacity[0], [16 - 0.1 - 1, 64 - 70 / 1024 - 1, 0, 108])
    np.testing.assert_allclose(cluster.capacity[1], [32, 128, 4, 110])
    assert cluster.users == ("ml/4 cpu, 16GiB, 1 gpu", "ml/1 cpu, 1GiB", "web")
    np.testing.assert_allclose(cluster.demand, [[4, 16, 1, 1], [1, 1, 0, 1], [0.5, 1, 0, 1]])
    assert cluster.max_tasks.tolist() == [1, 1, 2]
    assert cluster.eligible.tolist() == [[False, True], [True, False], [True, False]]
    shared = fo.open_source(f"kubernetes:{path}?weights=shared&max_tasks=no").cluster
    assert shared.weight.tolist() == cluster.weight.tolist() == [0.25, 0.25, 3]
    assert np.isinf(shared.max_tasks).all()
    assert {
        "nodes that are not ready, left out": 1,
        "nodes that are not schedulable, left out": 1,
        "pods that have ended, left out": 1,
        "pods running": 2,
        "pods pending": 2,
        "pods of the system, taken off their nodes": 2,
        "objects of kind Route, left out": 1,
    }.items() <= found.report.items()


def test_yaml_is_the_same(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    path = written(tmp_path / "snap.json", [*NODES, *PODS, *WEIGHTS])
    lists = [{"items": NODES}, {"items": [*PODS, *WEIGHTS]}]
    path.with_suffix(".yaml").write_text(yaml.safe_dump_all(lists))
    one, other = (fo.open_source(f"kubernetes:{path.with_suffix(suffix)}").cluster for suffix in (".yaml", ".json"))
    assert one == other


def test_yaml_that_stands_for_more_than_it_says_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    levels = (f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]" for k in range(1, 10))
    (tmp_path / "bomb.yaml").write_text("\n".join(["a0: &a0 {kind: Pod}", *levels, "items: *a9"]))
    with pytest.raises(DataError, match=r"bomb.yaml line 2 is an alias of what is written elsewhere; write it with"):
        fo.open_source(f"kubernetes:{tmp_path / 'bomb.yaml'}")


def test_pods_that_nobody_may_run_are_left_out_by_name() -> None:
    lost = pod("lost", "x", {"cpu": "1"}, nodeSelector={"disk": "nvme"})
    found = snapshot([*NODES, *PODS, lost], "here")
    assert found.left_out == {"lost": "no node may run it"}
    with pytest.raises(DataError, match="no node may run any of the pods"):
        snapshot([*NODES, lost], "here")


@pytest.mark.parametrize(
    ("text", "value"),
    [("100m", "0.1"), ("1Gi", 1024**3), ("2e3", 2000), ("1.5", "1.5"), ("128974848", 128974848), ("1E", 10**18),
     ("500n", "5e-7"), ("12k", 12000), ("0", 0), (".5", "0.5"), (4, 4), ("1e-3", "0.001"), ("3Ki", 3072)],
)  # fmt: skip
def test_quantities_are_exact(text: Any, value: Any) -> None:
    assert quantity(text) == Decimal(value)


@pytest.mark.parametrize(
    "text", ["1 Gi", "", "Gi", "-1", "1e99", "1KB", None, True, [], "0x10", "\u0661", "1e999999999", "nan"]
)
def test_what_is_no_quantity_is_refused(text: Any) -> None:
    with pytest.raises(DataError, match="quantity"):
        quantity(text)


def test_requests_of_a_pod() -> None:
    def asks(cpu: str, **more: Any) -> Object:
        return {"resources": {"requests": {"cpu": cpu}}} | more

    def cpu_of(**spec: Any) -> Decimal:
        return requests({"spec": spec})["cpu"]

    assert cpu_of(containers=[asks("1"), asks("500m")]) == Decimal("1.5")
    assert cpu_of(containers=[asks("1")], initContainers=[asks("4")]) == 4
    sidecar = asks("2", restartPolicy="Always")
    assert cpu_of(containers=[asks("1")], initContainers=[sidecar, asks("3")]) == 5
    assert cpu_of(containers=[asks("9")], initContainers=[sidecar, asks("3")]) == 11
    assert cpu_of(containers=[asks("1")], initContainers=[asks("3"), sidecar]) == 3
    assert cpu_of(containers=[asks("1")], overhead={"cpu": "250m"}) == Decimal("1.25")
    assert cpu_of(containers=[asks("1")], resources={"requests": {"cpu": "7"}}) == 7
    assert cpu_of(containers=[{"resources": {"limits": {"cpu": "3"}}}]) == 3
    assert requests({"spec": {}}) == {"pods": 1}


def affine(*expressions: Object, fields: list[Object] | None = None) -> Object:
    term = {"matchExpressions": list(expressions)} | ({"matchFields": fields} if fields else {})
    required = {"nodeSelectorTerms": [term]}
    return {"spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}}


@pytest.mark.parametrize(
    ("expression", "where"),
    [
        ({"key": "model", "operator": "In", "values": ["t4", "a100"]}, [True, False]),
        ({"key": "model", "operator": "NotIn", "values": ["t4"]}, [False, True]),
        ({"key": "model", "operator": "Exists"}, [True, False]),
        ({"key": "model", "operator": "DoesNotExist"}, [False, True]),
        ({"key": "rank", "operator": "Gt", "values": ["3"]}, [True, False]),
        ({"key": "rank", "operator": "Lt", "values": ["3"]}, [False, True]),
    ],
)
def test_expressions_of_affinity(expression: Object, where: list[bool]) -> None:
    nodes = [node("one", {}, model="t4", rank="5"), node("two", {}, rank="1")]
    assert may_run(affine(expression), nodes) == where
    named = affine(fields=[{"key": "metadata.name", "operator": "In", "values": ["two"]}])
    assert may_run(named, nodes) == [False, True]
    with pytest.raises(DataError, match="operator 'Near'"):
        may_run(affine({"key": "model", "operator": "Near"}), nodes)


@pytest.mark.parametrize(
    ("toleration", "runs"),
    [
        ({}, False),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "value": "yes"}, True),
        ({"key": "gpu", "value": "no"}, False),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"operator": "Exists"}, True),
    ],
)
def test_taints_keep_pods_away_unless_tolerated(toleration: Object, runs: bool) -> None:
    assert may_run({"spec": {"tolerations": [toleration]}}, NODES[1:2]) == [runs]


def test_items_of_several_lists_are_read_one_after_another(tmp_path: Path) -> None:
    objects, path = list(drawn(np.random.default_rng(3), 12, 60, 3)), tmp_path / "snap.json"
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):  # PowerShell writes the last two
        lists = [json.dumps({"items": some}, indent=4) for some in (objects[:9], [], objects[9:])]
        path.write_text("\n".join(lists), encoding=encoding)
        assert list(items(path)) == objects


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no list 'items'"),
        ('{"kind": "List"}', "has no list 'items'"),
        ('{"items": [{"kind": "Node"}, {"kind": ', "item 2 of items is cut off or damaged"),
        ('{"items": [3]}', "item 1 of items is '3'; it must be an object"),
        ('{"items": []}', "has no node that is ready"),
        ('{"items": [{"kind": "Pod", "metadata": 3, "status": {"phase": "Pending"}}]}', "Pod None: metadata is '3'"),
    ],
)
def test_damaged_files(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "snap.json").write_text(text)
    with pytest.raises(DataError, match=message):
        fo.open_source(f"kubernetes:{tmp_path / 'snap.json'}")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for name, message in (("none.json", "cannot read"), ("", "holds 0 snapshots")):
        with pytest.raises(DataError, match=message):
            fo.open_source(f"kubernetes:{tmp_path / name}")
