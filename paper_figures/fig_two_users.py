"""Two users of one server: feasible set with DRF, CEEI, asset fairness and the path of alpha."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairopt import papers
from fairopt.report import Results
from fairopt.result.plot import border

from .stacks import correct
from .style import SINGLE, colour, new

NEEDS = ("two_users",)
#: Largest alpha whose allocation is the corner, as a claim states it: a grid of alphas has only a neighbour of it.
CORNER = correct("drf-4.1", "largest alpha at which alpha-fairness uses all of both resources")
CAPTION = (
    "Feasible tasks of users A (1 CPU and 4 GB a task) and B (3 CPU and 1 GB) on a server of 9 CPU and 18 GB, and the "
    "allocations of mechanisms. Alpha-fairness (thick) stays at the corner where both resources are used up (CEEI) up "
    f"to alpha = ln 2/ln(5/3), about {CORNER:.3f}, and then moves along the edge on which the CPU is used up to equal "
    "dominant shares (DRF); asset fairness lies beyond."
)
#: Mechanisms by name: label, marker, and position of the label.
_MARKS = {
    "drf": ("DRF (α = ∞)", "o", (6, 5)),
    "ceei": (f"CEEI (α ≤ {CORNER:.3f})", "s", (7, 3)),
    "asset-fairness": ("asset fairness", "^", (-14, 11)),
}


def figure(results: Results, width: float = SINGLE) -> Figure:
    """Feasible set with the allocations of mechanisms."""
    cells = results.of("two_users").long("allocated")
    cluster = papers.instance("drf-4.1")
    first, second = cluster.users
    tasks = cells.pivot_table(index=["name", "alpha"], columns="user", values="tasks", aggfunc="sum", dropna=False)
    tasks = tasks.dropna().reset_index()
    edge = border(cluster)
    drawn, table = new(width, min(2.5, 0.72 * width))
    axes = table[0, 0]
    corners = np.vstack([[0, 0], [edge[0, 0], 0], edge, [0, edge[-1, 1]]])
    axes.fill(corners[:, 0], corners[:, 1], facecolor="#eceff4", edgecolor="#7d8aa0", linewidth=0.8)
    axes.plot([0, edge[:, 0].max()], [0, edge[:, 0].max() * 2 / 3], color="#9a9a9a", linewidth=0.7, linestyle=":")
    axes.annotate("equal dominant\nshares", (1.1, 0.73), xytext=(0.7, 0.08), fontsize=6, color="#666666")
    way = tasks[tasks["name"] == "alpha-fair"].sort_values("alpha")
    axes.plot(way[first], way[second], color=colour(1), linewidth=3.0, solid_capstyle="round", alpha=0.65)
    _along(axes, way.set_index("alpha")[[first, second]])
    for name, (label, mark, off) in _MARKS.items():
        row = tasks[tasks["name"] == name].iloc[0]
        axes.plot(row[first], row[second], mark, color=colour(0), markersize=5, markerfacecolor="white", zorder=4)
        axes.annotate(label, (row[first], row[second]), xytext=off, textcoords="offset points", fontsize=7)
    axes.set(xlim=(0, 6.2), ylim=(0, 3.4), xlabel=f"tasks of {first}", ylabel=f"tasks of {second}")
    return drawn


def _along(axes: Axes, way: pd.DataFrame) -> None:
    """Labels of some alphas on the path."""
    for alpha in (2.0, 4.0):
        if alpha in way.index:
            x, y = way.loc[alpha]
            axes.plot(x, y, "o", color=colour(1), markersize=3)
            axes.annotate(f"{alpha:g}", (x, y), xytext=(-6, -9), textcoords="offset points", fontsize=7)
