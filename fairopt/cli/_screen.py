"""Tables on the screen: no wider than the terminal, numbers for people."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterable
from textwrap import wrap

from .._libraries import pd
from ..result._show import cut, joined

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
    from .. import report

    shown = report.for_people(frame)
    most = width()
    if most is None:
        return str(shown.to_string(index=False, max_colwidth=longest))
    most_of_cell = min(longest or _LONGEST, most // 2 - 1)
    cells = [[cut(str(name), most_of_cell), *(cut(text, most_of_cell) for text in shown.iloc[:, k])]
             for k, name in enumerate(shown.columns)]  # fmt: skip
    columns = [[text.rjust(max(map(len, column))) for text in column] for column in cells]
    return joined(columns, most)


def say(texts: Iterable[str]) -> None:
    """Print lines of prose, broken at the terminal's width."""
    most = width()
    for text in texts:
        print(*([text] if most is None else wrap(text, most, subsequent_indent="  ")), sep="\n")
