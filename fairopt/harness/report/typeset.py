"""Tables for LaTeX, as wide as a column or page of a paper: columns are chosen to fit, and digits by accuracy.

The preamble needs `booktabs` and `array`. Widths are those of Computer Modern, in \\footnotesize at 10 points.

Notation follows the literature: words for columns, usual names of mechanisms, and letters in math.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from itertools import accumulate, groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.errors import DataError
from ...base.libraries import pd
from ...base.names import plain
from ...mechanisms import REGISTRY
from ...model._arrays import Array
from ...scheduling.policies import REGISTRY as POLICIES

#: Headings of columns that differ from the name of the column with spaces in place of underscores.
HEADS = {
    "min_share": "smallest share", "max_share": "largest share", "jain": "Jain's index",
    "tol": "tolerance", "simulate": "seconds to simulate",
    "mean_response": "mean response (s)", "median_response": "median response (s)", "mean_wait": "mean wait (s)",
    "printed": "in the paper", "there": "games that reach it", "level": "residual", "missed": "tolerance missed",
    "until": "until (s)", "every": "every (s)",
    "fraction_of_jobs_done": "jobs done (%)", "fraction_of_tasks_done": "tasks done (%)",
    "item": "no.", "cpu": "CPU", "gpu": "GPU", "ram": "RAM",
}  # fmt: skip
_SPECIAL = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$",
       "α": r"$\alpha$", "×": r"$\times$", "∞": r"$\infty$", "<": r"\textless{}",
       ">": r"\textgreater{}", "|": r"\textbar{}"}
)  # fmt: skip
#: Label of a mechanism or policy: kind of simulation, name, parameters, mark, and remark.
_LABEL = re.compile(
    r"(?:(?P<how>fluid|dedicated):)?(?P<name>[a-zA-Z-]+)(?:\((?P<with>\w+=.*?)\))?(?P<mark>\*?)(?P<said>: .*)?"
)
#: Symbols that are set in math: letters with a value or an index, and numbered users, resources and demands.
_MATH = re.compile(
    r"(?<![\w\\-])(?P<letter>alpha|beta|gamma|phi|mu|DK|sum|max|min|[xydacuwrmsnNKMU])"
    r"(?P<index>\\_[A-Za-z0-9]{1,2}|(?<=[drxU])\d)?"
    r"(?P<equal>\s?=\s?(?:-?(?:\d+(?:\.\d+)?|\.\d+)(?:e-?\d+)?|inf|\([\d., ]+\))(?![\w/]))?(?![\w\\])"
)
_UNLABELLED = r"[^\w:.,=+()-]"
_ALONE = {"alpha", "beta", "gamma", "phi", "mu"}
_MACRO = {*_ALONE, "sum", "max", "min"}
#: Widths of the characters of Computer Modern at 8 points, in thousandths of an em, beginning with the space.
_CMR8 = """333 278 500 833 500 833 778 278 389 389 500 778 278 333 278 500 500 500 500 500 500 500 500 500 500 500 278
278 778 778 778 472 778 749 708 722 763 680 652 785 749 360 513 777 625 916 749 778 680 778 736 556 722 749 749 1027
749 749 611 278 500 278 500 360 500 500 556 444 556 444 306 500 556 278 306 528 278 833 556 500 556 528 390 394
389 556 528 722 528 528 444 500 278 500 500"""
_WIDTHS = dict(zip(map(chr, range(32, 127)), map(int, _CMR8.split()), strict=True))
#: Widths of macros, in thousandths of an em, without the spaces that TeX adds; other macros count as 0.6 em.
_MACROS = {"pm": 555, "cdot": 55, "infty": 1000, "allowbreak": 0, "sum": 1300, "max": 1700, "min": 1500}
_TOKEN = re.compile(r"\\(?P<macro>[a-zA-Z]+)(?:\{\})?|\\?(?P<plain>.)")


def typeset(text: object) -> str:
    """Convert a text to LaTeX, with the names that papers give to mechanisms and policies, and formulas in math.

    `alphapf-vds(alpha=3.0)` is :math:`\\alpha`PF-VDS (:math:`\\alpha = 3`), and `x_n`, `d4`, `alpha = 2` are formulas.
    """
    said = re.sub("(?<=[a-z]{2})_(?=[a-z]{2})", " ", str(text))  # underscores of identifiers
    label = _LABEL.fullmatch(said)
    if label is not None and (title := _titles().get(label["name"])):
        more = re.sub(r"=True\b|\.0\b", "", label["with"] or "").replace("=False", "=no").replace("=", " = ")
        how = f"{label['how']} " if label["how"] else ""
        said = f"{how}{title}{f' ({more})' if more else ''}{label['mark']}{label['said'] or ''}"
    said = re.sub(r"(?<=\w)\((?=\w+ ?=)", " (", said)  # labels within a sentence, which `_LABEL` does not match
    return re.sub(
        "alphapf-vds",
        r"$\\alpha$PF-VDS",
        _MATH.sub(_formula, one_line(said).translate(_SPECIAL)),
        flags=re.IGNORECASE,
    )


def said(value: object) -> str:
    """Format a value as text, with yes and no for booleans."""
    return ("yes" if value else "no") if isinstance(value, bool | np.bool_) else str(value)


def one_line(text: str) -> str:
    """Replace line ends, which would end a LaTeX comment, and other control characters."""
    return plain(" ".join(text.splitlines()))


def _formula(found: re.Match[str]) -> str:
    letter, index, equal = found["letter"], found["index"], found["equal"]
    if not (index or equal or letter in _ALONE):
        return found[0]  # a word of one letter
    value = (equal or "").strip(" =")
    if value and value[0] != "(":
        value = power(float(value)).strip("$")
    below = "_{" + index.strip("\\_") + "}" if index else ""
    return f"${chr(92) * (letter in _MACRO)}{letter}{below}{' = ' * bool(value)}{value}$"


@cache
def _titles() -> dict[str, str]:
    """Titles of mechanisms and policies, by name and by title."""
    kinds: list[Any] = [*POLICIES.items(), *REGISTRY.items()]
    return {key: kind.title for name, kind in kinds for key in (name, kind.title)}


def words(name: str) -> str:
    """Heading of a column, for LaTeX."""
    return "$n$" if name == "n" else typeset(HEADS.get(name, name.replace("_", " ")))


def power(value: float, digits: int = 12) -> str:
    """Format a number with at most `digits` significant digits, below 0.001 as a power of ten, and NaN as ''."""
    if not math.isfinite(value):
        return "" if math.isnan(value) else "$\\infty$"
    plain = f"{value:.{digits}g}"
    if "e" not in plain and (value == 0 or abs(value) >= 1e-3):
        return plain
    mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    mantissa = mantissa.rstrip("0").rstrip(".")
    return f"${mantissa} \\cdot 10^{{{int(exponent)}}}$".replace("$1 \\cdot ", "$")


@cache
def width(text: str) -> float:
    """Width of a LaTeX text in Computer Modern at 8 points, in ems; exponents count with full width."""
    total = 0.34 * text.count("^{-")  # a minus is wider than a hyphen
    for token in _TOKEN.finditer(text):
        if macro := token["macro"]:
            total += _MACROS.get(macro, 600) / 1000
        elif token["plain"] not in "{}$^_" or token[0].startswith("\\"):
            total += _WIDTHS.get(token["plain"], 800) / 1000
    return total


#: Text width of a page with margins of an inch, in inches; tables wider than three quarters of it span both columns.
PAGE = 6.5
#: Prefix of the names of columns of half-widths of intervals.
INTERVAL = "+- "
#: `_INCH`: points per inch. `_EM`: points per em in \\footnotesize. `_GAP`: ems between columns.
_INCH, _EM, _GAP = 72.27, 8.5, 0.9
#: Fraction of the largest value of a column; smaller numbers in the column are rounding errors, and are printed as 0.
_ROUNDING = 1e-12
#: Exponent of ten; a certificate below `10^_LEAST` is printed as smaller than this bound.
_LEAST = -12
#: Significant digits: `_DIGITS` of values of unknown accuracy, `_OF_SECONDS` of seconds, which are measured once.
_DIGITS, _OF_SECONDS = 4, 2
#: Number of lines of a table that fit on a page with caption, heading and notes.
_LINES = 40
#: Columns of parameters, which are printed with all given digits.
_GIVEN = ("alpha", "damping", "tol", "level", "until", "every", "thrashing", "n", "item")
#: Columns that are omitted first if a table is too wide, beginning with the last.
_LAST = ("max_share", "fraction_of_tasks_done", "missed", "certificate", "correct", "instance", "source", "name",
         "median_response", "messages", "note", "simulate",
         "seconds")  # fmt: skip
#: Fractions that are printed in percent, in addition to utilizations.
FRACTIONS = ("fraction_of_jobs_done", "fraction_of_tasks_done")
#: Expected values by column; a column that has the expected value in every row is omitted as uninformative.
_EXPECTED = {"certified": True, "pooled": False, "status": "ok", "missed": 0, "notes": ""}
#: Characters after which a name without spaces may be broken.
_BREAK = re.compile(r"(\?|\\&|\\_|/|,|\(|=)(?=\S)")


@dataclass
class _Column:
    """Column: name in the frame, heading in at most two lines, cells, and preferred and smallest width in ems."""

    name: str
    head: list[str]
    cells: list[str]
    number: bool
    wide: float
    least: float
    longest: float
    group: str

    @property
    def folded(self) -> bool:
        return self.wide < self.longest - 1e-9


def latex(
    frame: pd.DataFrame,
    caption: str | None = None,
    label: str | None = None,
    inches: float = PAGE,
    *,
    notes: Iterable[str] = (),
    groups: Mapping[str, Sequence[str]] | None = None,
    whole: bool = False,
    keep: Sequence[str] = (),
) -> str:
    """Format a floating table for LaTeX: `table` in a column, or a wider `table*`, which spans both columns of a page.

    Row labels are the first columns. Half-widths follow means, ends of intervals follow medians. Values equal in all
    rows are stated below the table, with the notes. Columns that do not fit are omitted, the least important first;
    comments in the first lines name the omitted columns, and state whether the table is wider than requested. A table
    of more than a page is continued in further tables with the same columns.

    Parameters
    ----------
    frame : the table
    caption : text above the table
    label : label for references; by default none
    inches : largest width; a table for one of two columns spans both if the kept columns, or any measure, do not fit
    notes : sentences below the table
    groups : columns under a common heading, by heading; uses of resources (`use_...`) are always grouped
    whole : raise an error if a column does not fit
    keep : names of columns that stay at any width, or patterns such as `use_*`

    Raises
    ------
    DataError
        A kept column, or with `whole` any column, does not fit; the message has the required width.
    """
    room = inches * _INCH / _EM
    frame = _with_data(flat(frame))
    kept = [name for name in map(str, frame.columns) if any(fnmatchcase(name, each) for each in keep)]
    given = {"alpha", "mechanism"} <= {*frame} and "alpha" not in kept
    if given and frame.groupby("mechanism")["alpha"].nunique().max() <= 1:
        frame = frame.drop(columns="alpha")  # the labels of mechanisms state alpha
    rows, same = _without_constants(frame, kept)
    every = _columns(rows, groups or {}, room)
    different = [one for k, one in enumerate(every) if one.name in kept or one.number
                 or all(one.cells != each.cells for each in every[k + 1 :])]  # fmt: skip
    needed = [one.name for one in different if whole or one.name in kept]
    columns, left = _fitting(different, room, needed)
    lost = [name for name in left if name in needed]
    two = 0.375 * PAGE <= inches < 0.6 * PAGE  # the requested width is that of one of two columns
    if two and not whole and (lost or (any(map(_measured, different)) and not any(map(_measured, columns)))):
        said = f"% spans both columns, as {inches:g} inches have no room for {one_line(', '.join(lost or left))}\n"
        return said + latex(frame, caption, label, 2 * inches, notes=notes, groups=groups, keep=keep)
    if lost:
        least = math.ceil(10 * _taken([one for one in different if one.name in needed]) * _EM / _INCH) / 10
        raise DataError(f"{', '.join(lost)} do not fit into {inches:g} inches; the table takes {least:g}")
    foot = [typeset(note) for note in notes] + [same] * bool(same)
    floats = "table" if inches < 0.75 * PAGE else "table*"
    parts = _pages(columns, range(len(rows)))
    lines = [f"% no room in {inches:g} inches for {one_line(', '.join(left))}"] if left else []
    for k, part in enumerate(parts, 1):
        lines += [f"\\begin{{{floats}}}[tbp]", "\\centering\\footnotesize\\emergencystretch2em"]
        if caption:
            of = f" ({k} of {len(parts)})" if len(parts) > 1 else ""
            mark = f"\\label{{{re.sub(_UNLABELLED, '-', label)}}}" if label and k == 1 else ""
            lines.append(f"\\caption{{{typeset(caption)}{of}}}{mark}\\smallskip")
        lines += [*_tabular(columns, part)]
        lines += [f"\n{{\\smallskip\\raggedright {note}\\par}}" for note in foot if k == len(parts)]
        lines.append(f"\\end{{{floats}}}")
    return "\n".join(lines)


def flat(frame: pd.DataFrame) -> pd.DataFrame:
    """Move row labels into the first columns, unless they are positions, and convert headings to text."""
    index, of = frame.index, frame.columns.name
    frame = frame.set_axis([f"{of} = {head}" if of else str(head) for head in frame.columns], axis=1)
    if index.name is None and pd.api.types.is_integer_dtype(index):
        return frame
    return frame.reset_index(names=None if any(index.names) else "", allow_duplicates=True)


def distinct(frame: pd.DataFrame) -> pd.DataFrame:
    """Drop measures over users with unmet demand that equal the measures over all users."""
    twice = [f"{name}_wanting" for name in ("min_share", "jain")
             if name in frame and frame[name].equals(frame.get(f"{name}_wanting"))]  # fmt: skip
    return frame.drop(columns=twice)


def informative(frame: pd.DataFrame) -> pd.DataFrame:
    """Drop columns that repeat other columns, or have the expected value in every row."""
    usual = [name for name, value in _EXPECTED.items() if len(frame) and name in frame and frame[name].eq(value).all()]
    return distinct(frame).drop(columns=usual)


def differing(sources: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Options common to all sources `kind?name=value&...`, and the other options of each."""
    parts = [re.split("[?&]", source) for source in sources]
    common = [part for part in parts[0] if all(part in other for other in parts)]
    return common, [[part for part in each if part not in common] for each in parts]


def _with_data(frame: pd.DataFrame) -> pd.DataFrame:
    """Shorten sources to the options in which sources of one cluster or workload differ; captions state the others."""
    names = frame.get("cluster", frame.get("workload", pd.Series("", frame.index)))
    if "source" not in frame or not (names.any() or frame["source"].str.contains("?", regex=False).any()):
        return frame
    said = (
        frame["source"]
        .groupby(names, dropna=False)
        .transform(lambda sources: [", ".join(each).replace("=", " = ") for each in differing([*sources])[1]])
    )
    return frame.assign(source=said).rename(columns={"source": "data"}) if said.any() else frame.drop(columns="source")


def base(name: str) -> str:
    """Name of the mean or median to which a column of a half-width or interval end belongs, or else its own name."""
    return re.sub(rf"^{re.escape(INTERVAL)}| (low|high)$", "", name)


def uses(frame: pd.DataFrame) -> list[str]:
    """Names of the columns of utilizations of resources."""
    return [name for name in map(str, frame.columns) if name.startswith("use_") and not name.endswith(" (user)")]


def _inside(name: str, frame: pd.DataFrame) -> bool:
    return base(name) != name and base(name) in frame


def _measured(one: _Column) -> bool:
    return one.number and one.name not in (*_GIVEN, *_LAST, "there")


def _without_constants(frame: pd.DataFrame, kept: Sequence[str]) -> tuple[pd.DataFrame, str]:
    """Drop constant columns, except columns in `kept`, and return the table and a sentence that states their values.

    A table of one row, or of constant columns only, keeps these columns, and the sentence is ''.
    """
    frame = informative(frame)
    same = [
        name
        for name in frame
        if name not in kept
        and frame[name].nunique(dropna=False) == 1
        and not _inside(name, frame)
        and not (np.any(frame.get(f"{INTERVAL}{name}", 0) > 0) or np.any(pd.notna(frame.get(f"{name} low"))))
    ]
    rest = frame.drop(columns=[name for name in frame if base(name) in same])
    if len(frame) < 2 or rest.empty:
        return frame, ""
    said = []
    for one in _columns(frame[same].iloc[:1], {}, math.inf):
        head, cell, unit = " ".join(one.head).strip(), one.cells[0], "\\%" if one.group else ""
        if cell:
            said.append(f"$n = {cell}$" if head == "$n$" else f"{head} {cell}{unit}")
    return rest, f"In every row: {', '.join(said)}." if said else ""


def _columns(frame: pd.DataFrame, groups: Mapping[str, Sequence[str]], room: float) -> list[_Column]:
    common = [("use (%)", "use_", uses(frame))]  # common heading, prefix to remove from column headings, columns
    for group, names in groups.items():
        word = next((each for each in ("user ", f"{group} = ") if all(name.startswith(each) for name in names)), "")
        common.append((f"{group} user" if word == "user " else group, word, [name for name in names if name in frame]))
    heads = {name: one for one in common for name in one[2]}
    nothing = pd.Series(0.0, frame.index)
    errors = np.nan_to_num(frame.get("certificate", nothing).to_numpy(dtype=float))
    # The certificate is a relative error, and thus determines the number of significant digits of a row.
    certain = (-np.log10(np.clip(errors, 10.0**-_DIGITS, 0.1)) + 1e-9).astype(int)
    made: list[_Column] = []
    for k, name in enumerate(map(str, frame.columns)):
        if _inside(name, frame):
            continue
        column, (group, word, names) = frame.iloc[:, k], heads.get(name, ("", "", [name]))
        number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
        if number:
            scale = 100.0 if word == "use_" or name in FRACTIONS else 1.0
            ends = [end for end in (f"{name} low", f"{name} high") if end in frame]
            parts = (frame.get(f"{INTERVAL}{name}", nothing), frame[[*names, *ends]])
            half, alike = (part.to_numpy(dtype=float) * scale for part in parts)
            cells, *bounds = (_numbers(name, certain, frame[one].to_numpy(dtype=float) * scale, half, alike)
                              for one in (name, *ends))  # fmt: skip
            if bounds:
                cells = [f"{cell} [{', '.join(of)}]" if all(of) else cell
                         for cell, of in zip(cells, zip(*bounds, strict=True), strict=True)]  # fmt: skip
        else:
            texts = ("" if pd.isna(value) else typeset(said(value)) for value in column)
            cells = [_BREAK.sub(r"\1\\allowbreak{}", text) for text in texts]
        longest = max(map(width, cells), default=0.0)
        head = _in_lines(words(name.removeprefix(word)), longest)
        wide = least = max([longest, *map(width, head)])
        if not number and wide > (0.25 if any(one.number for one in made) else 0.4) * room:
            pieces = [width(piece) for cell in [*cells, *head] for piece in re.split(r" |\\allowbreak\{\}", cell)]
            least = min(wide, max([0.15 * room, *pieces]))
        made.append(_Column(name, head, cells, number, wide, least, longest, typeset(group)))
    return made


def _numbers(
    name: str,
    certain: NDArray[np.int64],
    values: Array,
    halves: Array,
    alike: Array,
) -> list[str]:
    """Format the cells of a column, with the decimals that are certain for the largest number in the group `alike`."""
    if name in _GIVEN:
        return [power(value) for value in values]
    if name == "certificate":
        return [f"$< 10^{{{_LEAST}}}$" if value < 10.0**_LEAST else power(value, 2) for value in values]
    if name.split(" ")[0] in ("seconds", "simulate"):
        certain = np.minimum(certain, _OF_SECONDS)
    finite = alike[np.isfinite(alike)]
    largest = np.abs(finite).max(initial=0.0) * (1 + 1e-9)  # 99.9999999999 counts as 100
    most = int(certain.max(initial=1)) - 1 - _order(largest)
    enough = (k for k in range(most) if np.allclose(finite, finite.round(k), rtol=0, atol=10.0 ** -(k + 7)))
    decimals = next(enough, most)
    return [_cell(*one, decimals, largest) for one in zip(values, halves, certain.tolist(), strict=True)]


def _cell(value: float, half: float, digits: int, decimals: int, largest: float) -> str:
    """Format a number, to two digits of its half-width; a number that would round to 0 is written as a power of ten."""
    if not math.isfinite(value):
        return power(value)
    order = _order(value)
    if half >= 10.0 ** (order - _DIGITS):
        places, exponent = max(0, 1 - _order(half)), 0
        if places > 5:
            exponent = max(order, _order(half))
            places += exponent
        text = f"{value * 10.0**-exponent:.{places}f} \\pm {half * 10.0**-exponent:.{places}f}"
        return f"$({text}) \\cdot 10^{{{exponent}}}$" if exponent else f"${text}$"
    if abs(value) <= _ROUNDING * max(largest, 1.0):
        return "0"
    rounded = f"{value:.{max(0, min(decimals, digits - 1 - order))}f}"
    return rounded.replace("-", "$-$") if float(rounded) and largest >= 1e-3 else power(value, min(3, digits))


def _order(value: float) -> int:
    return math.floor(math.log10(abs(value))) if value else 0


def _in_lines(head: str, longest: float) -> list[str]:
    """Break a heading into two lines if it is wider than its cells; otherwise the first line is empty."""
    blanks = [found.end() for found in re.finditer("[ -](?=.{4})", head)]  # units are not separated from the name
    if width(head) <= longest or not blanks:
        return ["", head]
    at = min(blanks, key=lambda at: abs(2 * at - len(head)))
    return [head[:at].rstrip(), head[at:]]


def _fitting(columns: Sequence[_Column], room: float, needed: Sequence[str]) -> tuple[list[_Column], list[str]]:
    """Select the columns that fit, set their widths, and return them with the names of the other columns.

    Columns are added in order, needed columns first and columns in `_LAST` last; a group with a common heading takes
    the place of its first column. Folded columns share the remaining width.
    """
    ranks: dict[str, tuple[int, int]] = {}  # ranks of single columns and of groups, by name
    for k, one in enumerate(columns):
        rank = -2 if one.name in needed else _LAST.index(one.name) if one.name in _LAST else -1
        ranks.setdefault(one.group or one.name, (rank, k))
    kept: list[_Column] = []
    for new in sorted(columns, key=lambda one: ranks[one.group or one.name]):
        tried = [one for one in columns if one in kept or one is new]
        if _taken(tried) <= room:
            kept = tried
    spare = room - _taken(kept)
    wish = sum(one.wide - one.least for one in kept)
    for one in kept:
        one.wide = one.least + (one.wide - one.least) * min(1.0, spare / (wish or 1.0))
    return kept, [one.name for one in columns if one not in kept]


def _taken(columns: Sequence[_Column]) -> float:
    """Smallest total width of columns with gaps, in ems; a group is at least as wide as its common heading."""
    total = sum(one.least + _GAP for one in columns) - _GAP
    for group in {one.group for one in columns if one.group}:
        inside = [one.least + _GAP for one in columns if one.group == group]
        total += max(0.0, width(group) + _GAP - sum(inside))
    return total


def _pages(columns: Sequence[_Column], rows: range) -> list[list[int]]:
    """Divide rows into pages, since LaTeX does not break a floating table."""
    # A folded cell is set ragged, and fills only a part of each line.
    lines = (max(math.ceil(width(one.cells[row]) / (0.8 * one.wide)) if one.folded else 1 for one in columns)
             for row in rows)  # fmt: skip
    pages = groupby(zip(rows, accumulate(lines), strict=True), lambda one: (one[1] - 1) // _LINES)
    return [[row for row, _ in page] for _, page in pages]


#: Space between columns, as a LaTeX column specifier.
_BETWEEN = f"@{{\\hspace{{{_GAP}em}}}}"


def _tabular(columns: Sequence[_Column], rows: Sequence[int]) -> list[str]:
    """Set one table, with gaps of a fraction of an em and none at the edges."""
    kinds = [f">{{\\raggedright\\arraybackslash}}p{{{one.wide:.2f}em}}" if one.folded else "lr"[one.number]
             for one in columns]  # fmt: skip
    lines = [f"\\begin{{tabular}}{{@{{}}{_BETWEEN.join(kinds)}@{{}}}}", "\\toprule", *_headings(columns), "\\midrule"]
    merged, label = len(columns) > 1 and not columns[1].number, None
    for row in rows:
        first, *others = (one.cells[row] for one in columns)
        # A label of several consecutive rows is printed in the first row only.
        lines.append(_row(["" if merged and first == label else first, *others]))
        label = first
    return [*lines, "\\bottomrule", "\\end{tabular}"]


def _headings(columns: Sequence[_Column]) -> list[str]:
    """Set headings: common headings of consecutive columns of one group, over a rule, and one or two lines of each."""
    spans, rules, at = [], "", 1
    for _, some in groupby(enumerate(columns), lambda one: one[1].group or one[0]):
        inside = [one for _, one in some]
        group, end = inside[0].group, at + len(inside) - 1
        kind = f"@{{}}c{_BETWEEN if end < len(columns) else '@{}'}"
        spans.append(f"\\multicolumn{{{len(inside)}}}{{{kind}}}{{{group}}}" if group else "")
        rules += f"\\cmidrule(lr){{{at}-{end}}}" if group else ""
        at = end + 1
    groups = [_row(spans), rules] if rules else []
    above = [_row(one.head[0] for one in columns)] if any(one.head[0] for one in columns) else []
    return [*groups, *above, _row(one.head[1] for one in columns)]


def _row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + " \\\\"
