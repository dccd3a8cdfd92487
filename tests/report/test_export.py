"""Tables as files: whole or not at all, and no cell is markup or a formula."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pandas as pd
import pytest

from fairopt import report
from fairopt.base import files
from fairopt.errors import DataError
from fairopt.harness.report.export import csv, file_name, markdown
from fairopt.harness.report.typeset import flat

from .conftest import tags

NASTY = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "a|b",
    "<script>x</script>",
    "*b*",
    "_i_",
    "[l](http://x)",
    "`c`",
    "a\nb",
    "\\",
    "&amp;",
]


def test_csv_has_no_formulas_and_every_digit() -> None:
    frame = pd.DataFrame({"=name": NASTY, "number": [-1 / 3] * len(NASTY), "object": [-2.5, *NASTY[1:]]})
    again = pd.read_csv(io.StringIO(csv(frame)), keep_default_na=False, dtype={"object": str})
    assert list(again.columns) == ["'=name", "number", "object"]
    assert again["number"].tolist() == frame["number"].tolist()
    assert again["'=name"].tolist() == [f"'{text}" if text[0] in "=+-@" else text for text in NASTY]
    assert again["object"][0] == "-2.5"
    assert frame["=name"][0] == "=1+1"


def test_markdown_has_no_markup() -> None:
    text = markdown(pd.DataFrame({"min_share": NASTY, "a|b": NASTY}))
    lines = text.splitlines()
    assert len(lines) == len(NASTY) + 2
    assert "min_share" in lines[0]
    for line in lines:
        unescaped = line.replace("\\\\", "").replace("\\|", "")
        assert unescaped.count("|") == 3
    for escaped in (r"\*b*", r"\_i\_", r"\[l\](http://x)", r"\`c\`", "&lt;script&gt;", "&amp;amp;"):
        assert escaped in text
    assert tags(text) == []


@pytest.mark.parametrize("name", ["a/b", "../x", "a\\b", "x" * 400, "a b", ".hidden", "é:*?"])
def test_names_of_files_stay_in_their_folder(name: str, tmp_path: Path) -> None:
    paths = report.write(pd.DataFrame({"a": [1]}), tmp_path / "out", name, "caption")
    assert {path.parent for path in paths} == {tmp_path / "out"}
    assert all(path.is_file() and not path.name.startswith(".") for path in paths)
    assert len({path.stem for path in paths}) == 1


def test_names_of_files_stay_apart() -> None:
    assert len({*map(file_name, ["a/b", "a_b", "a b", "x" * 200, "x" * 201])}) == 5
    assert file_name("comparison-drf-4.1(alpha=2)") == "comparison-drf-4.1(alpha=2)"


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".json", ".md", ".tex"])
def test_what_fails_leaves_the_old_file(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"t{suffix}"
    report.export(pd.DataFrame({"a": [1]}), path)
    old = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(DataError, match=r"cannot write the table .*No space left on device"):
        report.export(pd.DataFrame({"a": [2]}), path)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == old


def test_a_note_stands_below_the_table(tmp_path: Path) -> None:
    report.export(pd.DataFrame({"a": [1]}), tmp_path / "t.md", "* pooled")
    assert (tmp_path / "t.md").read_text().endswith("\n\n* pooled\n")


def test_names_of_rows_are_in_every_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mechanisms, alphas and users stand in the index of frames; nothing beyond the package is needed for these."""
    monkeypatch.setitem(sys.modules, "tabulate", None)
    frame = pd.DataFrame({"jain": [0.5, 0.25]}, index=pd.Index(["DRF", "TSF"], name="mechanism"))
    paths = report.write(frame, str(tmp_path / "paper"), "t", "Caption", keep=["jain"])
    assert [path.name for path in paths] == ["t.csv", "t.md", "t.tex"]
    for path in paths:
        text = path.read_text()
        assert all(word in text for word in ("mechanism", "DRF", "TSF")), path
    for suffix in (".csv", ".json", ".md", ".tex", ".parquet"):
        report.export(frame, str(tmp_path / f"e{suffix}"))
    assert pd.read_json(tmp_path / "e.json").to_dict("list") == {"mechanism": ["DRF", "TSF"], "jain": [0.5, 0.25]}
    assert list(pd.read_parquet(tmp_path / "e.parquet")) == ["mechanism", "jain"]
    assert csv(flat(pd.concat([frame] * 2, keys=[1, 2], names=["alpha"]))).splitlines()[0] == "alpha,mechanism,jain"
    assert flat(pd.DataFrame({"a": [1, 2, 3]})[lambda one: one["a"] > 1]).to_numpy().tolist() == [[2], [3]]  # positions
    wide = frame.assign(load=[1, 2]).pivot(columns="load", values="jain")
    assert list(flat(wide)) == ["mechanism", "load = 1", "load = 2"]
    assert r"mechanism & load = 1 & load = 2" in report.latex(wide)


def test_a_warning_says_what_latex_has_no_room_for(tmp_path: Path) -> None:
    frame = pd.DataFrame({f"measure{k}": [0.5, 0.25] for k in range(9)})
    with pytest.warns(UserWarning, match=r"t\.tex: no room in 3\.3 inches for measure5, .* \(t\.csv has all columns\)"):
        report.write(frame, tmp_path, "t", "Caption", 3.3)
    with pytest.warns(UserWarning, match=r"spans both columns, as 3\.3 inches have no room for measure5, .*measure8"):
        report.write(frame, tmp_path, "t", "Caption", 3.3, keep=["measure*"])
    with pytest.raises(DataError, match=r"measure8 do not fit into 2 inches; the table takes 5\.\d$"):
        report.write(frame, tmp_path, "t", "Caption", 2, keep=["measure*"])
