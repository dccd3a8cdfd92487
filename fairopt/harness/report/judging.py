"""Verdicts on papers' statements by stored cells: intervals by set-up, tables of assumptions, and captions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...base.libraries import pd
from ..experiment import known
from ..papers import Judged, judged, statistics
from ..papers._judged import AGREES
from . import figures
from .stored import Results, StoredCells, interval, option
from .table import Table

#: Prefix of experiments with all combinations of options that papers leave open; `fairopt reproduce` runs only some.
WIDE = "explain_"
#: Columns of the table of verdicts.
_COLUMNS = ["statement", "where", "claim", "printed", "assuming", "ours", "+- ours", "n", "outcome", "verdict"]


def wide(experiment: str) -> str:
    """Name of the experiment with all combinations of options that the paper leaves open, or the given name."""
    return f"{WIDE}{experiment}" if f"{WIDE}{experiment}" in known() else experiment


def evaluate(one: Judged, found: StoredCells) -> pd.DataFrame:
    """Confidence interval and outcome of a statement by set-up, a combination of options that the paper leaves open.

    The columns are the assumptions, `mean`, `half`, `n`, and `outcome`. The half-width of a single draw is infinite, or
    0 if the experiment is deterministic. If no draw has a value, the only row has NaN and `n` = 0.
    """
    of_cells = {axis.name: option(found.cells, axis.name, axis.default) for axis in one.assumptions if axis.default}
    cells = found.cells.assign(**of_cells)
    for column, wanted in one.only.items():
        cells = cells[cells[column].isin([wanted] if isinstance(wanted, str) else wanted)]
    arguments = dict(one.statistic)
    statistic: Callable[..., pd.DataFrame] = getattr(statistics, arguments.pop("name", "compared"))
    values = statistic(replace(found, cells=cells), [*of_cells], **arguments)
    assumed = [axis.name for axis in one.assumptions if axis.name in values]
    # The column `all` groups all rows if there is no assumption.
    keyed = values.assign(**{name: values[name].astype(str) for name in assumed}, all="")
    table = interval(keyed, [*assumed, "all"], "value").drop(columns="all")
    deterministic = not cells["seed"].any()
    table["half"] = table["half"].mask(table["n"] == 1, 0.0 if deterministic else float("inf"))
    if table.empty:  # no draw has a value of the statistic
        table = pd.DataFrame({"mean": [np.nan], "half": [np.nan], "n": [0]})
    return one.judge(table)


def verdicts(statements: Iterable[Judged], results: Results, of: Callable[[str], str] = str) -> pd.DataFrame:
    """Table with a row per statement and set-up; empty without statements.

    The columns are `statement` (indices), `where`, `claim`, `printed`, `assuming` (options that vary), the mean `ours`
    with the half-width `+- ours` of its interval, the number `n` of draws, `outcome`, and `verdict` over all set-ups.

    Parameters
    ----------
    statements : iterable of Judged
    results : Results
    of : callable
        Function from the experiment of a statement to the experiment whose cells are read, such as `wide`.
    """
    parts = []
    for one in statements:
        setups = evaluate(one, results.of(of(one.experiment)))
        varied = [axis for axis in one.assumptions if axis.name in setups and setups[axis.name].nunique() > 1]
        said = [[axis.said([row[axis.name]]) for axis in varied] for _, row in setups.iterrows()]
        under = [", ".join(filter(None, options)) for options in said]
        about = {"statement": ", ".join(map(str, one.states)), "where": one.where, "claim": one.statement}
        found = setups.rename(columns={"mean": "ours", "half": "+- ours"})[["ours", "+- ours", "n", "outcome"]]
        found["+- ours"] = found["+- ours"].where(np.isfinite(found["+- ours"]))
        parts.append(found.assign(**about, printed=one.printed, assuming=under, verdict=one.verdict(setups))[_COLUMNS])
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def of_figure(statements: Iterable[Judged], name: str) -> list[Judged]:
    """Statements that are judged by the experiments of the figure `name`, or by the experiment `name`."""
    needs: Sequence[str] = figures.module(name).NEEDS if name in figures.known() else (name,)
    return [one for one in statements if one.experiment in needs]


def assumptions(statements: Iterable[Judged]) -> pd.DataFrame:
    """Frame of the options of set-ups: `assumption`, `the paper says` (or `not said`), and `tried`, the values."""
    every = {axis.name: axis for one in statements for axis in one.assumptions}
    rows: list[dict[str, Any]] = [
        {"assumption": one.name, "the paper says": one.paper, "tried": "; ".join(one.means.values())}
        for one in every.values()
    ]
    return pd.DataFrame(rows)


def caption(name: str, results: Results, frame: pd.DataFrame | None = None) -> str:
    """Caption of a figure: its subject, and the verdicts on statements of the paper, computed from the results.

    Tiny versions have no verdict, and generators that replace traces are named. `frame` is the table of `verdicts` on
    the same results, if it is already known.
    """
    shown, module = figures.caption(name, results), figures.module(name)
    if results.smoke:
        return f"Tiny version, not a result: {shown}"
    found: dict[str, list[str]] = {}
    chosen = of_figure(judged(), name)
    table = verdicts(chosen, results) if frame is None else frame
    for one in chosen:
        verdict = str(table.loc[table["claim"] == one.statement, "verdict"].iloc[0])
        found.setdefault(f"{verdict[0].upper()}{verdict[1:]}", []).append(f"{one.statement} ({one.where})")
    said = [f"{verdict}: {'; '.join(statements)}." for verdict, statements in found.items()]
    notes = dict.fromkeys(note for need in module.NEEDS for note in results.of(need).notes if "stand in" in note)
    return " ".join([shown, *said, *(f"{note[0].upper()}{note[1:]}." for note in notes)])


def together(frame: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Largest group of statements of a table of `verdicts` with the same combinations of assumptions.

    Returns the statements, and the combinations under which all of them are reproduced. Only statements that are
    reproduced under some combination are considered; without such statements both lists are empty.
    """
    agreed = frame[frame["outcome"] == AGREES]
    tried = frame[frame["claim"].isin(agreed["claim"])].groupby("claim", sort=False)["assuming"].agg(tuple)
    if tried.empty:
        return [], []
    same = list(tried.index[tried == tried.value_counts().index[0]])
    number = agreed[agreed["claim"].isin(same)].groupby("assuming", sort=False)["claim"].nunique()
    return same, list(number.index[number == len(same)])


def table(name: str, frame: pd.DataFrame) -> Table:
    """Convert a frame of `verdicts` to a `Table`."""
    keep = ("claim", "assuming", "outcome")
    return Table(f"explained-{name}", f"Assumptions and verdicts: {name}", frame, keep=keep)
