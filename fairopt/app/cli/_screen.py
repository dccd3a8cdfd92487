"""Output of commands: tables no wider than the terminal, wrapped prose, and strict JSON."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from textwrap import wrap
from typing import Any

import numpy as np

from ...base.libraries import pd
from ...base.names import plain
from ...result._show import cut, joined

#: Maximum width of a table cell on a terminal, in characters.
_LONGEST = 48


def give(frame: pd.DataFrame, options: argparse.Namespace, shown: Callable[[], None] | None = None) -> int:
    """Write a table to `--out`, and print it: as JSON with `--json`, otherwise by `shown` if given. Return status 0."""
    if options.out:
        from ...harness import report

        report.export(frame, options.out)
    if options.json:
        print_json(frame.to_dict(orient="records"))
    elif shown is not None:
        shown()
    else:
        print(table(frame))
    return 0


def print_json(value: Any) -> None:
    """Print a value as JSON, with NumPy's numbers and arrays converted, and other objects as text."""
    print(json.dumps(_plain(value), indent=1, default=str, allow_nan=False))


def _plain(value: Any) -> Any:
    """Convert to JSON types: NaN to null, and infinity to a string."""
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None if np.isnan(value) else str(value)
    return value


def width() -> int | None:
    """Width of the terminal in characters, or `COLUMNS`; None if lines are not limited, for example in a pipe."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal():
        return max(20, shutil.get_terminal_size().columns)
    return None


def shows_progress(options: argparse.Namespace) -> bool:
    """True if progress bars are shown: on a terminal, without `--json`."""
    return not options.json and sys.stderr.isatty()


def table(frame: pd.DataFrame, longest: int | None = None) -> str:
    """Format a table for people, with cells truncated to `longest` characters.

    A table that is wider than the terminal is split into parts, each with the first column.
    """
    from ...harness import report

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
    """Print lines of prose, wrapped at the terminal's width."""
    most = width()
    for text in map(plain, texts):
        print(*([text] if most is None else wrap(text, most, subsequent_indent="  ")), sep="\n")


def written(options: argparse.Namespace) -> None:
    """Print the names of the files that `--out` and `--plot` have written."""
    for name in filter(None, (options.out, options.plot)):
        print(f"-> {name}")


@contextmanager
def remarks() -> Iterator[list[str]]:
    """Yield a list, to which the texts of the warnings in the `with` block are added at its end."""
    texts = list[str]()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield texts
    texts += [str(one.message) for one in found]


def warn(text: str) -> None:
    """Print a warning of the command on standard error."""
    print(f"fairopt: {plain(text)}", file=sys.stderr)
