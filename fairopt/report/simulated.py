"""The table of an experiment of simulations: means over repetitions with 95% confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence

from .._libraries import pd
from ..study.intervals import interval
from .stored import StoredCells

#: What tells rows apart; columns that do not are left out.
_BY = ("workload", "source", "policy", "until", "every", "thrashing")
_MEASURES = ("utilization", "jobs_done", "tasks_done", "mean_response", "median_response", "mean_wait", "simulate")


def simulated_means(found: StoredCells) -> pd.DataFrame:
    """One row per workload and policy: `n` draws, the use of every resource, then every measure that there is, as its
    mean and `+-` its half interval. `jobs_done` and `tasks_done` are parts of all.
    """
    cells = found.cells.copy()
    for what in ("jobs", "tasks"):
        cells[f"{what}_done"] = cells[f"{what}_done"] / cells[what]
    by = [name for name in _BY if cells[name].nunique(dropna=False) > 1 or name == "policy"]
    table = cells.groupby(by, sort=False, dropna=False).agg(n=("key", "size")).reset_index()
    use = found.long("use").drop(columns="utilization_x", errors="ignore")
    for resource in use["resource"].unique():
        one = use[use["resource"] == resource]
        table = _joined(table, interval(one, by, "utilization"), by, f"use_{resource}")
    for measure in _MEASURES:
        if cells[measure].notna().any():
            table = _joined(table, interval(cells, by, measure), by, measure)
    return table


def shares_at(found: StoredCells, times: Sequence[float]) -> pd.DataFrame:
    """One row per workload, policy and user: its dominant share at each time, as the last sample before has it."""
    shares = found.long("shares")
    cells = [name for name in _BY[:3] if found.cells[name].nunique() > 1 or name == "policy"]
    table = shares[[*cells, "user"]].drop_duplicates().reset_index(drop=True)
    for time in times:
        before = shares[shares["time"] <= time].groupby(["key", "user"], sort=False).tail(1)
        table = _joined(table, interval(before, [*cells, "user"], "share"), [*cells, "user"], f"{time:g} s")
    return table


def _joined(table: pd.DataFrame, means: pd.DataFrame, by: list[str], name: str) -> pd.DataFrame:
    half = means["half"].where(~(means["half"] <= 1e-12 * means["mean"].abs()), 0.0)  # rounding of equal numbers
    one = means.assign(half=half).rename(columns={"mean": name, "half": f"+- {name}"}).drop(columns="n")
    return table.merge(one.dropna(axis=1, how="all"), on=by, how="left")
