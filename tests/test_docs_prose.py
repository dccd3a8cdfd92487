"""No page of docs/ that nobody finds."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "algorithms").glob("*.md")])


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
