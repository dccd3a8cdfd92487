"""What readers of traces do alike: folders, draws with a generator, malformed rows that are named or skipped."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from fairopt.errors import DataError
from fairopt.workloads import alibaba, bitbrains, google2011

from .conftest import MACHINES, NODES, PODS, TASKS
from .test_bitbrains import START, every

VMS = {vm: every(300, 3, mhz=100.0 * vm) for vm in (2, 10, 100, 1000)}
#: What a reader is given unless a test says otherwise, and how it is called.
READERS = {
    "google": ({}, partial(google2011.cluster, at=0)),
    "alibaba": ({}, alibaba.cluster),
    "bitbrains": ({"vms": VMS}, partial(bitbrains.cluster, at=START)),
}


@pytest.fixture
def made(request, reader):
    """Write a folder for the reader, with other rows perhaps."""
    return lambda **more: request.getfixturevalue(reader)(**READERS[reader][0] | more)


@pytest.mark.parametrize(
    ("reader", "option", "count"),
    [("google", {"users": 1}, 2), ("alibaba", {"users": 1}, 3), ("bitbrains", {"vms": 2}, 6)],
)
def test_users_are_drawn_with_the_generator(made, reader, option, count):
    folder, read = made(), READERS[reader][1]
    drawn = [read(folder, **option, rng=np.random.default_rng(k)).cluster for k in (0, *range(30))]
    assert drawn[0] == drawn[1]
    assert len({cluster.users for cluster in drawn}) == count  # all of them turn up
    assert {len(cluster.users) for cluster in drawn} == {*option.values()}
    with pytest.raises(DataError, match="rng="):
        read(folder, **option)
    with pytest.raises(DataError, match="only"):
        read(folder, **dict.fromkeys(option, 9), rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("reader", "inside", "expected"),
    [
        ("google", ("task_events", "machine_events"), "machine_events and task_events"),
        ("alibaba", (), r"openb_node_list_all_node\.csv .*openb_pod_list_<variant>\.csv"),
    ],
)
def test_folders(made, reader, inside, expected, tmp_path):
    folder, read = made(), READERS[reader][1]
    wanted = read(folder).cluster
    for directory in (tmp_path, str(folder), *(folder / name for name in inside)):
        assert read(directory).cluster == wanted
    with pytest.raises(DataError, match=f"not a folder; expected .*{expected}"):
        read(tmp_path / "missing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=f"holds no trace.*{expected}"):
        read(tmp_path / "empty")


def machine(row):
    given = {"machines": [*MACHINES[:3], row, *MACHINES[3:]]}
    return "google", given, r"part-00000-of-00001\.csv\.gz, line 4: ", "machine_events "


def task(row):
    return "google", {"tasks": [TASKS[0], row, *TASKS[1:]]}, r"part-00000-of-00500\.csv\.gz, line 2: ", "task_events "


def pod(row, what):
    return "alibaba", {"pods": [*PODS, row]}, rf"gpuspec33\.csv, line 7: .*{what}", "openb_pod_list_gpuspec33 "


def sample(field, text, what):
    rows = every(300, 3)
    rows[1][field] = text
    return "bitbrains", {"vms": {**VMS, 2: rows}}, rf"2\.csv, line 3: .*{what}", ""


@pytest.mark.parametrize(
    ("reader", "given", "message", "of"),
    [
        *map(machine, ["0,6,3,p,1,1", "0,6,0,p,one,1", "0,,0,p,1,1"]),
        *map(task, ["0,,1,0,,9,u,2,0,1,1,1,0", "0,,1,0,,0,u,2,0,1", "0,,1,x,,0,u,2,0,1,1,1,0"]),
        pod("p9,4000,2O48,1,500,T4,LS,Running,0,100,0", "memory_mib '2O48'; it must be a whole number"),
        pod("p9,4000,2048,1,1500,T4,LS,Running,0,100,0", "gpu_milli '1500'; it must be a whole number from 0 to 1000"),
        pod("p9,4000,2048,1,500,T4,,Running,0,100,0", "no qos"),
        ("alibaba", {"nodes": [*NODES[:2], "n9,1,1,two,G2", *NODES[2:]]}, r"all_node\.csv, line 3: .*gpu 'two'",
         "openb_node_list_all_node "),
        sample(0, "now", r"Timestamp \[ms\] 'now'; it must be a whole number"),
        sample(6, "-1.0", r"Memory usage \[KB\] '-1.0'; it must be a number >= 0"),
        sample(9, "", r"no Network received throughput \[KB/s\]"),
    ],
)  # fmt: skip
def test_malformed_rows_are_named_or_skipped(made, reader, given, message, of):
    folder, read = made(**given), partial(READERS[reader][1], **({"vms": None} if reader == "bitbrains" else {}))
    with pytest.raises(DataError, match=message):
        read(folder)
    skipped = read(folder, skip_malformed=True)
    assert skipped.report[f"{of}rows skipped as malformed"] == 1
    whole = read(made())
    assert skipped.cluster.users == whole.cluster.users
    assert skipped.cluster == whole.cluster or reader == "bitbrains"  # of one sample less the mean is another
