"""`Table`: results with title and notes, selection of columns and rows, and output to files."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...base.libraries import pd
from ...base.names import alike
from .export import write
from .typeset import INTERVAL, PAGE, base, latex


@dataclass(frozen=True)
class Table:
    """Table of results, with its title and notes.

    Parameters
    ----------
    name, title : str
        Base name of the table's files, and the first sentence of the caption.
    frame : DataFrame
    notes : tuple of str
        Notes below the table.
    details : tuple of str
        Further sentences of the caption.
    groups : mapping
        Columns under common headings.
    whole : bool
        Columns were selected explicitly, so that a LaTeX table in which they do not fit is an error.
    keep : tuple of str
        Columns that are kept at any width: row labels, and the main measures.

    >>> import fairopt as fo
    >>> import pandas as pd
    >>> table = fo.report.Table("use", "Utilization", pd.DataFrame({"mechanism": ["DRF", "TSF"], "mean": [0.5, 0.6]}))
    >>> table.chosen(["mean"], ["TSF"]).frame.to_dict("list")
    {'mean': [0.6]}
    """

    name: str
    title: str
    frame: pd.DataFrame
    notes: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    whole: bool = False
    keep: tuple[str, ...] = ()

    @property
    def caption(self) -> str:
        """Caption: title and details in one line."""
        return ". ".join([self.title, *self.details])

    def write(self, folder: str | Path, inches: float = PAGE) -> list[Path]:
        """Write the table as `report.write` does, in LaTeX at most as wide as `inches`, and return the paths."""
        return write(self.frame, folder, self.name, self.caption, inches, **self._options)

    def latex(self, inches: float = PAGE) -> str:
        """LaTeX of the table, at most as wide as `inches`."""
        return latex(self.frame, self.caption, f"tab:{self.name}", inches, **self._options)

    @property
    def _options(self) -> dict[str, Any]:
        return {"notes": self.notes, "groups": self.groups, "whole": self.whole, "keep": self.keep}

    def chosen(self, columns: Sequence[str] | None, rows: Sequence[str] | None) -> Table | None:
        """Select columns and rows in the given order; None if nothing matches.

        Parameters
        ----------
        columns : sequence of str or None
            Names, or patterns such as `use_*`; half-widths of intervals come with their means.
        rows : sequence of str or None
            Values of any cell, patterns such as `alphaPF-VDS*`, or names with a parameter that is a column, such as
            `alphaPF-VDS(alpha=2)`. Rows with equal values in the columns before the matching column remain adjacent.
        """
        frame = self.frame
        if rows is not None:
            frame = frame.iloc[_matching(frame, [alike(one) for one in rows])]
        if columns is not None:
            named = [name for one in columns for name in frame if fnmatch.fnmatch(base(name), one)]
            frame = frame[list(dict.fromkeys(named))]
        return replace(self, frame=frame.reset_index(drop=True), whole=columns is not None) if frame.size else None


def _matching(frame: pd.DataFrame, patterns: Sequence[str]) -> list[int]:
    """Positions of rows with a cell that matches a pattern, in the order of groups, then of patterns."""
    groups, found = dict[str, int](), list[tuple[int, int, int]]()
    for k, row in enumerate(frame.map(alike).to_numpy().tolist()):
        # `name(alpha=2)` matches a name in one column and 2 in the column alpha.
        ends = ["", *(f"({alike(name)}={cell})" for name, cell in zip(frame, row, strict=True))]
        for p, pattern in enumerate(patterns):
            at = [j for j, cell in enumerate(row) if any(fnmatch.fnmatchcase(cell + end, pattern) for end in ends)]
            if at:
                found.append((groups.setdefault(repr(row[: at[0]]), len(groups)), p, k))
                break
    return [k for *_, k in sorted(found)]


def draws_said(counts: pd.Series[int], frame: pd.DataFrame) -> str:
    """Number of draws, and the kind of confidence intervals, if there is more than one draw."""
    if counts.max() == 1:
        return "n = 1 draw, without intervals"
    differ = (frame.filter(like=INTERVAL) > 0).any(axis=None)
    intervals = "\u00b1 half a 95% confidence interval (Student's t)" if differ else "all equal, without intervals"
    return f"Means of {counts_said(counts)} draws, {intervals}"


def medians_said(counts: pd.Series[int], frame: pd.DataFrame) -> str:
    """Number of draws over which medians are taken, and the kind of intervals, if any."""
    known = frame.filter(regex=" low$").notna().any(axis=None)
    of = "95% intervals between order statistics in brackets" if known else "without intervals"
    return f"Medians of {counts_said(counts)} draws, {of}"


def counts_said(counts: pd.Series[int]) -> str:
    return f"n = {' to '.join(map(str, sorted({counts.min(), counts.max()})))}"
