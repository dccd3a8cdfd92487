"""Tiny traces in the original formats, and the real ones where they are."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

Write = Callable[..., Path]


BITBRAINS_HEADER = ";\t".join(
    [
        "Timestamp [ms]",
        "CPU cores",
        "CPU capacity provisioned [MHZ]",
        "CPU usage [MHZ]",
        "CPU usage [%]",
        "Memory capacity provisioned [KB]",
        "Memory usage [KB]",
        "Disk read throughput [KB/s]",
        "Disk write throughput [KB/s]",
        "Network received throughput [KB/s]",
        "Network transmitted throughput [KB/s]",
    ]
)
MACHINES = [
    "0,1,0,HofLGzk1Or/8=,0.5,0.2493",
    "0,2,0,HofLGzk1Or/8=,0.5,0.4995",
    "0,3,0,HofLGzk1Or/8=,,",  # never known
    "0,4,0,HofLGzk1Or/8=,1,1",
    "700000000,1,2,HofLGzk1Or/8=,0.5,0.749",  # UPDATE
    "800000000,2,1,HofLGzk1Or/8=,0.5,0.4995",  # REMOVE
    "900000000,5,0,HofLGzk1Or/8=,0.25,0.2498",
    "900000000,2,0,HofLGzk1Or/8=,,",  # back, capacity not repeated
]
TASKS = [
    "0,2,10,0,77,0,alice+/aaaaaaaa=,3,9,,,,",  # missing_info: requests unknown
    "0,,10,1,77,0,alice+/aaaaaaaa=,3,9,0.02,0.04,7.057e-05,0",
    "0,,10,1,77,1,alice+/aaaaaaaa=,3,9,0.02,0.04,7.057e-05,0",
    "0,,11,0,,0,bob+++++bbbbbbbb=,2,0,7.5e-05,0,0.1,0",
    "0,,12,0,,0,carol+++cccccccc=,2,0,0,0,0.1,0",  # asks for neither cpu nor memory
    "0,2,13,0,,0,dave++++dddddddd=,2,0,,,,",
    "600030000,,10,1,77,2,alice+/aaaaaaaa=,3,9,0.02,0.04,7.057e-05,0",  # EVICT
    "600030000,,10,1,,0,alice+/aaaaaaaa=,3,9,0.02,0.04,7.057e-05,0",  # submitted again
    "700000000,,10,2,,0,alice+/aaaaaaaa=,3,9,0.06,0.08,0,1",
    "700000000,,11,0,,4,bob+++++bbbbbbbb=,2,0,7.5e-05,0,0.1,0",  # FINISH
    "800000000,,14,0,,0,erin++++eeeeeeee=,2,0,0.3,0.1,0.1,0",
]
NODES = [
    "sn,cpu_milli,memory_mib,gpu,model",
    "n0,32000,262144,0,",
    "n1,96000,393216,8,G2",
    "n2,104000,524288,2,T4",
]
PODS = [
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time",
    "p0,4000,2048,1,500,T4|G2,LS,Running,0,100,0",
    "p1,8000,4096,1,500,G2|T4|T4,LS,Running,50,100,50",  # the same set of models
    "p2,12000,0,0,0,,BE,Pending,60,200,",  # no GPU, memory 0, never scheduled
    "p3,1000,1024,2,1000,V100,LS,Failed,60,200,61",  # no such node
    "p4,2000,1024,2,1000,T4,LS,Failed,60,200,61",
]


def write_lines(path: Path, lines: Iterable[str]) -> Path:
    """Lines ending in LF, gzipped if the name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = "".join(line + "\n" for line in lines).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.fixture
def write() -> Write:
    return write_lines


@pytest.fixture
def google(tmp_path: Path) -> Write:
    """Write a Google folder with these lines; returns it."""

    def make(machines: Iterable[str] = MACHINES, tasks: Iterable[str] = TASKS) -> Path:
        folder = tmp_path / "google-2011"
        write_lines(folder / "machine_events" / "part-00000-of-00001.csv.gz", machines)
        write_lines(folder / "task_events" / "part-00000-of-00500.csv.gz", tasks)
        return folder

    return make


@pytest.fixture
def bitbrains(tmp_path: Path) -> Write:
    """Write VM files: `{vm: [row, ...]}`, a row the eleven fields; returns the folder."""

    def make(vms: dict[int, list[list[object]]], suffix: str = ".csv", part: str = "rnd/2013-8") -> Path:
        folder = tmp_path / "bitbrains" / part
        for vm, rows in vms.items():
            lines = [BITBRAINS_HEADER, *(";\t".join(str(field) for field in row) for row in rows)]
            write_lines(folder / f"{vm}{suffix}", lines)
        return folder

    return make


@pytest.fixture
def alibaba(tmp_path: Path) -> Write:
    def make(nodes: Iterable[str] = NODES, pods: Iterable[str] = PODS) -> Path:
        folder = tmp_path / "alibaba-gpu-v2023"
        write_lines(folder / "openb_node_list_all_node.csv", nodes)
        write_lines(folder / "openb_pod_list_gpuspec33.csv", pods)
        return folder

    return make


@pytest.fixture(scope="session")
def traces() -> Path:
    """The folder of the real traces."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "traces"
    root = Path(os.environ.get("FAIROPT_TRACES") or beside)
    if not root.is_dir():
        pytest.skip("no real traces: set FAIROPT_TRACES to their folder")
    return root


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)
