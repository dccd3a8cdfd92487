"""Pages can be read: no line of prose over 150 characters, no paragraph over eight lines, no page that nobody finds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "algorithms").glob("*.md")])
PAGES = [*DOCS, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
WIDEST, LONGEST = 150, 8
ITEM = re.compile(r"\s*([-*]|\d+\.) ")


def prose(text: str) -> Iterator[list[str]]:
    """Paragraphs and items of lists; not tables, formulas, headings or blocks of code."""
    text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    lines: list[str] = []
    for line in [*text.splitlines(), ""]:
        if lines and (not line.strip() or ITEM.match(line) or line.startswith(("|", "#", "<!--"))):
            yield lines
            lines = []
        if line.strip() and not line.startswith(("|", "#", "<!--", "    ")):
            lines.append(line)


def unreadable(text: str) -> list[str]:
    """What is too long."""
    return [
        lines[0]
        for lines in prose(text)
        if len(lines) > LONGEST or any(len(line) > WIDEST and "](" not in line for line in lines)
    ]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_paragraphs_can_be_read(path: Path) -> None:
    assert not unreadable(path.read_text(encoding="utf-8"))


def test_what_is_too_long_is_noticed() -> None:
    nine = "\n".join(["a line"] * 9)
    assert unreadable(nine)
    assert unreadable(f"- {nine}")
    assert unreadable("word " * 31)
    assert not unreadable(f"```\n{nine}\n```\n\n{'| a ' * 60}|\n\n- one\n- two\n\n" + "\n\n".join(["a line"] * 20))


def test_every_page_is_found_from_the_first() -> None:
    """By links, from docs/index.md."""
    found, new = {"index.md"}, ["index.md"]
    while new:
        page = ROOT / "docs" / new.pop()
        for link in re.findall(r"\]\(([\w./-]+\.md)[#)]", page.read_text(encoding="utf-8")):
            there = (page.parent / link).resolve()
            name = there.relative_to(ROOT / "docs").as_posix() if there.is_relative_to(ROOT / "docs") else ""
            if name and name not in found:
                found.add(name)
                new.append(name)
    assert {path.relative_to(ROOT / "docs").as_posix() for path in DOCS} <= found
