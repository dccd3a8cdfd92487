"""The page of docs/paper-figure.md: its commands run, its table and figure are as wide as a column, and TeX sets it."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from PIL import Image
from processes import ROOT

from fairopt.app.cli import main

PAGE = (ROOT / "docs" / "paper-figure.md").read_text(encoding="utf-8")
[COMMANDS] = re.findall(r"test_paper_page\.py[^\n]*\n```sh\n(.*?)```", PAGE, re.DOTALL)
[DOCUMENT] = re.findall(r"```latex\n(.*?)```", PAGE, re.DOTALL)


def test_a_table_and_a_figure_in_a_paper_of_two_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAIROPT_TRACES", raising=False)
    for line in COMMANDS.splitlines():
        program, *words = shlex.split(line)
        assert program == "fairopt"
        assert main(words) == 0, line
    table = Path("paper/pf_example-variant.tex").read_text(encoding="utf-8")
    assert r"\begin{table}" in table
    assert r"PS-DSF &  & 2.00 & 6.00 & 10.67 & 5.33" in table  # PF 2.3
    for named in re.findall(r"\\(?:input|includegraphics\[.*?\])\{(.*?)\}", DOCUMENT):
        assert list(Path().glob(f"{named}.*")), named
    with Image.open("paper/pf_example.png") as picture:
        assert abs(picture.width / picture.info["dpi"][0] - 3.3) < 0.02
    if shutil.which("pdflatex") is None:
        pytest.skip("the page is not set: there is no pdflatex here")
    Path("paper.tex").write_text(DOCUMENT, encoding="utf-8")
    for _ in range(2):
        done = subprocess.run(["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper"], capture_output=True)
        assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
    log = Path("paper.log").read_text(errors="replace")
    assert not re.search("Overfull|Warning|undefined", log), log
