"""Every block of code in docs/ and the README is run, or says why not; the commands of those that are not, parse.

Blocks of `python` with what they print behind them, and of `console`, are run by `tools/readme.py`, page by page
(`PAGES`, tests/test_readme.py). Here run the others: `python` (what a page takes for granted stands before its first
block as `<!-- first: CODE -->`), and the `fairopt` lines of `sh`. What is not run has `<!-- not run: REASON -->`."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import textwrap
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import readme
from processes import ROOT, python

import fairopt as fo
from fairopt.app.cli import main, parser

FILES = [*sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/algorithms").glob("*.md")), readme.README]
DOCS = {path.name: path.read_text(encoding="utf-8") for path in FILES}
#: Pages whose printed blocks and sessions `tools/readme.py` makes.
PRINTED = {page.name for page in (readme.README, *readme.PAGES, *readme.WITH_FILES)}
_BLOCK = re.compile(
    r"(?: *<!-- (?P<mark>not run|first): (?P<said>[^>]*?) -->\n+)?"
    r"^(?P<indent> *)```(?P<kind>[\w-]*)[^\n]*\n(?P<body>.*?)^(?P=indent)```(?=(?P<printed>\n+```text)?)",
    re.MULTILINE | re.DOTALL,
)  # fmt: skip


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, what is said before it, and whether what it prints stands behind."""

    page: str
    kind: str
    body: str
    mark: str
    said: str
    printed: bool

    @property
    def elsewhere(self) -> bool:
        """Is it run by tests/test_readme.py?"""
        return self.page in PRINTED and (self.kind == "console" or (self.kind == "python" and self.printed))

    @property
    def here(self) -> bool:
        """Is it for this file to run?"""
        return self.kind in ("python", "sh", "console") and not self.elsewhere and self.mark != "not run"

    def commands(self) -> Iterator[list[str]]:
        """What follows `fairopt` in its lines; in a session those that are typed."""
        for line in self.body.splitlines():
            if self.kind == "console" and not line.startswith("$ "):
                continue
            for command in re.split(r";|&&", line.removeprefix("$ ")):
                words = shlex.split(command, comments=True)
                if words and words[0] == "fairopt":
                    yield words[1:]


def blocks(page: str, text: str) -> list[Block]:
    return [
        Block(
            page, one["kind"], textwrap.dedent(one["body"]), one["mark"] or "", one["said"] or "", bool(one["printed"])
        )
        for one in _BLOCK.finditer(text)
    ]


EVERY = [block for page, text in DOCS.items() for block in blocks(page, text)]


@pytest.mark.parametrize("page", sorted({block.page for block in EVERY if block.here and block.kind == "python"}))
def test_python_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.delenv("FAIROPT_TRACES", raising=False)
    chosen = [block for block in EVERY if block.page == page and block.kind == "python" and block.mark != "not run"]
    code = "\n".join([*(block.said for block in chosen if block.mark == "first"), *(block.body for block in chosen)])
    code = code.replace("tasks=20000&servers=200", "tasks=1000&servers=10")  # a day of seconds
    if re.search(r"^class |^@fo\.mechanism", code, re.MULTILINE):  # what it registers would be in other tests
        Path("block.py").write_text(code, encoding="utf-8")
        python("block.py")
        return
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(code, f"docs/{page}", "exec"), {})


@pytest.mark.parametrize("page", sorted({block.page for block in EVERY if block.here and block.kind == "sh"}))
def test_commands_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAIROPT_TRACES", raising=False)
    Path("docs").symlink_to(ROOT / "docs")
    for block in EVERY:
        if block.page == page and block.kind == "sh" and block.here:
            assert list(block.commands()), block.body
            for command in block.commands():
                with contextlib.redirect_stdout(io.StringIO()):
                    assert main(command) == 0, command


@pytest.mark.parametrize(
    "block", [block for block in EVERY if block.kind in ("sh", "console")], ids=lambda block: block.page
)
def test_commands_parse(block: Block) -> None:
    for command in block.commands():
        parser(command).parse_args(command)


@pytest.mark.parametrize(
    "block", [block for block in EVERY if block.kind in ("toml", "json")], ids=lambda block: block.page
)
def test_data_can_be_read(block: Block) -> None:
    tomllib.loads(block.body) if block.kind == "toml" else json.loads(block.body)


def test_formulas_are_in_latex() -> None:
    """In Markdown's math, which the site and forges set, not in code font."""
    formula = re.compile(r"(?<![\w.])((sum|phi|gamma|lambda|sigma|x|u|c|d|q)_[a-z]\b|[a-z]+\[[nmi], ?[nmijr]\])")
    for page, text in DOCS.items():
        prose = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
        assert [code for code in re.findall(r"`([^`\n]+)`", prose) if formula.search(code)] == [], page
        assert re.sub(r"`[^`]+`", "", prose).count("$") % 2 == 0, page


def test_tests_that_pages_name_are_there() -> None:
    named = {name for text in DOCS.values() for name in re.findall(r"`(tests/[\w/.]+)", text)}
    assert len(named) > 10
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_the_two_forms_of_a_cluster_file_are_one_cluster(tmp_path: Path) -> None:
    shown = [block for block in EVERY if block.page == "cluster-file.md" and block.kind in ("toml", "csv")]
    for block in shown[:2]:
        (tmp_path / f"cluster.{block.kind}").write_text(block.body, encoding="utf-8")
    assert fo.Cluster.load(tmp_path / "cluster.toml") == fo.Cluster.load(tmp_path / "cluster.csv")
