"""The README's code runs and prints what stands below it, and so do the pages of docs/."""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import readme as tool
from processes import ROOT

from fairopt.app.cli import main as fairopt_command

README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def _claims_once(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.setattr(tool, "_checked", lambda: request.getfixturevalue("checked"))


def test_readme_prints_what_it_says() -> None:
    assert tool.render(README) == README, "run: make readme"
    # The check can fail: a wrong output is put right.
    wrong = "```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n"
    assert tool.render(wrong) == wrong.replace("3", "2")


#: What a reader puts in, and what keeps a command short that others test.
STANDS_FOR = {
    "ADDRESS": str(ROOT),
    "FILE": "paper:drf-4.1",
    "DIR": "mine",
    "FOLDER": str(ROOT / "docs" / "operators" / "week"),
}
SHORT = {
    "fairopt reproduce": ["--dry-run"],
    "fairopt claims": ["--paper", "LEC"],
    "fairopt warmup": ["--help"],
    "fairopt docs": ["--where"],
    "fairopt explore": ["--out", "page.html"],
    "pip install": ["--quiet", "--no-compile", "--disable-pip-version-check", "--no-deps", "--target", "../installed"],
}


def test_every_command_of_the_readme_runs(few_alphas: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a clone: those of `make` as far as `make -n` goes, and an installation beside it."""
    blocks = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    lines = [*re.split(r"\n|&&", "".join(blocks)), *re.findall(r"`((?:fairopt|make|pip|git) [^`]+)`", README)]
    typed = [words for line in dict.fromkeys(lines) if (words := shlex.split(line, comments=True))]
    assert ["git", "clone", "ADDRESS", "fairopt"] in typed
    shutil.copy(ROOT / "docs" / "explorer" / "snapshot.json", tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("FAIROPT_TRACES", "MAKEFLAGS", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    runs = {"make": ["make", "-n"], "pip": [sys.executable, "-m", "pip"], "git": ["git"]}
    for program, *words in typed:
        if program == "pip" and (tmp_path / "installed").exists():  # an extra, which `--no-deps` leaves out
            continue
        given = [STANDS_FOR.get(word, word) for word in words]
        given += SHORT.get(f"{program} {words[0]}", [])
        if program == "cd":
            monkeypatch.chdir(given[0])
            shutil.copy(tmp_path / "snapshot.json", Path.cwd())
        elif program == "fairopt":
            with contextlib.suppress(SystemExit) if "--help" in given else contextlib.nullcontext():
                assert fairopt_command(given) == 0, words
        elif program == "git" and not (ROOT / ".git").exists():  # an sdist is no clone
            shutil.copytree(ROOT, given[-1], ignore=shutil.ignore_patterns(".venv", "build"))
        else:
            done = subprocess.run([*runs[program], *given], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
    assert (tmp_path / "installed" / "fairopt" / "__init__.py").is_file()


def test_nothing_public_changes_unnoticed() -> None:
    assert tool.PUBLIC.read_text(encoding="utf-8") == tool.public(), (
        "public names changed; if they should (docs/stability.md), run: make readme"
    )


def test_type_checkers_know_every_name() -> None:
    assert tool.STUB.read_text(encoding="utf-8") == tool.stub(), "run: make readme"
    assert "from .mechanisms.fds import GFJ as GFJ" in tool.stub()


@pytest.mark.parametrize("page", tool.PAGES, ids=lambda page: page.name)
def test_pages_say_what_is_printed_and_measured(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert tool.render(text) == text, "run: make readme"


@pytest.mark.parametrize("page", tool.WITH_FILES, ids=lambda page: page.name)
def test_pages_with_files_say_what_is_printed_and_make_the_others(few_alphas: None, page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert tool.in_folder(page, text, tmp_path) == text, "run: make readme"
    if page.stem == "first-task":
        assert len(pd.read_csv(tmp_path / "paths.csv")) == 80
    if page.stem in ("first-task", "course"):
        assert (tmp_path / f"{page.stem}.png").stat().st_size > 10_000
    elif page.stem == "operators":
        assert pd.read_csv(tmp_path / "week.csv")["snapshot"].nunique() == 4
    else:
        assert "fo-explorer" in (tmp_path / "page.html").read_text(encoding="utf-8")
