"""Tables of single clusters and of means: from the store, with what papers print beside ours, in three formats."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from fairopt import harness, report
from fairopt.app.cli import main
from fairopt.harness.experiment import known
from fairopt.harness.report import published
from fairopt.mechanisms import Mechanism


@pytest.fixture(autouse=True)
def reads_only(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No traces, and nothing may solve."""
    monkeypatch.delenv("FAIROPT_TRACES", raising=False)
    monkeypatch.setattr(Mechanism, "solve", None)


@pytest.fixture
def made(store: Path) -> dict[str, report.Table]:
    """The comparison tables by their names."""
    return {table.name: table for table in report.tables_of("comparison", report.Results(store, smoke=True))}


def test_tasks_by_user_beside_what_the_paper_prints(made: dict[str, report.Table]) -> None:
    table = made["comparison-pf-fig1-variant"]
    frame = table.frame.set_index("mechanism").drop(columns="TINY VERSION")
    # PF 2.3, and the closed form at alpha = 1.
    for mechanism, tasks in (
        ("PS-DSF", [2, 6, 32 / 3, 16 / 3]),
        ("DRFH", [3, 3, 6.4, 6.4]),
        ("alphaPF-VDS(alpha=1)", [2, 6, 96 / 7, 32 / 7]),
    ):
        assert frame.loc[mechanism][:4].tolist() == pytest.approx(tasks, rel=1e-3)
    assert (frame["certificate"] <= 1e-4).all()
    assert frame["printed"][frame["printed"] != ""].to_dict() == {"PS-DSF": "(2, 6, 32/3, 16/3)"}
    assert "Khamse-Ashari et al., TPDS 2018, 2.3, figure 2" in table.title
    drf = made["comparison-drf-4-1"].frame.set_index("mechanism")["printed"]
    expected = {"DRF": "(3, 2)", "asset fairness": "(2.52, 2.16)", "CEEI": "(45/11, 18/11)"}
    assert drf[drf != ""].to_dict() == expected


def test_drawn_clusters_are_summed_up_and_say_what_they_are(made: dict[str, report.Table], store: Path) -> None:
    table = made["comparison-google"]
    assert table.title.startswith("TINY VERSION, not a result: Google-like: 8 users, 50 servers")
    frame = table.frame
    assert frame["mechanism"].tolist() == ["DRFH", "TSF", "PS-DSF", "alphaPF-VDS(alpha=1)", "alphaPF-VDS(alpha=3)"]
    assert frame["use_cpu"].between(0, 1 + 1e-9).all()
    cells = report.Results(store, smoke=True).of("comparison").cells
    assert frame["tasks"].tolist() == cells[cells["cluster"] == "google"]["tasks"].tolist()


def test_every_experiment_is_listed_with_the_sweep_that_it_lacks(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["tables", "--smoke", "--store", str(store), "--out", str(tmp_path / "out")]) == 0
    written = {path.stem for path in (tmp_path / "out").iterdir()}
    assert {"mechanisms", "comparison-bitbrains", "pf_table1-pareto", "drf_figures-thm4-lie"} <= written
    captured = capsys.readouterr()
    assert "alphaPF-VDS(alpha=3)" in captured.out
    assert not any(f"sweep {name} " in captured.err for name in known() if harness.load(name).quick)
    (tmp_path / "few").mkdir()
    own = ["--smoke", "--store", str(tmp_path / "few"), "--out", str(tmp_path)]
    assert main(["tables", *own]) == 1  # a store that holds nothing
    said = capsys.readouterr().err
    assert all(f"fairopt sweep {name} --smoke --store {tmp_path / 'few'}" in said for name in known())
    monkeypatch.undo()  # this one sweeps
    harness.sweep("drfh_figures", smoke=True, store=tmp_path / "few", progress=False)
    assert main(["tables", "scaling", "drfh_figures", *own]) == 1
    assert (tmp_path / "drfh_figures-figure1.csv").exists()  # what is there is made all the same


def test_captions_say_n_and_what_intervals_are(store: Path) -> None:
    [table] = report.tables_of("mqdrf_dynamic", report.Results(store, smoke=True))[:1]
    data = "Data: figure2 from mqdrf-figure2; figure3 from mqdrf-figure2 (users = 8)"
    assert list(table.details[:2]) == ["n = 1 draw, without intervals", data]
    frame = pd.DataFrame({"n": [3, 5], "jain": [0.5, 0.6], "+- jain": [0.1, 0.0]})
    assert published._draws(frame["n"], frame).startswith("Means of n = 3 to 5 draws, ± half a 95%")
    assert published._draws(frame["n"], frame.assign(**{"+- jain": 0.0})).endswith("all equal, without intervals")


def test_columns_and_rows_are_chosen(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["tables", "comparison", "--smoke", "--store", str(store), "--out", str(tmp_path)]
    chosen = ["--rows", "TSF,alphapf*", "--columns", "mechanism", "use_[cm]*", "jain", "--json", "--width", "3.3"]
    assert main([*arguments, *chosen]) == 0
    google = pd.DataFrame(json.loads(capsys.readouterr().out)["comparison-google"])
    assert google["mechanism"].tolist() == ["TSF", "alphaPF-VDS(alpha=1)", "alphaPF-VDS(alpha=3)"]
    assert list(google) == ["mechanism", "use_cpu", "use_memory", "jain"]
    csv = pd.read_csv(tmp_path / "comparison-google.csv")  # every digit is in both
    assert google["use_cpu"].tolist() == csv["use_cpu"].tolist()
    assert r"\begin{table}[" in (tmp_path / "comparison-google.tex").read_text(encoding="utf-8")
    assert main([*arguments, "--rows", "CEEI", "--json"]) == 0
    assert [len(rows) for rows in json.loads(capsys.readouterr().out).values()] == [1]
    for words, status, said in (
        ("--columns mech* no_such", 1, "no table here has no_such"),
        ("--rows TSF no-such", 1, "no table here has no-such"),
        ("--columns jian", 1, "no table here has jian; did you mean jain?\n"),
        ("--columns * --width 1.5", 2, "do not fit into 1.5 inches"),
    ):
        assert main([*arguments, *words.split()]) == status
        assert said in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main([*arguments, "--width", "0.1"])
    assert "from 1 to 40 inches; got 0.1" in capsys.readouterr().err
    assert main(["tables", "frontier", "--store", str(tmp_path), "--smoke", "--columns", "jian"]) == 1
    assert "no table here" not in capsys.readouterr().err  # what lacks cells may have it


def test_a_failed_mechanism_is_left_out_and_a_missed_tolerance_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # this one sweeps
    path = tmp_path / "bad.toml"
    path.write_text(
        'title = "x"\ntable = "clusters"\nclusters.a = "lognormal?users=9&servers=4"\n[[grid]]\nmechanisms = ["cmmf"]\n'
        '[[grid]]\nmechanisms = "alphapf-vds"\nalphas = 3\nengines = "best-response"\nmax_rounds = 1\n'
    )
    harness.sweep(path, store=tmp_path, progress=False)
    [table] = report.tables_of(str(path), report.Results(tmp_path))
    assert table.frame["mechanism"].tolist() == ["alphaPF-VDS(alpha=3)"]
    assert table.title.endswith("; N = 9 users, K = 4 servers")
    assert table.notes[-1] == "alphaPF-VDS(alpha=3) misses its tolerance"
    assert any("CMMF: DataError: " in note for note in table.notes)
