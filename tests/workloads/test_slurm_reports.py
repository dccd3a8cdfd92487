"""Slurm's snapshots as operators report them: the smallest inputs, with what is held, wanted and entitled by hand."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.workloads import Snapshot, _slurm_shares, slurm
from fairopt.workloads._fields import table
from fairopt.workloads._slurm_reasons import reason_class

Object = dict[str, Any]
GPU = "gres/gpu"


def nodes(*names: str, cpu: int = 8, mem: int = 64, **more: Any) -> list[Object]:
    each = {"state": ["IDLE"], "effective_cpus": cpu, "real_memory": mem * 1024, "tres": f"cpu={cpu},mem={mem}G"}
    return [{"name": name} | each | more for name in names]


def job(account: str, asks: str = "cpu=1,mem=1G,node=1", on: str = "", times: int = 1, **more: Any) -> list[Object]:
    """Jobs that run on a list of nodes, or wait."""
    state = {"job_state": ["RUNNING"], "nodes": on} if on else {"job_state": ["PENDING"], "state_reason": "Resources"}
    return [{"account": account, "tres_req_str": asks, "node_count": 1} | state | more] * times


def read(of: list[Object], jobs: list[Object], shares: list[Object] | None = None, **more: Any) -> Snapshot:
    return slurm.snapshot(of, jobs, shares or [], "here", **more)


def due(found: Snapshot) -> dict[str, float]:
    """Entitlements in the tree of accounts, or by DRFH without shares."""
    tasks = (found.tree[0] or fo.DRFH()).solve(found.cluster).user_tasks
    return {user: round(float(tasks[user]), 6) for user in found.cluster.users}


def used(found: Snapshot, resource: str = "cpu") -> dict[str, float]:
    """What is held of a resource by node."""
    assert found.placement is not None
    use = found.placement.T @ found.cluster.demand[:, found.cluster.resources.index(resource)]
    return {name: round(float(each), 6) for name, each in zip(found.cluster.servers, use, strict=True)}


def allocated(**by_node: int) -> Object:
    """`job_resources` of Slurm 24.05 and later."""
    rows = [{"name": name, "cpus": {"count": count, "used": 0}} for name, count in by_node.items()]
    return {"job_resources": {"nodes": {"list": ",".join(by_node), "allocation": rows}, "cpus": sum(by_node.values())}}


def tree(*rows: tuple[str, str, int]) -> list[Object]:
    return [
        {"name": name, "parent": parent, "shares": {"set": True, "number": number}} for name, parent, number in rows
    ]


THROTTLED = {"array_job_id": 7, "array_max_tasks": 2}
ROOT = ("root", "", 1)

#: Nodes, jobs, shares, and what each of them is entitled to.
ENTITLED = {
    "S1 gres alone": (
        nodes("g", gres="gpu:h100:4"),
        [*job("a", times=4, tres_per_node="gres/gpu:1"), *job("b", times=4, tres_per_node="gres/gpu:1")],
        [],
        {"a": 2, "b": 2},
    ),
    "per job, over two nodes": (
        nodes("g1", "g2", gres="gpu:4(S:0-1)"),
        [*job("a", times=2, tres_per_job="gres/gpu:8"), *job("b", times=9, tres_per_job="gres/gpu=4")],
        [],
        {"a": 1, "b": 1},
    ),
    "per task and per socket, as earlier versions write it": (
        nodes("g", cpu=64, gres="gpu:8"),
        [
            *job("a", times=9, tres_per_task="gres:gpu:1", tasks=2),
            *job("b", times=9, tres_per_socket="gres:gpu:1", sockets_per_node=2),
        ],
        [],
        {"a": 2, "b": 2},
    ),
    "drained GPUs, and resources that are not consumed": (
        nodes("g", gres="gpu:4,fast:no_consume:1", gres_drained="gpu:2"),
        [*job("a", times=4, tres_per_node="gres/gpu:1,gres/fast:1"), *job("b", times=4, tres_per_node="gres/gpu:1")],
        [],
        {"a": 1, "b": 1},
    ),
    "S4 asleep": (
        nodes("c1", "c2", state=["IDLE", "CLOUD", "POWERED_DOWN"]),
        [*job("a", times=20), *job("b", times=20)],
        [],
        {"a": 8, "b": 8},
    ),
    "S6 throttled": (
        nodes("c1", cpu=6),
        [
            *job("a", on="c1", times=2),
            *job("a", array_task_string="4-190%2", state_reason="JobArrayTaskLimit"),
            *job("b", times=9),
        ],
        [],
        {"a": 2, "b": 4},
    ),
    "throttled below its limit": (
        nodes("c1", cpu=6),
        [*job("a", on="c1", **THROTTLED), *job("a", array_task_string="2-9", **THROTTLED), *job("b", times=9)],
        [],
        {"a": 2, "b": 4},
    ),
    "a reason older than the end of an element": (
        nodes("c1", cpu=6),
        [
            *job("a", on="c1", **THROTTLED),
            *job("a", array_task_string="2-9", state_reason="JobArrayTaskLimit", **THROTTLED),
            *job("b", times=9),
        ],
        [],
        {"a": 2, "b": 4},
    ),
    "S7 a tree": (
        nodes("c", cpu=10, mem=999),
        [*job("l1", times=20), *job("l2", times=20), *job("l3", times=20)],
        tree(ROOT, ("phys", "root", 80), ("bio", "root", 20), ("l1", "phys", 1), ("l2", "phys", 1), ("l3", "bio", 100)),
        {"l1": 4, "l2": 4, "l3": 2},
    ),
    "a branch without jobs": (
        nodes("c", cpu=10, mem=999),
        [*job("l1", times=20), *job("l3", times=20)],
        tree(ROOT, ("phys", "root", 80), ("bio", "root", 20), ("l1", "phys", 1), ("l2", "phys", 9), ("l3", "bio", 100)),
        {"l1": 8, "l3": 2},
    ),
    "members of an account with shares of its parent": (
        nodes("c", cpu=10, mem=999),
        [*job("l1", times=20), *job("l2", times=20), *job("l3", times=20)],
        tree(
            ROOT,
            ("phys", "root", 0x7FFFFFFF),
            ("bio", "root", 2),
            ("l1", "phys", 1),
            ("l2", "phys", 2),
            ("l3", "bio", 7),
        ),
        {"l1": 2, "l2": 4, "l3": 4},
    ),
    "S9 types": (
        nodes("v", gres="gpu:v100:4", tres="cpu=8,gres/gpu=4") + nodes("a", gres="gpu:a100:1", tres="cpu=8,gres/gpu=1"),
        [
            *job("old", times=9, tres_per_node="gres/gpu:v100:1"),
            *job("new", "cpu=1,mem=1G,gres/gpu=1", times=9, tres_per_node="gres/gpu:a100:1"),
        ],
        [],
        {"old": 4, "new": 1},
    ),
    "S10 features": (
        nodes("c1", features=["intel", "ib"]) + nodes("c2", features=["eth"]),
        [*job("a", times=20, features="intel&(ib|eth)"), *job("b", times=20)],
        [],
        {"a": 8, "b": 8},
    ),
    "held, and larger than every node": (
        nodes("c1", cpu=4),
        [
            *job("a", times=4),
            *job("b", times=4, state_reason="JobHeldUser"),
            *job("c", "cpu=8", tasks=1),
            *job("d", "cpu=9,node=9"),
        ],
        [],
        {"a": 4, "b": 0, "c": 0, "d": 0},
    ),
}


@pytest.mark.parametrize("case", ENTITLED)
def test_entitlements(case: str) -> None:
    of, jobs, shares, expected = ENTITLED[case]
    assert due(read(of, jobs, shares)) == pytest.approx(expected, rel=1e-6, abs=1e-5)


CORES = {"0": {"cores": dict.fromkeys("0123", "allocated")}}
#: Jobs on nodes c1 to c3 of 64 CPUs and 64 GiB, and what they hold.
HELD = {
    "S2 as job_resources says": (
        [
            *job(
                "a",
                "cpu=128,mem=48G,node=1",
                "c[1-3]",
                tres_alloc_str="cpu=128,mem=48G,node=3",
                **allocated(c1=63, c2=64, c3=1),
            ),
            *job("b", "cpu=62,mem=1G,node=1", "c3"),
        ],
        "cpu",
        {"c1": 63, "c2": 64, "c3": 63},
    ),
    "S3 exclusive": (
        job("a", "cpu=1,mem=5G", "c1", tres_alloc_str="cpu=36,mem=60G,node=1"),
        "cpu",
        {"c1": 36, "c2": 0, "c3": 0},
    ),
    "the memory of the same": (
        job("a", "cpu=1,mem=5G", "c1", tres_alloc_str="cpu=36,mem=60G,node=1"),
        "memory",
        {"c1": 60, "c2": 0, "c3": 0},
    ),
    "cores of version 23.11, where CPUs are not counted": (
        job(
            "a",
            "cpu=5,mem=1G,node=2",
            "c[1-2]",
            tres_alloc_str="cpu=10,mem=1G,node=2",
            job_resources={
                "nodes": "c[1-2]",
                "allocated_nodes": [
                    {"nodename": "c1", "cpus_used": 0, "sockets": CORES},
                    {"nodename": "c2", "cpus_used": 0, "sockets": {"0": {"cores": {"3": "allocated"}}}},
                ],
            },
        ),
        "cpu",
        {"c1": 8, "c2": 2, "c3": 0},
    ),
    "GPUs by gres_detail": (
        job(
            "a",
            "cpu=2,mem=2G,node=2",
            "c[1,3]",
            tres_per_job="gres/gpu:4",
            gres_detail=["gpu:h100:1(IDX:0)", "gpu:h100:3(IDX:1,2-3)"],
        ),
        GPU,
        {"c1": 1, "c2": 0, "c3": 3},
    ),
    "one of two was made smaller, and a third waits": (
        [
            *job("a", "cpu=16,mem=1G,node=1", "c1", tres_alloc_str="cpu=4,mem=1G,node=1"),
            *job("a", "cpu=16,mem=1G,node=1", "c2"),
            *job("a", "cpu=16,mem=1G,node=1"),
        ],
        "cpu",
        {"c1": 4, "c2": 16, "c3": 0},
    ),
    "what ends still holds": (
        job("a", "cpu=4,mem=4G", "c2", job_state=["CANCELLED", "COMPLETING"]) + job("b"),
        "cpu",
        {"c1": 0, "c2": 4, "c3": 0},
    ),
}


@pytest.mark.parametrize("case", HELD)
def test_what_is_held(case: str) -> None:
    jobs, resource, expected = HELD[case]
    found = read(nodes("c1", "c2", "c3", cpu=64, gres="gpu:h100:4"), jobs)
    assert used(found, resource) == pytest.approx(expected)
    assert found.running is not None
    assert not [note for note in found.notes if "hold" in note]


def test_what_ends_is_not_wanted() -> None:
    found = read(nodes("c1"), job("a", on="c1", times=2, job_state=["COMPLETED", "COMPLETING"]) + job("a", times=3))
    assert (found.leaving, found.cluster.max_tasks.tolist()) == ({"a": 2}, [3])


#: Jobs of one submission, partly running and partly waiting.
ONE_USER = {
    "an MPI job without a number of nodes": [
        *job("a", "cpu=128,mem=64G,node=1", "c[1-3]", tres_alloc_str="cpu=128,mem=64G,node=3", node_count=3),
        *job("a", "cpu=128,mem=64G,node=1"),
    ],
    "submitted to two partitions": [*job("a", on="c1", partition="p"), *job("a", partition="p,q")],
    "an array, whose elements are two CPUs of one core": [
        *job(
            "a",
            "cpu=1,mem=1G,node=1",
            "c1",
            tres_alloc_str="cpu=2,mem=1G,node=1",
            array_job_id={"set": True, "number": 5},
        ),
        *job("a", "cpu=1,mem=1G,node=1", array_job_id={"set": True, "number": 5}, array_task_string="2-9"),
    ],
    "exclusive": [
        *job("a", "cpu=1,mem=5G,node=1", "c1", tres_alloc_str="cpu=64,mem=5G,node=1", exclusive=["true"]),
        *job("a", "cpu=1,mem=5G,node=1", exclusive=["true"]),
    ],
}


@pytest.mark.parametrize("case", ONE_USER)
def test_one_submission_is_one_user(case: str) -> None:
    found = read(nodes("c1", "c2", "c3", cpu=64, partitions=["p", "q"]), ONE_USER[case])
    assert len(found.cluster.users) == 1
    assert found.capped == {}
    assert found.running is not None
    assert found.cluster.max_tasks[0] > found.running.user_tasks["a"] > 0


@pytest.mark.parametrize(
    ("state", "there"),
    [
        (["IDLE", "CLOUD", "POWERED_DOWN"], True),
        (["IDLE", "POWERED_DOWN"], True),
        ("idle~", True),
        (["IDLE", "CLOUD", "POWERING_UP", "NOT_RESPONDING"], True),
        ("ALLOCATED+CLOUD+POWERING_UP", True),
        (["IDLE", "MAINTENANCE", "RESERVED"], False),
        ("maint", False),
        ("down*", False),
        ("idle*", False),
        (["DOWN", "CLOUD", "POWERED_DOWN"], False),
        (["FUTURE", "CLOUD"], False),
        (["IDLE", "NOT_RESPONDING"], False),
        (["IDLE", "DRAIN", "POWER_DOWN"], False),
        (["MIXED", "PLANNED", "COMPLETING"], True),
        ("draining@", False),
        (["IDLE", "INVALID_REG"], False),
        (["UNKNOWN"], False),
    ],
)
def test_states_of_nodes(state: Any, there: bool) -> None:
    found = read([*nodes("c1"), *nodes("c2", state=state)], job("a"))
    assert ("c2" in found.cluster.servers) == there


@pytest.mark.parametrize(
    ("features", "may"),
    [
        ("intel&(ib|eth)", "ie"),
        ("ib|eth&intel", "ie"),
        ("intel|amd&eth", "e a"),
        ("amd&eth|ib", "i a"),
        ("[rack1*2&rack2*4]", "i a"),
        ("[(rack1|rack2)*1&(rack3)*2]", "i a"),
        ("[rack1|rack3]", "i"),
        ("graphics*4", "i e a"),
        ("[(intel&ib)*1&amd*2]", "i a"),
        ("intel,ib", "i"),
        ("(null)", "i e a"),
    ],
)
def test_features(features: str, may: str) -> None:
    """Of sbatch(1), --constraint; on nodes i of intel, ib and rack1, e of intel and eth, a of amd, eth and rack2."""
    has = {"i": ["intel", "ib", "rack1"], "e": ["intel", "eth"], "a": ["amd", "eth", "rack2"]}
    of = [one for name, each in has.items() for one in nodes(name, features=each)]
    found = read(of, job("a", features=features) + job("b"))
    names = np.array(found.cluster.servers)[found.cluster.eligible[0]]
    assert "".join(names) == may.replace(" ", "")


@pytest.mark.parametrize(
    ("asks", "may"),
    [
        ({"required_nodes": "c[1-2]"}, ["c1", "c2"]),
        ({"excluded_nodes": "c[2-3],r"}, ["c1", "big"]),
        ({"resv_name": "course"}, ["r"]),
        ({"minimum_tmp_disk_per_node": 10}, ["big"]),
        ({"sockets_per_node": 4}, ["big"]),
        ({}, ["c1", "c2", "c3", "big"]),
    ],
)
def test_where_jobs_may_run(asks: Object, may: list[str]) -> None:
    usual = {"temporary_disk": 1, "sockets": 2}
    of = (
        nodes("c1", "c2", "c3", **usual)
        + nodes("big", temporary_disk=10, sockets=4)
        + nodes("r", reservation="course", **usual)
    )
    found = read(of, job("a", **asks) + job("b"))
    assert np.array(found.cluster.servers)[found.cluster.eligible[0]].tolist() == may


def test_legal_objects_are_read() -> None:
    """What Slurm writes for nothing, lists that it cuts off, and hosts with several brackets."""
    nothing = dict.fromkeys(("features", "required_nodes", "resv_name", "tres_per_node", "tres_alloc_str"), "(null)")
    found = read(
        nodes(
            "r1n1",
            "r2n2",
            gres="(null)",
            gres_drained="N/A",
            features=["(null)"],
            reservation="",
            tres="cpu=8,billing=N/A",
        ),
        [
            *job("", "cpu=4,mem=N/A,node=4,license/x=2", "r[1-2]n[1-2]", node_count=4, **nothing),
            *job("b", array_task_string="1-3,7,...%4", gres_detail=None, job_resources=None),
            *job("c", ""),
        ],
    )
    assert (found.cluster.users, {*found.left_out}) == (("nobody", "b"), {"c"})
    assert found.cluster.demand.tolist() == [[1, 0], [1, 1]]
    assert found.cluster.max_tasks.tolist() == [4, 4]
    assert used(found) == {"r1n1": 1, "r2n2": 1}
    assert any("cut off" in note for note in found.notes)


#: Reasons of `src/common/job_state_reason.c` (218, two of them twice), by class.
REASONS = {
    "room": "None Resources",
    "turn": "Constraints Priority ReqNodeNotAvail SchedDefer",
    "dependency": "BeginTime BurstBufferStageIn Cleaning Dependency FedJobLock Prolog Reservation",
    "hold": "BurstBufferOperation InactiveLimit JobHeldAdmin JobHeldUser JobHoldMaxRequeue JobLaunchFailure "
    "NonZeroExitCode OutOfMemory RaisedSignal ReservationDeleted ReservationInvalid SystemFailure TimeLimit",
    "never": "AccountNotAllowed BadConstraints DeadLine DependencyNeverSatisfied InvalidAccount InvalidQOS "
    "MaxMemPerLimit PartitionConfig PartitionNodeLimit PartitionTimeLimit QOSNotAllowed QOSMinCpuNotSatisfied "
    "AssocMaxBBMinutesPerJob AssocMaxCpuMinutesPerJobLimit AssocMaxCpuPerJobLimit AssocMaxCpuPerNode "
    "AssocMaxGRESPerJob AssocMaxMemPerNode AssocMaxNodePerJobLimit AssocMaxWallDurationPerJobLimit "
    "QOSMaxBillingPerNode QOSMaxCpuPerJobLimit QOSMaxMemoryMinutesPerJob QOSMaxNodeMinutesPerJob "
    "QOSMaxWallDurationPerJobLimit QOSMinBB QOSMinGRES QOSMinMemory QOSMinNode",
    "limit": "AccountingPolicy AssocGrpBB AssocGrpCPUMinutesLimit AssocGrpCpuLimit AssocGrpGRES AssocGrpJobsLimit "
    "AssocGrpWallLimit AssocMaxJobsLimit AssocMaxSubmitJobLimit AssociationJobLimit AssociationResourceLimit "
    "AssociationTimeLimit BurstBufferResources JobArrayTaskLimit Licenses MaxBBRunMinsPerUser MaxCpuPerAccount "
    "MaxGRESPerAccount MaxJobsPerAccount MaxPoweredUpNodes MpiPortsBusy NodeDown NvidiaImexChannels PartitionDown "
    "PartitionInactive QOSGrpCpuLimit QOSGrpNodeLimit QOSJobLimit QOSMaxCpuPerUserLimit QOSMaxGRESPerUser "
    "QOSMaxJobsPerUserLimit QOSResourceLimit QOSTimeLimit QOSUsageThreshold",
}


@pytest.mark.parametrize("kind", REASONS)
def test_reasons(kind: str) -> None:
    """What waits for room, or behind others, is wanted; what no room would start is capped under Slurm's own reason."""
    for reason in REASONS[kind].split():
        assert reason_class(reason) == kind, reason
        found = read(nodes("c1"), job("a", times=3, state_reason=reason, state_description=f"{reason}, more"))
        said = {"a": {"" if kind == "room" else f"{reason}, more": 3}}
        assert (found.waiting, found.capped) == ((said, {}) if kind in ("room", "turn") else ({}, said))


def test_reasons_that_are_not_known_are_said() -> None:
    found = read(nodes("c1"), job("a", state_reason="OfNextYear") + job("b", hold=True))
    assert (found.waiting, found.capped) == ({"a": {"OfNextYear": 1}}, {"b": {"JobHeldUser": 1}})


FIELDS = [
    (kind, name, part) for kind, table in table("slurm").items() for part, names in table.items() for name in names
]


def test_every_field_is_used_or_noted_or_without_bearing() -> None:
    """A field has one of the three, those that are used stand in the reader, and those that are noted are, if there."""
    assert len(FIELDS) == len({(kind, name) for kind, name, _ in FIELDS})
    source = "".join(inspect.getsource(module) for module in (slurm, _slurm_shares)).replace("'", '"')
    for kind, name, part in FIELDS:
        assert part != "used" or f'"{name}"' in source, name
        for value in ("some", {"set": True, "infinite": False, "number": 7}, True, ["some"]):
            said = slurm._unused({kind: [{name: value}, {name: None}]})
            assert [f"{kind} {name} is not used" in note for note in said] == [True] * (part == "noted")
        for nothing in ("", "(null)", "N/A", 0, False, None, [], {}, {"set": False, "infinite": False, "number": 7}):
            assert slurm._unused({kind: [{name: nothing}]}) == []
    assert slurm._unused({"jobs": [{"of_next_year": 1}]}) == ["Not known, and not used: of_next_year of jobs."]


def test_notes_of_a_snapshot() -> None:
    """Of jobs that run or wait, and of nodes that are available."""
    ended = job("a", job_state=["COMPLETED"], licenses="x")
    found = read(
        [*nodes("c1"), *nodes("c2", state=["DOWN"], owner="root")],
        job("a", on="c1", job_id=1, contiguous=True) + ended,
    )
    assert [*found.notes] == [
        "jobs contiguous is not used: neighbouring nodes are not required here, so that less may fit "
        "than it seems (1).",
    ]
