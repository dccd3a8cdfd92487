"""The store: what is written is read, once, whoever is killed; what was damaged is named and never read."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fairopt import harness
from fairopt.errors import DataError
from fairopt.harness.schema import CELLS as SCHEMA

from .small import CELLS, ENV, keys_stored, sweep

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
    frame, long = contents.frame(), contents.long("curve")
    assert (list(frame), list(long)) == ([*SCHEMA.columns], ["key", *SCHEMA.long["curve"]])
    assert (frame["key"].tolist(), frame["jain"][0], long["round"].tolist()) == (["b", "a"], 0.5, [1, 2])
    assert contents.frame(["a", "c", "b"])["key"].tolist() == ["a", "b"]
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
    assert (frame["error"]["a"], frame["jain"]["b"]) == ("new", 0.1)
    with pytest.raises(DataError, match="is a file"):
        harness.Store(store.file).read()


@pytest.mark.parametrize(
    "name", ["jain", "source", "use.utilization", "curve.residual", "allocated.tasks", "seconds", "curve.seconds"]
)
def test_same_as_sees_every_difference(serial: harness.Store, tmp_path: Path, name: str) -> None:
    """The last bit of a number, and no times."""
    column, _, part = name.partition(".")
    rows = serial.read().table.to_pylist()
    changed = next(one for one in rows if one[column])
    place, key = (changed[column][0], part) if part else (changed, name)
    place[key] = place[key] * (1 + 1e-15) if isinstance(place[key], float) else f"{place[key]}x"
    other = harness.Store(tmp_path)
    other.write(rows)
    assert other.read().same_as(serial.read()) == ([] if name.endswith("seconds") else [name])


def change(store: harness.Store, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(store.file)) as base, base:
        base.execute(statement, values)


def test_a_damaged_row_is_named_and_computed_again(serial: harness.Store, file: Path, tmp_path: Path) -> None:
    store = harness.Store(tmp_path / "store")
    store.write(serial.read().table.to_pylist())
    with closing(sqlite3.connect(store.file)) as base:
        key, row = base.execute("SELECT key, row FROM cells LIMIT 1 OFFSET 7").fetchone()
    change(store, "UPDATE cells SET row = ? WHERE key = ?", row[:40] + bytes([row[40] ^ 1]) + row[41:], key)
    contents = store.read()
    assert contents.damaged == (key,)
    assert key not in contents.frame()["key"].tolist()
    assert [cell.key for cell in harness.plan(file, store=store).missing] == [key]
    said: list[str] = []
    assert len(sweep(file, store, say=said.append)) == CELLS
    assert key in said[0]
    assert "computed again" in said[0]
    assert store.read().same_as(serial.read()) == []


def test_what_is_no_store_of_this_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    store = harness.Store(tmp_path)
    store.write([row("a")])
    whole = store.file.read_bytes()
    change(store, "UPDATE format SET name = 'fairopt-cells-9'")
    other = store.file.read_bytes()
    garbage, half = b"x" * 5000, whole[:-5000]
    for data, said in ((other, r"another version \(format fairopt-cells-9"), (garbage, "damaged"), (half, "damaged")):
        store.file.write_bytes(data)
        for act in (store.read, lambda: store.write([row("b")])):
            with pytest.raises(DataError, match=said):
                act()
        assert store.file.read_bytes() == data


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="no sqlite3 here")
def test_what_a_lost_page_leaves_is_saved_as_the_error_says(tmp_path: Path) -> None:
    store = harness.Store(tmp_path / "a store")
    store.write([row(f"k{k}") for k in range(200)])
    data = bytearray(store.file.read_bytes())
    data[-8192:-4096] = bytes(4096)
    store.file.write_bytes(data)
    with pytest.raises(DataError, match="those that are left") as error:
        store.read()
    [command] = re.findall(r"left: (.*), which", str(error.value))
    subprocess.run(command, shell=True, check=True, stderr=subprocess.DEVNULL)
    store.file.with_name("left.sqlite").replace(store.file)
    assert 100 < len(store.read().frame()) < 200
    store.write([row("more")])


WRITER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from fairopt import harness
with harness.Store(Path(sys.argv[1])) as store:
    for k in range(100_000):
        store.write([{"key": f"{sys.argv[2]}{k}", "status": "ok", "finished": datetime.now(UTC)}])
        print(f"{sys.argv[2]}{k}", flush=True)
"""


def test_two_write_at_once_and_are_killed_and_no_row_that_was_acknowledged_is_lost(tmp_path: Path) -> None:
    acknowledged: list[str] = []
    words = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen([*words, f"{name}-"], env=ENV, text=True, stdout=-1) for name in "ab"]
    for writer in writers:
        assert writer.stdout is not None
        acknowledged += (writer.stdout.readline().strip() for _ in range(20))
    for writer in writers:
        writer.kill()
        acknowledged += writer.communicate()[0].rpartition("\n")[0].split()
    assert len(acknowledged) >= 40
    harness.Store(tmp_path).write([row("after")])
    acknowledged.append("after")
    assert {*acknowledged} <= {*harness.Store(tmp_path).read().frame()["key"]} & {*keys_stored(tmp_path)}


def test_a_store_is_read_where_nobody_may_write(serial: harness.Store) -> None:
    with tempfile.TemporaryDirectory() as name:
        store = harness.Store(Path(shutil.copytree(serial.folder, Path(name) / "store")))
        for path, mode in ((Path(name), 0o755), (store.file, 0o444), (store.folder, 0o555)):
            path.chmod(mode)
        user = os.geteuid()
        try:
            os.seteuid(user or 65534)
            assert len(store.read().frame()) == CELLS
            with pytest.raises(OSError, match=r"readonly|unable"):
                store.write([row("a")])
        finally:
            os.seteuid(user)
            store.folder.chmod(0o755)


def test_a_full_disk_is_one_line_and_the_same_command_goes_on(
    file: Path, serial: harness.Store, tmp_path: Path
) -> None:
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000));"
        "from fairopt.app.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    store = tmp_path / "store"
    words = [sys.executable, "-c", code, "sweep", file, "--store", store]
    done = subprocess.run(words, env=ENV, text=True, capture_output=True, timeout=600)
    kept = len(keys_stored(store))
    assert (done.returncode, 0 < kept < CELLS) == (1, True)
    assert re.fullmatch(
        rf"fairopt: cannot write to {store}: .*; {kept} of {CELLS} cells of small are stored in {store}; "
        "the same command again goes on from there\n",
        done.stderr,
    )
    sweep(file, store)
    assert harness.Store(store).read().same_as(serial.read()) == []


def test_a_store_of_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "part-0.parquet").touch()
    for touch in (harness.Store(tmp_path).read, lambda: harness.Store(tmp_path).write([row("new")])):
        with pytest.raises(DataError, match=r"is a store of a version before 0\.2; keep it"):
            touch()
    assert [path.name for path in tmp_path.iterdir()] == ["part-0.parquet"]
