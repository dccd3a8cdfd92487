"""Common parts of figures of simulations: lines over time, and names of policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from .style import IN_PAPER, groups, line, name, ordered, user

POLICIES = {
    "best-fit-drfh": "Best-Fit DRFH", "first-fit-drfh": "First-Fit DRFH", "discrete-drf": "discrete DRF",
    "ps-dsf": "online PS-DSF", "tsf": "online TSF", "cpu-fair": "CPU-only fair", "mqdrf": "MQDRF", "fifo": "FIFO",
}  # fmt: skip

#: Names of statistics of reductions in legends.
STATISTICS = {"reduction of means": "of means", "median per job": "median", "trimmed mean per job": "trimmed mean"}


def policy(text: str) -> str:
    """Name of a policy or fluid mechanism in figures."""
    plain, _, inside = text.partition("(")
    inside = inside.rstrip(")")
    if plain.startswith("fluid:"):
        alpha = float(inside.removeprefix("alpha=")) if inside.startswith("alpha=") else np.nan
        return name(plain.removeprefix("fluid:"), alpha)
    if plain == "slots":
        number = next((part.strip()[2:] for part in inside.split(",") if part.strip().startswith("n=")), "14")
        return f"slots ({number})"
    return POLICIES.get(plain, plain) + (", strict" if "strict=True" in inside else "")


def lines(axes: Axes, table: pd.DataFrame, by: str, labels: dict[str, str], first: int = 0) -> None:
    """Draw lines of `value` over time by `labels`, beginning with the style `first`, with markers apart.

    Lines by `user` have the colours of users; `labels` must then have all users in the order of the cluster.
    """
    for k, (one, text) in enumerate(labels.items()):
        shown = table[table[by] == one].sort_values("time")
        if shown.empty:
            continue
        every = max(1, len(shown) // 6)
        # Shifted markers show coincident lines; those at the ends of the axis are not clipped.
        look = line(first + k) | {"markevery": (k * every // max(len(labels), 1), every), "clip_on": False}
        look |= {"color": user(k)} if by == "user" else {}
        axes.plot(shown["time"], shown["value"], label=text, **look)


def printed(axes: Axes, begin: float, end: float, value: float, label: str | None = None) -> None:
    """Mark a value of the paper for an interval of time."""
    axes.plot([begin, end], [value, value], color="#b5152c", linewidth=1.6, alpha=0.7, label=label, zorder=1)


#: Titles of the panels of `of_users`.
_TITLES = {"cpu": "CPU", "memory": "Memory", "share": "Dominant share"}


def parts(shares: pd.DataFrame, demands: Mapping[str, Any]) -> pd.DataFrame:
    """Add the parts of the pool's `cpu` and `memory` to dominant shares, from which they follow.

    `demands` are the demands of a task by user, relative to the pool, in any unit.
    """
    ratio = {one: np.asarray(parts, dtype=float) / np.max(parts) for one, parts in demands.items()}
    each = np.stack(shares["user"].map(ratio).to_list())
    return shares.assign(cpu=shares["share"] * each[:, 0], memory=shares["share"] * each[:, 1])


def of_users(
    panels: np.ndarray, table: pd.DataFrame, users: Sequence[str],
    theirs: Mapping[str, Sequence[tuple[float, float, float]]],
) -> None:  # fmt: skip
    """CPU, memory and dominant shares over time from a table of `parts`; `theirs` are the paper's values by panel."""
    for axes, (column, title) in zip(panels, _TITLES.items(), strict=True):
        lines(axes, table.assign(value=table[column]), "user", {one: one for one in users})
        for begin, end, value in theirs.get(column, ()):
            printed(axes, begin, end, value, IN_PAPER)
        axes.set(title=title, xlabel="seconds")
    panels[0].set_ylabel("part of the pool")


def gains(axes: Axes, reductions: pd.DataFrame, sizes: Sequence[str]) -> None:
    """Bars of `statistics.reductions` by size of jobs, one for each statistic."""
    series = []
    for statistic, of in reductions.groupby("statistic", sort=False):
        one = ordered(of, "size", "value", range(len(sizes)))
        series.append((STATISTICS[str(statistic)], one["mean"].fillna(0.0), one["half"].fillna(0.0)))
    groups(axes, list(sizes), series)
    axes.axhline(0, color="#111111", linewidth=0.6)
    axes.yaxis.set_major_formatter("{x:g}%")
    axes.set_xlabel("tasks of the job")


def distribution(axes: Axes, series: Sequence[tuple[str, np.ndarray, int]]) -> None:
    """Fraction of jobs completed within a time; unfinished jobs count in the total."""
    for k, (text, values, count) in enumerate(series):
        done = np.sort(values[np.isfinite(values)])
        if not len(done):
            continue
        part = np.arange(1, len(done) + 1) / count
        every = max(1, len(done) // 5)
        marks = k * every // max(len(series), 1), every
        axes.step(done, part, where="post", label=text, **(line(k) | {"markevery": marks, "clip_on": False}))
    axes.set(xscale="log", ylim=(0, 1.02))
