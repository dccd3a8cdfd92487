"""Preparation of docstrings for numpydoc: text before sections, examples after them, indented blocks as literal."""

from __future__ import annotations

import re
from typing import Any

_TITLE = re.compile(r"(Parameters|Returns|Raises|Yields|Attributes|Notes|References|Examples)\n-+(?:\n|$)")
#: Paragraphs behind a list of parameters that are not part of it.
_BEGIN = r"Properties: |Sources?: "
_PROSE = rf"{_BEGIN}|(?!\s|[*`\w, ]+ : )"


def process(app: Any, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Rewrite the lines of a docstring in place, as a handler of Sphinx."""
    text = "\n".join(f"    {line}" if line.startswith("|") else line for line in lines)
    prose, sections, title = [], [], ""
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        if found := _TITLE.match(paragraph):
            title = found[1]
        elif paragraph.startswith(">>> "):
            paragraph, title = "Examples\n--------\n" * (title != "Examples") + paragraph, "Examples"
        elif re.match(_BEGIN if title not in ("Parameters", "Attributes") else _PROSE, paragraph):
            title = ""
        (sections if title else prose).append(paragraph)
    lines[:] = "\n\n".join([literal("\n\n".join(prose)), *sections, ""]).split("\n")


def literal(text: str) -> str:
    """Mark indented blocks as literal by `::`, unless they are marked or continue a list."""
    text = re.sub(r"^(    .*)\n(?=\S)", r"\1\n\n", text, flags=re.MULTILINE)
    return re.sub(r"^(?![-*] |\d+\. |\.\. )(\S.*)(?<!::)\n+(?=    )", r"\1\n\n::\n\n", text, flags=re.MULTILINE)
