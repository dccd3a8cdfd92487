"""The store: what is written is read, once; what was damaged is named and never read."""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairopt import harness
from fairopt.cli import main
from fairopt.errors import DataError
from fairopt.harness.schema import CELLS as CELLS_OF
from fairopt.harness.schema import COLUMNS, LONG, SIMULATIONS, Schema

from .sweeps import CELLS, keys_stored, parts

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def row(key: str, status: str = "ok", after: float = 0.0, **more: Any) -> dict[str, Any]:
    return {"key": key, "status": status, "finished": NOW + timedelta(seconds=after)} | more


def test_rows_come_back_with_their_long_tables(tmp_path: Path) -> None:
    store = harness.Store(tmp_path / "new" / "store")
    assert store.read().frame().empty
    curve = [{"round": 1, "residual": 0.1, "seconds": 1.0}, {"round": 2, "residual": 0.01, "seconds": 2.0}]
    store.write([row("b", jain=0.5, curve=curve)])
    store.write([row("a", "failed", 1, error="E")])
    contents = store.read()
    frame = contents.frame()
    assert list(frame.columns) == list(COLUMNS)
    assert frame["key"].tolist() == ["b", "a"]
    assert frame["jain"].tolist()[0] == 0.5
    assert contents.frame(["a", "c", "b"])["key"].tolist() == ["a", "b"]
    long = contents.long("curve")
    assert list(long.columns) == ["key", *LONG["curve"]]
    assert long["round"].tolist() == [1, 2]
    assert contents.long("curve", ["a"]).empty
    with pytest.raises(DataError, match="no table 'curves'; it has use, curve"):
        contents.long("curves")


def test_a_cell_that_comes_twice_counts_once(tmp_path: Path) -> None:
    store = harness.Store(tmp_path)
    for one in (
        row("a", "failed", 0, error="old"), row("a", "failed", 2, error="new"),
        row("b", "ok", 3, jain=0.2), row("b", "missed", 1, jain=0.1), row("b", "failed", 0, error="x"),
    ):  # fmt: skip
        store.write([one])
    frame = store.read().frame().set_index("key")
    assert frame.loc["a", "error"] == "new"
    assert frame.loc["b", "jain"] == 0.1


def test_gathering_keeps_every_row_and_one_part(tmp_path: Path) -> None:
    store, other = harness.Store(tmp_path), harness.Store(tmp_path)
    for k in range(5):
        store.write([row(f"s{k}", after=k)])
        other.write([row(f"o{k}", after=k)])
    assert len(parts(tmp_path)) == 10
    store.gather()
    assert len(parts(tmp_path)) == 6
    assert sorted(keys_stored(tmp_path)) == sorted([f"s{k}" for k in range(5)] + [f"o{k}" for k in range(5)])
    before = store.read()
    assert other.gather_all() == 6
    assert len(parts(tmp_path)) == 1
    assert store.read().same_as(before) == []
    other.gather()  # its own parts are gone: what it has gone into a part again, and counts once
    assert store.read().same_as(before) == []
    assert not list(tmp_path.glob(".*"))


#: Another process at the store, whose pyarrow writes the same rows as other bytes; it does what it reads, line by line.
OTHER = """
import sys
from pathlib import Path
import pyarrow.parquet as pq
from fairopt import harness
from fairopt.errors import DataError
from tests.harness.test_store import row
write = pq.write_table
pq.write_table = lambda table, sink, **more: write(table, sink, write_statistics=False, compression="gzip")
for line in sys.stdin:
    folder, step = line.split()
    store = harness.Store(Path(folder))
    store.adopt(store.read())
    try:
        if step == "write":
            store.write([row("failed", "ok", 9.0)])
        getattr(store, step.replace("write", "gather"))()
        print("done", flush=True)
    except DataError as error:
        print("busy" if "another process" in str(error) else error, flush=True)
"""


class _Killed(BaseException):
    pass


@pytest.fixture(scope="module")
def meanwhile() -> Iterator[Callable[[Path, str], str]]:
    """Tell another process what to do in a store, and wait until it is done, or has found the store being gathered."""
    words = [sys.executable, "-c", OTHER]
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(words, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None
        assert other.stdout is not None

        def do(folder: Path, step: str) -> str:
            if step == "kill":
                raise _Killed
            print(folder, step, file=other.stdin, flush=True)
            return other.stdout.readline().strip()  # type: ignore[union-attr]

        yield do


#: What the hook below does before a step, if anything; hooks of Python cannot be taken away again.
_STEP: list[Callable[[str, str], object]] = []


def _before(event: str, arguments: tuple[Any, ...]) -> None:
    if _STEP and event in ("open", "os.listdir", "os.mkdir", "os.remove", "os.rename", "os.scandir"):
        _STEP[0](event, str(arguments[0]))


sys.addaudithook(_before)


@contextmanager
def before_each_step(folder: Path, act: Callable[[str, str], object]) -> Iterator[None]:
    """Call `act` before whatever this process does to a file in the folder, but for what `act` does there itself."""

    def step(event: str, path: str) -> None:
        if path.startswith(str(folder)):
            _STEP.clear()
            act(event, path)
            _STEP.append(step)

    _STEP.append(step)
    try:
        yield
    finally:
        _STEP.clear()


@pytest.mark.parametrize("second", ["write", "gather", "gather_all", "kill"])
@pytest.mark.parametrize("first", ["write", "gather", "gather_all"])
def test_nothing_is_lost_whatever_another_process_does_at_any_step(
    first: str, second: str, tmp_path: Path, meanwhile: Callable[[Path, str], str]
) -> None:
    """A retry that ends between reading and dropping, two processes that gather at once, one that is killed."""
    for k in itertools.count():
        folder = tmp_path / str(k)
        store, writer = harness.Store(folder), harness.Store(folder)
        for one in (row("a"), row("b"), row("failed", "failed", error="E")):
            writer.write([one])
        store.adopt(store.read())
        steps, said = itertools.count(), []

        def act(_: str, __: str, k=k, folder=folder, steps=steps, said=said) -> None:  # type: ignore[no-untyped-def]
            if next(steps) == k:
                said.append(meanwhile(folder, second))

        with before_each_step(folder, act), suppress(_Killed):
            store.write([row("c")]) if first == "write" else getattr(store, first)()
        last = next(steps) <= k
        assert said in ([], ["done"], ["busy"])
        expected = {"a": "ok", "b": "ok", "failed": "ok" if second == "write" and not last else "failed"}
        if first == "write" and (second != "kill" or last):
            expected["c"] = "ok"
        frame = harness.Store(folder).read().frame()
        found = dict(zip(frame["key"], frame["status"], strict=True))
        assert found.items() >= expected.items(), f"before step {k + 1}"
        harness.Store(folder).gather_all()  # nobody holds the lock any more
        assert len(parts(folder)) == 1
        assert sorted(keys_stored(folder)) == sorted(found)
        if last:
            break
    assert k > 2


def test_what_is_dropped_is_safely_on_disk_in_another_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes of the part, then its name in the folder, then the others go."""
    happened: list[str] = []
    fsync = os.fsync

    def synced(number: int) -> None:
        happened.append("folder" if stat.S_ISDIR(os.fstat(number).st_mode) else "file")
        fsync(number)

    store = harness.Store(tmp_path)
    for key in "ab":
        store.write([row(key)])
    monkeypatch.setattr(os, "fsync", synced)
    with before_each_step(tmp_path, lambda event, _: happened.append(event.removeprefix("os."))):
        store.gather()
    assert [one for one in happened if one in ("file", "rename", "folder", "remove")] == [
        "file", "rename", "folder", "remove", "remove",
    ]  # fmt: skip


def test_a_reader_finds_what_is_gathered_while_it_lists_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listing may have neither the parts that are gone nor the one that is new."""
    store, listed = harness.Store(tmp_path), harness.Store._listed
    for key in "ab":
        store.write([row(key)])
    answers = iter([parts(tmp_path)[:1]])
    monkeypatch.setattr(harness.Store, "_listed", lambda self: next(answers, None) or listed(self))
    assert sorted(store.read().frame()["key"]) == ["a", "b"]


def test_truncated_changed_and_foreign_parts_are_named_and_not_read(tmp_path: Path) -> None:
    store = harness.Store(tmp_path)
    for key in ("a", "b", "c"):
        store.write([row(key, jain=0.5)])
    by_key = {pq.read_table(part).column("key")[0].as_py(): part for part in parts(tmp_path)}
    cut = by_key["a"]
    cut.write_bytes(cut.read_bytes()[:-10])
    changed = by_key["b"]
    data = bytearray(changed.read_bytes())
    data[20] ^= 1
    changed.write_bytes(bytes(data))
    (tmp_path / "theirs.parquet").write_bytes(by_key["c"].read_bytes())
    empty = tmp_path / f"part-{'0' * 32}.parquet"
    empty.touch()
    contents = store.read()
    assert contents.frame()["key"].tolist() == ["c"]
    assert {damage.path for damage in contents.damaged} == {cut, changed, tmp_path / "theirs.parquet", empty}
    store.set_aside(contents.damaged)
    assert [damage.path.name for damage in store.read().damaged] == ["theirs.parquet"]
    assert cut.with_suffix(".damaged").exists()


def test_a_part_of_another_version_is_not_read(tmp_path: Path) -> None:
    from fairopt.harness.store import _digest

    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"key": ["a"], "status": ["ok"]}), sink)
    data = sink.getvalue().to_pybytes()
    (tmp_path / f"part-{_digest(data)}.parquet").write_bytes(data)
    contents = harness.Store(tmp_path).read()
    assert contents.table.num_rows == 0
    assert "another version (format nothing" in contents.damaged[0].reason


def test_a_file_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    with pytest.raises(DataError, match="is a file"):
        harness.Store(tmp_path / "f").read()


def test_same_as_sees_every_difference(serial: harness.Store, tmp_path: Path) -> None:
    contents = serial.read()
    rows = contents.table.to_pylist()
    for name in ("jain", "source", "use", "curve", "allocated", "seconds", "curve.seconds"):
        column, _, part = name.partition(".")
        k = next(k for k, one in enumerate(rows) if one[column])
        value = rows[k][column]
        if isinstance(value, list):
            part = part or {"use": "utilization", "curve": "residual", "allocated": "tasks"}[column]
            value = [value[0] | {part: value[0][part] + 1e-15}, *value[1:]]
            expected = [] if part == "seconds" else [f"{column}.{part}"]
        else:
            value = value * (1 + 1e-15) if isinstance(value, float) else value + "x"
            expected = [] if name == "seconds" else [name]
        other = harness.Store(tmp_path / name)
        other.write([*rows[:k], rows[k] | {column: value}, *rows[k + 1 :]])
        assert other.read().same_as(contents) == expected, name


def test_a_damaged_part_is_computed_again(serial: harness.Store, file: Path, tmp_path: Path) -> None:
    whole = serial.read()
    store = harness.Store(tmp_path / "store")
    store.write(whole.table.to_pylist()[:-3])
    store.gather()
    store.write(whole.table.to_pylist()[-3:])
    damaged = max(parts(store.folder), key=lambda part: -part.stat().st_size)
    damaged.write_bytes(damaged.read_bytes()[:-1])
    shutil.copy(parts(store.folder)[0], store.folder / "copy of a part.parquet")
    assert [len(harness.plan(file, store=store).missing), len(harness.plan(file, store=serial).missing)] == [3, 0]
    said: list[str] = []
    frame = harness.sweep(file, store=store, progress=False, say=said.append)
    assert len(frame) == CELLS
    assert any(damaged.name in text and "cut off" in text and "computed again" in text for text in said)
    assert any("copy of a part.parquet" in text and "left alone" in text for text in said)
    assert store.read().same_as(whole) == []
    assert (store.folder / "copy of a part.parquet").exists()


def test_parts_that_a_killed_writer_left_are_gathered_by_the_next_sweep(
    file: Path, serial: harness.Store, tmp_path: Path
) -> None:
    rows = serial.read().table.to_pylist()
    killed = harness.Store(tmp_path)
    for one in rows[:30]:
        killed.write([one])  # and it never gathers
    aside = tmp_path / ".0123.tmp"
    aside.write_bytes(b"half a part")
    os.utime(aside, (0, 0))
    assert len(parts(tmp_path)) == 30
    harness.sweep(file, store=tmp_path, progress=False)
    assert len(parts(tmp_path)) == 1
    assert not aside.exists()
    assert len(keys_stored(tmp_path)) == CELLS
    assert harness.Store(tmp_path).read().same_as(serial.read()) == []


def test_a_sweep_with_nothing_to_compute_gathers_too(file: Path, serial: harness.Store, tmp_path: Path) -> None:
    killed = harness.Store(tmp_path)
    for one in serial.read().table.to_pylist():
        killed.write([one])
    harness.sweep(file, store=tmp_path, progress=False)
    assert len(parts(tmp_path)) == 1


def test_parts_that_another_has_gathered_are_not_written_again(tmp_path: Path) -> None:
    one, other = harness.Store(tmp_path), harness.Store(tmp_path)
    for key in "abc":
        one.write([row(key)])
    other.adopt(other.read())
    other.write([row("d")])
    other.gather()
    one.write([row("e")])
    one.gather()
    assert sorted(keys_stored(tmp_path)) == list("abcde")
    assert sorted(one.read().frame()["key"]) == list("abcde")


class _Full:
    """A disk that is full after so many parts."""

    def __init__(self, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left, self.real = parts, os.replace
        monkeypatch.setattr("fairopt.harness.store.os.replace", self)

    def __call__(self, source: Path, target: Path) -> None:
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.real(source, target)


def test_a_full_disk_is_one_line_and_leaves_nothing_half_written(
    file: Path, serial: harness.Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    with pytest.MonkeyPatch.context() as full:
        _Full(12, full)
        assert main(["sweep", str(file), "--store", str(store)]) == 1
    said = capsys.readouterr().err
    assert said == (
        f"fairopt: cannot write to {store}: No space left on device; 12 of {CELLS} cells of small are stored in "
        f"{store}; the same command again goes on from there\n"
    )
    assert len(keys_stored(store)) == 12
    assert not list(store.glob(".*.tmp"))
    harness.sweep(file, store=store, progress=False)
    assert harness.Store(store).read().same_as(serial.read()) == []


def test_a_real_limit_of_the_file_system(file: Path, tmp_path: Path) -> None:
    """Parts larger than a process may write: single cells fit, and stay where they are; nothing is lost."""
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000));"
        "from fairopt.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "XDG_CACHE_HOME": str(tmp_path)}
    words = [sys.executable, "-c", code, "sweep", str(file), "--store", str(tmp_path / "store")]
    done = subprocess.run(words, env=env, text=True, capture_output=True, timeout=300)
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / "store").glob(".*.tmp"))
    kept = keys_stored(tmp_path / "store")
    if done.returncode:
        assert f"{len(kept)} of {CELLS} cells of small are stored" in done.stderr
        assert done.stderr.count("\n") == 1
    else:
        assert len(kept) == CELLS


@pytest.mark.parametrize("schema", [CELLS_OF, SIMULATIONS], ids=lambda schema: schema.folder or "cells")
def test_rows_from_before_there_was_a_column_are_read(schema: Schema, tmp_path: Path) -> None:
    """Their seconds were the wall's."""
    took = "seconds" if "seconds" in schema.columns else "simulate"
    store = harness.Store(tmp_path, schema)
    store.write([row("old") | {took: 3.0}])
    (path,) = parts(tmp_path)
    sink = pa.BufferOutputStream()
    pq.write_table(pq.read_table(path).drop_columns(["wall"]), sink)
    path.unlink()
    data = sink.getvalue().to_pybytes()
    (tmp_path / f"part-{hashlib.sha256(data).hexdigest()[:32]}.parquet").write_bytes(data)
    store.write([row("new", after=1) | {took: 1.0, "wall": 2.0}])
    for _ in range(2):
        assert store.read().frame()[["key", took, "wall"]].to_numpy().tolist() == [["old", 3, 3], ["new", 1, 2]]
        store.gather_all()
    assert len(parts(tmp_path)) == 1


def test_parts_of_another_version_are_left_alone(file: Path, tmp_path: Path) -> None:
    """They are whole: who has that version reads them."""
    store = harness.Store(tmp_path)
    store.write([row("a")])
    (path,) = parts(tmp_path)
    table = pq.read_table(path).replace_schema_metadata({"format": "fairopt-cells-1"})
    path.unlink()
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    data = sink.getvalue().to_pybytes()
    old = tmp_path / f"part-{hashlib.sha256(data).hexdigest()[:32]}.parquet"
    old.write_bytes(data)
    said: list[str] = []
    harness.sweep(file, store=tmp_path, progress=False, say=said.append)
    assert old.read_bytes() == data
    assert "written by another version (format fairopt-cells-1" in said[0]
    assert "computed again" not in said[0]
