"""How long the game takes by alpha: rounds by residual, order and damping; seconds; what it uses."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairopt.report import Results, interval

from .style import DOUBLE, NARROW, alpha_axis, at_alpha, line, new, styled

NEEDS = ("alpha_convergence",)
_NAMES = {
    "small": "20 x 10", "dense": "100 x 20", "sparse": "100 x 20, sparse", "bitbrains": "Bitbrains",
    "google": "Google", "thousands": "2,000 x 60",
}  # fmt: skip
_LEVELS = (1e-1, 1e-2, 1e-4, 1e-6)


@styled
def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Medians of rounds over draws, where half of the games get there; means of the rest; PS-DSF at infinity."""
    found = results.of("alpha_convergence")
    cells, reached = found.cells, found.long("reached")
    narrow = width < NARROW
    drawn, table = new(width, 1.5 * width, 3, 2) if narrow else new(width, 0.66 * width, 2, 3)
    panels = table.ravel()
    usual = reached[reached["damping"].isna() & (reached["order"] == "cyclic")]
    _rounds(panels[0], usual[usual["cluster"] == "small"], "level", {level: f"{level:.0e}" for level in _LEVELS})
    panels[0].set_title("20 x 10, by residual")
    _rounds(panels[1], usual[np.isclose(usual["level"], 1e-3)], "cluster", _NAMES)
    panels[1].set_title("To 1e-3, cyclic")
    small = reached[(reached["cluster"] == "small") & np.isclose(reached["level"], 1e-3)]
    ways = small.assign(way=small["order"] + small["damping"].map(lambda part: "" if part != part else f" {part:g}"))
    _rounds(panels[2], ways, "way", {way: way for way in sorted(ways["way"].unique())[:7]})
    panels[2].set_title("20 x 10, to 1e-3")
    solved = cells[cells["engine"] == "equilibrium"]
    for axes, measure, title in zip(
        panels[3:], ("seconds", "utilization", "jain"), ("Seconds, equilibrium", "Utilization", "Jain's index"),
        strict=True,
    ):  # fmt: skip
        _means(axes, solved, measure)
        axes.set_title(title)
    panels[3].set_yscale("log")
    for axes in panels:
        alpha_axis(axes, label=axes in (*table[-1],))
    for axes in (*panels[:3], panels[3]):
        axes.legend(fontsize=5.5, handlelength=2.4, borderpad=0.2, labelspacing=0.25)
    panels[0].set_ylabel("rounds")
    return drawn


def _rounds(axes: Axes, reached: pd.DataFrame, by: str, names: dict[str, str] | dict[float, str]) -> None:
    """A line for each value: medians over draws, never counted as infinitely many."""
    for k, (value, label) in enumerate(names.items()):
        of = reached[np.isclose(reached[by], value) if isinstance(value, float) else reached[by] == value]
        rounds = of.assign(rounds=of["rounds"].astype(float).fillna(np.inf)).groupby("alpha")["rounds"].median()
        rounds = rounds[np.isfinite(rounds)]
        if len(rounds):
            axes.plot(at_alpha(rounds.index), rounds, label=label, **line(k))
    axes.set_yscale("log")


def _means(axes: Axes, cells: pd.DataFrame, measure: str) -> None:
    for k, (cluster, label) in enumerate(_NAMES.items()):
        of = interval(cells[cells["cluster"] == cluster], ["alpha"], measure).sort_values("alpha")
        x, half = at_alpha(of["alpha"]), of["half"].fillna(0)
        axes.plot(x, of["mean"], label=label, **line(k))
        axes.fill_between(x, of["mean"] - half, of["mean"] + half, color=line(k)["color"], alpha=0.15, lw=0)
