"""Tables of single clusters and of means: from the store, with what papers print beside ours, in three formats."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from fairopt import harness, papers, report
from fairopt.app.cli import main
from fairopt.errors import DataError
from fairopt.harness.experiment import known
from fairopt.harness.report import published
from fairopt.harness.report import table as tables
from fairopt.harness.report.export import markdown
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
    frame = table.frame.drop_duplicates("mechanism").set_index("mechanism")
    # PF 2.3, and the closed form at alpha = 1, which is a column.
    for mechanism, tasks in (
        ("PS-DSF", [2, 6, 32 / 3, 16 / 3]),
        ("DRFH", [3, 3, 6.4, 6.4]),
        ("alphaPF-VDS", [2, 6, 96 / 7, 32 / 7]),
    ):
        assert frame.loc[mechanism, table.groups["tasks of"]].tolist() == pytest.approx(tasks, rel=1e-3)
    assert frame.loc["alphaPF-VDS", "alpha"] == 1
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
    assert frame["mechanism"].tolist() == ["DRFH", "TSF", "PS-DSF", "alphaPF-VDS", "alphaPF-VDS"]
    assert frame["alpha"].dropna().tolist() == [1, 3]
    assert frame["use_cpu"].between(0, 1 + 1e-9).all()
    cells = report.Results(store, smoke=True).of("comparison").cells
    assert frame["tasks"].tolist() == cells[cells["cluster"] == "google"]["tasks"].tolist()


def test_every_experiment_is_listed_with_the_sweep_that_it_lacks(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["tables", "--smoke", "--store", str(store), "--out", str(tmp_path / "out")]) == 0
    written = {path.stem for path in (tmp_path / "out").iterdir()}
    assert {"mechanisms", "comparison-bitbrains", "pf_table1", "drf_figures-thm4-lie"} <= written
    captured = capsys.readouterr()
    assert "alphaPF-VDS     3" in captured.out
    assert "drf_policies.tex: no room in 6.5 inches for fraction_of_tasks_done, " in captured.out
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
    assert tables.draws_said(frame["n"], frame).startswith("Means of n = 3 to 5 draws, ± half a 95%")
    assert tables.draws_said(frame["n"], frame.assign(**{"+- jain": 0.0})).endswith("all equal, without intervals")


def test_columns_and_rows_are_chosen(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["tables", "comparison", "--smoke", "--store", str(store), "--out", str(tmp_path)]
    chosen = ["--rows", "TSF,alphapf*", "--columns", "mechanism", "use_[cm]*", "jain", "--json", "--width", "3.3"]
    assert main([*arguments, *chosen]) == 0
    google = pd.DataFrame(json.loads(capsys.readouterr().out)["comparison-google"])
    assert google["mechanism"].tolist() == ["TSF", "alphaPF-VDS", "alphaPF-VDS"]
    assert list(google) == ["mechanism", "use_cpu", "use_memory", "jain"]
    csv = pd.read_csv(tmp_path / "comparison-google.csv")  # every digit is in both
    assert google["use_cpu"].tolist() == csv["use_cpu"].tolist()
    assert r"\begin{table}[" in (tmp_path / "comparison-google.tex").read_text(encoding="utf-8")
    assert main([*arguments, "--rows", "alphapf_vds(alpha=3.0)", "--json"]) == 0
    assert [row["alpha"] for row in json.loads(capsys.readouterr().out)["comparison-google"]] == [3]
    assert main([*arguments, "--rows", "CEEI", "--json"]) == 0
    assert [len(rows) for rows in json.loads(capsys.readouterr().out).values()] == [1]
    for words, status, said in (
        ("--rows TSF no-such", 1, "no table here has no-such"),
        ("--columns mech* jian", 1, "no table here has jian; did you mean jain?\n"),
        ("--columns * --width 1.5", 2, "do not fit into 1.5 inches; the table takes 4"),
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


def test_chosen_rows_keep_their_groups() -> None:
    """Rows of one workload stay together, in the order asked for within each."""
    frame = pd.DataFrame({"workload": ["day", "day", "day", "loop", "loop"], "policy": ["a", "b_b", "c", "a", "b_b"]})
    chosen = report.Table("x", "X", frame).chosen(None, ["b-b", "a"])
    assert chosen is not None
    assert chosen.frame.to_numpy().tolist() == [["day", "b_b"], ["day", "a"], ["loop", "b_b"], ["loop", "a"]]


def test_the_papers_properties_are_one_table(store: Path) -> None:
    """PF, table 1: TSF lacks sharing incentive as the paper defines it, and the rest is as printed."""
    [table] = report.tables_of("pf_table1", report.Results(store, smoke=True))
    frame = table.frame.set_index("property").drop(columns="TINY VERSION")
    assert frame.loc["sharing incentive"].str[:3].tolist() == ["no ", "no ", "yes", "yes", "pap"]
    assert frame.loc["sharing incentive", "verdict"] == "paper in error: TSF is printed yes"
    assert set(frame["verdict"].drop("sharing incentive")) == {papers.REPRODUCED}
    assert frame["PS-DSF"].str.startswith("no").tolist() == [False, True, False, False]
    # That no counterexample is found refutes no printed "no", nor does a proof with conditions.
    printed = {"drfh": (), "alphapf-vds": (), "ps-dsf": ("pareto-optimality",)}
    chosen = replace(harness.load("pf_table1", smoke=True), printed=printed)
    other = published._of_properties(chosen, report.Results(store, smoke=True).of("pf_table1"))
    [said] = other.frame["verdict"]
    assert said.split("; ") == [
        "paper in error: DRFH is printed no", "paper in error: PS-DSF is printed yes",
        "no counterexample found: alphaPF-VDS(alpha=1) is printed no",
    ]  # fmt: skip


def test_units_and_what_says_nothing() -> None:
    """Seconds and percentages are in the heads; no half-width of 0, and no column that is as expected everywhere."""
    frame = pd.DataFrame(
        {"mean_wait": [1.5, 2.0], "fraction_of_jobs_done": [0.84, 0.5], "+- fraction_of_jobs_done": [0.0, 0.02],
         "certified": True, "pooled": False, "missed": 0, "strict": [True, False]}
    )  # fmt: skip
    heads, _, *rows = markdown(frame).splitlines()
    names = ["mean_wait (s)", "fraction_of_jobs_done", "+- fraction_of_jobs_done", "strict"]
    assert [head.strip() for head in heads.strip("|").split("|")] == names
    cells = [[cell.strip() for cell in row.strip("|").split("|")][1:] for row in rows]
    assert cells == [["84.0%", "", "yes"], ["50.0%", "2.0%", "no"]]
    tex = report.latex(frame)
    assert "In every row" not in tex
    assert all(words in tex for words in ("wait (s)", r"(\%)", "84 ", "yes", r"$50.0 \pm 2.0$"))


def test_use_above_all_there_is_is_explained(store: Path) -> None:
    [table] = report.tables_of("drf_policies", report.Results(store, smoke=True))
    assert table.frame["use_memory"].max() > 1
    assert any(note.startswith("Above 100%: tasks on over-committed servers") for note in table.notes)
    assert {"policy", "n (policy)", "thrashing", "fraction_of_jobs_done"} <= set(table.frame)


def test_means_by_rows_and_columns(store: Path, tmp_path: Path) -> None:
    """By hand from the cells; what else tells cells apart is a further name of rows, and only draws are averaged."""
    found = report.Results(store, smoke=True).of("comparison")
    table = found.table(rows="mechanism", columns="cluster", values="utilization")
    assert list(table.frame)[:2] == ["mechanism", "alpha"]
    cells = found.cells[(found.cells["cluster"] == "google") & (found.cells["name"] == "alphapf-vds")]
    ours = table.frame[table.frame["mechanism"] == "alphapf-vds"].sort_values("alpha")
    assert ours["utilization by cluster = google"].tolist() == cells.sort_values("alpha")["utilization"].tolist()
    assert r"\multicolumn{6}{@{}c@{}}{utilization by cluster}" in table.latex()
    assert {path.suffix for path in table.write(str(tmp_path), 9)} == {".csv", ".md", ".tex"}
    loads = report.Results(store, smoke=True).of("drf_dynamic").table("policy", ["utilization", "jobs"], "phase")
    assert list(loads.frame)[:4] == ["policy", "strict", "utilization by phase = 1", "utilization by phase = 2"]
    one = replace(found, cells=found.cells[found.cells["alpha"] == 1])  # of one alpha
    assert "alphapf-vds(alpha=1.0)" in set(one.table("mechanism", "utilization").frame["mechanism"])
    asked = one.table(["mechanism", "alpha"], "utilization")
    assert "alphapf-vds" in set(asked.frame["mechanism"])
    assert r"$\alpha$ & cluster" in asked.latex()
    with pytest.raises(DataError, match="no column 'mechansm'; did you mean mechanism"):
        found.table("mechansm", "utilization")


def test_an_experiment_that_names_a_measure_which_is_none(store: Path, tmp_path: Path) -> None:
    text = Path(known()["drf_dynamic"]).read_text(encoding="utf-8")
    (tmp_path / "drf_dynamic.toml").write_text(text.replace('keep = ["use_*"]', 'keep = ["utilisation"]'))
    with pytest.raises(
        DataError, match=r"toml:\d+: keep: the table has no column utilisation; did you mean utilization"
    ):
        report.tables_of(str(tmp_path / "drf_dynamic.toml"), report.Results(store, smoke=True))
