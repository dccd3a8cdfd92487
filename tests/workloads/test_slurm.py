"""Slurm's snapshots: nodes, jobs and shares; damaged ones get a clear error."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.errors import DataError

Object = dict[str, Any]

NODES: list[Object] = [
    {"name": "c1", "state": ["IDLE"], "cpus": 64, "effective_cpus": 62, "real_memory": 131072,
     "specialized_memory": 2048, "partitions": ["batch"], "tres": "cpu=62,mem=129024M,billing=62", "features": ["amd"]},
    {"name": "g1", "state": "MIXED", "effective_cpus": {"set": True, "infinite": False, "number": 32},
     "real_memory": 65536, "partitions": "gpu,batch", "tres": "cpu=32,mem=64G,gres/gpu=4,gres/gpu:a100=4",
     "features": "intel,big"},
    {"name": "d1", "state": "idle", "state_flags": ["DRAIN"], "effective_cpus": 8, "real_memory": 1024,
     "partitions": ["batch"]},
]  # fmt: skip
JOBS: list[Object] = [
    {"job_id": 1, "account": "bio", "user_name": "eve", "partition": "batch", "job_state": ["RUNNING"],
     "tres_req_str": "cpu=8,mem=16G,node=2,billing=8", "node_count": {"set": True, "infinite": False, "number": 2}},
    {"job_id": 2, "account": "bio", "user_name": "bob", "partition": "batch", "job_state": "PENDING",
     "tres_req_str": "cpu=4,mem=8192M,node=1", "node_count": 1, "array_task_string": "1-9:2,20%3"},
    {"job_id": 3, "account": "ml", "user_name": "ann", "partition": "gpu", "job_state": ["RUNNING"],
     "tres_req_str": "cpu=4,mem=32G,node=1,gres/gpu=2", "node_count": 1, "features": "intel&big|amd"},
    {"job_id": 4, "account": "ml", "user_name": "ann", "partition": "gpu", "job_state": ["COMPLETED"]},
    {"job_id": 5, "account": "lost", "user_name": "joe", "partition": "old", "job_state": ["PENDING"],
     "tres_req_str": "cpu=1"},
]  # fmt: skip
SHARES: Object = {
    "shares": {
        "shares": [
            {"name": "root", "type": ["ASSOCIATION"], "shares": {"set": True, "infinite": False, "number": 1}},
            {"name": "bio", "type": ["ASSOCIATION"], "shares": {"set": True, "infinite": False, "number": 30}},
            {"name": "ml", "shares": 10},
            {"name": "eve", "type": ["USER"], "shares": 99},
        ]
    }
}


def written(folder: Path, **changed: Any) -> Path:
    contents = {"nodes": {"nodes": NODES}, "jobs": {"jobs": JOBS}, "shares": SHARES}
    for name, content in (contents | {name: {name: objects} for name, objects in changed.items()}).items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def test_a_snapshot_becomes_a_cluster(tmp_path: Path) -> None:
    found = fo.open_source(f"slurm:{written(tmp_path)}")
    cluster = found.cluster
    assert cluster.servers == ("c1", "g1")
    assert cluster.resources == ("cpu", "memory", "gres/gpu")
    np.testing.assert_allclose(cluster.capacity, [[62, 126, 0], [32, 64, 4]])
    assert cluster.users == ("bio", "ml")
    np.testing.assert_allclose(cluster.demand, [[4, 8, 0], [4, 32, 2]])
    assert cluster.max_tasks.tolist() == [
        2 + 3,
        1,
    ]  # two nodes, and three at once of the elements 1 3 5 7 9 20 of an array
    assert cluster.eligible.tolist() == [[True, True], [False, True]]
    assert cluster.weight.tolist() == [30, 10]
    assert found.left_out == {"lost": "no node has its partition and features"}
    assert found.report["nodes that are down or drained, left out"] == 1
    assert (found.report["jobs running"], found.report["jobs pending"]) == (2, 2)
    people = fo.open_source(f"slurm:{tmp_path}?by=user&max_tasks=no").cluster
    assert people.users == ("bio/eve", "bio/bob", "ml/ann")
    assert people.weight.tolist() == [15, 15, 10]


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("nodes", 0, "effective_cpus"), "many", "effective_cpus of node c1 is 'many'"),
        (("nodes", 0, "name"), None, "a node has the name 'None'"),
        (("nodes", 1, "tres"), "cpu=x", "tres of node g1 has 'cpu=x'"),
        (("nodes", 1, "partitions"), 3, "partitions of node g1 is '3'"),
        (("jobs", 0, "tres_req_str"), "mem=1X", "tres_req_str of job 1 has 'mem=1X'"),
        (("jobs", 1, "array_task_string"), "a-b", "array_task_string of job 2"),
        (("jobs", 1, "array_task_string"), "0-99999999", "stands for 100000000 jobs"),
        (("jobs", 0, "node_count"), -1, "node_count of job 1 is '-1'"),
        (("jobs", 0, "node_count"), 10**12, "job 1 stands for 1000000000000 tasks"),
        (("jobs", 2, "features"), 3, "features of job 3"),
        (("jobs", 0, "nodes"), {"a": 1}, "nodes of job 1 is "),
        (("jobs", 0, "nodes"), "n[1-999999]m[1-9]", "nodes of job 1 is "),
        (("jobs", 0, "job_resources"), {"allocated_nodes": [{"cpus": "x"}]}, "cpus of job 1 is 'x'"),
        (("nodes", 1, "gres"), {}, "gres of node g1 is "),
    ],
)
def test_what_is_damaged_is_named(tmp_path: Path, place: tuple[Any, ...], value: Any, message: str) -> None:
    data = copy.deepcopy({"nodes": NODES, "jobs": JOBS})
    data[place[0]][place[1]][place[2]] = value
    with pytest.raises(DataError, match=message):
        fo.open_source(f"slurm:{written(tmp_path, **data)}")


def test_files_that_are_not_there_or_empty(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no Slurm snapshot; expected nodes\.json"):
        fo.open_source(f"slurm:{tmp_path}")
    for given, message in (
        ({"nodes": 3}, r"nodes\.json has no list 'nodes'"),
        ({"nodes": NODES[2:]}, "no node that jobs may use"),
        ({"jobs": JOBS[3:4]}, "no job that runs or waits"),
    ):
        with pytest.raises(DataError, match=message):
            fo.open_source(f"slurm:{written(tmp_path, **given)}")
    (tmp_path / "jobs.json").write_text("[")
    with pytest.raises(DataError, match=r"jobs\.json:1: not valid JSON"):
        fo.open_source(f"slurm:{tmp_path}")
