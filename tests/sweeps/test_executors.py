"""Whoever computes the cells, and whatever dies on the way: the same rows, bit by bit."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fairopt import harness, mechanisms
from fairopt.errors import FairoptError
from fairopt.harness import executors
from fairopt.harness.cell import Named, Work
from fairopt.harness.ends import Stopped
from fairopt.harness.run import run

from .small import CELLS, cells_of, command, dask_cluster, keys_stored, sweep, until

ENDED = {"status": "ok", "finished": datetime(2026, 1, 1, tzinfo=UTC)}


def works(cells: list[harness.Cell]) -> list[Work]:
    return executors.works(cells, [cell.key for cell in cells])


def all_there(store: harness.Store, serial: harness.Store) -> None:
    """Every cell once, with the bits that it has when it is computed here."""
    assert len(keys_stored(store.folder)) == CELLS
    assert store.read().same_as(serial.read()) == []


@contextmanager
def killed(when: Callable[[], bool], kill: Callable[[], None]) -> Iterator[None]:
    """Somebody who kills as soon as something has happened."""
    murder = threading.Thread(target=lambda: (until(when), kill()))
    murder.start()
    try:
        yield
    finally:
        murder.join(timeout=600)


def test_cells_sent_together_come_back_in_time(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a worker has is handed in after a quarter of a second; the other cells are given back, not kept waiting."""
    todo = works(cells_of(file))
    clock = iter([0.0, 0.1, 0.2, 0.3])
    monkeypatch.setattr(executors.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(executors, "run", lambda cell, *_: {"key": cell.key} | ENDED)
    rows, rest = executors.several(todo, None, 1)
    assert (rows.keys, rest) == ([work.cells[0].key for work in todo[:3]], todo[3:])
    found = executors.batches(todo * 20, 2)
    assert [work for batch in found for work in batch] == todo * 20
    assert {len(batch) for batch in found} == {16, len(todo) * 20 % 16}


def test_any_executor_gives_the_same_bits(file: Path, serial: harness.Store, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as one:
        sweep(file, tmp_path, executor=one)
        assert one.submit(int).result() == 0  # and is left as it was
    all_there(harness.Store(tmp_path), serial)


def test_a_process_that_dies_costs_its_cells_once_more(file: Path, serial: harness.Store, tmp_path: Path) -> None:
    store = harness.Store(tmp_path)

    def kill() -> None:
        os.kill(int(store.read().frame()["process"].iloc[0]), signal.SIGKILL)

    with killed(lambda: len(keys_stored(tmp_path)) >= 3, kill):
        frame = sweep(file, store, jobs=2)
    assert frame["process"].nunique() >= 3
    assert os.getpid() not in frame["process"].tolist()
    assert set(frame["threads"]) == {1}
    all_there(store, serial)


@pytest.mark.long
def test_dask_loses_a_worker_and_no_cell_and_its_scheduler_and_no_cell_fails(
    file: Path, serial: harness.Store, tmp_path: Path
) -> None:
    distributed = pytest.importorskip("distributed")
    store, other = harness.Store(tmp_path / "store"), harness.Store(tmp_path / "other")
    with dask_cluster(tmp_path, 2) as (address, (scheduler, victim, survivor)):

        def at_work() -> bool:
            return store.file.exists() and victim.pid in store.read().frame()["process"].tolist()

        with distributed.Client(address, set_as_default=False) as client, killed(at_work, victim.kill):
            frame = sweep(file, store, executor=client.get_executor(pure=False), jobs=2)
        with (
            command("sweep", file, "--store", other.folder, "--dask", address) as process,
            killed(lambda: len(keys_stored(other.folder)) >= 5, scheduler.kill),
        ):
            _, said = process.communicate(timeout=600)
    # Every cell exactly once, most by the survivor, and what the dead one had handed in was kept.
    assert set(frame["process"]) == {victim.pid, survivor.pid}
    all_there(store, serial)
    frame = other.read().frame()
    assert process.returncode == 1
    assert 5 <= len(frame) < CELLS
    assert "failed" not in frame["status"].tolist()
    assert f"{len(frame)} of {CELLS} cells of small are stored in {other.folder}; the same command again goes" in said
    # The next run computes what was lost, and all is as if nothing had happened.
    sweep(file, other)
    all_there(other, serial)


class Deadly(Executor):
    """Computes nothing: a batch with the deadly cell raises an error, others have rows."""

    def __init__(self, deadly: str, error: BaseException) -> None:
        self.deadly, self.error = deadly, error

    def submit(self, function: object, /, *given: Any, **_: Any) -> Future[Any]:
        future, keys = Future[Any](), [cell.key for work in given[0] for cell in work.cells]
        if self.deadly in keys:
            future.set_exception(self.error)
        else:
            future.set_result(([{"key": key} for key in keys], []))
        return future


@pytest.mark.parametrize(
    ("error", "raised", "said"),
    [
        (MemoryError("4 workers died"), Stopped, r"1 cells were not .* such as .* on .*: MemoryError: 4 workers died"),
        (harness.Elsewhere("other code"), harness.Elsewhere, "other code"),
        (CancelledError(), Stopped, "are gone, or were told to give up"),
        (BrokenExecutor("killed"), Stopped, r"processes die again and again \(memory\?\)"),
    ],
)
def test_what_becomes_of_a_sweep_whose_workers_die_of_a_cell(
    file: Path, error: BaseException, raised: type[Exception], said: str
) -> None:
    """Of other errors than those of a whole executor nobody knows what the cell would have raised: it is no failed
    cell, and the others are computed."""
    todo = works(cells_of(file))
    keys = {work.cells[0].key for work in todo}
    deadly = todo[5].cells[0].key
    rows = executors.on(Deadly(deadly, error), 2)(todo, None, 1)
    got: list[str] = []
    with pytest.raises(raised, match=said):
        got.extend(row["key"] for some in rows for row in some)  # type: ignore[index]
    if isinstance(error, MemoryError):
        assert sorted(got) == sorted(keys - {deadly})


def test_a_process_that_read_other_code_computes_nothing(file: Path) -> None:
    cell = cells_of(file)[0]
    nobodys = dataclasses.replace(cell.job, what=Named("nobodys", mechanisms.one))
    for change, said in (({"code": "0" * 24}, "has other code for drfh"), ({"job": nobodys}, "does not know nobodys")):
        with pytest.raises(harness.Elsewhere, match=said):
            run(dataclasses.replace(cell, **change))


def test_two_at_once_into_one_store(file: Path, serial: harness.Store, tmp_path: Path) -> None:
    store = harness.Store(tmp_path)
    with command("sweep", file, "--store", tmp_path) as other:
        until(lambda: len(keys_stored(tmp_path)) > 0)
        sweep(file, store)
        said = other.communicate(timeout=600)
    assert other.returncode == 0, said
    assert said[0].startswith(f"small: {CELLS} cells in")
    assert not store.read().damaged
    all_there(store, serial)


def test_no_scheduler_is_said_in_one_line() -> None:
    pytest.importorskip("distributed")
    import dask

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "2s"}),
        pytest.raises(FairoptError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"),
        executors.dask("tcp://127.0.0.1:9"),
    ):
        pytest.fail("there is no scheduler")
