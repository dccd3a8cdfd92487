"""Whoever computes the cells, and whatever dies on the way: the same rows, bit by bit."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from fairopt import mechanisms, sweeps
from fairopt.errors import FairoptError
from fairopt.sweeps import executors
from fairopt.sweeps.cell import Named, Work
from fairopt.sweeps.ends import Stopped
from fairopt.sweeps.run import run

from .small import CELLS, command, dask_cluster, keys_stored, until

ENDED = {"status": "ok", "finished": datetime(2026, 1, 1, tzinfo=UTC)}


def works(cells: list[sweeps.Cell]) -> list[Work]:
    return executors.works(cells, [cell.key for cell in cells])


def test_the_order_of_cells_does_not_matter(file: Path, serial: sweeps.Store, tmp_path: Path) -> None:
    store = sweeps.Store(tmp_path)
    cells = sweeps.cells_of(sweeps.load(file))
    for rows in executors.serial(works(cells)[::-1], None, 1):
        store.write(rows)
    assert store.read().same_as(serial.read()) == []


def test_cells_sent_together_come_back_in_time(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a worker has is handed in after a quarter of a second; the other cells are given back, not kept waiting."""
    todo = works(sweeps.cells_of(sweeps.load(file)))
    clock = iter([0.0, 0.1, 0.2, 0.3])
    monkeypatch.setattr(executors.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(executors, "run", lambda cell, *_: {"key": cell.key} | ENDED)
    rows, rest = executors.several(todo, None, 1)
    assert rows.keys == [work.cells[0].key for work in todo[:3]]
    assert rest == todo[3:]
    assert [work for batch in executors.batches(todo, 2) for work in batch] == todo
    assert {len(batch) for batch in executors.batches(todo * 20, 2)} == {16, len(todo) * 20 % 16}


def test_processes_give_the_same_bits(file: Path, serial: sweeps.Store, tmp_path: Path) -> None:
    frame = sweeps.sweep(file, store=tmp_path, jobs=2, progress=False)
    assert len(frame) == len(keys_stored(tmp_path)) == CELLS
    assert os.getpid() not in frame["process"].tolist()
    assert set(frame["threads"]) == {1}
    assert sweeps.Store(tmp_path).read().same_as(serial.read()) == []


@pytest.mark.slow
def test_a_process_that_dies_costs_its_cells_once_more(file: Path, serial: sweeps.Store, tmp_path: Path) -> None:
    store = tmp_path / "store"

    def kill() -> None:
        until(lambda: len(keys_stored(store)) >= 3)
        os.kill(int(sweeps.Store(store).read().frame()["process"].iloc[0]), signal.SIGKILL)

    murder = threading.Thread(target=kill)
    murder.start()
    try:
        frame = sweeps.sweep(file, store=store, jobs=2, progress=False)
    finally:
        murder.join(timeout=600)
    assert frame["process"].nunique() >= 3
    assert sorted(keys_stored(store)) == sorted(frame["key"])
    assert sweeps.Store(store).read().same_as(serial.read()) == []


@pytest.mark.slow
def test_dask_loses_a_worker_and_no_cell(file: Path, serial: sweeps.Store, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    store = tmp_path / "store"
    at_death: list[int] = []
    with dask_cluster(tmp_path, 2) as (address, workers):
        _, victim, survivor = workers

        def kill() -> None:
            until(lambda: store.exists() and victim.pid in sweeps.Store(store).read().frame()["process"].tolist())
            victim.kill()
            at_death.append(len(keys_stored(store)))

        murder = threading.Thread(target=kill)
        murder.start()
        try:
            frame = sweeps.sweep(file, store=store, dask=address, progress=False)
        finally:
            murder.join(timeout=600)
    assert at_death
    assert at_death[0] < CELLS
    assert victim.returncode == -signal.SIGKILL
    # Every cell exactly once, most by the survivor, and what the dead one had handed in was kept.
    assert sorted(keys_stored(store)) == sorted(frame["key"])
    assert len(frame) == CELLS
    assert set(frame["process"]) == {victim.pid, survivor.pid}
    assert sweeps.Store(store).read().same_as(serial.read()) == []


class _LostTwice:
    """A future whose worker dies when it is there, and the next one as well, before anybody has fetched it."""

    key = "k"

    def __init__(self) -> None:
        self.left = iter(["lost", "lost"])

    @property
    def status(self) -> str:
        return self._now

    def add_done_callback(self, call: Callable[[object], None]) -> None:
        self._now = next(self.left, "finished")
        call(self)

    def result(self, timeout: float) -> tuple[list[dict[str, str]], tuple[()]]:
        return [{"key": self.key}], ()

    def release(self) -> None: ...


def test_what_is_lost_before_it_is_fetched_is_waited_for() -> None:
    scheduler = SimpleNamespace(ncores=None, address="tcp://nobody")
    client = SimpleNamespace(status="running", scheduler=scheduler, cancel=lambda _: None,
                             map=lambda *_, **__: [_LostTwice()], sync=lambda *_, **__: {"worker": 1})  # fmt: skip
    assert list(executors.handed_in(client, [[]], executors.several, None, 1)) == [[{"key": "k"}]]  # type: ignore[arg-type]


def ended(store: Path, file: Path, address: str, kill: Callable[[], None], after: int = 5) -> str:
    """What a sweep on Dask says that somebody puts an end to when some cells are stored; only good rows are there."""

    def wait_and_kill() -> None:
        until(lambda: len(keys_stored(store)) >= after)
        kill()

    murder = threading.Thread(target=wait_and_kill)
    murder.start()
    try:
        with pytest.raises(Stopped) as stopped:
            sweeps.sweep(file, store=store, dask=address, progress=False)
    finally:
        murder.join(timeout=600)
    frame = sweeps.Store(store).read().frame()
    assert after <= len(frame) < CELLS
    assert "failed" not in frame["status"].tolist()
    said = str(stopped.value)
    assert f"{len(frame)} of {CELLS} cells of small are stored in {store}; the same command again goes on from" in said
    return said


@pytest.mark.slow
@pytest.mark.parametrize(
    "how", [signal.SIGSTOP, *(pytest.param(one, marks=pytest.mark.long) for one in (signal.SIGKILL, signal.SIGTERM))]
)
def test_a_lost_scheduler_is_no_failure_of_cells(
    file: Path, serial: sweeps.Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(executors, "PATIENCE", 30.0)
    store = tmp_path / "store"
    with dask_cluster(tmp_path, 2) as (address, (scheduler, *_)):
        said = ended(store, file, address, lambda: scheduler.send_signal(how))
        scheduler.send_signal(signal.SIGCONT)
    assert f"the Dask scheduler at {address}" in said
    assert said.count("\n") == 0
    # The next run computes what was lost, and all is as if nothing had happened.
    sweeps.sweep(file, store=store, progress=False)
    assert sweeps.Store(store).read().same_as(serial.read()) == []


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_when_no_worker_is_left_the_sweep_ends(
    file: Path, serial: sweeps.Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(executors, "PATIENCE", 30.0)
    store = tmp_path / "store"

    with dask_cluster(tmp_path, 2) as (address, (_, *workers)):
        said = ended(store, file, address, lambda: [worker.send_signal(how) for worker in workers] and None)
    assert "no worker is left" in said
    sweeps.sweep(file, store=store, progress=False)
    assert sweeps.Store(store).read().same_as(serial.read()) == []


class _Future:
    """A task of Dask that has ended in some way."""

    def __init__(self, key: str, status: str, outcome: object) -> None:
        self.key, self.status, self.outcome = key, status, outcome

    def add_done_callback(self, told: Callable[[_Future], None]) -> None:
        told(self)

    def result(self, timeout: float) -> object:
        return self.outcome

    def exception(self) -> object:
        return self.outcome

    def release(self) -> None:
        pass


class _Client:
    """A client whose workers die of a cell, or lack something."""

    status, scheduler = "running", None

    def __init__(self, deadly: str, error: Exception) -> None:
        self.deadly, self.error, self.sent = deadly, error, 0

    def map(self, function: object, batches: list[list[Work]], **_: object) -> list[_Future]:
        found = []
        for batch in batches:
            self.sent += 1
            keys = [cell.key for work in batch for cell in work.cells]
            dies = self.deadly in keys
            rows = ([{"key": key} for key in keys], [])
            found.append(_Future(str(self.sent), "error" if dies else "finished", self.error if dies else rows))
        return found

    def cancel(self, futures: list[_Future]) -> None:
        pass


def test_a_cell_that_kills_its_workers_is_left_out_and_named(file: Path) -> None:
    """Nobody knows what it would have raised: it is no failed cell, and the others are computed."""
    cells = sweeps.cells_of(sweeps.load(file))
    client = _Client(cells[5].key, MemoryError("4 workers died"))
    got: list[str] = []

    def compute() -> None:
        todo = works(cells)
        batches = [todo[:4], todo[4:8], todo[8:]]
        for rows in executors.handed_in(client, batches, executors.several, None, 1):  # type: ignore[arg-type]
            got.extend(row["key"] for row in rows)

    with pytest.raises(Stopped, match=r"1 cells were not computed.* such as .* on .*: MemoryError: 4 workers died"):
        compute()
    assert sorted(got) == sorted(cell.key for cell in cells if cell != cells[5])


def test_a_worker_with_other_code_ends_the_sweep(file: Path) -> None:
    cells = sweeps.cells_of(sweeps.load(file))
    client = _Client(cells[5].key, sweeps.Elsewhere("other code"))
    with pytest.raises(sweeps.Elsewhere, match="other code"):
        list(executors.handed_in(client, [works(cells)], executors.several, None, 1))  # type: ignore[arg-type]


def test_a_process_that_read_other_code_computes_nothing(file: Path) -> None:
    cell = sweeps.cells_of(sweeps.load(file))[0]
    with pytest.raises(sweeps.Elsewhere, match=r"has other code for drfh; install the same"):
        run(dataclasses.replace(cell, code="0" * 24))
    nobodys = dataclasses.replace(cell.job, what=Named("nobodys", mechanisms.one))
    with pytest.raises(sweeps.Elsewhere, match="does not know nobodys"):
        run(dataclasses.replace(cell, job=nobodys))


@pytest.mark.slow
@pytest.mark.parametrize(
    "kinds",
    [
        ("here", "jobs"),
        *(pytest.param(two, marks=pytest.mark.long) for two in (("jobs", "dask"), ("jobs", "jobs"), ("dask", "dask"))),
    ],
)
def test_two_executors_at_once_into_one_store(
    file: Path, serial: sweeps.Store, tmp_path: Path, kinds: tuple[str, str]
) -> None:
    if "dask" in kinds:
        pytest.importorskip("distributed")
    store = sweeps.Store(tmp_path / "store")
    workers = dask_cluster(tmp_path, 2) if "dask" in kinds else nullcontext(("", []))
    with workers as (address, _):
        ways = {"here": (), "jobs": ("--jobs", "2"), "dask": ("--dask", address)}
        both = [command("sweep", file, "--store", store.folder, *ways[kind]) for kind in kinds]
        try:
            said = [process.communicate(timeout=600) for process in both]
        finally:
            for process in both:
                if process.poll() is None:
                    process.kill()
                    process.communicate(timeout=300)
    assert [process.returncode for process in both] == [0, 0], said
    assert all(out.startswith(f"small: {CELLS} cells in") for out, _ in said)
    contents = store.read()
    assert not contents.damaged
    assert contents.same_as(serial.read()) == []


def test_no_scheduler_is_said_in_one_line(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(executors, "PATIENCE", 3.0)
    with pytest.raises(FairoptError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        sweeps.sweep(file, store=tmp_path, dask="tcp://127.0.0.1:9", progress=False)
    # A worker takes the call and never answers.
    monkeypatch.setattr(executors, "_LOOK", 0.1)
    with pytest.raises(FairoptError, match=r"tcp://127\.0\.0\.1:9: what is there is no scheduler"):
        executors._answered(lambda: threading.Event().wait(60), "tcp://127.0.0.1:9")  # type: ignore[arg-type,return-value]
