"""Tables on the screen: no wider than the terminal, numbers for people."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from textwrap import wrap

from .. import report
from .._libraries import pd

#: The longest text of a cell on a terminal.
_LONGEST = 48


def width() -> int | None:
    """Columns of the terminal, or of COLUMNS; None where lines may have any length, as in a pipe."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal():
        return max(20, shutil.get_terminal_size().columns)
    return None


def shows_progress(options: argparse.Namespace) -> bool:
    """Is there a terminal to show progress on, that nobody reads as JSON?"""
    return not options.json and sys.stderr.isatty()


def table(frame: pd.DataFrame, longest: int | None = None) -> str:
    """A table for people; what is wider than the terminal is broken, with the first column before every part."""
    shown = report.for_people(frame)
    most = width()
    if most is None:
        return str(shown.to_string(index=False, max_colwidth=longest))
    most_of_cell = min(longest or _LONGEST, most // 2 - 1)
    cells = [[_cut(str(name), most_of_cell), *(_cut(text, most_of_cell) for text in shown.iloc[:, k])]
             for k, name in enumerate(shown.columns)]  # fmt: skip
    columns = [[text.rjust(max(map(len, column))) for text in column] for column in cells]
    return "\n\n".join("\n".join(" ".join(row).rstrip() for row in zip(*part, strict=True))
                       for part in _parts(columns, most))  # fmt: skip


def say(texts: Iterable[str]) -> None:
    """Print lines of prose, broken at the terminal's width."""
    most = width()
    for text in texts:
        print(*([text] if most is None else wrap(text, most, subsequent_indent="  ")), sep="\n")


def _cut(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _parts(columns: Sequence[list[str]], most: int) -> list[list[list[str]]]:
    """Columns in groups that fit, the first column in all of them."""
    if not columns:
        return []
    first, parts = columns[0], [[columns[0]]]
    used = len(first[0])
    for column in columns[1:]:
        size = len(column[0]) + 1
        if used + size > most and len(parts[-1]) > 1:
            parts.append([first])
            used = len(first[0])
        parts[-1].append(column)
        used += size
    return parts
