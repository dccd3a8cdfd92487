"""The table of an experiment: means over repetitions with 95% confidence intervals, from stored cells."""

from __future__ import annotations

from .._libraries import pd
from ..study.compare import marked
from ..study.intervals import interval
from .stored import StoredCells

#: What tells rows apart; columns that do not are left out.
_BY = ("cluster", "source", "mechanism", "engine", "order", "damping", "tol")
_MEASURES = ("utilization", "min_share", "jain", "welfare", "price_of_fairness", "rounds", "seconds")


def means(found: StoredCells) -> pd.DataFrame:
    """One row per way of solving: `n` draws, then every measure that there is, as its mean and `+-` its half interval.

    `missed` counts cells whose certificate misses their tolerance; they are in the means. Mechanisms
    that answered for the pool are marked and stand last.
    """
    cells = found.cells.sort_values("pooled", kind="stable")
    cells = cells.assign(
        missed=(cells["status"] == "missed").astype(int), mechanism=marked(cells["mechanism"], cells["pooled"])
    )
    by = [name for name in _BY if cells[name].nunique(dropna=False) > 1 or name == "mechanism"]
    grouped = cells.groupby(by, sort=False, dropna=False)
    table = grouped.agg(n=("key", "size"), missed=("missed", "sum")).reset_index()
    for measure in _MEASURES:
        if cells[measure].notna().any():
            one = interval(cells, by, measure).rename(columns={"mean": measure, "half": f"+- {measure}"})
            table = table.merge(one.drop(columns="n"), on=by, how="left")
    return table
