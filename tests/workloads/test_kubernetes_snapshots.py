"""What is held, wanted and entitled in snapshots of Kubernetes, Kueue and Volcano; which fields are used or noted."""

from __future__ import annotations

import contextlib
import copy
import json
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairopt as fo
from fairopt.errors import DataError
from fairopt.workloads._fields import names, table
from fairopt.workloads.kubernetes import _kind as kind_of
from fairopt.workloads.kubernetes import items, snapshot
from workloads.test_damage import LEAVES, places
from workloads.test_kubernetes import Object, node, pod

LISTS = """Workload.podSets Workload.podSetAssignments JobSet.replicatedJobs Job.batch.volcano.sh.tasks
    ResourceSlice.devices"""
ONE = {"cpu": "1"}
TEMPLATE = {"spec": {"containers": [{"resources": {"requests": ONE}}]}}
DEVICE = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
CASES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("kubernetes_cases.toml").read_text())
LEGAL = CASES.pop("legal")["objects"]


def several(
    count: int, space: str, asks: Object, host: str, meta: Object, status: Object, spec: Object
) -> list[Object]:
    """Pods alike."""
    made = [pod(space, meta.get("name", f"{space}{host}{k}"), asks, host, **spec) for k in range(count)]
    return [one | {"metadata": one["metadata"] | meta, "status": one["status"] | status} for one in made]


def expanded(one: Any) -> list[Any]:
    """The objects that an entry stands for, or the value itself with templates of pods in place of their name."""
    if isinstance(one, dict) and "node" in one:
        has = {"cpu": one.get("cpu", "8"), "pods": "110"}
        made = node(one["node"], has, one.get("taints"), "True", **one.get("labels", {}))
        return [made | {"spec": made["spec"] | {"unschedulable": one.get("cordoned", False)}}]
    if isinstance(one, dict) and "in" in one:
        space, host, meta, status = one["in"], one.get("on", ""), one.get("meta", {}), one.get("status", {})
        like, spec = (space, one.get("asks", ONE), host), one.get("spec", {})
        if "pods" in one:
            return several(one["pods"], *like, meta | ({"name": one["name"]} if "name" in one else {}), status, spec)
        claims = [{"name": f"c{k}", "namespace": space} for k in range(one["claims"])]
        asked = {"devices": {"requests": [DEVICE | one.get("request", {})]}}
        pods = [[{"name": "gpu", "resourceClaimName": claim["name"]}] for claim in claims]
        return [{"kind": "ResourceClaim", "metadata": claim, "spec": asked} for claim in claims] + [
            each for k, claim in enumerate(pods)
            for each in several(1, *like, {"name": f"p{k}"}, {}, {"resourceClaims": claim})
        ]  # fmt: skip
    return [filled(one)]


def filled(value: Any) -> Any:
    """A value with templates of pods in place of their name."""
    if isinstance(value, dict):
        return {key: filled(one) for key, one in value.items()}
    return [*map(filled, value)] if isinstance(value, list) else TEMPLATE if value == "one cpu" else value


OBJECTS = {name: [one for entry in case["objects"] for one in expanded(entry)] for name, case in CASES.items()}
PLAIN = [*expanded({"node": "n1"}), *expanded({"pods": 2, "in": "a"})]


@pytest.mark.parametrize("name", CASES)
def test_what_is_entitled_held_waiting_and_capped(name: str, tmp_path: Path) -> None:
    """Capped tasks are listed with their reasons, in the notes too; of a pod in a file only known fields are read."""
    case, found = CASES[name], snapshot(OBJECTS[name], "here")
    (tmp_path / "here.json").write_text(json.dumps({"items": OBJECTS[name]}))
    assert outcome(items(tmp_path / "here.json")) == outcome(OBJECTS[name])
    mechanism = found.tree[0] or fo.DRFH()
    entitled = dict(zip(found.cluster.users, mechanism.solve(found.cluster).arrays.user_tasks, strict=True))
    assert entitled == pytest.approx(case["tasks"], abs=1e-4)
    assert found.placement is not None
    assert dict(zip(found.cluster.users, found.placement.sum(axis=1), strict=True)) == case["held"]
    assert found.waiting == case.get("waiting", found.waiting)
    assert found.capped == case.get("capped", found.capped)
    for user, reason in [(user, reason) for user, capped in found.capped.items() for reason in capped]:
        assert any(f"{reason}: " in note and f"{user} " in note for note in found.notes)


def test_weights_of_a_queue_are_shared_by_its_users() -> None:
    """Two namespaces of one queue have its weight together."""
    queue = {"meta": {"annotations": {"scheduling.volcano.sh/queue-name": "q"}}, "pods": 8}
    entries = [{"node": "n1"}, {"in": "s"} | queue, {"in": "t", "asks": {"cpu": "2"}} | queue, {"pods": 8, "in": "o"}]
    entries += [{"pods": 8, "in": "p"}, {"pods": 8, "in": "p", "asks": {"cpu": "2"}}]
    found = snapshot([one for entry in entries for one in expanded(entry)], "here", weights="shared")
    assert found.cluster.weight.tolist() == [1, 0.5, 0.5, 0.5, 0.5]


@pytest.mark.parametrize("entry", LEGAL, ids=str)
def test_one_legal_object_makes_nothing_unreadable(entry: Object) -> None:
    found = snapshot([*PLAIN, *expanded(entry)], "here")
    assert found.cluster.max_tasks[found.cluster.users.index("a")] == 2


@pytest.mark.parametrize("order", [1, -1])
def test_items_have_the_kind_of_their_list(tmp_path: Path, order: int) -> None:
    """Lists of the API name the kind once, before or after the items."""
    objects = [*expanded({"node": "n0"}), *PLAIN, *expanded({"pods": 1, "in": "b"})]
    bare = [{key: value for key, value in one.items() if key != "kind"} for one in objects]
    lists = [{"kind": kind, "apiVersion": "v1", "items": some}
             for kind, some in (("NodeList", bare[:2]), ("PodList", bare[2:]))]  # fmt: skip
    texts = [json.dumps(dict([*one.items()][::order])) for one in lists]
    path, whole = tmp_path / "snapshot.json", snapshot(objects, "here")
    path.write_text("\n".join(texts))
    assert fo.open_source(f"kubernetes:{path}").cluster == whole.cluster
    yaml = pytest.importorskip("yaml")
    path.unlink()
    path.with_suffix(".yaml").write_text(yaml.safe_dump_all(json.loads(json.dumps(lists))))
    assert fo.open_source(f"kubernetes:{path.with_suffix('.yaml')}").cluster == whole.cluster


KINDS = table("kubernetes")
USED = [(kind, path) for kind, of_kind in KINDS.items() for path in of_kind.get("used", ())]
NOTED = [(kind, path) for kind, of_kind in KINDS.items() for path in of_kind.get("noted", ())]


def outcome(objects: Iterable[Object]) -> object:
    """All that a snapshot says but for notes; or that it is an error."""
    try:
        found = snapshot(objects, "here", weights="shared")
    except DataError as error:
        return str(error)
    cluster = found.cluster
    tables_ = [cluster.demand, cluster.capacity, cluster.weight, cluster.max_tasks, cluster.eligible, found.placement]
    numbers = [np.asarray(one).tolist() for one in tables_]
    tree = None if found.queues is None else found.queues.to_dict()
    return cluster.users, cluster.resources, cluster.servers, numbers, found.waiting, found.capped, found.leaving, tree


def without(value: Any, path: tuple[str, ...]) -> Any:
    """A copy without a field."""
    if isinstance(value, list):
        return [without(one, path) for one in value]
    if not isinstance(value, dict) or path[0] not in value:
        return value
    rest = {key: one for key, one in value.items() if key != path[0]}
    return rest | ({path[0]: without(value[path[0]], path[1:])} if path[1:] else {})


@pytest.mark.parametrize(("kind", "path"), USED, ids=lambda one: one)
def test_fields_that_are_used_change_the_answer(kind: str, path: str) -> None:
    keys = names(path)
    for objects in OBJECTS.values():
        changed = [without(one, keys) if kind_of(one) == kind else one for one in objects]
        if changed != objects and outcome(changed) != outcome(objects):
            return
    pytest.fail("no case depends on this field")


def with_field(kind: str, path: str) -> Object:
    """An object that states one field."""
    *keys, last = names(path)
    value: Any = {last: 3} if last != ">1" else 3
    if path.endswith(f"[{last}]") and not {*"./"} & {*last} and last != ">1":
        value = last
    for key in reversed(keys):
        value = {"x" if key == "*" else key: [value] if f"{kind}.{key}" in LISTS else value}
    metadata = {"name": "it", "namespace": "a"} | value.pop("metadata", {})
    made = {"kind": kind.partition(".")[0], "metadata": metadata, "apiVersion": f"{KINDS[kind].get('group', '')}/v1"}
    made |= {"spec": {"containers": []} if kind == "Pod" else {}, "status": {}}
    return made | {key: made.get(key, {}) | one if isinstance(one, dict) else one for key, one in value.items()}


@pytest.mark.parametrize(("kind", "path"), NOTED, ids=lambda one: one)
def test_fields_that_are_not_used_get_a_note(kind: str, path: str) -> None:
    assert not snapshot(PLAIN, "here").notes
    notes = snapshot([*PLAIN, with_field(kind, path)], "here").notes
    assert f"{kind} {path} is not used: {KINDS[kind]['noted'][path]} (" in " ".join(notes)


def test_each_field_is_in_the_table_once() -> None:
    for of_kind in KINDS.values():
        fields = [*of_kind.get("used", ()), *of_kind.get("none", ()), *of_kind.get("noted", ())]
        assert len({*fields}) == len(fields) > 0


@settings(max_examples=100)
@given(st.data())
def test_damage_anywhere_gets_a_clear_error_or_a_cluster(data: st.DataObject) -> None:
    objects = copy.deepcopy(OBJECTS[data.draw(st.sampled_from([*OBJECTS]))])
    *path, last = data.draw(st.sampled_from(places(objects)[1:]))
    inside: Any = objects
    for key in path:
        inside = inside[key]
    inside[last] = data.draw(LEAVES)
    with contextlib.suppress(DataError):
        snapshot([one for one in objects if isinstance(one, dict)], "here")
