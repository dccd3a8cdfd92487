"""Tables: for people, and written as CSV, JSON, Parquet, Markdown and LaTeX.

Files are whole or not at all, and no cell is markup or a formula. `typeset` makes LaTeX.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...base import files
from ...base.errors import DataError
from ...base.libraries import pd
from ...base.names import apart
from ...study.compare import lines
from .typeset import FRACTIONS, INTERVAL, PAGE, distinct, flat, informative, latex, one_line, said, uses

#: Suffixes of the files that tables are written to.
FORMATS = (".csv", ".parquet", ".json", ".md", ".tex")
#: Spreadsheets compute what begins so.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
#: What Markdown reads as more than text: an underscore only at the edge of a word, a star only before one.
_MARKUP = re.compile(r"([\\`\[\]|#~$])|(\*)(?!\s|$)|(?<!\w)(_)|(_)(?!\w)")
#: Columns of seconds whose names do not say so.
_SECONDS = ("mean_response", "median_response", "mean_wait", "until", "every", "simulate")
_ENTITY = re.compile(r"&(?=#?\w+;)")


def comparison(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """A frame of `study.compare` for readers: rows that have numbers; footnotes, and a line for each other row.

    Raises
    ------
    KeyError
        `frame` is not one of `fairopt.compare`.
    """
    if "status" not in frame and hasattr(frame, "below"):
        return pd.DataFrame(frame).reset_index(), [*frame.below]
    solved = frame[frame["status"] == "ok"].drop(columns=["pooled", "status", "notes"])
    return solved.reset_index(), [*lines(frame)]


def for_people(frame: pd.DataFrame) -> pd.DataFrame:
    """The same table as strings: shares of a whole as percentages, certificates in powers of ten, four digits.

    Truth is yes or no, times have their unit in the head, and half-widths of intervals of equal values are left empty.

    The use of a resource (`use_...`, unless it ends in ` (user)`) is in a column of its name; if another column has
    that, in `tasks (use)` and so on. Columns of who wants more are left out where they repeat those of all users.
    """
    shown = {}
    frame = distinct(frame)
    use = uses(frame)
    others = {str(name) for name in frame.columns} - {*use}
    called = dict(zip(use, apart([name.removeprefix("use_") for name in use], others, "use"), strict=True))
    for name, column in frame.items():
        head, form = str(name), "{:.1e}" if name == "certificate" else "{:.4g}"
        if head.removeprefix(INTERVAL).split(" ")[0] in ("seconds", "simulate"):  # rounded to .01 s, short times were 0
            form = "{:.2f}" if column.replace(np.inf, np.nan).max() >= 1 else "{:.2g}"
        if head in called or head.startswith("+- use_") or head.removeprefix(INTERVAL) in FRACTIONS:
            head, form = called.get(head, head.replace("use_", "", 1)), "{:.1%}"
        nothing = "all met" if head.endswith(("_wanting", "(want more)")) else ""
        if head.startswith(INTERVAL):
            column = column.where(column != 0)
        shown[f"{head} (s)" if head.removeprefix(INTERVAL) in _SECONDS else head] = [
            _text(value, form) or nothing for value in column
        ]
    return pd.DataFrame(shown, index=frame.index)


def _text(value: object, form: str) -> str:
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else form.format(value)
    return said(value)


def write(
    frame: pd.DataFrame,
    folder: str | Path,
    name: str,
    caption: str,
    inches: float = PAGE,
    label: str = "",
    *,
    notes: Sequence[str] = (),
    **more: Any,
) -> list[Path]:
    """Write a table as `name.csv` (every digit), `name.md` and `name.tex`; the paths written.

    Names of rows, such as mechanisms in the index of `fairopt.compare`, are the first columns. A warning says which
    columns the LaTeX has no room for, or that it is wider than asked for.

    Parameters
    ----------
    frame : the table
    folder : where, a text or a path; it is made, and files that are there are replaced
    name : of the files; what a file's name should not have is replaced by `_`
    caption : stands above the table
    inches : width of the table in LaTeX at most: 3.3 for one column of two, 6.5 for both
    label : what LaTeX refers to it by, after `tab:`; empty: the name
    notes : sentences that stand below
    more : `groups`, `whole` and `keep`, as `latex` has them

    Raises
    ------
    DataError
        A file cannot be written, or a column does not fit that is kept, or with `whole` any.
    OSError
        The folder cannot be made.

    >>> import tempfile
    >>> import fairopt as fo
    >>> table = fo.compare(fo.papers.instance("drf-4.1"), ["drf", "ceei"])[["jain"]]
    >>> paths = fo.report.write(table, tempfile.mkdtemp(), "fairness", "Fairness of two mechanisms")
    >>> print(paths[1].read_text())
    Fairness of two mechanisms
    <BLANKLINE>
    | mechanism | jain   |
    |:----------|:-------|
    | DRF       | 1      |
    | CEEI      | 0.8758 |
    <BLANKLINE>
    """
    stem, frame = file_name(name), flat(frame)
    tex = latex(frame, caption, f"tab:{label or stem}", inches, notes=notes, **more)
    lack = "; ".join(line[2:] for line in tex.splitlines() if line.startswith("% "))
    texts = {
        ".csv": csv(frame),
        ".md": f"{escape('. '.join([caption, *notes]))}\n\n{markdown(frame)}\n",
        ".tex": tex,
    }
    files.folder(Path(folder))
    paths = {Path(folder, f"{stem}{suffix}"): text for suffix, text in texts.items()}
    for path, text in paths.items():
        files.write(path, text, "table")
    if lack:
        warnings.warn(f"{stem}.tex: {lack} ({stem}.csv has all columns)", UserWarning, stacklevel=2)
    return list(paths)


def export(frame: pd.DataFrame, path: str | Path, note: str | None = None) -> None:
    """Write a table in the format of the suffix, with names of rows as first columns.

    Parameters
    ----------
    frame : the table
    path : its suffix is one of `FORMATS`: .csv, .parquet, .json, .md or .tex; its folder is made
    note : stands below the table where the format has room for it (.md, .tex)

    Raises
    ------
    DataError
        No such format, or the file cannot be written.
    OSError
        The folder cannot be made.
    """
    notes = [] if note is None else [note]
    formats: dict[str, Callable[[], str | bytes]] = {
        ".csv": lambda: csv(frame),
        ".parquet": lambda: bytes(frame.to_parquet(index=False)),
        ".json": lambda: str(frame.to_json(orient="records", date_format="iso", double_precision=15)),
        ".md": lambda: "\n\n".join([markdown(frame), *map(escape, notes)]) + "\n",
        ".tex": lambda: latex(frame, notes=notes) + "\n",
    }
    path, frame = Path(path), flat(frame)
    exportable(path)
    content = formats[path.suffix]()
    files.folder(path.parent)
    files.write(path, content, "table")


def exportable(path: Path) -> None:
    """Check that there is a format for the suffix.

    Raises
    ------
    DataError
        There is none; the message lists the formats.
    """
    if path.suffix not in FORMATS:
        raise DataError(f"cannot export to {path.name}: choose {', '.join(FORMATS)}")


def csv(frame: pd.DataFrame) -> str:
    """Write CSV with every digit; text that a spreadsheet would compute is escaped by an apostrophe."""

    def safe(cell: object) -> object:
        return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell

    shown = frame.map(safe).rename(columns=lambda name: name if str(name).startswith(INTERVAL) else safe(name))
    return str(shown.to_csv(index=False))


def markdown(frame: pd.DataFrame) -> str:
    """A table for people; columns that have in every row the value that is expected are left out."""
    shown = for_people(informative(frame))
    rows = [[escape(text) for text in row] for row in [list(shown.columns), *shown.to_numpy().tolist()]]
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    head, *body = ["|" + "".join(f" {text:{most}} |" for text, most in zip(row, wide, strict=True)) for row in rows]
    return "\n".join([head, "|" + "".join(f":{'-' * (most + 1)}|" for most in wide), *body])


def file_name(name: str) -> str:
    """A name as that of a file: without separators and of bounded length; what is changed is told apart by a digest."""
    # Names of files are cut off behind this many characters.
    plain = re.sub(r"[^\w.,=+()-]", "_", name).lstrip(".-")[:100]
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"


def escape(text: object) -> str:
    """Text in which Markdown sees no markup."""
    line = _ENTITY.sub("&amp;", one_line(str(text))).replace("<", "&lt;").replace(">", "&gt;")
    return _MARKUP.sub(lambda found: f"\\{found[0]}", line)
