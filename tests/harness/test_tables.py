"""The comparison tables: computed, honest about their cluster, and written in three formats."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import fairopt as fo
from fairopt import harness, report
from fairopt.cli import main
from fairopt.harness import Spec


def test_by_user_table_has_the_papers_numbers() -> None:
    spec = next(spec for spec in harness.SPECS if spec.name == "pf-fig1-variant")
    frame = harness.compute(spec).frame.set_index("mechanism")
    users = frame.columns[:4]
    # PF 2.3 (catalogue item 33) and the closed form of item 34.
    assert frame.loc["PS-DSF", users].tolist() == pytest.approx([2, 6, 32 / 3, 16 / 3], rel=1e-3)
    assert frame.loc["DRFH", users].tolist() == pytest.approx([3, 3, 6.4, 6.4], rel=1e-5)
    assert frame.loc["alphaPF-VDS(alpha=1)", users].tolist() == pytest.approx([2, 6, 96 / 7, 32 / 7], rel=1e-3)
    assert (frame["certificate"] <= 1e-4).all()


def test_trace_table_says_what_its_cluster_is() -> None:
    spec = Spec("small", "A small one", "google-like?users=8&servers=50&seed=1", ("drfh", "tsf"))
    table = harness.compute(spec)
    assert table.frame["mechanism"].tolist() == ["DRFH", "TSF"]
    assert (table.frame["certificate"] <= 1e-6).all()
    assert "50 servers" in table.notes[0]


def test_a_failed_row_stays_visible() -> None:
    table = harness.compute(Spec("x", "x", "bitbrains-like?vms=4&servers=3", ("drfh", "cmmf")))
    assert table.frame["certificate"].isna().tolist() == [False, True]
    assert any("CMMF: not applicable" in note for note in table.notes)


def test_compare_default_is_every_registered_mechanism() -> None:
    frame = fo.compare(fo.papers.instance("drf-4.1"))
    assert {str(one) for name in fo.mechanisms.names() for one in fo.mechanisms.get(name).variants()} == set(
        frame.index
    )
    assert set(frame["status"].str.split(":").str[0]) == {"ok", "not applicable"}


def test_written_tables_hold_the_same_rows(tmp_path: Path) -> None:
    frame = pd.DataFrame({"mechanism": ["a_b & c", "50%"], "use_cpu": [0.5, float("nan")], "certificate": [1e-9, 2e-7]})
    paths = report.write(frame, tmp_path, "t", "A caption with 100% of $ and _")
    assert [path.suffix for path in paths] == [".csv", ".md", ".tex"]
    assert pd.read_csv(paths[0])["certificate"].tolist() == [1e-9, 2e-7]
    markdown, latex = paths[1].read_text(), paths[2].read_text()
    assert "| a_b & c" in markdown
    assert "50.0%" in markdown
    assert r"a\_b \& c & 50.0\% & 1.0e-09 \\" in latex
    assert r"\toprule" in latex
    assert r"100\% of \$ and \_" in latex


@pytest.mark.slow
def test_tables_command_writes_everything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FAIROPT_TRACES", raising=False)
    assert main(["tables", "--out", str(tmp_path / "out")]) == 0
    names = {spec.name for spec in harness.SPECS} | {"mechanisms", "claims"}
    for name in names:
        assert all((tmp_path / "out" / f"{name}{suffix}").stat().st_size > 0 for suffix in (".csv", ".md", ".tex"))
    trace = pd.read_csv(tmp_path / "out" / "bitbrains.csv")
    assert trace["mechanism"].tolist() == ["DRFH", "TSF", "PS-DSF", "alphaPF-VDS(alpha=1)", "alphaPF-VDS(alpha=3)"]
    assert (trace["certificate"] <= 1e-4).all()
    # Without a trace the generator stands in, and the table says so.
    assert "a calibrated generator in place of the trace" in capsys.readouterr().out
