"""Whoever computes the cells, and whatever dies on the way: the same rows, bit by bit."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from fairopt import harness
from fairopt.errors import FairoptError
from fairopt.harness import executors

from .sweeps import CELLS, keys_stored, parts, until


def test_the_order_of_cells_does_not_matter(file: Path, serial: harness.Store, tmp_path: Path) -> None:
    store = harness.Store(tmp_path)
    cells = harness.cells(harness.load(file))
    for rows in executors.serial(cells[::-1], None, 1):
        store.write(rows)
    assert store.read().same_as(serial.read()) == []


def test_cells_sent_together_come_back_in_time(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a worker has is handed in after a quarter of a second; the other cells are given back, not kept waiting."""
    cells = harness.cells(harness.load(file))
    clock = iter([0.0, 0.1, 0.2, 0.3])
    monkeypatch.setattr(executors.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(executors, "run", lambda cell, *_: {"key": cell.key})
    rows, rest = executors.several(cells, None, 1)
    assert [row["key"] for row in rows] == [cell.key for cell in cells[:3]]
    assert rest == cells[3:]
    assert [cell for batch in executors._batches(cells, 2) for cell in batch] == cells
    assert {len(batch) for batch in executors._batches(cells * 20, 2)} == {16, len(cells) * 20 % 16}


def test_processes_give_the_same_bits(file: Path, serial: harness.Store, tmp_path: Path) -> None:
    frame = harness.sweep(file, store=tmp_path, jobs=2, progress=False)
    assert len(frame) == len(keys_stored(tmp_path)) == CELLS
    assert os.getpid() not in frame["process"].tolist()
    assert set(frame["threads"]) == {1}
    assert harness.Store(tmp_path).read().same_as(serial.read()) == []


@pytest.mark.slow
def test_a_process_that_dies_costs_its_cells_once_more(file: Path, serial: harness.Store, tmp_path: Path) -> None:
    store = tmp_path / "store"

    def kill() -> None:
        until(lambda: len(parts(store)) >= 3)
        os.kill(int(harness.Store(store).read().frame()["process"].iloc[0]), signal.SIGKILL)

    murder = threading.Thread(target=kill)
    murder.start()
    try:
        frame = harness.sweep(file, store=store, jobs=2, progress=False)
    finally:
        murder.join(timeout=150)
    assert frame["process"].nunique() >= 3
    assert sorted(keys_stored(store)) == sorted(frame["key"])
    assert harness.Store(store).read().same_as(serial.read()) == []


@contextmanager
def dask_cluster(folder: Path, workers: int) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A real scheduler and workers, each a process of its own, on loopback."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    root = str(Path(__file__).parents[2])
    env = os.environ | {"PYTHONPATH": root, "OMP_NUM_THREADS": "1", "DASK_TEMPORARY_DIRECTORY": str(folder)}
    common = ["--no-dashboard", "--host", "127.0.0.1"]
    commands = [["dask_scheduler", *common, "--port", address.rpartition(":")[2]]]
    commands += [["dask_worker", address, *common, "--nthreads", "1", "--no-nanny"]] * workers
    with ExitStack() as stack:
        running = []
        for k, (module, *arguments) in enumerate(commands):
            log = stack.enter_context(open(folder / f"{k}.log", "wb"))
            words = [sys.executable, "-m", f"distributed.cli.{module}", *arguments]
            running.append(subprocess.Popen(words, stdout=log, stderr=log, env=env, cwd=folder))
        try:
            yield address, running[1:]
        finally:
            for process in reversed(running):
                process.terminate()
            for process in running:
                try:
                    process.wait(timeout=20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait(timeout=20)


@pytest.mark.slow
def test_dask_loses_a_worker_and_no_cell(file: Path, serial: harness.Store, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    store = tmp_path / "store"
    at_death: list[int] = []
    with dask_cluster(tmp_path, 2) as (address, workers):
        victim = workers[0]

        def kill() -> None:
            until(lambda: store.exists() and victim.pid in harness.Store(store).read().frame()["process"].tolist())
            victim.kill()
            at_death.append(len(keys_stored(store)))

        murder = threading.Thread(target=kill)
        murder.start()
        try:
            frame = harness.sweep(file, store=store, dask=address, progress=False)
        finally:
            murder.join(timeout=150)
    assert at_death
    assert at_death[0] < CELLS
    assert victim.returncode == -signal.SIGKILL
    # Every cell exactly once, most by the survivor, and what the dead one had handed in was kept.
    assert sorted(keys_stored(store)) == sorted(frame["key"])
    assert len(frame) == CELLS
    assert set(frame["process"]) == {victim.pid, workers[1].pid}
    assert harness.Store(store).read().same_as(serial.read()) == []


def test_no_scheduler_is_said_in_one_line(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(executors, "_PATIENCE", 0.5)
    with pytest.raises(FairoptError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        harness.sweep(file, store=tmp_path, dask="tcp://127.0.0.1:9", progress=False)
