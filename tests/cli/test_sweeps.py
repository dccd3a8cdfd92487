"""`fairopt sweep` and `fairopt results` as a person or a script meets them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import fairopt as fo
import fairopt.harness.report.figures
from fairopt import report
from fairopt.app.cli import main
from fairopt.errors import NotConverged

EXPERIMENT = """
title = "A tiny one"
[clusters]
paper = "paper:pf-fig1-variant"
[[grid]]
mechanisms = ["drfh", "tsf", "alphapf-vds"]
alphas = [1, 3]
measures = ["utilization", "classes", "tasks"]
[smoke]
mechanisms = "drfh"
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "tiny.toml"
    path.write_text(EXPERIMENT)
    return str(path)


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "store")


def test_from_nothing_to_an_exported_table(
    file: str, store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", file, "--store", store, "--dry-run"]) == 0
    assert main(["results", file, "--store", store]) == 0
    assert f"4 of 4 cells are missing: fairopt sweep {file}" in capsys.readouterr().err
    assert main(["sweep", file, "--store", store, "--smoke"]) == 0
    assert main(["sweep", file, "--store", store, "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert f"1 cells in {store}: 1 ok, 0 missed their tolerance, 0 failed" in out
    assert (
        "4 cells, 1 stored (0 failed), 3 to compute; no similar cells are stored to estimate the time of 3 of them"
        in out
    )
    assert main(["sweep", file, "--store", store]) == 0
    for where in (["name=alphapf-vds", "alpha=3"], ["name=alphapf-vds,alpha=3"]):
        assert main(["results", file, "--store", store, "--where", *where]) == 0
        out = capsys.readouterr().out
        assert "alphapf-vds(alpha=3.0)" in out
        assert "drfh" not in out.splitlines()[-1]
    where = ["--where", "mechanism=alphaPF_VDS(alpha=3),cluster=paper", "--columns", "cluster,", "mechanism,jain"]
    assert main(["results", file, "--store", store, *where]) == 0
    assert capsys.readouterr().out.split()[:4] == ["cluster", "mechanism", "jain", "paper"]
    for suffix in (".csv", ".parquet", ".json", ".md", ".tex"):
        target = tmp_path / "out" / f"x{suffix}"
        assert main(["results", file, "--store", store, "--export", str(target), "--table", "allocated"]) == 0
        assert "32 rows" in capsys.readouterr().out
    tasks = pd.read_csv(tmp_path / "out" / "x.csv")
    assert tasks["tasks"].equals(pd.read_parquet(tmp_path / "out" / "x.parquet")["tasks"])
    drfh = tasks[tasks["mechanism"] == "drfh"].groupby("user")["tasks"].sum()
    assert drfh.tolist() == pytest.approx([3, 3, 6.4, 6.4])  # PF 2.3
    assert "\nmechanism & user & server & tasks \\\\\n" in (tmp_path / "out" / "x.tex").read_text()
    assert main(["results", "--store", store, "--columns", "key", "elapsed"]) == 0


def test_failures_are_rows_shown_at_the_end_and_tried_again_on_request(
    file: str, store: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise NotConverged("nothing\nworked")

    for solve in (fail, fo.AlphaPFVDS.solve):
        monkeypatch.setattr(fo.AlphaPFVDS, "solve", solve)
        assert main(["sweep", file, "--store", store]) == 1
        out = capsys.readouterr().out
        assert "2 ok, 0 missed their tolerance, 2 failed" in out
        assert "- 2 x NotConverged: nothing worked (such as alphapf-vds(alpha=1.0))" in out
    assert main(["results", file, "--store", store, "--failed"]) == 0
    assert capsys.readouterr().out.count("nothing worked") == 2
    assert main(["sweep", file, "--store", store, "--retry"]) == 0
    assert "4 ok" in capsys.readouterr().out


def test_list_names_every_experiment_with_what_is_stored(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "drfh_figures", "--store", store]) == 0
    assert main(["sweep", "--list", "--store", store]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "drfh_figures: DRF in every server against DRFH [4/4 cells]" in lines
    assert any(line.startswith("pf_time: ") and line.endswith("[0/84 cells]") for line in lines)


def test_users_and_clusters_may_be_called_anything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    users = ["mechanism", "jain", "use_cpu", "use_disk", "=1+1", "a|b"]
    names = {"resources": ["cpu", "jain"], "users": users}  # a resource called so would have lost a column
    fo.Cluster([[6.0, 6.0]], [[1.0, 1.0]] * 6, **names).save(tmp_path / "odd.toml")
    (tmp_path / "odd-names.toml").write_text(
        'title = "x"\ntable = "clusters"\n[clusters]\n"../a/b" = "odd.toml"\n'
        '[[grid]]\nmechanisms = "drf"\nmeasures = ["utilization", "tasks"]\n'
    )
    store, out = str(tmp_path / "store"), tmp_path / "out"
    assert main(["sweep", str(tmp_path / "odd-names.toml"), "--store", store]) == 0
    assert main(["tables", str(tmp_path / "odd-names.toml"), "--store", store, "--out", str(out)]) == 0
    capsys.readouterr()
    (path,) = out.glob("*.csv")
    assert path.name.startswith("odd-names-.._a_b-")
    table = pd.read_csv(path).iloc[0]
    marked = ["mechanism (user)", "jain (user)", "use_cpu (user)", "use_disk (user)", "'=1+1", "a|b"]
    assert table[[*marked, "use_cpu", "use_jain", "jain"]].tolist() == pytest.approx([1] * 9)
    header = path.with_suffix(".md").read_text().splitlines()[2]
    assert [cell.strip() for cell in header.split(" | ")[1:7]] == [*marked[:4], "=1+1", "a\\|b"]


def test_tiny_versions_have_a_folder_of_their_own_and_are_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", "drfh_figures", "pf_example", "--smoke"]) == 0
    assert "cells in results/smoke/store" in capsys.readouterr().out
    assert not (tmp_path / "results" / "store").exists()
    assert main(["tables", "drfh_figures", "--smoke"]) == 0
    assert "TINY VERSION, not a result" in capsys.readouterr().out
    written = sorted((tmp_path / "results" / "smoke").glob("drfh_figures*"))
    assert [path.suffix for path in written] == [".csv", ".md", ".tex"]
    assert all(path.read_text().count("not a result") >= 2 for path in written)  # title or every row
    assert main(["figures", "drfh", "--smoke"]) == 0
    assert (tmp_path / "figures" / "smoke" / "drfh.pdf").exists()
    assert main(["results", "drfh_figures", "--smoke"]) == 0
    assert "drfh" in capsys.readouterr().out
    # Results are elsewhere, and not marked.
    assert main(["sweep", "drfh_figures"]) == 0
    assert "cells in results/store" in capsys.readouterr().out
    assert main(["tables", "drfh_figures"]) == 0
    assert "TINY" not in (tmp_path / "results" / "drfh_figures-figure1.csv").read_text()
    for smoke, store in ((True, "results/smoke/store"), (False, "results/store")):
        figure = report.figures.draw("drfh", report.Results(store, smoke=smoke))
        marks = [text for text in figure.texts if "not a result" in text.get_text()]
        assert len(marks) == smoke
        assert all(mark.get_fontsize() >= 20 and mark.get_position() == (0.5, 0.5) for mark in marks)
