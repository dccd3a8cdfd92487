"""What CONTRIBUTING.md says works: all its files and changes, in a copy of the package, do what it says they do."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from processes import ROOT, python

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def steps(text: str) -> Iterator[tuple[str, str, str]]:
    """(kind, file, text) of every block, in order: the file named above it; of changes, the one named last."""
    block = r"^(?:`([\w/.]+)`[^\n]*:\n\n)?```(\w+)\n(.*?)^```$"
    last = ""
    for file, kind, body in re.findall(block, text, re.MULTILINE | re.DOTALL):
        last = file or last
        yield kind, last if kind == "diff" else file, body


def changed(before: str, diff: str) -> str:
    """A text after a change without line numbers: what it takes away must stand there once."""
    lines = [(line[:1] or " ", line[1:]) for line in diff.splitlines()]
    old, new = ("\n".join(text for mark, text in lines if mark in (" ", kept)) for kept in "-+")
    assert before.count(old) == 1, f"CONTRIBUTING.md changes what is not there, or more than once:\n{old}"
    return before.replace(old, new)


def copied(source: str, target: str) -> None:
    """Copy a file, compiled loops among them; what other processes hold for a moment, such as claims, may be gone."""
    with contextlib.suppress(FileNotFoundError):
        shutil.copy2(source, target)


def test_every_example_works(tmp_path: Path) -> None:
    for folder in ("fairopt", "paper_figures", "experiments", "tests/scheduling"):
        shutil.copytree(ROOT / folder, tmp_path / folder, copy_function=copied)
    codes, printed = list[str](), list[str]()
    for kind, file, body in steps(TEXT):
        # As tests/test_docstrings.py requires of public names.
        assert (".. math::" in body and ">>>" in body) or not re.search(r"def program|@measure", body)
        if kind == "diff":
            path = tmp_path / file
            path.write_text(changed(path.read_text(encoding="utf-8"), body), encoding="utf-8")
        elif file:
            assert not (tmp_path / file).exists()
            (tmp_path / file).write_text(body, encoding="utf-8")
        elif kind == "python":
            codes.append(body)
        elif kind == "text":
            printed.append(body)
        elif kind == "console" and "fairopt sweep" in body:
            codes.append(
                re.sub(r"\$ fairopt (.*)", r"from fairopt.app.cli import main; assert not main('\1'.split())", body)
            )
    said = python("-c", "\n".join(codes), folder=tmp_path)
    assert said.startswith("".join(printed))
    assert len(printed) == 4
    assert (tmp_path / "paper_figures" / "out" / "smoke" / "norms.png").stat().st_size > 0
