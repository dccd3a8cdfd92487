"""On which line of a cluster file something stands: neither JSON's nor TOML's reader tells."""

from __future__ import annotations

import json
import re
from pathlib import Path


def line(text: str, path: Path, where: tuple[str | int, ...]) -> int:
    """The line of a place such as ("users", 2, "demand", "cpu"); the nearest enclosing one that can be found."""
    start, end = 0, len(text)
    if len(where) >= 2 and isinstance(where[1], int):
        start, end = _entry(text, path, str(where[0]), where[1])
    keys = [str(key) for key in where[2:]] if len(where) >= 2 else [str(key) for key in where[:1]]
    for key in keys:
        found = re.compile(rf"(?<![\w-])\"?{re.escape(key)}\"?\s*[=:]|\[\[?\s*{re.escape(key)}\s*\]").search(
            text, start, end
        )
        if found:
            start = found.start()
    return text.count("\n", 0, start) + 1


def _entry(text: str, path: Path, kind: str, row: int) -> tuple[int, int]:
    """Where entry `row` of `kind` begins and ends in the text; the whole text if it cannot be told."""
    kind = re.escape(kind)
    if path.suffix != ".json":
        heads = list(re.finditer(rf"^[ \t]*(\[\[[ \t]*{kind}[ \t]*\]\])", text, re.MULTILINE))
        if row >= len(heads):
            return 0, len(text)
        following = re.compile(r"^[ \t]*\[", re.MULTILINE).search(text, heads[row].end())
        return heads[row].start(1), following.start() if following else len(text)
    opening = re.search(rf'"{kind}"\s*:\s*\[', text)
    if opening is None:
        return 0, len(text)
    position, between = opening.end(), re.compile(r"[\s,]*")
    try:
        for _ in range(row + 1):
            start = between.match(text, position).end()  # type: ignore[union-attr]
            _, position = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):  # what was found stands inside something else
        return 0, len(text)
    return start, position
