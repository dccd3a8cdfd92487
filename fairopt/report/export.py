"""Tables as files: CSV, Parquet, JSON, Markdown, LaTeX. Whole or not at all, and no cell is markup or a formula."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

from .._libraries import pd
from ..errors import DataError
from ..model import _files
from .tables import for_people
from .typeset import latex

#: Suffixes of the files that tables are written to.
FORMATS = (".csv", ".parquet", ".json", ".md", ".tex")
#: Spreadsheets compute what begins so.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
#: What Markdown reads as more than text: an underscore only at the edge of a word, a star only before one.
_MARKUP = re.compile(r"([\\`\[\]|#~$])|(\*)(?!\s|$)|(?<!\w)(_)|(_)(?!\w)")
_ENTITY = re.compile(r"&(?=#?\w+;)")
#: How columns of half intervals begin: our own names, which programs read.
INTERVAL = "+- "
#: Names of files are cut off behind this many characters.
_LONGEST = 100


def write(
    frame: pd.DataFrame, folder: Path, name: str, caption: str, single: bool = False, label: str = ""
) -> list[Path]:
    """Write a table as `name.csv` (every digit), `name.md` and `name.tex`; the paths written.

    Parameters
    ----------
    frame : the table
    folder : where; it is made, and files that are there are replaced
    name : of the files; what a file's name should not have is replaced by `_`
    caption : stands above the table; in LaTeX its first sentence does, and the others stand below
    single : in LaTeX of one column of two, otherwise a longtable of the page's width
    label : what LaTeX refers to it by, after `tab:`; empty: the name

    Raises
    ------
    DataError
        A file cannot be written.
    OSError
        The folder cannot be made.
    """
    _files.folder(folder)
    stem = file_name(name)
    texts = {
        ".csv": csv(frame),
        ".md": f"{escape(caption)}\n\n{markdown(frame)}\n",
        ".tex": latex(frame, caption, f"tab:{label or stem}", single),
    }
    for suffix, text in texts.items():
        _files.write(folder / f"{stem}{suffix}", text, "table")
    return [folder / f"{stem}{suffix}" for suffix in texts]


def export(frame: pd.DataFrame, path: Path, note: str | None = None) -> None:
    """Write a table in the format of the suffix.

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
    formats: dict[str, Callable[[], str | bytes]] = {
        ".csv": lambda: csv(frame),
        ".parquet": lambda: _parquet(frame),
        ".json": lambda: str(frame.to_json(orient="records", date_format="iso", double_precision=15)),
        ".md": lambda: markdown(frame) + ("" if note is None else f"\n\n{escape(note)}") + "\n",
        ".tex": lambda: latex(frame, note) + "\n",
    }
    exportable(path)
    content = formats[path.suffix]()
    _files.folder(path.parent)
    _files.write(path, content, "table")


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
    """With every digit; an apostrophe stands before text that a spreadsheet would compute."""

    def safe(cell: object) -> object:
        return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell

    texts = [k for k, kind in enumerate(frame.dtypes) if not pd.api.types.is_numeric_dtype(kind)]
    shown = frame.rename(columns=lambda name: name if str(name).startswith(INTERVAL) else safe(name))
    for k in texts:
        shown.isetitem(k, frame.iloc[:, k].map(safe))
    return str(shown.to_csv(index=False))


def markdown(frame: pd.DataFrame) -> str:
    """A table for people."""
    shown = for_people(frame).map(escape).rename(columns=escape)
    return str(shown.to_markdown(index=False, disable_numparse=True))


def file_name(name: str) -> str:
    """A name as that of a file: without separators and of bounded length; what is changed is told apart by a digest."""
    plain = re.sub(r"[^\w.,=+()-]", "_", name).lstrip(".-")[:_LONGEST]
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"


def escape(text: object) -> str:
    """Text in which Markdown sees no markup."""
    line = _ENTITY.sub("&amp;", " ".join(str(text).split("\n"))).replace("<", "&lt;").replace(">", "&gt;")
    return _MARKUP.sub(lambda found: f"\\{found[0]}", line)


def _parquet(frame: pd.DataFrame) -> bytes:
    file = BytesIO()
    frame.to_parquet(file, index=False)
    return file.getvalue()
