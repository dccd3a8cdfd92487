"""DRF figures 1 and 2: demands of tasks in traces, and their utilization of slots."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairopt.report import Results

from .style import DOUBLE, TALLEST, legend, line, new

NEEDS = ("drf_demands",)
CAPTION = (
    "Demands per task in traces of Google and Alibaba (areas count tasks, and the line is the shape of a server), "
    "and the part of tasks that need at most so much of a slot, of which a server of mean size has twelve."
)
_NAMES = {"google": "Google 2011", "alibaba": "Alibaba 2023"}
#: Slots of a server of mean size, as in the paper.
_SLOTS = 12
#: Circles per decade of a demand.
_CIRCLES = 8


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Top: tasks by CPU and memory relative to a mean server, with areas logarithmic in their number.

    Bottom: distribution of the used fraction of a slot, with twelve slots on a mean server.
    """
    demands = results.of("drf_demands").long("demands").query("repetition == 0")
    names = [name for name in _NAMES if (demands["workload"] == name).any()]
    drawn, table = new(width, 0.7 * width, 2, 2, stack=TALLEST)
    bubbles, slots = table.ravel()[:2], table.ravel()[2:]
    for axes, name in zip(bubbles, names, strict=False):
        _bubbles(axes, demands[demands["workload"] == name])
        axes.set_title(_NAMES[name])
    for axes, what, text in zip(slots, ("first", "second"), ("CPU", "Memory"), strict=False):
        for k, name in enumerate(names):
            here = demands[demands["workload"] == name].sort_values(what)
            part = here["tasks"].cumsum() / here["tasks"].sum()
            look = line(k) | {"marker": ""}
            axes.step(here[what] * _SLOTS, part, where="post", label=_NAMES[name], **look)
        axes.axvline(1, color="#b5152c", linewidth=1, alpha=0.7, label="exactly a slot")
        axes.set(xscale="log", xlabel=f"{text} of a task, in slots", ylim=(0, 1.02))
    slots[0].set_ylabel("part of tasks")
    legend(drawn, *slots[:1])
    return drawn


def _bubbles(axes: Axes, here: pd.DataFrame) -> None:
    some = here.loc[(here["first"] > 0) & (here["second"] > 0), ["first", "second", "tasks"]]
    near = 10 ** ((np.log10(some[["first", "second"]]) * _CIRCLES).round() / _CIRCLES)
    some = near.assign(tasks=some["tasks"]).groupby(["first", "second"], as_index=False).sum()
    area = 3 + 6 * np.log1p(some["tasks"])
    axes.scatter(some["first"], some["second"], s=area, facecolor="none", edgecolor="#2a4d8f", linewidth=0.5)
    ends = [min(some["first"].min(), some["second"].min()), max(some["first"].max(), some["second"].max())]
    axes.plot(ends, ends, color="#9a9a9a", linewidth=0.8, zorder=0)
    axes.set(xscale="log", yscale="log", xlabel="CPU, of a mean server", ylabel="memory")
