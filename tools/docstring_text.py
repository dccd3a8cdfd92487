"""Docstrings of fairopt for numpydoc: prose goes before sections, and indented blocks are shown as they are written."""

from __future__ import annotations

import re
from typing import Any

_TITLE = re.compile(r"(Parameters|Returns|Raises|Yields|Attributes|Notes|References|Examples)\n-+(?:\n|$)")
#: What stands behind a list of parameters and is none.
_BEGIN = r"Properties: |Sources?: "
_PROSE = rf"{_BEGIN}|(?!\s|[*`\w, ]+ : )"


def process(app: Any, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Rewrite the lines in place; Sphinx calls it for every docstring."""
    text = "\n".join(f"    {line}" if line.startswith("|") else line for line in lines)
    prose, sections, title = [], [], ""
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        if found := _TITLE.match(paragraph):
            title = found[1]
        elif re.match(_BEGIN if title not in ("Parameters", "Attributes") else _PROSE, paragraph):
            title = ""
        (sections if title else prose).append(paragraph)
    lines[:] = "\n\n".join([literal("\n\n".join(prose)), *sections, ""]).split("\n")


def literal(text: str) -> str:
    """Indented lines are as written: `::` before them, unless it is there, or a list goes on."""
    text = re.sub(r"^(    .*)\n(?=\S)", r"\1\n\n", text, flags=re.MULTILINE)
    return re.sub(r"^(?![-*] |\d+\. |\.\. )(\S.*)(?<!::)\n+(?=    )", r"\1\n\n::\n\n", text, flags=re.MULTILINE)
