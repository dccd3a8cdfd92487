"""`fairopt reproduce`: a folder with everything of a paper, and a manifest that says how it was made."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from processes import ROOT

from fairopt import harness, papers, report
from fairopt.app.cli import main
from fairopt.app.cli.reproduce import PAPERS, experiments_of, figures_of
from fairopt.base import version
from fairopt.harness.experiment import known
from fairopt.harness.report import figures, stored
from fairopt.papers import claims


def test_a_paper_from_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "mqdrf"
    monkeypatch.setattr(stored, "_is_stand_in", lambda cell: True)  # what has no trace is said on the screen, too
    assert main(["reproduce", "mqdrf", "--smoke", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "mqdrf_dynamic: 3 cells" in said
    assert "- mqdrf_dynamic: no trace here: calibrated generators stand in (mqdrf-figure2, " in " ".join(said.split())
    made = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert (made["format"], made["paper"], made["tiny version"]) == ("fairopt-manifest-1", "mqdrf", True)
    assert made["code"]["versions"]["numpy"]
    assert made["code"]["commit"]
    there = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file() and "store" not in path.parts}
    assert there - {"manifest.json"} == set(made["files"]) >= {"claims.csv", "figures/mqdrf_dynamic.pdf"}
    for name, digest in made["files"].items():
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == digest
    one = made["experiments"]["mqdrf_dynamic"]
    text = (ROOT / "experiments" / "mqdrf_dynamic.toml").read_bytes()
    assert one["file"] == hashlib.sha256(text).hexdigest()
    assert one["cells"] == {"ok": 3}
    assert [data["source"] for data in one["data"]] == ["mqdrf-figure2", "mqdrf-figure2?users=8"]
    assert all((data["data"], data["digest"]) == ("generator", "") for data in one["data"])  # drawn by its seed
    derived = sum(claim.printed is None for claim in claims("MQDRF"))
    assert sum(made["claims"].values()) == 20 + derived  # the statements of the paper, and what it does not print

    # Once more: the cells are there, tables are the same, byte for byte, and what is no answer is counted. Of figures
    # `tests/figures` says so; claims hold no cells.
    sweep, statuses, checked = harness.sweep, iter(["missed", "failed"]), papers.check(claims("MQDRF"))
    monkeypatch.setattr(papers, "check", lambda *_, **__: checked)
    monkeypatch.setattr(figures, "draw", lambda *_: None)
    monkeypatch.setattr(figures, "save", lambda _, folder, name, *__: [*folder.glob(f"{name}.*")])

    def worse(*names: Any, **options: Any) -> Any:
        frame = sweep(*names, **options)
        frame.loc[frame.index[0], "status"] = next(statuses)
        return frame

    monkeypatch.setattr(harness, "sweep", worse)
    assert main(["reproduce", "mqdrf", "--smoke", "--out", str(out)]) == 0
    assert "2 ok, 1 missed their tolerance, 0 failed" in capsys.readouterr().out
    assert json.loads((out / "manifest.json").read_text(encoding="utf-8"))["files"] == made["files"]

    # Tables of the page, and then of a column, with a label of their own for each paper. A cell that failed is the exit
    # status, and so is a claim.
    tables = out / "tables" / "mqdrf_dynamic.tex", out / "claims.tex"
    assert all(r"\begin{table*}[" in path.read_text(encoding="utf-8") for path in tables)
    assert main(["reproduce", "mqdrf", "--smoke", "--out", str(out), "--width", "3.3"]) == 1
    assert "2 ok, 0 missed their tolerance, 1 failed" in capsys.readouterr().out
    assert all(r"\begin{table}[" in path.read_text(encoding="utf-8") for path in tables)
    assert r"\label{tab:claims-mqdrf}" in tables[1].read_text(encoding="utf-8")
    monkeypatch.setattr(harness, "sweep", sweep)
    checked.loc[checked.index[0], "verdict"] = f"{papers.NOT_REPRODUCED}: NotConverged: gave up"
    assert main(["reproduce", "mqdrf", "--smoke", "--out", str(out)]) == 1
    assert "3 ok" in capsys.readouterr().out


def test_every_paper_has_claims_and_what_belongs_to_it() -> None:
    assert all(claims(key) for key in PAPERS.values())
    mine = [name for paper in PAPERS for name in experiments_of(paper)]
    assert len(mine) == len(set(mine)), "an experiment belongs to two papers"
    assert {name for name in known() if name.partition("_")[0] in PAPERS} | {"two_users"} == set(mine)
    assert figures_of("lecture") == ["two_users"]
    assert not set(figures_of("drf")) & set(figures_of("drfh"))


def test_what_it_would_take(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "pf", "--dry-run", "--smoke", "--out", str(tmp_path)]) == 0
    assert "pf_time: 28 cells, 0 stored" in capsys.readouterr().out
    assert main(["reproduce", "pf", "--dry-run", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert len(said) == len(experiments_of("pf"))
    assert all(re.search(r"time of \d+ of them, which once took \d+:\d\d:\d\d h", line) for line in said)
    assert not [name for name in known() if not harness.load(name).minutes]
    assert not [*tmp_path.rglob("manifest.json")]


def test_claims_are_written_where_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file if its suffix is that of a table, else a folder; no bar in output that is no terminal."""
    for out, written in (("all.csv", ["all.csv"]), ("new/all.tex", ["new/all.tex"]), ("dir", ["dir/claims.md"])):
        assert main(["claims", "--item", "2", "--out", str(tmp_path / out)]) == 0
        assert all((tmp_path / path).is_file() for path in written)
        captured = capsys.readouterr()
        assert (captured.err, "claim/s" in captured.out) == ("", False)
    assert " reproduced" in captured.out
    for words in (["tables", "mechanisms"], ["figures"], ["reproduce", "drf"]):
        with pytest.raises(SystemExit, match="2"):
            main([*words, "--out", str(tmp_path / "a.csv")])
        assert "a.csv is a file; name a folder" in capsys.readouterr().err


def test_a_commit_is_known_without_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is built from a source distribution or a wheel says the commit of the checkout, or that it is unknown."""
    assert version.commit(tmp_path) is None
    monkeypatch.setattr(version, "__file__", str(tmp_path / "fairopt" / "base" / "version.py"))
    assert version.built() is None
    (tmp_path / "fairopt" / "shipped").mkdir(parents=True)
    (tmp_path / "fairopt" / "shipped" / "COMMIT").write_text("abc123+")
    assert version.built() == "abc123+"
    of = {"versions": "{}", "commit": None, "fairopt": "0.2.0"}
    monkeypatch.setattr(stored, "provenance", lambda: of)
    made = stored.manifest("x", [], report.Results(smoke=True), [], tmp_path, {}, {})
    assert made["code"]["commit"] == f"unknown, version {version.__version__}"


def test_which_assumptions_decide(swept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Options with the sentence of the paper, outcomes by combination, and verdicts; nothing that one draw decides."""
    swept.mkdir(exist_ok=True)
    (tmp_path / "store").symlink_to(swept)
    words = ["reproduce", "drf", "--smoke", "--out", str(tmp_path)]
    assert main([*words, "--explain", "drf_policies"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"loop +once a job", said)
    assert re.search(r"seconds +not said", said)
    assert "no slowdown" in said
    assert "undecided" in said
    assert "7.2: DRF completes the most jobs (highest throughput): cannot be judged here: not decided by 1 draw" in said
    assert (tmp_path / "explained" / "explained-drf_policies.csv").is_file()
    assert main([*words, "--explain", "drf_lie"]) == 2
    assert "no statement of drf is judged by 'drf_lie'; known: drf_demands, " in capsys.readouterr().err
