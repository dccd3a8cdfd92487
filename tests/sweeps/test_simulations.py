"""Experiments of simulations: their files, cells, store, tables; the same rows whoever computes them."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import fairopt as fo
from fairopt import harness
from fairopt.app.cli import main
from fairopt.errors import DataError
from fairopt.harness import code
from fairopt.harness.origin import workload
from fairopt.harness.run import run
from fairopt.harness.schema import CELLS, SIMULATIONS
from fairopt.harness.simulate import Simulate
from fairopt.report import MissingCells, Results, interval, tables_of
from fairopt.scheduling.policies.fifo import FIFO

from .small import cells_of, sweep

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


def written(folder: Path) -> Path:
    """The experiment, and the workload beside it that is a file."""
    mine = folder / "mine"
    mine.mkdir()
    tasks = pd.DataFrame({"user": ["a", "b"], "duration": [5, 7], "tasks": [4, 3], "cpu": [1, 2]})
    tasks.to_csv(mine / "tasks.csv", index=False)
    pd.DataFrame({"cpu": [4]}).to_csv(mine / "servers.csv", index=False)
    path = folder / "two.toml"
    path.write_text(EXPERIMENT)
    return path


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    return written(tmp_path)


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The experiment and a store that has it."""
    path = written(tmp_path_factory.mktemp("simulations"))
    sweep(path, path.parent / "store")
    return path, path.parent / "store"


def test_cells_are_policies_on_workloads(experiment: Path) -> None:
    loaded = harness.load(experiment)
    cells = harness.cells_of(loaded)
    assert loaded.schema is SIMULATIONS
    # Two draws of two workloads under three, and one of a file under two.
    assert len(cells) == len({cell.key for cell in cells}) == 2 * 2 * 3 + 2
    assert {cell.job.what.text for cell in cells} == {"best-fit-drfh", "slots(n=6)", "fluid:drfh", "fifo"}
    tiny = harness.cells_of(harness.load(experiment, smoke=True))
    assert ({cell.job.until for cell in tiny}, len(tiny)) == ({1800.0, None}, 2 * 3 + 2)


def test_a_sweep_stores_them_beside_others_and_goes_on(there: tuple[Path, Path]) -> None:
    path, store = there
    assert {path.parent.name for path in store.rglob("*.sqlite")} == {"simulations"}
    assert not harness.plan(path, store=store).missing
    frame = sweep(path, store)
    assert (len(frame), set(frame["status"])) == (14, {"ok"})
    fifo = frame[(frame["workload"] == "fixed") & (frame["policy"] == "fifo")]
    direct = fo.simulate(path.parent / "mine", "fifo").summary()
    assert fifo[["mean_response", "tasks_done"]].to_numpy().tolist() == [[direct["mean response"], 7]]


def test_tables_are_means_with_intervals(there: tuple[Path, Path], tmp_path: Path) -> None:
    path, store = str(there[0]), there[1]
    with pytest.raises(MissingCells, match="fairopt sweep"):
        tables_of(path, Results(tmp_path))
    cells = Results(store).of(path).cells
    some = cells[(cells["policy"] == "best-fit-drfh") & cells["source"].str.contains("tasks=90")]
    frame = tables_of(path, Results(store))[0].frame
    assert frame["use_cpu"].between(0, 1).all()
    row = frame[(frame["policy"] == "best-fit-drfh") & (frame["source"] == some["source"].iloc[0])]
    half = interval(some, ["policy"], "utilization")["half"][0]  # by hand in tests/report
    shown = row[["utilization", "n", "+- utilization"]].to_numpy().tolist()
    assert shown == [pytest.approx([some["utilization"].mean(), 2, half])]


def test_seed_and_repetition_draw_another_workload(experiment: Path) -> None:
    origin = cells_of(experiment)[0].origin

    def drawn(seed: int, repetition: int) -> tuple[float, ...]:
        return tuple(workload(origin, seed, repetition, None).duration.tolist())

    assert drawn(3, 0) == drawn(3, 0)
    assert len({drawn(seed, repetition) for seed in (3, 4) for repetition in (0, 1)}) == 4


def test_long_tables(experiment: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    sweep(experiment, store, smoke=True)
    found = Results(store, smoke=True).of(str(experiment))
    for name in SIMULATIONS.long:
        assert set(found.long(name)["policy"]) >= {"best-fit-drfh", "slots(n=6)"}, name
    times, jobs = found.long("timeline"), found.long("each_job")
    assert times["time"].max() <= 1800
    assert {"use_cpu", "use_memory", "waiting"} <= set(times["what"])
    assert times.loc[times["what"] == "use_cpu", "value"].between(0, 1).all()
    assert (jobs["tasks_done"] <= jobs["tasks"]).all()


def test_a_cell_that_fails_is_a_row(experiment: Path, tmp_path: Path) -> None:
    pd.DataFrame({"cpu": [1]}).to_csv(tmp_path / "mine" / "servers.csv", index=False)  # b needs two
    text = 'title = "x"\n[workloads]\nw = "mine"\n[[grid]]\npolicies = ["fifo"]\n'
    for more, status, said in (("", "failed", "even empty"), ('impossible = "report"\n', "ok", "")):
        experiment.write_text(text + more)
        row = sweep(experiment, tmp_path / "store").iloc[0]
        assert (row["status"], said in str(row["error"])) == (status, True)


def test_another_file_is_another_cell(experiment: Path, tmp_path: Path) -> None:
    def fixed() -> list[harness.Cell]:
        return [cell for cell in cells_of(experiment) if cell.source == "fixed"]

    before, tasks = {cell.key for cell in fixed()}, tmp_path / "mine" / "tasks.csv"
    text = tasks.read_text()
    tasks.write_text(text.replace("5", "6", 1))
    cells = fixed()
    assert before.isdisjoint(cell.key for cell in cells)
    tasks.write_text(text)
    workload.cache_clear()
    with pytest.raises(harness.Elsewhere, match="has changed"):
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
        ('"shares", ', '"sharez", ', "grid.1.measures.2: is 'sharez'"),
        ("servers = 4", "servers = 0", "workloads.day.servers: .* whole number, at least 1"),
        ('fixed = "mine"', 'fixed = "nothing-like-it"', "workloads.fixed: there is no workload"),
    ],
)
def test_bad_files_are_named_with_their_line(experiment: Path, old: str, new: str, message: str) -> None:
    """What grids of policies share with those of mechanisms is tested with these."""
    assert old in EXPERIMENT
    experiment.write_text(EXPERIMENT.replace(old, new))
    with pytest.raises(DataError, match=message):
        harness.load(experiment)


def test_simulate_takes_names_and_workloads() -> None:
    name = "google-day?tasks=50&servers=3&hours=1"
    by_name = fo.simulate(f"{name}&seed=4", "fifo")
    for one in (fo.simulate(name, "fifo", rng=4), fo.simulate(fo.open_workload(f"{name}&seed=4"), "fifo")):
        assert one.runs.same(by_name.runs)
    with pytest.raises(DataError, match="takes a workload or its name; got a int"):
        fo.simulate(3)  # type: ignore[arg-type]


@pytest.mark.usefixtures("experiment")
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, picture = tmp_path / "jobs.csv", tmp_path / "x.png"
    words = [str(tmp_path / "mine"), "--policy", "fifo", "--out", str(out), "--plot", str(picture)]
    assert main(["simulate", *words]) == 0
    assert "2 users, 2 jobs, 7 tasks, 1 servers" in capsys.readouterr().out
    assert pd.read_csv(out)["tasks_done"].sum() == 7
    assert picture.stat().st_size > 10_000
    for table in ("tasks", "timeline"):
        assert main(["simulate", *words[:1], "-p", "dedicated:fifo", "--out", str(out), "--table", table]) == 0
        assert len(pd.read_csv(out))
    capsys.readouterr()
    assert main(["simulate", "drfh-figure4", "-p", "fifo", "fluid:drfh", "--until", "100", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["policies"]
    assert [row["policy"] for row in rows] == ["fifo", "fluid:drfh"]
    assert rows[0]["use_memory"] > 0.5
    for wrong, message in (
        ("-p fifo slots --out x.csv", "apply to one policy, and the number of policies is 2"),
        ("-p fluid:drfh --out x.csv --table tasks", "has no table of tasks"),
        ("--until -3", "until is -3; it must be seconds >= 0"),
        ("--seed -3", "--seed is -3"),
    ):
        assert main(["simulate", "drfh-figure4", *wrong.split()]) == 2
        assert message in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["simulate", "drfh-figure4", "--plot", "x.doc"])
    assert "--plot: cannot draw into x.doc" in capsys.readouterr().err
    assert main(["policies"]) == main(["workloads"]) == 0
    shown = capsys.readouterr().out
    assert "best-fit-drfh" in shown
    assert "google-day" in shown


def test_tasks_on_servers_of_ones_own_thrash_too() -> None:
    tasks = pd.DataFrame({"user": ["a"], "duration": 10, "tasks": 4, "cpu": 1, "memory": 2})
    found = fo.scheduling.Workload.from_frames(tasks, pd.DataFrame({"cpu": [4], "memory": [4]}))
    ends = [Simulate.of("dedicated:cpu-fair", None, None, "raise", slower).run(found).summary()["end"]
            for slower in (None, 5.0)]  # fmt: skip
    assert ends == [10.0, 50.0]
