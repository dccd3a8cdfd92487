"""Is what runs fair? Verdicts by hand on snapshots of the shapes that operators have, and laws on random ones."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from made_up import kubernetes_like
from strategies import clusters
from workloads.test_kubernetes import node, pod

import fairopt as fo
from fairopt import metrics
from fairopt.app.cli import main
from fairopt.app.explorer import Session, State
from fairopt.app.explorer.standing import Standing, standing
from fairopt.app.explorer.verdict import next_starts
from fairopt.errors import DataError
from fairopt.harness.report.schemas import SCHEMAS
from fairopt.workloads import kubernetes, slurm

GPU = "nvidia.com/gpu"
CORES = {"cpu": "8", "memory": "64Gi", "pods": "110"}
ONE = {"cpu": "1", "memory": "1Gi"}
ANY = [{"operator": "Exists"}]
TAINT = [{"key": "gpu", "effect": "NoSchedule"}]


def several(count: int, namespace: str, asks: Any = ONE, host: str = "", **spec: Any) -> list[dict[str, Any]]:
    return [pod(namespace, f"{namespace}-{host}-{k}", asks, host, **spec) for k in range(count)]


def reported(objects: list[dict[str, Any]], mechanism: str = "drfh") -> Standing:
    snapshot = kubernetes.snapshot(objects, "here")
    return standing(snapshot.cluster, State(mechanism), snapshot=snapshot, compared=["tsf"])


DRAINED = [
    *(node(name, CORES) for name in ("n1", "n2")),
    node("n3", CORES) | {"spec": {"unschedulable": True}},
    *several(3, "web", host="n1"),
    *several(2, "web", host="n3"),
    *several(3, "web"),
    *several(5, "db", host="n1"),
    *several(8, "db", host="n2"),
]


def test_a_drained_node() -> None:
    """16 cores for 8 and 13 pods of a core: 8 each are due, and 3 and 13 run; 2 run on the node that goes."""
    found = reported(DRAINED)
    assert found.verdict == (
        "Under DRFH 1 of 2 users is below what it is entitled to: web, which runs 3 of 8 tasks, held back by cpu on n1 "
        "and n2; above at the cost of others: db by 5.",
        "The same users are below under TSF.",
    )
    users = found.users.set_index("user")
    numbers = ["running", "wanted", "DRFH", "satisfaction", "below"]
    assert users.loc["web", numbers].tolist() == pytest.approx([3, 8, 8, 3 / 8, 5])
    assert users["limited by"].tolist() == ["nothing: all its tasks run", "cpu on n1 and n2"]
    assert users["could give"].tolist() == ["", "db 5"]
    away = "2 running on nodes that are left out (drained, not ready) or not named, counted as waiting: web 2."
    assert away in found.notes
    measured = found.measures.loc[found.measures["state"] == "running", ["satisfaction", "distance", "complaints"]]
    assert measured.to_numpy().tolist() == [pytest.approx([(3 / 8 + 1) / 2, 5 / 16, 1])]


TAINTED = [
    node("cpu", CORES),
    node("gpu", CORES | {GPU: "4"}, TAINT),
    *several(1, "vision", ONE | {GPU: "1"}, "gpu", tolerations=ANY),
    *several(5, "vision", ONE | {GPU: "1"}, tolerations=ANY),
    *several(3, "rl", ONE | {GPU: "1"}, "gpu", tolerations=ANY),
    *several(2, "etl", {"cpu": "3", "memory": "1Gi"}, "gpu"),
    *several(1, "etl", {"cpu": "3", "memory": "1Gi"}, "cpu"),
]


def test_a_taint_that_came_later_and_a_node_that_is_too_full() -> None:
    """4 GPUs for two: 2 and 2 are due, 1 and 3 run; two run there that do not tolerate it now."""
    found = reported(TAINTED)
    assert found.verdict[0] == (
        "Under DRFH 1 of 3 users is below what it is entitled to: vision, which runs 1 of 2 tasks, held back by "
        "nvidia.com/gpu on gpu; above at the cost of others: rl by 1."
    )
    assert {
        "More runs than there is room for: cpu of gpu (10 of 8).",
        "Tasks run where they may not be started now: etl on gpu (2).",
    } <= {*found.notes}


def test_room_that_nobody_uses() -> None:
    found = reported([node("n1", CORES), *several(2, "web", host="n1"), *several(3, "web")])
    assert found.verdict[0] == (
        "Under DRFH 1 of 1 users is below what it is entitled to: web, which runs 2 of 5 tasks, although there is idle "
        "room for 3 on n1; nobody is above at another's cost."
    )
    assert found.users["could give"].tolist() == ["idle room for 3 on n1"]


def test_gates_and_quotas() -> None:
    """Pods at a gate want to run, and no room holds them; what a quota refused is not there to be counted."""
    gates = [{"name": "kueue.x-k8s.io/admission"}]
    quota = {"kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "web"}, "spec": {"hard": {"pods": "2"}}}
    quota["status"] = {"used": {"pods": "2"}}
    pods = [*several(2, "web", host="n1"), *several(2, "rl", schedulingGates=gates)]
    found = reported([node("n1", CORES), *pods, quota])
    held = dict(zip(found.users["user"], found.users["limited by"], strict=True))
    assert held == {
        "rl": "another reason than room: scheduling gate kueue.x-k8s.io/admission",
        "web": "nothing: all its tasks run",
    }
    assert any(note.startswith("ResourceQuota status.used is not used:") and "(web/q)" in note for note in found.notes)


def test_a_limit_of_an_account_and_lists_of_nodes() -> None:
    nodes = [{"name": f"n{k}", "state": ["IDLE"], "effective_cpus": 4, "real_memory": 4096} for k in (8, 9, 10)]
    job = {"tres_req_str": "cpu=8,mem=2G", "node_count": 2, "account": "bio", "job_state": ["RUNNING"]}
    waits = job | {"job_state": ["PENDING"], "state_reason": "AssocGrpCpuLimit", "account": "geo"}
    found = slurm.snapshot(nodes, [job | {"nodes": "n[8-9]"}, job | {"nodes": "n10,n8"}, waits], [], "here")
    assert np.array_equal(found.placement, [[2, 1, 1], [0, 0, 0]])  # type: ignore[arg-type]
    assert found.capped == {"geo": {"AssocGrpCpuLimit": 2}}
    assert found.running.flagged  # type: ignore[union-attr]
    with pytest.raises(DataError, match=r"nodes of job None is 'n\[x\]'"):
        slurm.snapshot(nodes, [job | {"nodes": "n[x]"}], [], "here")


def test_the_report_of_a_slurm_snapshot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """4 pairs of GPUs: 2 each are due to vision, which runs 3, and to rl, which runs 1. A node drains."""
    gpus = {"effective_cpus": 64, "real_memory": 515000, "partitions": ["gpu"], "tres": "cpu=64,gres/gpu=4"}
    plain = {"effective_cpus": 32, "real_memory": 128000, "partitions": ["batch"]}
    nodes = [{"name": f"g{k}", "state": ["MIXED"]} | gpus for k in (1, 2)]
    nodes += [{"name": f"c{k}", "state": ["MIXED"] + ["DRAIN"] * (k == 3)} | plain for k in (1, 2, 3)]
    pair = {"partition": "gpu", "tres_req_str": "cpu=8,mem=64G,node=1,gres/gpu=2", "node_count": {"number": 1}}
    runs, waits = {"job_state": ["RUNNING"]}, {"job_state": ["PENDING"], "state_reason": "Resources"}
    small = {"account": "bio", "partition": "batch", "tres_req_str": "cpu=8,mem=8G,node=1"} | runs
    jobs = [
        *({"account": "vision", "nodes": host} | pair | runs for host in ("g1", "g1", "g2")),
        {"account": "rl", "nodes": "g2"} | pair | runs,
        *[{"account": "rl"} | pair | waits] * 4,
        small | {"nodes": "c3"},
        small | {"nodes": "c[1-2]", "node_count": 2, "tres_req_str": "cpu=16"},
        {"account": "old", "job_state": ["COMPLETED"]},
    ]
    for name, listed in (("nodes", nodes), ("jobs", jobs)):
        (tmp_path / f"{name}.json").write_text(json.dumps({name: listed}))
    assert main(["report", f"slurm:{tmp_path}", "-m", "drfh,tsf", "--policy", "alphapf-vds(alpha=2)"]) == 0
    out = capsys.readouterr().out
    for said in (
        "Under DRFH 2 of 4 users are below what they are entitled to, most of all rl, which runs 1 of 2 tasks, held "
        "back by gres/gpu on g1 and g2; above at the cost of others: vision by 1.\n",
        "4 users on 4 nodes",
        "1 running on nodes that are left out (drained, not ready) or not named, counted as waiting: bio",
        "What if alphaPF-VDS(alpha=2) in place of DRFH",
    ):
        assert said in out


def test_where_nobody_lacks_anything() -> None:
    nobody, others = "Under DRFH nobody lacks a whole task of what it is entitled to", "Nor is anybody below under TSF."
    some = [node("n1", CORES), *several(2, "web", host="n1")]
    met = reported(some)
    assert met.verdict == (f"{nobody}, and everybody has all it wants.", others)
    assert np.isnan(met.measures["smallest share (want more)"]).all()
    nowhere = reported([*some, *several(1, "ml", {"cpu": "1", GPU: "1"})])
    assert nowhere.verdict == (f"{nobody}.", others, "No node may run a task of ml.")
    full = reported([node("n1", CORES), *several(4, "web", host="n1"), *several(4, "db", host="n1"), *several(9, "db")])
    assert full.verdict[0] == f"{nobody}."


@given(clusters())
@settings(max_examples=20)
def test_what_is_entitled_is_fair(cluster: fo.Cluster) -> None:
    """Of what a mechanism gives nobody complains under it, nor where a user who wants no more is concerned."""
    for mechanism in (fo.DRFH(), fo.TSF()):
        found = mechanism.solve(cluster)
        assert metrics.complaints(found, mechanism) == 0
        assert metrics.distance(found, mechanism) <= 1e-6
        assert not metrics.satisfaction(found, mechanism) < 1 - 1e-6
    other = fo.Utilitarian().solve(cluster)
    tasks = other.arrays.user_tasks
    limits = np.where((tasks > 0) & (np.arange(len(tasks)) % 2 == 0), tasks, cluster.max_tasks)
    limited = fo.Allocation.of(cluster.replace(max_tasks=limits), other.tasks)
    assert not metrics.complaining(limited)[limits == tasks].any()
    assert not np.prod(metrics.owed(limited), axis=0).any()


def test_nobody_complains_about_a_server_that_it_may_not_use() -> None:
    """4 of s are due to a, which runs none; of t 2 each to b and c, and b runs 4: c complains, and a does not."""
    cluster = fo.Cluster([[4], [4]], [[1]] * 3, eligible=[[1, 0], [0, 1], [0, 1]])
    runs = fo.Allocation.of(cluster, [[0, 0], [0, 4], [0, 0]])
    below, above = metrics.owed(runs)
    assert (below.tolist(), above.tolist()) == (pytest.approx([4, 0, 2]), pytest.approx([0, 2, 0]))
    assert np.argwhere(metrics.complaining(runs)).tolist() == [[2, 1]]


@given(clusters(max_servers=1))
@settings(max_examples=20)
def test_whole_tasks_of_what_is_entitled_are_fair(cluster: fo.Cluster) -> None:
    """On one server: every user's tasks without their fraction leave nobody a whole task short."""
    due = fo.DRFH().solve(cluster).arrays.user_tasks
    whole = fo.Allocation.of(cluster, np.floor(due * (1 + 1e-9))[:, None], tol=1e-5)
    assert not metrics.owed(whole)[0].any()
    assert metrics.complaints(whole) == 0


def test_the_verdict_on_a_made_up_snapshot() -> None:
    runs = kubernetes_like(np.random.default_rng(2)).running
    assert runs is not None
    for mechanism in (fo.DRFH(), fo.TSF()):
        assert int((metrics.owed(runs, mechanism)[0] > 0).sum()) == 38
        assert metrics.distance(runs, mechanism) == pytest.approx(0.599, abs=1e-3)
    assert metrics.distance(fo.TSF().solve(runs.cluster)) < 1e-3


HALF = fo.Cluster([[6]], [[1], [1]], max_tasks=[1, np.inf], users=["small", "large"])
DUE = ["satisfaction", "distance", "complaints"]


def test_measures_are_columns_everywhere() -> None:
    names = ["min_share_wanting", "jain_wanting", *DUE]
    half, drfh = fo.Allocation.of(HALF, [1, 3], "half"), pytest.approx([5 / 6, 1, 1, 0, 0])
    table = fo.compare(HALF, ["drfh", half], entitled="drfh", details=True)[names]
    assert table.loc["half"].tolist() == pytest.approx([3 / 6, 1, (1 + 3 / 5) / 2, 1 / 6, 0])
    measured = Session(HALF).reply({"ask": "answer", "state": State().to_json()})["measures"]
    assert fo.alpha_path(HALF, [1], details=True)[names[:2]].iloc[0].tolist() == pytest.approx([5 / 6, 1])
    for row in (table.loc["DRFH"], pd.Series(measured)[names]):
        assert row.tolist() == drfh
    shown = fo.report.comparison(fo.compare(HALF.replace(max_tasks=[1, 2]), ["drfh"], details=True))[0]
    assert fo.report.for_people(shown)["jain_wanting"].tolist() == ["all met"]
    assert fo.compare(HALF, [half], entitled="tsf").equals(fo.compare(HALF, [half], entitled="drfh"))
    for by in (half, [1, 3], {"large": 3, "small": 1}, pd.Series({"large": 3, "small": 1})):
        table = fo.compare(HALF, ["drfh", half], entitled=by)[DUE]
        assert table.to_numpy().tolist() == [pytest.approx([1, 1 / 6, 0]), [1, 0, 0]]


@pytest.mark.parametrize(
    ("entitled", "message"),
    [
        ([1, -1], "entitlements of user 'large' is -1; it must be"),
        ("alphapf-vds", "'alphapf-vds' names several mechanisms"),
    ],
)
def test_what_is_no_entitlement(entitled: Any, message: str) -> None:
    """How numbers are read is tested with `find_weights`, which reads them so too."""
    with pytest.raises(DataError, match=message):
        fo.compare(HALF, [[1, 3]], entitled=entitled)


def test_what_a_policy_would_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "snap.json"
    place.write_text(json.dumps({"items": DRAINED}))
    assert main(["report", f"kubernetes:{place}", "-m", "drfh,tsf", "--policy", "utilitarian", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(SCHEMAS["report"]()).validate(found)
    assert found["version"] == 1
    keys = {key for part in ("measures", "groups", "resources", "margins", "changes") for key in found[part][0]}
    assert all(re.fullmatch("[a-z0-9_]+", key) for key in keys)
    said = found["verdict"]
    assert said["sentences"][0].startswith("Under DRFH 1 of 2 users is below")
    assert (said["mechanism"], said["distance"], said["users_below"]) == ("DRFH", pytest.approx(5 / 16), 1)
    assert [(one["user"], one["shortfall"], one["could_give"]) for one in said["below"]] == [
        ("web", pytest.approx(5), {"db": pytest.approx(5)})
    ]
    assert [(one["user"], one["excess"]) for one in said["above"]] == [("db", pytest.approx(5))]
    assert found["users"][0]["entitled"] == {"DRFH": pytest.approx(8), "TSF": pytest.approx(8)}
    changes = pd.DataFrame(found["changes"])
    assert changes.sort_values("user")["running"].tolist() == [13, 3]
    assert changes["change"].abs().is_monotonic_decreasing
    assert [row["state"] for row in found["measures"]] == ["running", "entitled", "after"]
    assert main(["compare", f"kubernetes:{place}", "-m", "drfh", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["mechanism"], row["complaints"]) for row in rows] == [("running", 1), ("DRFH", 0)]


def test_the_explorer_knows_what_runs() -> None:
    snapshot = kubernetes.snapshot(DRAINED, "here")
    begun = Session(snapshot.cluster, running=snapshot.running, snapshot=snapshot).begin()
    assert begun["held"] == ["nothing: all its tasks run", "cpu on n1 and n2"]  # of what runs, not of what is entitled
    assert (begun["running"], begun["now"]["complaints"]) == ([13, 3], 1)
    assert Session(snapshot.cluster).begin()["now"] is None
    found = standing(snapshot.cluster, State(edits={"users/0/on": False, "servers/0/count": 3}), snapshot=snapshot)
    assert found.users["running"].tolist() == [3]


#: Two nodes of 4 CPUs; a runs 4 of 8, b none of 8; c is larger than the free node, d is held, e ends.
QUEUED = [
    *({"account": "a", "job_state": ["RUNNING"], "nodes": "n1"},) * 3,
    *({"account": "a", "job_state": ["PENDING"], "state_reason": "Priority"},) * 3,
    *({"account": "b", "job_state": ["PENDING"], "state_reason": "Resources"},) * 8,
    {"account": "d", "job_state": ["PENDING"], "state_reason": "JobHeldUser"},
    {"account": "e", "job_state": ["COMPLETING"], "nodes": "n2"},
]


def queued(**more: Any) -> list[dict[str, Any]]:
    return [{"tres_req_str": "cpu=1,mem=1G", "partition": "p"} | one | more for one in QUEUED]


def cpus(*names: str) -> list[dict[str, Any]]:
    return [
        {"name": n, "state": ["IDLE"], "effective_cpus": 4, "real_memory": 65536, "partitions": ["p"]} for n in names
    ]


def test_what_waits_for_another_reason_than_room() -> None:
    """4 each of 8 CPUs are due to a and b; a runs 3, b none, and what ends holds one."""
    found = standing(
        (snapshot := slurm.snapshot(cpus("n1", "n2"), queued(), [], "here")).cluster, State("drfh"), snapshot=snapshot,
        compared=[],
    )  # fmt: skip
    held = dict(zip(found.users["user"], found.users["limited by"], strict=True))
    assert held == {"a": "another reason than room: Priority", "b": "nothing: there is idle room", "d": "JobHeldUser",
                    "e": "nothing: all its tasks run"}  # fmt: skip
    assert found.verdict[0] == (
        "Under DRFH 2 of 4 users are below what they are entitled to, most of all b, which runs 0 of 4 tasks, although "
        "there is idle room for 4 on n1 and n2; above at the cost of others: e by 1 (1 of them ending)."
    )
    assert found.judged is not None
    names = [snapshot.cluster.users[n] for n, _ in next_starts(found.judged.runs, found.judged.due)]
    assert names == ["b", "b", "b", "a"]
    assert found.users["could give"].tolist()[:2] == ["e 1", "idle room for 4 on n1 and n2; e 1"]
    late = slurm.snapshot(cpus("n1", "n2"), queued(state_reason="ReqNodeNotAvail"), [], "here")
    said = standing(late.cluster, State("drfh"), snapshot=late, compared=[]).verdict[0]
    assert "b, which runs 0 of 3.5 tasks, and waits for another reason than room: ReqNodeNotAvail;" in said


def test_all_tasks_that_fit_start() -> None:
    """Tasks of the user with the least part of its due start first, on the node with least room, until none fits."""
    cluster = fo.Cluster([[2400], [700]], [[1], [2], [1]], max_tasks=[1500, 1500, 0], users=["a", "b", "c"])
    runs, due = fo.Allocation.of(cluster, np.zeros((3, 2))), np.array([1000.0, 1000.0, 0.0])
    made = next_starts(runs, due)
    assert made[:4] == [(0, 1), (1, 1), (0, 1), (1, 1)]
    assert np.bincount([n for n, _ in made]).tolist() == [1034, 1033]
    assert np.bincount([i for _, i in made]).tolist() == [1600, 467]


def test_half_a_task_is_not_lacked() -> None:
    """A job holds 3 CPUs on a node and 1 on one that is drained: 1.5 of its 2 tasks, and 2 are due to it."""
    rows = [{"name": "n1", "cpus": {"count": 3}}, {"name": "n9", "cpus": {"count": 1}}]
    jobs = [{"account": "a", "tres_req_str": "cpu=4,node=2", "job_state": ["RUNNING"], "nodes": "n[1,9]",
             "job_resources": {"nodes": {"allocation": rows}}},
            {"account": "b", "tres_req_str": "cpu=1", "job_state": ["RUNNING"], "nodes": "n1"}]  # fmt: skip
    found = slurm.snapshot([cpus("n1")[0] | {"effective_cpus": 8}], jobs, [], "here")
    said = standing(found.cluster, State("drfh"), snapshot=found, compared=[])
    assert said.users["running"].tolist() == [1.5, 1]
    assert said.verdict[0].startswith("Under DRFH nobody lacks a whole task")


def test_nodes_that_may_run_it_are_counted() -> None:
    """Of six nodes that may run it four have room, and two are full: of those with room there are not `all 4`."""
    on = [{"account": "a", "tres_req_str": "cpu=4,mem=1G", "job_state": ["RUNNING"], "nodes": n} for n in ("n1", "n2")]
    waits = {"account": "b", "tres_req_str": "cpu=1,mem=1G", "job_state": ["PENDING"], "state_reason": "Resources"}
    found = slurm.snapshot(cpus(*(f"n{k}" for k in range(1, 7))), [*on, *[waits] * 9], [], "here")
    users = standing(found.cluster, State("drfh"), snapshot=found, compared=[]).users.set_index("user")
    assert users["could give"]["b"] == "idle room for 9 on 4 of 6 nodes that may run it"


@pytest.mark.parametrize("form", ["text", "json"])
def test_why_a_user_runs_so_little(tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    for name, of in (("nodes", cpus("n1", "n2")), ("jobs", queued())):
        (tmp_path / f"{name}.json").write_text(json.dumps({name: of}))
    asked = ["report", f"slurm:{tmp_path}", "-m", "drfh,tsf", "--user"]
    assert main([*asked, "b", *["--json"] * (form == "json")]) == 0
    out = capsys.readouterr().out
    if form == "json":
        (why,) = json.loads(out)["why"]
        jsonschema.Draft202012Validator(SCHEMAS["report"]()).validate(json.loads(out))
        assert (why["shortfall"], why["could_start"], why["starts"], why["holders"]) == (4, 4, 3, {"a": 3, "e": 1})
        return
    for said in (
        "b runs 0 (0.0% of the cluster), wants 8, and is entitled to 4 tasks (50.0%) under DRFH at weight 1.",
        "Waiting, by the system's own reason: 8 for room.",
        "If nothing is stopped, 3 of its tasks start, after 0 of others.",
        "With one more node like n: entitled to 6; 2 more of its tasks start if nothing is stopped.",
        "With a weight of 2 in place of 1: entitled to 5.333; 1 more of its tasks start if nothing is stopped.",
    ):
        assert said in " ".join(out.split())  # lines are wrapped where COLUMNS is set
    assert main([*asked, "d"]) == 0
    said = "With no JobHeldUser: entitled to 1; 1 more of its tasks start if nothing is stopped."
    assert said in " ".join(capsys.readouterr().out.split())
    assert main([*asked, "nobody"]) == 2


@pytest.mark.parametrize("name", ["phys", "l3", "sociology"])
def test_why_a_queue_runs_so_little(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    """Accounts phys (80) of l1 and l2, and bio (20) of l3, which runs everything: 4, 4 and 2 of 10 CPUs are due."""
    shares = [("phys", "root", 80), ("bio", "root", 20), ("l1", "phys", 1), ("l2", "phys", 1), ("l3", "bio", 100)]
    jobs = [{"account": "l3", "tres_req_str": "cpu=1", "job_state": ["RUNNING"], "nodes": "n1"}] * 10
    jobs += [{"account": account, "tres_req_str": "cpu=1", "job_state": ["PENDING"], "state_reason": "Resources"}
             for account in ("l1", "l2") for _ in range(9)]  # fmt: skip
    rows = [{"name": account, "parent": above, "shares": share} for account, above, share in shares]
    of_node = [cpus("n1")[0] | {"effective_cpus": 10}]
    for file, of in (("nodes", of_node), ("jobs", jobs), ("shares", rows)):
        (tmp_path / f"{file}.json").write_text(json.dumps({file: of}))
    asked = ["report", f"slurm:{tmp_path}", "-m", "tree,drfh", "--queue", name]
    assert main(asked) == (2 if name == "sociology" else 0)
    out, error = capsys.readouterr()
    said = {
        "phys": [
            "phys runs 0 (0.0% of the cluster), wants 18, and is entitled to 8 tasks (80.0%) under tree at weight 80.",
            "Waiting, by the system's own reason: 18 for room.",
            "At level 1 stop l1 (cpu); l2 (cpu) and 1 other user.",
            "Its entitlement is limited by cpu. What holds its next task: l1: cpu on n1.",
            "It is 8 below; on its nodes run most of what it needs: l3 10.",
            "If nothing is stopped, none of its tasks starts.",
            "With a weight of 160 in place of 80: entitled to 8.889.",
            "l2 runs 0",
        ],
        "l3": ["l3 runs 10 (100.0% of the cluster), wants 10, and is entitled to 2 tasks (20.0%)"],
        "sociology": ["there is no queue 'sociology'; there are bio, phys, l1, l2"],
    }[name]
    for line in said:
        assert line in " ".join((out + error).split())  # lines are wrapped where COLUMNS is set
    if name == "phys":
        assert main([*asked, "--json"]) == 0
        (why, one, other) = json.loads(capsys.readouterr().out)["why"]
        (stage,) = why["stages"]
        assert stage == {"level": 1, "users": ["l1", "l2"], "limited_by": {"l1": "cpu", "l2": "cpu"}, "others": 1}
        assert (one["shortfall"], other["shortfall"], why["share_entitled"]) == pytest.approx((4, 4, 0.8))
        assert main([*asked, "--user", "l1"]) == 2
