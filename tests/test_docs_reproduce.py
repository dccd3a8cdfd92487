"""docs/reproduce.md names figures and experiments that there are, and no figure of a paper is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fairopt.report import figures

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.partition("| is drawn as |")[2].partition("\n\n")[0].splitlines()[2:]
]
EXPERIMENTS = {path.stem for path in (ROOT / "experiments").glob("*.toml")}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[1]}")
def test_figures_are_drawn_from_the_experiment_that_is_named(row: list[str]) -> None:
    drawn, wanted = (re.findall(r"`(\w+)`", cell) for cell in row[2:])
    assert set(wanted) <= EXPERIMENTS
    for name in drawn:
        needs = figures.module(name).NEEDS
        assert set(needs) == set(wanted or [name])
    assert drawn or not row[1].startswith("figure")


@pytest.mark.parametrize(("paper", "last", "first"), [("DRF", 14, 1), ("DRFH", 8, 2), ("MQDRF", 3, 2)])
def test_figures_have_the_papers_numbers(paper: str, last: int, first: int) -> None:
    """Those that show results, each once."""
    numbers: list[int] = []
    for row in ROWS:
        if row[0] == paper and "figure" in row[1]:
            named = [int(one) for one in re.findall(r"\d+", row[1])]
            numbers += range(named[0], named[1] + 1) if " to " in row[1] else named
    assert sorted(numbers) == list(range(first, last + 1))


def test_every_figure_of_a_paper_is_there() -> None:
    named = {name for row in ROWS for name in re.findall(r"`(\w+)`", row[2])}
    of_papers = {name for name in figures.known() if name.partition("_")[0] in ("drf", "drfh", "mqdrf", "pf")}
    # Of theorems, of the text, and our own.
    assert of_papers - named == {"drf_growth", "pf_sensitivity", "pf_time"}
    assert len(ROWS) > 15
