"""Experiments of simulations: their files, cells, store, tables; the same rows whoever computes them."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import fairopt as fo
from fairopt import sweeps
from fairopt.errors import DataError
from fairopt.report import MissingCells, Results, interval, tables_of
from fairopt.scheduling.policies.fifo import FIFO
from fairopt.sweeps import code
from fairopt.sweeps.origin import workload
from fairopt.sweeps.run import run
from fairopt.sweeps.schema import CELLS, SIMULATIONS

EXPERIMENT = """
title = "Two policies and a mechanism"
source = "nowhere"
seed = 3
repetitions = 2

[workloads]
day = { source = "google-day?hours=1", tasks = [60, 90], servers = 4 }
fixed = "mine"

[[grid]]
workloads = ["day"]
policies = ["best-fit-drfh", "slots(n=6)", "fluid:drfh"]
until = 3600
every = 600
measures = ["timeline", "shares", "jobs", "users", "demands"]

[[grid]]
workloads = ["fixed"]
policies = ["fifo", "best-fit-drfh()"]

[smoke]
repetitions = 1
until = 1800
"""


class Mine(FIFO):
    """The same."""


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    mine = tmp_path / "mine"
    mine.mkdir()
    tasks = pd.DataFrame({"user": ["a", "b"], "duration": [5, 7], "tasks": [4, 3], "cpu": [1, 2]})
    tasks.to_csv(mine / "tasks.csv", index=False)
    pd.DataFrame({"cpu": [4]}).to_csv(mine / "servers.csv", index=False)
    path = tmp_path / "two.toml"
    path.write_text(EXPERIMENT)
    return path


def test_cells_are_policies_on_workloads(experiment: Path) -> None:
    loaded = sweeps.load(experiment)
    cells = sweeps.cells_of(loaded)
    assert loaded.schema is SIMULATIONS
    assert len(cells) == 2 * 2 * 3 + 2  # two draws of two workloads under three, and one of a file under two
    assert len({cell.key for cell in cells}) == len(cells)
    assert {cell.job.what.text for cell in cells} == {"best-fit-drfh", "slots(n=6)", "fluid:drfh", "fifo"}
    tiny = sweeps.cells_of(sweeps.load(experiment, smoke=True))
    assert {cell.job.until for cell in tiny} == {1800.0, None}
    assert len(tiny) == 2 * 3 + 2


def test_a_sweep_stores_them_beside_others_and_goes_on(experiment: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    frame = sweeps.sweep(experiment, store=store, progress=False)
    assert (len(frame), set(frame["status"])) == (14, {"ok"})
    assert {path.parent.name for path in store.rglob("*.sqlite")} == {"simulations"}
    assert not sweeps.plan(experiment, store=store).missing
    again = sweeps.sweep(experiment, store=store, progress=False)
    pd.testing.assert_frame_equal(again, frame)
    fixed = frame[frame["workload"] == "fixed"].set_index("policy")
    direct = fo.simulate(tmp_path / "mine", "fifo")
    assert fixed.loc["fifo", "mean_response"] == direct.summary()["mean response"]
    assert fixed.loc["fifo", "tasks_done"] == 7


def test_seed_and_repetition_draw_another_workload(experiment: Path) -> None:
    first = sweeps.cells_of(sweeps.load(experiment))[0]
    assert first.source.startswith("day")
    drawn = {
        (seed, repetition): workload(first.origin, seed, repetition, None).duration.tolist()
        for seed in (3, 4)
        for repetition in (0, 1)
    }
    assert drawn[3, 0] == workload(first.origin, 3, 0, None).duration.tolist()
    assert len({tuple(one) for one in drawn.values()}) == 4


def test_long_tables(experiment: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    sweeps.sweep(experiment, store=store, smoke=True, progress=False)
    found = Results(store, smoke=True).of(str(experiment))
    for name in SIMULATIONS.long:
        assert set(found.long(name)["policy"]) >= {"best-fit-drfh", "slots(n=6)"}, name
    times = found.long("timeline")
    assert times["time"].max() <= 1800
    assert {"use_cpu", "use_memory", "waiting"} <= set(times["what"])
    assert times.loc[times["what"] == "use_cpu", "value"].between(0, 1).all()
    jobs = found.long("each_job")
    assert (jobs["tasks_done"] <= jobs["tasks"]).all()


def test_tables_are_means_with_intervals(experiment: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    with pytest.raises(MissingCells, match="fairopt sweep"):
        tables_of(str(experiment), Results(store))
    sweeps.sweep(experiment, store=store, progress=False)
    table = tables_of(str(experiment), Results(store))[0]
    frame = table.frame.set_index(["source", "policy"])
    cells = Results(store).of(str(experiment)).cells
    some = cells[(cells["policy"] == "best-fit-drfh") & cells["source"].str.contains("tasks=90")]
    source = some["source"].iloc[0]
    assert frame.loc[(source, "best-fit-drfh"), "utilization"] == pytest.approx(some["utilization"].mean())
    assert frame.loc[(source, "best-fit-drfh"), "n"] == 2
    assert frame["use_cpu"].between(0, 1).all()
    half = frame.loc[(source, "best-fit-drfh"), "+- utilization"]
    assert half == pytest.approx(interval(some, ["policy"], "utilization")["half"][0])  # by hand in tests/report


def test_a_cell_that_fails_is_a_row(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    pd.DataFrame({"user": ["a"], "duration": [5], "cpu": [9]}).to_csv(tmp_path / "mine" / "tasks.csv", index=False)
    pd.DataFrame({"cpu": [4]}).to_csv(tmp_path / "mine" / "servers.csv", index=False)
    path = tmp_path / "large.toml"
    path.write_text('title = "x"\n[workloads]\nw = "mine"\n[[grid]]\npolicies = ["fifo"]\n')
    frame = sweeps.sweep(path, store=tmp_path / "store", progress=False)
    assert frame["status"].tolist() == ["failed"]
    assert "even empty" in frame["error"][0]
    path.write_text(path.read_text() + 'impossible = "report"\n')
    assert sweeps.sweep(path, store=tmp_path / "store", progress=False)["status"].tolist() == ["ok"]


def test_another_file_is_another_cell(experiment: Path, tmp_path: Path) -> None:
    before = [cell.key for cell in sweeps.cells_of(sweeps.load(experiment)) if cell.source == "fixed"]
    tasks = tmp_path / "mine" / "tasks.csv"
    tasks.write_text(tasks.read_text().replace("5", "6", 1))
    cells = [cell for cell in sweeps.cells_of(sweeps.load(experiment)) if cell.source == "fixed"]
    assert set(before).isdisjoint(cell.key for cell in cells)
    tasks.write_text(tasks.read_text().replace("6", "5", 1))
    workload.cache_clear()
    with pytest.raises(sweeps.Elsewhere, match="has changed"):
        run(cells[0])


def test_code_of_simulations_is_not_that_of_mechanisms() -> None:
    assert code.of_fairopt(*code.SIMULATING) != code.of_fairopt(*code.solving())
    assert code.of(FIFO, *code.SIMULATING) != code.of(Mine, *code.SIMULATING)  # which is written here
    assert CELLS.folder != SIMULATIONS.folder


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"slots(n=6)"', '"slotz"', "two.toml:13: grid.1.policies: there is no policy 'slotz'"),
        ('"fluid:drfh"', '"fluid:drfx"', "grid.1.policies: .*drfx"),
        ("until = 3600", "until = 0", "grid.1.until: is 0; it must be seconds > 0"),
        ("every = 600", 'often = "yes"', "grid.1.often: unknown key"),
        ('"shares", ', '"sharez", ', "grid.1.measures: is 'sharez'"),
        ("servers = 4", "servers = 0", "workloads.day.servers: .* whole number >= 1"),
        ('fixed = "mine"', 'fixed = "nothing-like-it"', "workloads.fixed: there is no workload"),
        ('workloads = ["fixed"]', 'workloads = ["other"]', "has no 'other'"),
        ("repetitions = 2", "repetitions = 0", "repetitions: is 0"),
        ('policies = ["fifo", "best-fit-drfh()"]', "", "a grid needs policies"),
    ],
)
def test_bad_files_are_named_with_their_line(experiment: Path, old: str, new: str, message: str) -> None:
    text = experiment.read_text()
    assert old in text
    experiment.write_text(text.replace(old, new))
    with pytest.raises(DataError, match=message):
        sweeps.load(experiment)


def test_simulate_takes_names_files_and_workloads(tmp_path: Path) -> None:
    name = "google-day?tasks=50&servers=3&hours=1"
    by_name = fo.simulate(f"{name}&seed=4", "fifo")
    drawn = fo.simulate(name, "fifo", rng=4)
    direct = fo.simulate(fo.open_workload(f"{name}&seed=4"), "fifo")
    for one in (drawn, direct):
        assert one.runs.same(by_name.runs)
    with pytest.raises(DataError, match="takes a workload or its name; got a int"):
        fo.simulate(3)  # type: ignore[arg-type]


def test_the_command(experiment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from fairopt.cli import main

    out, picture = tmp_path / "jobs.csv", tmp_path / "x.png"
    words = ["simulate", str(tmp_path / "mine"), "--policy", "fifo", "--out", str(out), "--plot", str(picture)]
    assert main(words) == 0
    assert "2 users, 2 jobs, 7 tasks, 1 servers" in capsys.readouterr().out
    assert pd.read_csv(out)["tasks_done"].sum() == 7
    assert picture.stat().st_size > 10_000
    assert main(["simulate", "drfh-figure4", "-p", "fifo", "fluid:drfh", "--until", "100", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [row["policy"] for row in said["policies"]] == ["fifo", "fluid:drfh"]
    assert said["policies"][0]["use_memory"] > 0.5
    for words, message in (
        (["drfh-figure4", "-p", "fifo", "slots", "--out", "x.csv"], "are of one policy, and there are 2"),
        (["drfh-figure4", "-p", "fluid:drfh", "--out", "x.csv", "--table", "tasks"], "has no table of tasks"),
        (["drfh-figure4", "--until", "-3"], "--until is '-3'; it must be seconds > 0"),
        (["drfh-figure4", "--seed", "-3"], "--seed is -3"),
    ):
        assert main(["simulate", *words]) == 2
        assert message in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["simulate", "drfh-figure4", "--plot", "x.doc"])
    assert "--plot: cannot draw into x.doc" in capsys.readouterr().err
    assert main(["policies"]) == main(["workloads"]) == 0
    shown = capsys.readouterr().out
    assert "best-fit-drfh" in shown
    assert "google-day" in shown
