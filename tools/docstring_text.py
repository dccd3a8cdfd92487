"""Docstrings of fairopt for numpydoc: indented blocks become literal, `Properties:` and `Source:` sections."""

from __future__ import annotations

import re
from typing import Any

#: Paragraphs that begin so go to a section of numpydoc, or they would be part of the last parameter.
_SECTIONS = {"Properties": "Notes", "Source": "References", "Sources": "References"}
_BEGIN = re.compile(r"(Properties|Sources?): (.*)")
_TITLES = ("Parameters", "Returns", "Raises", "Yields", "Attributes", "Notes", "References", "Examples")


def process(app: Any, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Rewrite the lines in place; Sphinx calls it for every docstring."""
    lines[:] = sections(literal([f"    {line}" if line.startswith("|") else line for line in lines]))


def literal(lines: list[str]) -> list[str]:
    """Indented lines that no section owns are as written: `::` before them, unless it is there."""
    made: list[str] = []
    owned, block = False, False
    for k, line in enumerate(lines):
        if line.strip() in _TITLES and k + 1 < len(lines) and set(lines[k + 1].strip()) == {"-"}:
            owned = True
        if owned and _BEGIN.match(line):
            owned = False
        indented = line.startswith("    ")
        if not owned and indented and not block and not _inside_item(made):
            if not next((one for one in reversed(made) if one.strip()), "").endswith("::"):
                made += ["", "::", ""]
            elif made and made[-1].strip():
                made.append("")
        if not indented and block and line.strip():
            made += [] if not made[-1].strip() else [""]
        block = (indented or (block and not line.strip())) and not owned
        made.append(line)
    return made


def _inside_item(lines: list[str]) -> bool:
    """Does a list go on here?"""
    last = next((one for one in reversed(lines) if one.strip()), "")
    return bool(re.match(r"\s*([-*]|\d+\.) ", last))


def _prose(lines: list[str], k: int) -> bool:
    """Does a paragraph begin here that is not `name : what it is`?"""
    line = lines[k]
    return bool(k and not lines[k - 1].strip() and line[:1].strip() and not re.match(r"[*`\w, ]+ : ", line))


def sections(lines: list[str]) -> list[str]:
    """`Source: X` as numpydoc's section `References`, behind `Notes`."""
    kept: list[str] = []
    found: dict[str, list[str]] = {}
    into, parameters = "", False
    for k, line in enumerate(lines):
        if line.strip() in _TITLES:
            parameters = line.strip() in ("Parameters", "Attributes")
        elif parameters and not into and _prose(lines, k):
            into, parameters = "Notes", False
            found.setdefault(into, []).append("")
        if begun := _BEGIN.match(line):
            into = _SECTIONS[begun[1]]
            text = line if into == "Notes" else begun[2]
            found.setdefault(into, []).extend(["", text])
        elif into and line.strip() in _TITLES:
            into = ""
            kept.append(line)
        elif into:
            found[into].append(line)
        else:
            kept.append(line)
    for title in ("Notes", "References"):
        if title in found:
            kept += ["", title, "-" * len(title), *found[title]]
    return kept
