"""Experiment files: what they mean, and what is said of bad ones."""

from __future__ import annotations

import math
import re
import tomllib
from pathlib import Path

import pytest
from families import EXAMPLE
from processes import ROOT

import fairopt as fo
from fairopt import harness
from fairopt.errors import DataError
from fairopt.harness.experiment import known

from .small import cells_of, load, sweep

GOOD = """\
title = "T"
repetitions = 2

[clusters]
one = "paper:drf-4.1"
two = { source = "lognormal", users = [3, 4], servers = 2 }

[[grid]]
mechanisms = ["drfh", "alphapf-vds"]
alphas = [1, inf]

[[grid]]
clusters = ["two"]
mechanisms = ["ps-dsf"]
engines = "best-response"

[smoke]
repetitions = 1
alphas = 1
[smoke.clusters]
two = "lognormal?users=2&servers=2"
"""


def test_a_grid_is_a_product(path: Path) -> None:
    cells = harness.cells_of(load(path, GOOD))
    games = [cell for cell in cells if cell.job.engine == "best-response"]
    others = [cell.job.what for cell in cells if cell.job.engine != "best-response"]
    # The paper's cluster once, as nothing about it is random; two others drawn twice; three mechanisms each.
    assert len(others) == (1 + 2 * 2) * 3
    assert {what.text for what in others} == {"drfh", "alphapf-vds(alpha=1.0)", "alphapf-vds(alpha=inf)"}
    assert math.isinf(others[-1].made.alpha)  # type: ignore[attr-defined]
    assert sorted(cell.origin.text for cell in games) == [f"lognormal?users={n}&servers=2" for n in (3, 3, 4, 4)]
    assert {cell.job.order for cell in games} == {"cyclic"}


def test_a_grid_may_have_draws_of_its_own(path: Path) -> None:
    text = GOOD.replace('engines = "best-response"', 'engines = "best-response"\nrepetitions = 3')
    cells = harness.cells_of(load(path, text))
    for games, draws in ((True, [0, 1, 2]), (False, [0, 1])):
        found = {cell.repetition for cell in cells if (cell.job.engine == "best-response") == games}
        assert sorted(found) == draws
    assert {cell.repetition for cell in harness.cells_of(load(path, text, smoke=True))} == {0}
    with pytest.raises(DataError, match=r":16: grid.2.repetitions: a table of each cluster shows one draw"):
        load(path, text.replace("repetitions = 2\n", "table = 'clusters'\n"))


def test_smoke_is_the_same_but_smaller(path: Path) -> None:
    cells = harness.cells_of(load(path, GOOD, smoke=True))
    assert {cell.origin.text for cell in cells} == {"paper:drf-4.1", "lognormal?users=2&servers=2"}
    assert len(cells) == 2 * 2 + 1


BAD = tomllib.loads(Path(__file__).with_name("bad_experiments.toml").read_text(encoding="utf-8"))["bad"]


@pytest.mark.parametrize(("old", "new", "line", "message"), BAD)
def test_a_bad_file_is_named_with_line_and_key(path: Path, old: str, new: str, line: int, message: str) -> None:
    assert old in GOOD
    with pytest.raises(DataError, match=re.escape(f"{path}:{line}: {message}")):
        harness.cells_of(load(path, GOOD.replace(old, new, 1)))


def test_what_cells_cannot_be_is_blamed_on_the_smoke_that_says_so(path: Path) -> None:
    bad = load(path, GOOD.replace("alphas = 1\n", "engines = 'newton'\n"), smoke=True)
    with pytest.raises(DataError, match=r":19: smoke.engines: PS-DSF has no engine 'newton'"):
        harness.cells_of(bad)


def test_an_option_that_only_the_trace_has(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIROPT_TRACES", raising=False)
    text = 'title = "T"\n[clusters.b]\nsource = "bitbrains"\nskip_malformed = true\n[[grid]]\nmechanisms = "drfh"\n'
    experiment = load(path, text)  # there may be a trace where it is run
    with pytest.raises(
        DataError, match=r":4: clusters.b.skip_malformed: option skip_malformed of bitbrains needs the trace"
    ):
        harness.cells_of(experiment)


def test_engines_are_those_that_solve_would_take(path: Path, tmp_path: Path) -> None:
    """By default, and by their names; the row says which answered."""
    path.write_text(
        'title = "T"\nclusters.b = "lognormal?users=5&servers=3"\n'
        '[[grid]]\nmechanisms = ["drfh", "alphapf-vds"]\nalphas = 2\n'
        '[[grid]]\nmechanisms = ["alpha-fair(alpha=2)"]\nengines = ["default", "native", "declarative"]\n'
    )
    frame = sweep(path, tmp_path / "store")
    assert frame[["name", "engine", "answered", "status"]].to_numpy().tolist() == [
        ["drfh", "default", "native", "ok"],
        ["alphapf-vds", "default", "equilibrium", "ok"],
        ["alpha-fair", "default", "native", "ok"],
        ["alpha-fair", "native", "native", "ok"],
        ["alpha-fair", "declarative", "declarative", "ok"],
    ]


def test_a_default_engine_that_fails_is_stood_in_for(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in `solve`: and `answered` says so."""
    from fairopt.core.engines import native

    monkeypatch.setattr(native, "solutions", lambda *_, **__: iter(()))
    path.write_text('title = "T"\nclusters.b = "paper:drf-4.1"\n[[grid]]\nmechanisms = "drf"\n')
    row = sweep(path, tmp_path / "store").iloc[0]
    assert (row["engine"], row["answered"], row["status"]) == ("default", "declarative", "ok")
    assert "the native engine did not reach the tolerance" in row["notes"]


def test_without_a_criterion_engines_are_those_of_an_ordinary_cluster() -> None:
    for name in fo.mechanisms.names():
        kind = fo.mechanisms.REGISTRY[name]
        for one in (*kind.variants(), *kind.trials()):
            assert one.engines() == one.engines(one.criterion(one.prepare(EXAMPLE)[0])), one
    others = fo.DRF(resource_weights=[[1, 2, 3]] * 4)  # of other users than an ordinary cluster has
    assert others.engines() == ("native", "declarative")


def test_the_example_of_the_documentation_is_sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIROPT_TRACES", raising=False)
    text = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    (tmp_path / "cluster.toml").write_text(
        "resources = ['cpu']\n[[servers]]\ncapacity = [2]\n[[users]]\ndemand = [1]\n"
    )
    example = text.split("```toml\n")[1].split("```")[0]
    cells = harness.cells_of(load(tmp_path / "e.toml", example))
    # Five mechanisms on five random clusters of 100 draws; then two orders with two dampings, and the engine, on all
    # seven clusters, where times are measured 100 times on those that are not random too.
    assert len(cells) == 5 * 5 * 100 + (2 * 2 + 1) * 7 * 100


#: Experiments of more than 1000 cells, and how many they may have.
LARGE = {"alpha_convergence": 10_000, "violations": 1200} | {
    f"explain_{one}": 2200 for one in ("drf_policies", "pf_comparison_google")
}


@pytest.mark.parametrize("name", sorted(known()))
def test_every_experiment_of_the_house_is_sound(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIROPT_TRACES", raising=False)
    assert 0 < len(cells_of(name)) <= LARGE.get(name, 1000)


@pytest.mark.parametrize("name", sorted(known()))
def test_smoke_of_every_experiment(name: str, swept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIROPT_TRACES", raising=False)
    frame = sweep(name, swept, smoke=True)
    assert 0 < len(frame) <= 60
    assert not frame["error"].dropna().tolist()
    if "policy" in frame:
        assert (frame["status"] == "ok").all()
        assert (frame["utilization"] >= 0).all()  # slots may over-commit
        return
    assert (frame["feasibility"] < 1e-6).all()
    # Games of a few rounds may miss their tolerance; everything else has its certificate.
    assert (frame.loc[frame["engine"] != "best-response", "status"] == "ok").all()
    assert frame["utilization"].between(0, 1 + 1e-9).all()
