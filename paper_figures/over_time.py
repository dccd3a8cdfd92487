"""Common parts of figures of simulations: lines over time, and names of policies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from .style import line, name, user

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


def heaviest(cells: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Cells of the last source, which has the highest load, and those of its first draw."""
    heavy = cells[cells["source"] == cells["source"].max()]
    return heavy, heavy[heavy["repetition"] == heavy["repetition"].min()]


def lines(axes: Axes, table: pd.DataFrame, by: str, labels: dict[str, str], first: int = 0) -> None:
    """Lines of `value` over time by `labels`, with styles from the `first` on and markers apart.

    Lines by `user` have the colours of users, of whom `labels` has all in the order of the cluster.
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
