"""Tables as formatted text, and as CSV, JSON, Parquet, Markdown and LaTeX files.

Files are written atomically, and cells are escaped, so that no program reads a cell as markup or as a formula. The
module `typeset` formats LaTeX.
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
#: First characters of cells that spreadsheets evaluate as formulas.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
#: Characters that are markup in Markdown: underscores only at the edge of a word, and stars only before a word.
_MARKUP = re.compile(r"([\\`\[\]|#~$])|(\*)(?!\s|$)|(?<!\w)(_)|(_)(?!\w)")
#: Columns in seconds whose names do not include the unit.
_SECONDS = ("mean_response", "median_response", "mean_wait", "until", "every", "simulate")
_ENTITY = re.compile(r"&(?=#?\w+;)")


def comparison(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Split a frame of `fairopt.compare` into a table of the solved rows, and footnotes on marks and other rows.

    Raises
    ------
    KeyError
        `frame` was not returned by `fairopt.compare`.
    """
    if "status" not in frame and hasattr(frame, "below"):
        return pd.DataFrame(frame).reset_index(), [*frame.below]
    solved = frame[frame["status"] == "ok"].drop(columns=["pooled", "status", "notes"])
    return solved.reset_index(), [*lines(frame)]


def for_people(frame: pd.DataFrame) -> pd.DataFrame:
    """Format a table as strings: fractions in per cent, certificates as powers of ten, four significant digits.

    Booleans are yes or no, headings of times have the unit, and half-widths of intervals of equal values are empty.

    The use of a resource (`use_...`, unless it ends in ` (user)`) is in a column with the name of the resource; if
    another column has that name, such as `tasks`, the column is `tasks (use)`. Measures over users with unmet demand
    are omitted if they equal the measures over all users.
    """
    shown = {}
    frame = distinct(frame)
    use = uses(frame)
    others = {str(name) for name in frame.columns} - {*use}
    called = dict(zip(use, apart([name.removeprefix("use_") for name in use], others, "use"), strict=True))
    for name, column in frame.items():
        head, form = str(name), "{:.1e}" if name == "certificate" else "{:.4g}"
        if head.removeprefix(INTERVAL).split(" ")[0] in ("seconds", "simulate"):  # else short times would be 0
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
    """Write a table as `name.csv` (all digits), `name.md` and `name.tex`, and return the paths.

    Row labels, such as mechanisms in the index of `fairopt.compare`, are the first columns. A warning names the columns
    that do not fit into the LaTeX table, or states that it is wider than requested.

    Parameters
    ----------
    frame : the table
    folder : path, created if necessary; existing files are replaced
    name : base name of the files, in which unsafe characters are replaced by `_`
    caption : text above the table
    inches : largest width in LaTeX: 3.3 for one of two columns, 6.5 for both
    label : LaTeX label after `tab:`; empty: the name
    notes : sentences below the table
    more : arguments `groups`, `whole` and `keep` of `latex`

    Raises
    ------
    DataError
        A file cannot be written, or a kept column, or with `whole` any column, does not fit.
    OSError
        The folder cannot be created.

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
    """Write a table in the format of the suffix, with row labels as first columns.

    Parameters
    ----------
    frame : the table
    path : file with a suffix of `FORMATS`: .csv, .parquet, .json, .md or .tex; its folder is created
    note : text below the table, in formats that allow it (.md, .tex)

    Raises
    ------
    DataError
        The format is unknown, or the file cannot be written.
    OSError
        The folder cannot be created.
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
        There is no format for the suffix; the message lists the formats.
    """
    if path.suffix not in FORMATS:
        raise DataError(f"cannot export to {path.name}: choose {', '.join(FORMATS)}")


def csv(frame: pd.DataFrame) -> str:
    """Format a table as CSV with all digits; text that a spreadsheet would evaluate is escaped by an apostrophe."""

    def safe(cell: object) -> object:
        return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell

    shown = frame.map(safe).rename(columns=lambda name: name if str(name).startswith(INTERVAL) else safe(name))
    return str(shown.to_csv(index=False))


def markdown(frame: pd.DataFrame) -> str:
    """Format a table as Markdown, without columns that repeat others or have the expected value in every row."""
    shown = for_people(informative(frame))
    rows = [[escape(text) for text in row] for row in [list(shown.columns), *shown.to_numpy().tolist()]]
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    head, *body = ["|" + "".join(f" {text:{most}} |" for text, most in zip(row, wide, strict=True)) for row in rows]
    return "\n".join([head, "|" + "".join(f":{'-' * (most + 1)}|" for most in wide), *body])


def file_name(name: str) -> str:
    """Convert a name to a file name without separators and of bounded length; changed names get a digest as suffix."""
    # Longer names are truncated, as file systems bound their length.
    plain = re.sub(r"[^\w.,=+()-]", "_", name).lstrip(".-")[:100]
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"


def escape(text: object) -> str:
    """Escape a text for Markdown."""
    line = _ENTITY.sub("&amp;", one_line(str(text))).replace("<", "&lt;").replace(">", "&gt;")
    return _MARKUP.sub(lambda found: f"\\{found[0]}", line)
