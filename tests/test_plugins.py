"""A researcher's own mechanism, source, measure and figure: in commands, in sweeps, in workers, from packages."""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import ROOT, python

import fairopt as fo
from fairopt import harness
from fairopt.app.cli import main
from fairopt.base import plugins
from fairopt.errors import DataError
from fairopt.harness.ends import Elsewhere
from fairopt.harness.report import figures
from fairopt.mechanisms import REGISTRY
from fairopt.report import Results
from fairopt.result.metrics import MEASURES
from fairopt.workloads.sources import CLUSTERS

DOCS = ROOT / "docs"
PLUGIN = Path(__file__).with_name("plugin.py")
SWEEP = ["fairopt", "sweep", "plugged.toml", "--store", "store", "--jobs", "2"]
EXPERIMENT = """
title = "Plugged"
[experiment]
plugins = ["own.py"]
[clusters]
drawn = "squares?users=4&size=20"
[[grid]]
mechanisms = ["even-tasks", "drfh"]
measures = ["utilization", "spread", "satisfaction"]
"""

MEASURE = "from fairopt.result.metrics import measure\n@measure\ndef {}(allocation): return 1.0"
SOURCE = "from fairopt.workloads import generator\n@generator('{}', '')\ndef f({}): ..."


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the plug-in `own.py` and an experiment; what it registers is taken out again."""
    shutil.copy(PLUGIN, tmp_path / "own.py")
    (tmp_path / "plugged.toml").write_text(EXPERIMENT)
    monkeypatch.chdir(tmp_path)
    before = [dict(one) for one in (REGISTRY, CLUSTERS.entries, MEASURES, plugins._LOADED)]
    yield tmp_path
    for one, old in zip((REGISTRY, CLUSTERS.entries, MEASURES, plugins._LOADED), before, strict=True):
        one.clear()
        one.update(old)


def test_in_the_command_line(folder: Path, answer: Callable[..., Any]) -> None:
    own = ["--plugin", "own.py"]
    rows = answer("compare", "squares?users=5&wide=yes", "-m", "even-tasks(factor=2)", "drfh", *own)
    assert [row["mechanism"] for row in rows] == ["even tasks(factor=2)", "DRFH"]
    assert rows[0]["spread"] == pytest.approx(1)
    assert rows[1]["spread"] > 1.01
    assert {row["name"]: row["options"] for row in answer("sources", *own)}["squares"] == "users, size, wide, seed"


def as_its_page_says(page: str, heading: str, file: str) -> list[str]:
    """Write the code below a heading into a file; the command that stands behind it.

    It is run in a process of its own, whose workers are new ones, too, where what the file registers would stay.
    """
    section = (DOCS / page).read_text(encoding="utf-8").partition(heading)[2]
    Path(file).write_text(section.partition("```python\n")[2].partition("```")[0], encoding="utf-8")
    return [*shlex.split(section.partition("```sh\n")[2].splitlines()[0]), "--json"]


def test_a_policy_as_its_page_says(folder: Path) -> None:
    found = json.loads(python("-m", *as_its_page_says("scheduling.md", "## A policy of your own", "worst.py")))
    assert [row["policy"] for row in found["policies"]] == ["best-fit-drfh", "worst-fit"]


def test_a_property_as_its_page_says(folder: Path) -> None:
    rows = json.loads(python("-m", *as_its_page_says("plugins.md", "A property of fairness", "mine.py")))
    found = {row["mechanism"]: row for row in rows if row["clusters"] == "all"}
    assert found["DRFH"]["violation"] > 0.05


def test_a_mechanism_as_its_page_says(folder: Path, answer: Callable[..., Any]) -> None:
    rows = answer(*as_its_page_says("plugins.md", "# ", "mine.py")[1:])
    assert [row["spread"] >= 1 - 1e-9 for row in rows] == [True, True]


def test_in_sweeps_and_workers(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file, and the entry point of a package that is on the path: commands and workers find both."""
    info = folder / "lib" / "theirs-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "lib" / "theirs.py").write_text(MEASURE.format("theirs"))
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[fairopt.plugins]\ntheirs = theirs\n")
    Path("plugged.toml").write_text(EXPERIMENT.replace('"spread"', '"spread", "theirs"'))
    path = os.pathsep.join([str(folder / "lib"), *filter(None, sys.path)])
    assert "2 cells in store: 2 ok" in python("-m", *SWEEP, PYTHONPATH=path)
    monkeypatch.syspath_prepend(folder / "lib")
    importlib.import_module("theirs")
    found = Results(Path("store")).of("plugged.toml").cells
    assert [found["spread"].iloc[0], found["satisfaction"].iloc[1], *found["theirs"]] == pytest.approx([1] * 4)
    plugin = plugins.loaded()[-1]
    assert {json.loads(text)["plugins"]["own.py"] for text in found["options"]} == {plugin.digest}
    assert main(["results", "plugged.toml", "--store", "store", "--where", "theirs=1"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[-4:] == ["seconds", "satisfaction", "spread", "theirs"]
    assert len(rows) == 2


@pytest.mark.parametrize("part", ['drawn = "squares?users=4&size=20"', 'drawn = "paper:drf-4.1"'])
def test_another_file_is_another_cell(part: str, folder: Path) -> None:
    """The source is the plug-in's, or only the measure."""
    Path("plugged.toml").write_text(EXPERIMENT.replace('drawn = "squares?users=4&size=20"', part))
    first, again = ({cell.key for cell in harness.cells_of(harness.load("plugged.toml"))} for _ in range(2))
    assert first == again
    Path("own.py").write_text(Path("own.py").read_text().replace("user_tasks.max() /", "user_tasks.mean() /"))
    assert not {cell.key for cell in harness.cells_of(harness.load("plugged.toml"))} & first


def test_a_worker_with_another_file_refuses(folder: Path) -> None:
    cell = harness.cells_of(harness.load("plugged.toml"))[0]
    Path("own.py").write_text(Path("own.py").read_text() + "\n# changed\n")
    with pytest.raises(Elsewhere, match=r"own.py has changed since the sweep was started"):
        harness.run.run(cell)


def test_figures(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("experiments").mkdir()
    Path("experiments/plugged.toml").write_text(EXPERIMENT.replace('"own.py"', '"../own.py"'))
    harness.sweep("plugged", store="store", progress=False)
    assert main(["figures", "own", "--plugin", "own.py", "--store", "store", "--out", "drawn"]) == 0
    assert Path("drawn/own.png").stat().st_size > 0
    assert main(["figures", "own.py", "--store", "store", "--out", "again"]) == 0
    assert Path("again/own.pdf").stat().st_size > 0
    assert main(["figures", "--list", "own.py"]) == 0
    assert capsys.readouterr().out.endswith("own.py: A plug-in with one of everything; the tests copy it. [plugged]\n")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def (", "cannot be imported: SyntaxError"),
        (
            "from fairopt.mechanisms import Mechanism\nclass Mine(Mechanism):\n    name = 'drf'",
            r"two mechanisms are called 'drf', fairopt.mechanisms.drf.DRF and fairopt_plugin_bad_\w+.Mine; ",
        ),
        (MEASURE.format("jain"), "two measures are called 'jain', .*; rename yours"),
        (MEASURE.format("notes"), "a measure cannot be called 'notes'"),
        (SOURCE.format("google", "rng"), "two sources are called 'google', .*; rename yours"),
        (SOURCE.format("mine", "rng, x: dict = None"), "is of type <class 'dict'>, which cannot be written as text"),
        (SOURCE.format("mine", "users: int = 3"), "takes no rng"),
        (SOURCE.format("a b", "rng"), "cannot be called 'a b'"),
    ],
)
def test_bad_plugins_are_one_line(code: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.py").write_text(code)
    before = [set(one) for one in (REGISTRY, CLUSTERS.entries, MEASURES)]
    assert main(["mechanisms", "--plugin", "bad.py"]) == 2
    assert re.fullmatch(f".*bad.py.*{message}.*\n", capsys.readouterr().err)
    assert [set(one) for one in (REGISTRY, CLUSTERS.entries, MEASURES)] == before
    Path("plugged.toml").write_text(EXPERIMENT.replace("own.py", "bad.py"))
    with pytest.raises(DataError, match=r"plugged.toml:4: .*bad.py"):
        harness.load("plugged.toml")


def test_files_that_are_none(folder: Path) -> None:
    with pytest.raises(DataError, match=r"must end in \.py"):
        plugins.load("plugged.toml")
    with pytest.raises(DataError, match=r"there is no file nowhere.py; fairopt new figure NAME writes one"):
        figures.module("nowhere.py")


def test_a_class_that_is_defined_again_takes_the_place_of_the_old_one(folder: Path) -> None:
    """As in a notebook, where a cell is run twice."""
    space: dict[str, object] = {"__name__": "__main__"}
    code = PLUGIN.read_text().partition("@generator")[0].replace("from __future__ import annotations\n", "")
    exec(code, space)
    exec(code, space)
    assert REGISTRY["even-tasks"] is space["EvenTasks"]


# -- laws over everything that is declared ----------------------------------------------------------


@pytest.mark.parametrize("name", sorted(MEASURES))
def test_every_measure_is_a_column_everywhere_and_knows_no_order(name: str) -> None:
    rng = np.random.default_rng(3)
    cluster = fo.Cluster(rng.uniform(5, 9, (3, 2)), rng.uniform(0.5, 2, (4, 2)), weight=[1, 2, 1, 3])
    turned = cluster.select(users=cluster.users[::-1], servers=cluster.servers[::-1])
    found, again = (fo.DRFH().solve(one).summary()[name] for one in (cluster, turned))
    assert again == pytest.approx(found, rel=1e-6)
    assert fo.compare(cluster, ["drfh"], details=True)[name].iloc[0] == pytest.approx(found, rel=1e-12)
    assert name in fo.alpha_path(cluster, [1.0], details=True).columns


@pytest.mark.parametrize("name", sorted(name for name, one in CLUSTERS.entries.items() if not one.folder))
def test_every_generator_draws_the_same_from_the_same_seed(name: str) -> None:
    small = "".join(
        f"{option}=4&" for option in ("users", "servers", "vms") if option in CLUSTERS.entries[name].options
    )
    one, two, other = (fo.open_source(f"{name}?{small}seed={seed}").cluster for seed in (1, 1, 2))
    assert one == two
    assert one != other
    with pytest.raises(DataError, match=f"{name} has no option 'nothing'"):
        fo.open_source(f"{name}?nothing=1")
