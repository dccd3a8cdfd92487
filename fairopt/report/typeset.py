"""Tables for LaTeX, as wide as a column of a paper or its page: columns chosen to fit, numbers to what is certain.

The preamble needs `booktabs` and `array`. Widths are those of Computer Modern, in \\footnotesize at 10 points.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from .._libraries import pd
from ..errors import DataError
from .notation import power, typeset, width, words

#: Widths in inches: the page of a paper with margins of an inch, and one of its two columns.
PAGE, COLUMN = 6.5, 3.3
#: How columns of half intervals begin: our own names, which programs read.
INTERVAL = "+- "
#: Points of an inch, and of an em in \\footnotesize; ems between columns.
_INCH, _EM, _GAP = 72.27, 8.5, 0.9
#: Below this part of the largest value of its column a number is rounding, and is printed as 0.
_ROUNDING = 1e-12
#: Certificates below this are printed as being below it.
_LEAST = 1e-12
#: Significant digits where nothing says how many are certain, and of seconds, measured once.
_DIGITS, _OF_SECONDS = 4, 2
#: The common head of uses of resources, of which either all or none are there.
_USE = r"use (\%)"
#: Lines of a table that fit on a page beside its caption, head and notes.
_LINES = 45
#: Parameters: printed as they were given.
_GIVEN = ("alpha", "damping", "tol", "level", "until", "every", "thrashing", "n", "item")
#: Names of ours, in which an underscore is a space.
_OURS = ("instance", "source", "experiment", "order", "engine")
#: Left out first where there is no room, the last of these first of all.
_LAST = ("max_share", "tasks_done", "missed", "certificate", "correct", "instance", "source", "name",
         "median_response", "rounds low", "rounds high", "seconds low", "seconds high", "messages", "note", "simulate",
         "seconds")  # fmt: skip
#: Behind these a name without spaces may go on in the next line.
_BREAK = re.compile(r"(\?|\\&|\\_|/|,|\(|=)(?=\S)")


@dataclass
class _Column:
    """A column: its name in the frame, head in at most two lines, cells; ems that it takes, and at least needs."""

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
) -> str:
    """A table for LaTeX that floats: `table` of a column, wider ones `table*`, which spans both columns of a page.

    Half intervals stand behind their means; what is the same in every row stands below, and so do notes. Columns that
    do not fit are left out, those that matter least first; a comment names them. Rows that fill more than a page go on
    in further tables, with the same columns.

    Parameters
    ----------
    frame : the table
    caption : stands above
    label : of the table, for references to it; by default none
    inches : its width at most
    notes : sentences that stand below
    groups : columns under a common head, by the head; uses of resources (`use_...`) always are
    whole : a column that does not fit is an error

    Raises
    ------
    DataError
        With `whole`, a column does not fit; the message says which do.
    """
    room = inches * _INCH / _EM
    rows, same = _without_constants(frame.drop(columns=_said_by_others(frame)))
    every = _columns(rows, groups or {}, room)
    different = [
        one for k, one in enumerate(every) if all(one.number or one.cells != each.cells for each in every[k + 1 :])
    ]
    columns, left = _fitting(different, room)
    if left and whole:
        raise DataError(
            f"{', '.join(left)} do not fit into {inches:g} inches; {', '.join(one.name for one in columns)} do"
        )
    foot = [typeset(note) for note in notes] + [same] * bool(same)
    floats = "table" if inches < 0.75 * PAGE else "table*"
    parts = _pages(columns, range(len(rows)))
    lines = [f"% No room in {inches:g} inches for: {', '.join(left)}."] if left else []
    for k, part in enumerate(parts, 1):
        lines += [f"\\begin{{{floats}}}[tbp]", "\\centering\\footnotesize\\emergencystretch2em"]
        if caption:
            of = f" ({k} of {len(parts)})" if len(parts) > 1 else ""
            mark = f"\\label{{{label}}}" if label and k == 1 else ""
            lines.append(f"\\caption{{{typeset(caption)}{of}}}{mark}\\smallskip")
        lines += [*_tabular(columns, part)]
        lines += [f"\n{{\\smallskip\\raggedright {note}\\par}}" for note in foot if k == len(parts)]
        lines.append(f"\\end{{{floats}}}")
    return "\n".join(lines)


def _said_by_others(frame: pd.DataFrame) -> list[str]:
    """Sources, where clusters or workloads have names: captions say what these stand for."""
    named = [name for name in ("cluster", "workload") if name in frame]
    several = (
        "source" in frame and named and len(frame[["source", *named]].drop_duplicates()) > frame[named[0]].nunique()
    )
    return ["source"] if "source" in frame and named and not several else []


def _without_constants(frame: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """A table without columns that are the same in every row, and a sentence with these; of one row, all of it."""
    if len(frame) < 2:
        return frame, ""
    same, halves = [], []
    for name in frame.columns:
        half = frame.get(f"{INTERVAL}{name}")
        certain = half is None or not (half > 0).any()
        if not str(name).startswith(INTERVAL) and certain and frame[name].nunique(dropna=False) == 1:
            same.append(name)
            halves += [half.name] if half is not None else []
    if len(same) + len(halves) == frame.shape[1]:
        return frame, ""
    said = []
    for one in _columns(frame[same].iloc[:1], {}, math.inf):
        head, cell = " ".join(one.head), one.cells[0]
        if cell not in ("", "None"):
            unit = "\\%" if one.group else ""
            said.append(f"$n = {cell}$" if head == "$n$" else f"{head} {cell}{unit}")
    return frame.drop(columns=[*same, *halves]), f"In every row: {', '.join(said)}." if said else ""


def _columns(frame: pd.DataFrame, groups: Mapping[str, Sequence[str]], room: float) -> list[_Column]:
    heads: dict[
        str, tuple[str, str]
    ] = {}  # of columns in groups: the common head and their own, without a word that all begin with
    for group, names in groups.items():
        word = "user " if all(name.startswith("user ") for name in names) else ""
        heads |= {name: (f"{group} {word}".strip(), name.removeprefix(word)) for name in names}
    uses = [name for name in map(str, frame.columns) if name.startswith("use_") and not name.endswith(" (user)")]
    beside = {name: [one for one in names if one in frame] for names in (*groups.values(), uses) for name in names}
    certain = _certain(frame)
    made: list[_Column] = []
    for k, name in enumerate(map(str, frame.columns)):
        half = f"{INTERVAL}{name}"
        if name.startswith(INTERVAL) and name.removeprefix(INTERVAL) in frame:
            continue
        column, (group, shown) = frame.iloc[:, k], heads.get(name, ("", name))
        percent = name in uses
        if percent:
            group, shown = "use (%)", name.removeprefix("use_")
        number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
        if number:
            scale = 100.0 if percent else 1.0
            values = column.to_numpy(dtype=float) * scale
            halves = frame[half].to_numpy(dtype=float) * scale if half in frame else None
            pool = np.concatenate([values, *(frame[one].to_numpy(dtype=float) * scale for one in beside.get(name, ()))])
            cells = _numbers(values, name, certain, halves, pool)
        else:
            cells = [_plain(str(value).replace("_", " ") if name in _OURS else value) for value in column]
        natural = max(map(width, cells), default=0.0)
        head = _in_lines(words(shown), natural)
        wide = max([natural, *map(width, head)])
        least = wide
        if not number and wide > (0.4 if all(not one.number for one in made) else 0.25) * room:
            pieces = [width(piece) for cell in [*cells, *head] for piece in re.split(r" |\\allowbreak\{\}", cell)]
            least = min(wide, max([0.15 * room, *pieces]))
            if len(cells) > 20:  # few long cells do not take the room of many short ones
                wide = max(least, sorted(map(width, cells))[9 * len(cells) // 10])
        made.append(_Column(name, head, cells, number, wide, least, natural, typeset(group)))
    return made


def _plain(value: object) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return _BREAK.sub(r"\1\\allowbreak{}", typeset(value))


def _certain(frame: pd.DataFrame) -> NDArray[np.int64]:
    """Significant digits of every row that its certificate, a relative error, leaves."""
    errors = frame["certificate"].to_numpy(dtype=float) if "certificate" in frame else np.zeros(len(frame))
    errors = np.where(np.isfinite(errors), np.maximum(errors, 1e-16), 1e-16)
    digits: NDArray[np.int64] = np.clip(np.floor(-np.log10(errors) + 1e-9), 1, _DIGITS).astype(int)
    return digits


def _numbers(
    values: NDArray[np.float64],
    name: str,
    certain: NDArray[np.int64],
    halves: NDArray[np.float64] | None,
    pool: NDArray[np.float64],
) -> list[str]:
    """Cells of a column: as many decimals in each as are certain in the largest; what that would make 0 is a power.

    `pool` has the values that have the same decimals: its own, and those of columns under the same head.
    """
    if name == "certificate":
        return [_certificate(value) for value in values]
    if name in _GIVEN:
        return [_special(value) or power(value) for value in values]
    if name in ("seconds", "simulate"):
        certain = np.minimum(certain, _OF_SECONDS)
    finite = pool[np.isfinite(pool)]
    largest = float(np.max(np.abs(finite), initial=0.0)) * (1 + 1e-9)  # 99.9999999999 is 100
    decimals = max(0, int(certain.max(initial=1)) - 1 - _order(largest))
    while decimals and np.all(np.abs(finite - np.round(finite, decimals - 1)) < 10.0 ** -(decimals + 6)):
        decimals -= 1  # zeros in every row
    cells = []
    for k, value in enumerate(values):
        if (special := _special(value)) is not None:
            cells.append(special)
        elif halves is not None and halves[k] >= 10.0 ** (_order(value) - _DIGITS):
            cells.append(_measured(value, halves[k]))
        elif abs(value) <= _ROUNDING * max(largest, 1.0):
            cells.append("0")
        else:
            some = min(decimals, max(0, int(certain[k]) - 1 - _order(value)))
            rounded = f"{value:.{some}f}"
            small = float(rounded) == 0 or largest < 1e-3
            cells.append(power(value, min(3, int(certain[k]))) if small else rounded.replace("-", "$-$"))
    return cells


def _order(value: float) -> int:
    return math.floor(math.log10(abs(value))) if value else 0


def _special(value: float) -> str | None:
    """A value that is no finite number."""
    return None if math.isfinite(value) else "" if math.isnan(value) else "$\\infty$" if value > 0 else "$-\\infty$"


def _measured(mean: float, half: float) -> str:
    """A mean with its half interval, both to the second digit of this."""
    digits = max(0, 1 - _order(half))
    if digits > 5:  # a power of ten is easier to read than zeros
        exponent = _order(max(abs(mean), half))
        digits = max(0, 1 - _order(half * 10.0**-exponent))
        if digits > 5:
            return power(mean, 4)
        mean, half = mean * 10.0**-exponent, half * 10.0**-exponent
        return f"$({mean:.{digits}f} \\pm {half:.{digits}f}) \\cdot 10^{{{exponent}}}$"
    return f"${mean:.{digits}f} \\pm {half:.{digits}f}$"


def _certificate(value: float) -> str:
    if not np.isfinite(value):
        return ""
    if value < _LEAST:
        return f"$< 10^{{{round(math.log10(_LEAST))}}}$"
    return f"${value / 10.0 ** _order(value):.1f} \\cdot 10^{{{_order(value)}}}$"


def _in_lines(head: str, natural: float) -> list[str]:
    """A head that is wider than the cells below, in two lines."""
    parts = head.split(" ")
    if width(head) <= natural or len(parts) < 2:
        return [head]
    ways = [[" ".join(parts[:k]), " ".join(parts[k:])] for k in range(1, len(parts))]
    ways = [way for way in ways if "$" not in head and len(way[1]) > 3]  # neither formulas nor units
    return min(ways or [[head]], key=lambda way: max(map(width, way)))


def _fitting(columns: Sequence[_Column], room: float) -> tuple[list[_Column], list[str]]:
    """The columns that fit, with their widths, and names of those that do not.

    First those that name the rows, up to the first number; then the others by what matters, in order. Columns with a
    common head stay together. What room is left, folded columns share.
    """
    first = next((k for k, one in enumerate(columns) if one.number), len(columns))
    names = [one.name for one in columns[:first]]
    ranks: dict[str, tuple[bool, int, int]] = {}  # of single columns and of groups
    for k, one in enumerate(columns):
        last = _LAST.index(one.name) if one.name in _LAST else -1
        ranks.setdefault(one.group or one.name, (last >= 0 or one.name not in names, last, k))
    kept: list[_Column] = []
    for key in sorted(ranks, key=ranks.__getitem__):
        together = [one for one in columns if key == (one.group or one.name)]
        for some in [together] if key == _USE else [together, *([one] for one in together)]:
            tried = [one for one in columns if one in kept or one in some]
            if _taken(tried) <= room:
                kept = tried
    spare = room - _taken(kept)
    wish = sum(one.wide - one.least for one in kept)
    for one in kept:
        one.wide = one.least + (one.wide - one.least) * min(1.0, spare / wish if wish else 1.0)
    return kept, [one.name for one in columns if one not in kept]


def _taken(columns: Sequence[_Column]) -> float:
    """Ems that columns take at least, with the gaps; the last of a group is as wide as the common head asks for."""
    total = sum(one.least + _GAP for one in columns) - _GAP
    for group in {one.group for one in columns if one.group}:
        inside = [one.least + _GAP for one in columns if one.group == group]
        total += max(0.0, width(group) + _GAP - sum(inside))
    return total


def _pages(columns: Sequence[_Column], rows: range) -> list[range]:
    """Rows in groups that fit on a page: a table that floats is not broken."""
    made, begun, lines = [], 0, 0
    for row in rows:
        # The part of a line that a folded, ragged cell fills.
        taken = max((math.ceil(width(one.cells[row]) / (0.8 * one.wide)) if one.folded else 1 for one in columns),
                    default=1)  # fmt: skip
        if lines + taken > _LINES and row > begun:
            made.append(range(begun, row))
            begun, lines = row, 0
        lines += taken
    return [*made, range(begun, len(rows))]


def _tabular(columns: Sequence[_Column], rows: range) -> list[str]:
    """Gaps of a part of an em, none at the edges; common heads over rules."""
    kinds = [f">{{\\raggedright\\arraybackslash}}p{{{one.wide:.2f}em}}" if one.folded else "lr"[one.number]
             for one in columns]  # fmt: skip
    gap = f"@{{\\hspace{{{_GAP}em}}}}"
    lines = [f"\\begin{{tabular}}{{@{{}}{gap.join(kinds)}@{{}}}}", "\\toprule"]
    spans, rules, at = [], "", 1
    for _, some in groupby(enumerate(columns), lambda one: one[1].group or one[0]):
        inside = [one for _, one in some]
        group, end = inside[0].group, at + len(inside) - 1
        kind = f"@{{}}c{gap if end < len(columns) else '@{}'}"
        spans.append(f"\\multicolumn{{{len(inside)}}}{{{kind}}}{{{group}}}" if group else "")
        rules += f"\\cmidrule(lr){{{at}-{end}}}" if group else ""
        at = end + 1
    if rules:
        lines += [_row(spans), rules]
    if any(len(one.head) > 1 for one in columns):
        lines.append(_row(one.head[0] if len(one.head) > 1 else "" for one in columns))
    lines += [_row(one.head[-1] for one in columns), "\\midrule"]
    first = next((k for k, one in enumerate(columns) if one.number), len(columns))
    before: list[str] = []
    for row in rows:
        cells = [one.cells[row] for one in columns]
        same = next((k for k in range(first - 1) if not before or cells[k] != before[k]), max(0, first - 1))
        lines.append(_row([*[""] * same, *cells[same:]]))  # what names several rows stands in the first
        before = cells
    return [*lines, "\\bottomrule", "\\end{tabular}"]


def _row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + " \\\\"
