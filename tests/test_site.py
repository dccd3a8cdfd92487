"""The documentation site: its source is put together, links that lead nowhere are found, and Sphinx builds it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import build_site as site
import nbformat
import pytest
from processes import ROOT

import fairopt as fo
from fairopt.app.cli import main
from fairopt.app.cli.reproduce import figures_of
from fairopt.harness import papers
from fairopt.harness.report import figures


@pytest.mark.long
def test_every_mechanism_command_paper_and_figure_has_a_page(tmp_path: Path) -> None:
    source = site.assemble(tmp_path / "source")
    for name in fo.mechanisms.names():
        assert "![What two users can have" in (source / "mechanisms" / f"{name}.md").read_text(encoding="utf-8")
    for name in fo.properties.names():
        assert (source / "properties" / f"{name}.md").exists()
    for name in figures.known():
        assert figures.caption(name) in (source / "figures" / f"{name}.md").read_text(encoding="utf-8")
    for page, text in (
        ("commands/reproduce", "--smoke"),
        ("papers/pf", "TPDS 2018"),
        ("properties/strategy-proofness", "[proof B](../proofs.md#proof-b)"),
    ):
        assert text in (source / f"{page}.md").read_text(encoding="utf-8")
    assert (source / "schemas" / "cluster.schema.json").exists()
    explorer = "_static/explorers/paper-pf-fig1-variant.html"
    assert f'src="{explorer}"' in (source / "alpha-on-a-slider.md").read_text(encoding="utf-8")
    assert "fo-explorer" in (source / explorer).read_text(encoding="utf-8")
    # No link leads out of docs/.
    assert "](../" not in "".join(path.read_text(encoding="utf-8") for path in source.glob("*.md"))


def test_every_page_is_listed() -> None:
    """As an entry of its own, from which the site makes its contents."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}
    listed = {page for text in texts.values() for page in site._ENTRY.findall(site._FENCED.sub("", text))}
    assert {*texts} - listed - {"index"} == set()


def test_figures_and_papers_have_titles() -> None:
    """No name of a file and no abbreviation of ours stands in the side bar."""
    import site_pages

    titles = [site_pages._title(name) for name in figures.known()]
    titles += map(site_pages._cited, papers.CITATIONS)
    titles += [
        nbformat.read(path, 4).cells[0].source.partition("\n")[0] for path in (ROOT / "notebooks").glob("*.ipynb")
    ]
    titles += [path.read_text(encoding="utf-8").partition("\n")[0] for path in (ROOT / "docs").glob("*.md")]
    assert len({*titles}) == len(titles)
    assert not [title for title in titles if "_" in title or title == "LEC"]


def test_a_papers_page_has_figures_and_tables_beside_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every row is the one of `fairopt claims`, in the section of its experiment, with the commands that make it."""
    import site_pages

    frame = papers.check(papers.claims("DRFH"))
    monkeypatch.setattr(papers, "check", lambda: frame)
    [(_, _, _, text)] = site_pages._papers(tmp_path)
    about, *sections, others = text.split("\n## ")
    assert papers.summary(frame) in about
    assert {f"fairopt figures {name}" for name in figures_of("drfh")} <= set(text.splitlines())
    rows = {tuple(map(str.strip, line.split("|")[1:-1])) for part in sections for line in part.splitlines()}
    judged = {one.statement: one.experiment for one in papers.judged("DRFH")}
    for claim, printed, note, verdict in frame[["claim", "printed", "note", "verdict"]].to_numpy().tolist():
        if claim in judged:
            [part] = [part for part in sections if judged[claim] in part.partition("fairopt sweep ")[2].split("\n")[0]]
            assert all(word in part for word in (claim, printed, note, verdict))
            assert [row for row in rows if claim in row and verdict in row]
        assert claim in text
    assert "CPU and GB in all" in others


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("VI, figure 6a", {"figure 6"}), ("DRFH figures 5 to 8", {"figure 5", "figure 6", "figure 7", "figure 8"}),
        ("PF figures 4, 6 and 7 over a day", {"figure 4", "figure 6", "figure 7"}), ("table II", {"table II"}),
        ("DRF theorems 3 and 6", {"theorem 3", "theorem 6"}), ("7.1, set-up", {"section 7.1"}), ("VI, (7)", set()),
        ("figures 3 and 4 (sections 4.1 and 5.2)", {"figure 3", "figure 4", "section 4.1", "section 5.2"}),
    ],
)  # fmt: skip
def test_figures_that_a_text_names(text: str, found: set[str]) -> None:
    import site_pages

    assert site_pages._numbered(text) == found


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="b.html#here">x</a><a href="b.html#gone">y</a><a href="https://x.y">z</a>'
    )
    (tmp_path / "b.html").write_text(
        '<p id="here"></p><a href="c.html">x</a><a href="a.html?v=1">y</a><img src="d.png">'
    )
    assert site.lost(tmp_path) == ["a.html: b.html#gone", "b.html: c.html", "b.html: d.png"]


def test_the_command_shows_pages_and_opens_the_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from fairopt.base import shipped

    monkeypatch.setattr(shipped, "folder", lambda name: tmp_path / name if name == "build" else ROOT / name)
    assert main(["docs"]) == 0
    assert re.search(r"^choose +Choose", capsys.readouterr().out, re.MULTILINE)
    assert main(["docs", "docs/choose.md"]) == 0
    assert capsys.readouterr().out.startswith((ROOT / "docs" / "choose.md").read_text(encoding="utf-8").splitlines()[0])
    assert main(["docs", "chose"]) == 2
    assert "algorithms/core" in capsys.readouterr().err
    page = tmp_path / "build" / "site" / "index.html"
    page.parent.mkdir(parents=True)
    page.touch()
    assert main(["docs", "--where"]) == 0
    assert capsys.readouterr().out == f"{page}\n"


@pytest.mark.long
def test_it_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="make docs installs Sphinx; here it is not")
    for name in ("furo", "myst_nb", "sphinx_gallery", "numpydoc", "sphinx_copybutton"):
        pytest.importorskip(name, reason=f"{name} is not installed: fairopt[docs]")
    environment = os.environ | {"FAIROPT_DOCS_NOTEBOOKS": "off", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "tools/build_site.py", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
