"""The command line as a person or a script meets it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import fairopt as fo
from fairopt import papers
from fairopt.app.cli import _unraisable, main, parser, reproduce
from fairopt.errors import NotConverged
from fairopt.harness.report import figures, instances, schemas
from fairopt.harness.report.typeset import PAGE
from fairopt.harness.schema import CELLS, SIMULATIONS

CLUSTER = "kind,name,cpu,memory\nserver,s,9,18\nuser,A,1,4\nuser,B,3,1\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.csv"
    path.write_text(CLUSTER)
    return path


def test_solve_json_is_complete(file: Path, answer: Callable[..., Any]) -> None:
    found = answer("solve", str(file), "-m", "ceei")
    assert found["users"]["A"] == pytest.approx(45 / 11, rel=1e-5)
    assert found["stats"]["versions"]["cvxpy"]
    # Budgets of 1 each buy everything: prices times capacities sum to 2.
    assert sum(p * c for p, c in zip(found["prices"][0], (9, 18), strict=True)) == pytest.approx(2, rel=1e-6)


def test_compare_has_rows_without_numbers(file: Path, answer: Callable[..., Any]) -> None:
    rows = {row["mechanism"]: row for row in answer("compare", str(file))}
    assert rows["DRF"]["tasks"] == pytest.approx(5)
    assert rows["CMMF"]["status"].startswith("not applicable")
    assert rows["CMMF"]["tasks"] is None


def test_screens_show_what_python_shows(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, shown in (
        (["compare", str(file), "-m", "drf"], fo.compare(fo.Cluster.load(file), "drf")),
        (["path", str(file), "--alphas", "1,2"], fo.alpha_path(fo.Cluster.load(file), [1, 2])),
    ):
        assert main(words) == 0
        assert [str(shown.index.name), *shown] in [line.split() for line in capsys.readouterr().out.splitlines()]


def test_compare_is_relative_to_whom_one_says(answer: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", "paper:pf-fig1-variant", "-m", "tsf,ps-dsf"]
    for by in ("tsf", "ps-dsf"):
        assert [row["distance"] == 0 for row in answer(*words, "--entitled", by)] == [by == "tsf", by == "ps-dsf"]
    for by, said in (("tsff", "there is no mechanism 'tsff'"), ("alphapf-vds", "'alphapf-vds' names several")):
        assert main([*words, "--entitled", by]) == 2
        assert said in capsys.readouterr().err


def test_compare_says_when_a_mechanism_fails(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise NotConverged("PS-DSF: nothing worked")

    monkeypatch.setattr(fo.PSDSF, "solve", fail)
    assert main(["compare", str(file), "-m", "drf", "maxmin", "ps-dsf"]) == 1
    out = capsys.readouterr().out
    assert "PS-DSF: NotConverged: PS-DSF: nothing worked" in out
    assert "- max-min: not applicable" in out


def test_claims_about_measurements_show_the_numbers(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["claims", "--item", "35", "--out", str(tmp_path)]) == 0
    out = " ".join(capsys.readouterr().out.split())  # however wide the terminal is
    for row in papers.check(papers.claims(item=35)).to_dict("records"):
        assert f"- {row['claim']}: {row['verdict']}; {row['note']}" in out
        assert row["note"] in (tmp_path / "claims.csv").read_text()


def test_claims_exit_code_tells_a_failure(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["claims", "--item", "2"]) == 0
    out = " ".join(capsys.readouterr().out.split())  # lines are as wide as the terminal
    assert (
        "of 16 printed numbers and directions 15 reproduced, 1 paper in error; 1 derived, which no paper prints" in out
    )
    assert "- DRF" not in out
    frame = papers.check(papers.claims(None, 2))
    frame.loc[0, "verdict"] = papers.NOT_REPRODUCED
    monkeypatch.setattr(papers, "check", lambda *_, **__: frame)
    assert main(["claims", "--item", "2"]) == 1


def test_pools_are_shared_by_their_own_commands(file: Path, tmp_path: Path, answer: Callable[..., Any]) -> None:
    found = answer("dynamic-drf", str(file), "--order", "B", "A")
    assert found[1] == pytest.approx({"arrived": "A", "A": 3, "B": 2})
    assert main(["hug", str(file), "--out", str(tmp_path / "links.csv")]) == 0
    assert (tmp_path / "links.csv").read_text().splitlines()[1].startswith("A,1.0,0.66")
    assert main(["dynamic-drf", str(file), "--order", "B"]) == 2


def test_what_is_declared_is_what_the_code_knows() -> None:
    """Every command has its function; choices and defaults of commands.toml are those of the modules."""
    declared = tomllib.loads((files("fairopt.app.cli") / "commands.toml").read_text(encoding="utf-8"))["commands"]
    for name, said in declared.items():
        assert callable(getattr(import_module(f"fairopt.app.cli.{said['module']}"), name.replace("-", "_")))
    choices = {(name, one["flags"][0]): one["choices"] for name, said in declared.items()
               for one in said.get("options", ()) if "choices" in one}  # fmt: skip
    assert choices["schema", "kind"] == list(schemas.SCHEMAS)
    assert choices["reproduce", "paper"] == list(reproduce.PAPERS)
    assert choices["results", "--table"] == sorted({"cells", *CELLS.long, *SIMULATIONS.long})
    defaults = {
        name: parser().parse_args([name, *more]) for name, *more in (["bench", "list"], ["tables"], ["figures"])
    }
    assert defaults["bench"].out == instances.SET
    assert defaults["tables"].width == PAGE
    assert defaults["figures"].style == figures.PAPER


def test_reader_that_stops_early_gets_no_traceback() -> None:
    command = f"{sys.executable} -m fairopt.app.cli compare paper:drf-4.1 -m drf | head -c 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert "Traceback" not in done.stderr


def test_errors_in_finalizers_are_heard_but_the_compilers_at_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []
    monkeypatch.setattr(sys, "__unraisablehook__", lambda found: heard.append(found.object.__module__))
    for module, error in (("llvmlite.ffi", AttributeError()), ("llvmlite.ir", OSError()), ("a", AttributeError())):
        _unraisable(SimpleNamespace(exc_value=error, object=SimpleNamespace(__module__=module)))  # type: ignore[arg-type]
    assert heard == ["llvmlite.ir", "a"]
