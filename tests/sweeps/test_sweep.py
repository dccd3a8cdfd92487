"""Sweeps: only what is missing is computed, errors are rows, and nothing that happens loses what is stored."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fairopt as fo
from fairopt import harness
from fairopt.app.cli import main
from fairopt.game import best_responses
from fairopt.harness import executors
from fairopt.harness import solve as solve_module
from fairopt.harness.origin import cluster
from fairopt.harness.run import run

from .small import CELLS, cells_of, command, keys_stored, sweep, until


def test_a_row_says_what_the_library_says(serial: harness.Store, file: Path) -> None:
    cell = next(c for c in cells_of(file) if c.job.what.text == "ps-dsf" and c.source == "paper")
    contents = serial.read()
    row = contents.frame([cell.key]).iloc[0]
    cluster = fo.papers.instance("pf-fig1-variant")
    allocation = fo.PSDSF().solve(cluster)
    expected = {
        "status": "ok",
        "jain": allocation.summary()["jain"],
        "certificate": allocation.certificate.residual,
        "price_of_fairness": fo.metrics.price_of_fairness(allocation, fo.Utilitarian().solve(cluster)),
    } | dict(zip(["users", "servers", "resources", "threads"], [4, 2, 3, 1], strict=True))
    assert row[list(expected)].to_dict() == expected
    assert pd.isna(row["commit"]) or len(row["commit"]) >= 12  # none outside of a checkout
    assert "numpy" in row["versions"]
    use = contents.long("use", [cell.key]).set_index(["class", "resource"])["utilization"].unstack()
    here = use.loc[["12 x 4 x 75", "8 x 16 x 0"], list(cluster.resources)]
    assert_array_equal(here, allocation.used_parts.loc[["server 1", "server 2"]])
    tasks = contents.long("allocated", [cell.key])["tasks"].to_numpy().reshape(4, 2)
    assert_array_equal(tasks, allocation.tasks)


def test_a_game_keeps_its_curve(serial: harness.Store, file: Path) -> None:
    games = [c for c in cells_of(file) if c.job.engine == "best-response" and c.source == "drawn"]
    contents = serial.read()
    frame = contents.frame([cell.key for cell in games])
    curves = dict(list(contents.long("curve").set_index("round").groupby("key")))
    for row in frame.itertuples():
        curve = curves[row.key]
        assert curve.index.tolist() == list(range(1, int(row.rounds) + 1))
        assert curve["residual"].iloc[-1] == row.residual
        reached = contents.long("reached", [row.key]).set_index("level").loc[1e-2]
        if reached["rounds"] == reached["rounds"]:
            assert (curve["residual"].loc[reached["rounds"] :] <= 1e-2).all()
            assert reached["messages"] == curve["messages"][reached["rounds"]]
    assert frame["rounds"].nunique() > 1


def test_every_repetition_draws_a_cluster_and_every_mechanism_gets_the_same(serial: harness.Store, file: Path) -> None:
    frame = serial.read().frame()
    drawn = frame[(frame["cluster"] == "drawn") & frame["price_of_fairness"].notna()]
    # Welfare / (1 - price) is the largest welfare of the cluster: a fingerprint of it.
    best = (drawn["welfare"] / (1 - drawn["price_of_fairness"])).round(9)
    by_draw = best.groupby([drawn["source"], drawn["repetition"]]).agg(["nunique", "size"])
    assert by_draw.to_numpy().tolist() == [[1, 5]] * 6
    assert (best.groupby(drawn["source"]).nunique() == 3).all()
    cell = next(one for one in cells_of(file) if one.source == "drawn")
    assert not np.array_equal(*(cluster(cell.origin, seed, 0, None)[0].demand for seed in (7, 8)))


def test_classes_of_servers_add_up(path: Path, tmp_path: Path) -> None:
    path.write_text(
        'title = "T"\nclusters.b = "bitbrains-like?vms=6&servers=20"\n[[grid]]\nmechanisms = ["drfh", "drf"]\n'
    )
    frame = sweep(path, tmp_path / "s")
    use = harness.Store(tmp_path / "s").read().long("use", frame["key"][:1])
    use["used"] = use["servers"] * use["capacity"] * use["utilization"]
    classes = use[use["class"] != "all"]
    # 3 types of servers, 2 storages, 2 links, at most; PF section 6.
    assert classes["class"].nunique() == 12
    sums = classes.groupby("resource")[["servers", "used"]].sum()
    assert sums["servers"].eq(20).all()
    whole = use[use["class"] == "all"].set_index("resource")
    assert_allclose(sums["used"], (whole["capacity"] * whole["utilization"])[sums.index], rtol=1e-12)


def test_the_first_cell_of_a_kind_is_solved_after_a_tiny_one(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is imported and compiled at the first answer of a process is in no cell's seconds."""
    cells = [one for one in cells_of(file) if one.job.what.text == "drfh" and one.source == "drawn"]
    solved: list[int] = []
    real = fo.DRFH.solve

    def solve(self: fo.DRFH, cluster: fo.Cluster, *more: Any, **others: Any) -> fo.Allocation:
        solved.append(len(cluster.users))
        return real(self, cluster, *more, **others)

    monkeypatch.setattr(fo.DRFH, "solve", solve)
    monkeypatch.setattr(solve_module, "_WARM", set())
    rows = [run(cell) for cell in cells[:2]]
    assert solved == [3, *(row["users"] for row in rows)]


def test_seconds_are_the_processors_and_the_walls_stand_beside_them(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that waits for others takes no longer for that: in rows of the game neither."""
    waited = 0.05

    def late(real: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given, **more: time.sleep(waited) or real(*given, **more)

    monkeypatch.setattr(fo.DRFH, "solve", late(fo.DRFH.solve))
    monkeypatch.setattr(best_responses, "_measured", late(best_responses._measured))
    cells = cells_of(file)
    for cell in (cells[0], next(cell for cell in cells if cell.job.engine == "best-response")):
        row = run(cell)
        assert row["wall"] - row["seconds"] > 0.9 * waited * (row.get("rounds") or 1)
        assert all(one["seconds"] is None or one["seconds"] <= row["seconds"] for one in row.get("reached", []))


def test_half_a_game_is_not_a_result(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`best_response` hands back what it has on Ctrl-C; a sweep must stop instead of storing it."""
    cell = next(c for c in cells_of(file) if c.job.engine == "best-response")

    def interrupted(*_: object) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(best_responses, "_measured", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(cell)


def test_the_estimate_is_the_mean_of_the_past(serial: harness.Store, file: Path, tmp_path: Path) -> None:
    rows = serial.read().table.to_pylist()
    store = harness.Store(tmp_path)
    assert harness.plan(file, store=store).seconds() == (0.0, CELLS)
    kept = [row | {"elapsed": 2.0} for row in rows if row["repetition"] == 0]
    store.write(kept)
    seconds, unknown = harness.plan(file, store=store).seconds()
    assert unknown == 0
    assert seconds == pytest.approx(2.0 * (CELLS - len(kept)))


def nobody_left(session: int) -> bool:
    """Of the processes of a session: those that have ended are there until init has noticed."""
    try:
        os.killpg(session, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize(
    ("stop", "jobs", "whom", "status"),
    [
        pytest.param(signal.SIGKILL, 1, os.killpg, -9, marks=pytest.mark.long),
        (signal.SIGINT, 2, os.killpg, 130),  # a terminal tells every process
        pytest.param(signal.SIGTERM, 2, os.kill, 143, marks=pytest.mark.long),
        (signal.SIGKILL, 2, os.kill, -9),
    ],
    ids=["kill", "ctrl-c", "term-parent", "kill-parent"],
)
def test_stopped_at_any_moment_it_loses_at_most_what_is_in_flight_and_goes_on(
    file: Path, serial: harness.Store, tmp_path: Path, stop: signal.Signals, jobs: int, whom: Any, status: int
) -> None:
    """Workers end with their parent, whatever ends it: a batch system's limit is SIGTERM to the parent alone."""
    store = harness.Store(tmp_path / "store")
    with command("sweep", file, "--jobs", jobs, "--store", store.folder) as process:
        until(lambda: len(keys_stored(store.folder)) >= 5)
        whom(process.pid, stop)
        out, err = process.communicate(timeout=60)  # workers that were left would hold the pipes open
    kept = keys_stored(store.folder)
    assert 5 <= len(set(kept)) == len(kept) < CELLS
    assert process.returncode == status, err
    if jobs == 1:  # cells are computed in this order: all before the one in flight are there
        assert set(kept) == {cell.key for cell in cells_of(file)[: len(kept)]}
    until(lambda: nobody_left(process.pid), 60)
    if stop != signal.SIGKILL:
        assert interrupted(kept, store.folder) in err
        assert "Traceback" not in out + err
    assert not store.read().damaged
    sweep(file, store)
    assert store.read().same_as(serial.read()) == []


def interrupted(kept: list[str], store: Path) -> str:
    return f"interrupted: {len(kept)} of {CELLS} cells of small are stored in {store}; the same command again"


def test_ctrl_c_stops_one_process_cleanly_and_says_how_to_go_on(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cells, signalled = cells_of(file), signal.signal(signal.SIGINT, signal.default_int_handler)

    def stopped(cell: harness.Cell, *more: Any) -> Any:
        if cell.key == cells[5].key:
            signal.raise_signal(signal.SIGINT)
        return run(cell, *more)

    monkeypatch.setattr(executors, "run", stopped)
    try:
        assert main(["sweep", str(file), "--store", str(tmp_path)]) == 130
    finally:
        signal.signal(signal.SIGINT, signalled)
    kept = keys_stored(tmp_path)
    assert {*kept} == {cell.key for cell in cells[:5]}
    assert interrupted(kept, tmp_path) in capsys.readouterr().err


def test_only_what_is_missing_is_computed(
    serial: harness.Store, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = serial.read().table.to_pylist()
    store = harness.Store(tmp_path)
    store.write(rows[:-7])
    computed: list[str] = []
    monkeypatch.setattr(executors, "run", lambda cell, *more: computed.append(cell.key) or run(cell, *more))
    harness.sweep(file, store=store, progress=False)
    assert sorted(computed) == sorted(row["key"] for row in rows[-7:])
    assert store.read().same_as(serial.read()) == []
    harness.sweep(file, store=store, progress=False)
    assert len(computed) == 7
