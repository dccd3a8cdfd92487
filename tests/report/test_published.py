"""Tables of single clusters and of means: from the store, with what papers print beside ours, in three formats."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from fairopt import report, sweeps
from fairopt.cli import main
from fairopt.mechanisms import Mechanism
from fairopt.report import published
from fairopt.sweeps.experiment import known


@pytest.fixture(autouse=True)
def reads_only(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No traces, and nothing may solve."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a table solves")

    monkeypatch.delenv("FAIROPT_TRACES", raising=False)
    monkeypatch.setattr(Mechanism, "solve", refuse)


@pytest.fixture
def made(store: Path) -> dict[str, report.Table]:
    """The comparison tables by their names."""
    return {table.name: table for table in report.tables_of("comparison", report.Results(store, smoke=True))}


def test_tasks_by_user_beside_what_the_paper_prints(made: dict[str, report.Table]) -> None:
    frame = made["comparison-pf-fig1-variant"].frame.set_index("mechanism").drop(columns="TINY VERSION")
    users = frame.columns[:4]
    # PF 2.3 (catalogue item 33) and the closed form of item 34.
    assert frame.loc["PS-DSF", users].tolist() == pytest.approx([2, 6, 32 / 3, 16 / 3], rel=1e-3)
    assert frame.loc["DRFH", users].tolist() == pytest.approx([3, 3, 6.4, 6.4], rel=1e-5)
    assert frame.loc["alphaPF-VDS(alpha=1)", users].tolist() == pytest.approx([2, 6, 96 / 7, 32 / 7], rel=1e-3)
    assert (frame["certificate"] <= 1e-4).all()
    assert frame["printed"].to_dict() == dict.fromkeys(frame.index, "") | {"PS-DSF": "(2, 6, 32/3, 16/3)"}
    assert "Khamse-Ashari et al., TPDS 2018, 2.3, figure 2" in made["comparison-pf-fig1-variant"].title
    drf = made["comparison-drf-4-1"].frame.set_index("mechanism")["printed"]
    assert drf[["DRF", "asset fairness", "CEEI"]].tolist() == ["(3, 2)", "(2.52, 2.16)", "(45/11, 18/11)"]
    assert (drf.drop(["DRF", "asset fairness", "CEEI"]) == "").all()


def test_drawn_clusters_are_summed_up_and_say_what_they_are(made: dict[str, report.Table], store: Path) -> None:
    table = made["comparison-google"]
    assert table.title.startswith("TINY VERSION, not a result: Google-like: 8 users, 50 servers")
    frame = table.frame
    assert frame["mechanism"].tolist() == ["DRFH", "TSF", "PS-DSF", "alphaPF-VDS(alpha=1)", "alphaPF-VDS(alpha=3)"]
    assert frame["use_cpu"].between(0, 1 + 1e-9).all()
    cells = report.Results(store, smoke=True).of("comparison").cells
    assert frame["tasks"].tolist() == cells[cells["cluster"] == "google"]["tasks"].tolist()


def test_every_experiment_is_listed_with_the_sweep_that_it_lacks(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tables", "--smoke", "--store", str(store), "--out", str(tmp_path / "out")]) == 0
    written = {path.stem for path in (tmp_path / "out").iterdir()}
    assert {"mechanisms", "comparison-bitbrains", "pf_table1-pareto", "drf_figures-thm4-lie"} <= written
    captured = capsys.readouterr()
    assert "alphaPF-VDS(alpha=3)" in captured.out
    single = {name for name in known() if sweeps.load(name).quick}
    for name in set(known()) - single:
        assert f"fairopt sweep {name} --smoke --store {store}" in captured.err
    assert not any(f"sweep {name} " in captured.err for name in single)
    assert main(["tables", "scaling", "comparison", "--smoke", "--store", str(store), "--out", str(tmp_path)]) == 1
    assert (tmp_path / "comparison-google.csv").exists()  # what is there is made all the same
    (tmp_path / "empty").mkdir()  # a store that holds nothing
    assert main(["tables", "--smoke", "--store", str(tmp_path / "empty"), "--out", str(tmp_path)]) == 1


def test_captions_say_n_and_what_intervals_are(store: Path) -> None:
    results = report.Results(store, smoke=True)
    several, once = (report.tables_of(name, results)[0].details for name in ("drf_policies", "mqdrf_dynamic"))
    assert once[0] == "n = 1 draw, without intervals"
    assert several == once or several[0].startswith("n = 1 ") or "95% confidence" in several[0]
    assert once[1] == "Data: figure2 from mqdrf-figure2; figure3 from mqdrf-figure2 (users = 8)"
    frame = pd.DataFrame({"n": [3, 5], "jain": [0.5, 0.6], "+- jain": [0.1, 0.0]})
    assert published._draws(frame["n"], frame).startswith("Means of n = 3 to 5 draws, ± half a 95%")
    assert published._draws(frame["n"], frame.assign(**{"+- jain": 0.0})).endswith("all equal, without intervals")


def test_columns_and_rows_are_chosen(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["comparison", "--smoke", "--store", str(store), "--out", str(tmp_path)]
    chosen = ["--rows", "TSF,alphapf*", "--columns", "mechanism", "use_[cm]*", "jain", "--json", "--width", "3.3"]
    assert main(["tables", *arguments, *chosen]) == 0
    made = json.loads(capsys.readouterr().out)
    assert [row["mechanism"] for row in made["comparison-google"]] == [
        "TSF",
        "alphaPF-VDS(alpha=1)",
        "alphaPF-VDS(alpha=3)",
    ]
    assert list(made["comparison-google"][0]) == ["mechanism", "use_cpu", "use_memory", "jain"]
    csv = pd.read_csv(tmp_path / "comparison-google.csv")  # every digit is in both
    assert [row["use_cpu"] for row in made["comparison-google"]] == csv["use_cpu"].tolist()
    assert r"\begin{table}[" in (tmp_path / "comparison-google.tex").read_text(encoding="utf-8")
    assert main(["tables", *arguments, "--rows", "CEEI", "--json"]) == 0
    assert [len(rows) for rows in json.loads(capsys.readouterr().out).values()] == [1]
    for option, entry in (("--columns", "no_such"), ("--rows", "no such")):
        assert main(["tables", *arguments, option, "mech*", "TSF", entry, "--json"]) == 1
        assert f"no table here has {entry}" in capsys.readouterr().err.replace("TSF, ", "").replace("mech*, ", "")
    assert main(["tables", *arguments, "--columns", "jian"]) == 1
    assert capsys.readouterr().err.endswith("no table here has jian; did you mean jain?\n")
    assert main(["tables", "frontier", "--store", str(store), "--smoke", "--columns", "jian"]) == 1
    assert "no table here" not in capsys.readouterr().err  # what lacks cells may have it
    assert main(["tables", *arguments, "--columns", "*", "--width", "1.5"]) == 2
    assert "do not fit into 1.5 inches" in capsys.readouterr().err
    assert main(["tables", *arguments, "--width", "0.1"]) == 2


def test_a_failed_mechanism_is_left_out_and_a_missed_tolerance_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # this one sweeps
    path = tmp_path / "bad.toml"
    path.write_text(
        'title = "x"\ntable = "clusters"\nclusters.a = "paper:pf-fig1-variant"\n[[grid]]\nmechanisms = ["cmmf"]\n'
        '[[grid]]\nmechanisms = "alphapf-vds"\nalphas = 3\nengines = "best-response"\nmax_rounds = 1\n'
    )
    sweeps.sweep(path, store=tmp_path / "store", progress=False)
    results = report.Results(tmp_path / "store")
    [table] = report.tables_of(str(path), results)
    assert table.frame["mechanism"].tolist() == ["alphaPF-VDS(alpha=3)"]
    assert table.notes[-1] == "alphaPF-VDS(alpha=3) misses its tolerance"
    assert any("CMMF: DataError: " in note for note in table.notes)


def test_written_tables_hold_the_same_rows(tmp_path: Path) -> None:
    frame = pd.DataFrame({"mechanism": ["a_b & c", "50%"], "use_cpu": [0.5, float("nan")], "certificate": [1e-9, 2e-7]})
    paths = report.write(frame, tmp_path, "t", "A caption with 100% of $ and _")
    assert [path.suffix for path in paths] == [".csv", ".md", ".tex"]
    assert pd.read_csv(paths[0])["certificate"].tolist() == [1e-9, 2e-7]
    markdown, latex = paths[1].read_text(), paths[2].read_text()
    assert "| a_b & c" in markdown
    assert "50.0%" in markdown
    assert r"$a_{b}$ \& c & 50 & $10^{-9}$ \\" in latex
    assert r"use (\%)" in latex
    assert r"\toprule" in latex
    assert r"100\% of \$ and \_" in latex
