"""Tables: for people, and written as CSV, JSON, Parquet, Markdown and LaTeX.

Files are whole or not at all, and no cell is markup or a formula. In LaTeX numbers are rounded by what they mean, and
nothing is wider than the text; the preamble needs `booktabs`, `longtable` and `array`. In two columns longtable does
not work: there a table is a `table*` of the page's width or, with `single`, a `table` of one column.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np

from .._libraries import of_an_extra, pd
from ..errors import DataError
from ..model import _files
from ..model._names import apart
from ..study.compare import NOTE

#: Characters that fit into a line of 6.5 inches, and of 3.3, in \\footnotesize; a gap between columns counts two.
DOUBLE, SINGLE = 104, 44
#: Below this part of the largest value of its column a number is rounding, and is printed as 0.
_ROUNDING = 1e-12
#: Certificates below this are printed as being below it.
_LEAST = 1e-12
#: Texts longer than this many characters are folded.
_LONGEST = {DOUBLE: 34, SINGLE: 20}
_SPECIAL = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$",
       "α": r"$\alpha$", "×": r"$\times$", "∞": r"$\infty$", "<": r"\textless{}",
       ">": r"\textgreater{}", "|": r"\textbar{}"}
)  # fmt: skip


#: Behind these a name without spaces may go on in the next line.
_BREAK = re.compile(r"(\?|\\&|\\_|/|,|\(|=)(?=\S)")
#: Suffixes of the files that tables are written to.
FORMATS = (".csv", ".parquet", ".json", ".md", ".tex")
#: Spreadsheets compute what begins so.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
#: What Markdown reads as more than text: an underscore only at the edge of a word, a star only before one.
_MARKUP = re.compile(r"([\\`\[\]|#~$])|(\*)(?!\s|$)|(?<!\w)(_)|(_)(?!\w)")
_ENTITY = re.compile(r"&(?=#?\w+;)")
#: How columns of half intervals begin: our own names, which programs read.
INTERVAL = "+- "


def comparison(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """A frame of `study.compare` for readers: rows that have numbers; footnotes, and a line for each other row.

    Raises
    ------
    KeyError
        `frame` is not one of `fairopt.compare`.
    """
    solved = frame[frame["status"] == "ok"].drop(columns=["pooled", "status", "notes"])
    others = [NOTE] if frame["pooled"].any() else []
    others += [f"{name}: {status}" for name, status in frame["status"].items() if status != "ok"]
    return solved.reset_index(), others


def for_people(frame: pd.DataFrame) -> pd.DataFrame:
    """The same table as strings: shares of a whole as percentages, certificates in powers of ten, four digits.

    The use of a resource (`use_...`, unless it ends in ` (user)`) is in a column of its name; if another column has
    that, in `tasks (use)` and so on. Columns of who wants more are left out where they repeat those of all users.
    """
    shown = {}
    twice = [f"{name}_wanting" for name in ("min_share", "jain") if f"{name}_wanting" in frame and name in frame
             and frame[f"{name}_wanting"].equals(frame[name])]  # fmt: skip
    frame = frame.drop(columns=twice)
    use = [name for name in map(str, frame.columns) if name.startswith("use_") and not name.endswith(" (user)")]
    others = {str(name) for name in frame.columns} - {*use}
    called = dict(zip(use, apart([name.removeprefix("use_") for name in use], others, "use"), strict=True))
    for name, column in frame.items():
        head, form = str(name), {"certificate": "{:.1e}", "seconds": "{:.2f}"}.get(str(name), "{:.4g}")
        if head in called or head.startswith("+- use_"):
            head, form = called.get(head, head.replace("use_", "", 1)), "{:.1%}"
        nothing = "all met" if head.endswith(("_wanting", "(want more)")) else ""
        shown[head] = [_text(value, form) or nothing for value in column]
    return pd.DataFrame(shown, index=frame.index)


def _text(value: object, form: str) -> str:
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else form.format(value)
    return str(value)


@dataclass(frozen=True)
class _Column:
    """A column as LaTeX has it: its head, cells, how it is set, and its width in characters."""

    head: str
    cells: list[str]
    align: str
    wide: int


def latex(frame: pd.DataFrame, caption: str | None = None, label: str | None = None, single: bool = False) -> str:
    """A table for LaTeX. Half intervals stand behind their means; what is the same in every row stands below.

    Columns that do not fit beside each other go on in a further table, with the columns that name the rows again.

    Parameters
    ----------
    frame : the table
    caption : its first sentence is the caption, the others stand below the table
    label : of the table, for references to it; by default none
    single : of one column of two, as `table` and `tabular`; otherwise a `longtable` of the page's width
    """
    title, _, notes = (caption or "").partition(". ")
    rows, same = _without_constants(frame)
    below = [note for note in (notes, same) if note]
    room = SINGLE if single else DOUBLE
    every = range(len(rows))
    parts = [
        (part, some)
        for part in _parts(_columns(rows, _LONGEST[room]), room)
        for some in (_pages(part, every) if single else [every])
    ]
    made = []
    for k, (part, some) in enumerate(parts):
        head = title if k == 0 else f"{title} (continued)" if title else ""
        mark = label if k == 0 else None
        foot = below if k == len(parts) - 1 else []
        made.append((_floating if single else _long)(part, head, mark, foot, some))
    return "\n".join(made)


def _pages(columns: Sequence[_Column], rows: range) -> list[range]:
    """Rows in groups that fit on a page: a table that floats is not broken."""
    made, begun, lines = [], 0, 0
    for row in rows:
        # The part of a line that a folded, ragged cell fills.
        taken = max(math.ceil(_length(one.cells[row].replace("\\allowbreak{}", "")) / (0.8 * one.wide))
                    if one.align.endswith("}") else 1 for one in columns)  # fmt: skip
        # Lines of a table that fit on a page beside its caption, head and notes.
        if lines + taken > 45 and row > begun:
            made.append(range(begun, row))
            begun, lines = row, 0
        lines += taken
    return [*made, range(begun, len(rows))]


def _without_constants(frame: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """A table without columns that are the same in every row, and a sentence with these; of one row, all of it."""
    if len(frame) < 2:
        return frame, ""
    same = {}
    for name in frame.columns:
        column = frame[name]
        half = f"{INTERVAL}{name}"
        if not str(name).startswith(INTERVAL) and half not in frame and column.nunique(dropna=False) == 1:
            same[name] = column.iloc[0]
    if len(same) == frame.shape[1]:
        return frame, ""
    said = for_people(frame[list(same)]).iloc[0] if same else pd.Series(dtype=str)
    shown = [f"{name} {text}" for name, text in said.items() if str(text) not in ("", "None", "nan")]
    return frame.drop(columns=list(same)), f"In every row: {', '.join(shown)}." if shown else ""


def _columns(frame: pd.DataFrame, longest: int) -> list[_Column]:
    people, made = for_people(frame), []
    for k, name in enumerate(frame.columns):
        if str(name).startswith(INTERVAL) and str(name).removeprefix(INTERVAL) in frame:
            continue
        column, head = frame.iloc[:, k], str(people.columns[k])
        half = f"{INTERVAL}{name}"
        number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
        if number and half in frame:
            pairs = zip(column, frame[half], strict=True)
            scale = 100.0 if people.iloc[:, k].str.endswith("%").any() else 1.0
            texts = [_measured(scale * mean, scale * wide, scale == 100) for mean, wide in pairs]
        elif number and name == "certificate":
            texts = [_certificate(value) for value in column]
        elif number:
            largest = float(np.nanmax(np.abs(column), initial=0.0))
            texts = [_number(value, text, largest) for value, text in zip(column, people.iloc[:, k], strict=True)]
        else:
            texts = [_escape(value) for value in people.iloc[:, k]]
        wide = max([_length(head), *map(_length, texts)])
        align = "r" if number else "l"
        if not number and wide > longest:  # ragged, as narrow lines cannot be spread
            wide, align = longest, f">{{\\raggedright\\arraybackslash}}p{{{0.5 * longest:.1f}em}}"
            texts = [_BREAK.sub(r"\1\\allowbreak{}", text) for text in texts]
        made.append(_Column(_escape(head), texts, align, wide))
    return made


def _parts(columns: Sequence[_Column], room: int) -> list[list[_Column]]:
    """Columns in groups that fit; those that name the rows, up to the first number, are in each."""
    first = next((k for k, one in enumerate(columns) if one.align == "r"), len(columns))
    names, others = list(columns[:first]), list(columns[first:])
    for one in [one for k, one in enumerate(names) if any(_says(before, one) for before in names[:k])]:
        names.remove(one)
        others.insert(0, one)
    while names and sum(one.wide + 2 for one in names) > 0.75 * room:
        others.insert(0, names.pop())  # too many to be repeated
    made: list[list[_Column]] = []
    taken = sum(one.wide + 2 for one in names)
    group: list[_Column] = []
    used = taken
    for one in others:
        if group and used + one.wide + 2 > room:
            made.append([*names, *group])
            group, used = [], taken
        group.append(one)
        used += one.wide + 2
    return [*made, [*names, *group]]


def _says(first: _Column, second: _Column) -> bool:
    """Does a row's cell in the first column say what it has in the second?"""
    return len(set(zip(first.cells, second.cells, strict=True))) == len(set(first.cells))


def _long(columns: Sequence[_Column], title: str, label: str | None, notes: Sequence[str], rows: range) -> str:
    lines = ["{\\footnotesize", f"\\begin{{longtable}}{{{_spec(columns)}}}"]
    if title:
        lines.append(f"\\caption{{{_escape(title)}}}{_label(label)}\\\\")
    head = " & ".join(one.head for one in columns)
    lines += ["\\toprule", f"{head} \\\\", "\\midrule", "\\endfirsthead"]
    lines += ["\\toprule", f"{head} \\\\", "\\midrule", "\\endhead", "\\bottomrule", "\\endfoot"]
    lines += _body(columns, rows)
    lines += ["\\end{longtable}"]
    lines += [f"\\noindent {_escape(note)}\n" for note in notes]
    return "\n".join([*lines, "}"])


def _floating(columns: Sequence[_Column], title: str, label: str | None, notes: Sequence[str], rows: range) -> str:
    lines = ["\\begin{table}[tb]", "\\footnotesize"]
    if title:
        lines.append(f"\\caption{{{_escape(title)}}}{_label(label)}")
    head = " & ".join(one.head for one in columns)
    lines += [f"\\begin{{tabular}}{{{_spec(columns)}}}", "\\toprule", f"{head} \\\\", "\\midrule"]
    lines += [*_body(columns, rows), "\\bottomrule", "\\end{tabular}"]
    lines += [f"\n{_escape(note)}" for note in notes]
    return "\n".join([*lines, "\\end{table}"])


def _spec(columns: Sequence[_Column]) -> str:
    """Gaps of a part of an em, none at the edges."""
    return "@{}" + "@{\\hspace{0.9em}}".join(one.align for one in columns) + "@{}"


def _body(columns: Sequence[_Column], rows: range) -> list[str]:
    return [" & ".join(one.cells[row] for one in columns) + " \\\\" for row in rows]


def _label(label: str | None) -> str:
    return "" if label is None else f"\\label{{{label}}}"


def _measured(mean: float, half: float, per_cent: bool) -> str:
    """A mean with its half interval, both to the second digit of this."""
    if not np.isfinite(mean):
        return ""
    unit = "\\%" if per_cent else ""
    if not np.isfinite(half) or half <= _ROUNDING * max(abs(mean), 1e-300):
        return f"{mean:.4g}{unit}"
    digits = max(0, 1 - math.floor(math.log10(half)))
    if digits > 5:  # a power of ten is easier to read than zeros
        power = math.floor(math.log10(max(abs(mean), half)))
        scale = 10.0**-power
        digits = max(0, 1 - math.floor(math.log10(half * scale)))
        if digits > 5:
            return f"{mean:.4g}{unit}"
        return f"$({mean * scale:.{digits}f} \\pm {half * scale:.{digits}f}) \\cdot 10^{{{power}}}${unit}"
    return f"${mean:.{digits}f} \\pm {half:.{digits}f}${unit}"


def _number(value: float, text: str, largest: float) -> str:
    """As people have it; rounding is 0, and powers of ten are written as such."""
    if isinstance(value, float | np.floating) and np.isfinite(value) and abs(value) <= _ROUNDING * max(largest, 1.0):
        return "0"
    plain = _escape(text)
    mantissa, _, power = plain.partition("e")
    if not power or not np.isfinite(float(value)):
        return plain
    return f"${mantissa} \\cdot 10^{{{int(power)}}}$"


def _certificate(value: float) -> str:
    if not np.isfinite(value):
        return ""
    if value < _LEAST:
        return f"$< 10^{{{round(math.log10(_LEAST))}}}$"
    return f"${value / 10.0 ** math.floor(math.log10(value)):.1f} \\cdot 10^{{{math.floor(math.log10(value))}}}$"


def _length(text: str) -> int:
    """The number of characters that a reader sees."""
    for mark, width in (("\\pm", "+"), ("\\cdot", "."), ("\\textbackslash{}", "x"), ("\\", ""), ("$", ""), ("{", ""),
                        ("}", ""), ("^", "")):  # fmt: skip
        text = text.replace(mark, width)
    return len(text)


def _escape(text: object) -> str:
    return " ".join(str(text).split("\n")).translate(_SPECIAL)


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
    of_an_extra("tabulate")  # pandas asks for it
    shown = for_people(frame).map(escape).rename(columns=escape)
    return str(shown.to_markdown(index=False, disable_numparse=True))


def file_name(name: str) -> str:
    """A name as that of a file: without separators and of bounded length; what is changed is told apart by a digest."""
    # Names of files are cut off behind this many characters.
    plain = re.sub(r"[^\w.,=+()-]", "_", name).lstrip(".-")[:100]
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"


def escape(text: object) -> str:
    """Text in which Markdown sees no markup."""
    line = _ENTITY.sub("&amp;", " ".join(str(text).split("\n"))).replace("<", "&lt;").replace(">", "&gt;")
    return _MARKUP.sub(lambda found: f"\\{found[0]}", line)


def _parquet(frame: pd.DataFrame) -> bytes:
    file = BytesIO()
    frame.to_parquet(file, index=False)
    return file.getvalue()
