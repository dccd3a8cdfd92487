"""Violations of alphaPF-VDS by alpha: gains by misreports on one server and on several, and four other properties."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from fairopt.report import Results

from .style import DOUBLE, line, new, per_cent

NEEDS = ("violations",)
CAPTION = (
    "Violations of properties by alphaPF-VDS on random clusters of three users, one server or three and two resources: "
    "the largest gain from 60 lies, and the largest part of what is due that is missing on three servers. "
    "Gains from lies fall like 1/alpha; sharing incentive and envy-freeness hold from alpha = 1 on, and a large alpha "
    "costs Pareto optimality (searches find larger violations than random draws)."
)
_CLUSTERS = {"one": "one server", "several": "three servers"}
_OTHERS = {
    "pareto-optimality": "Pareto optimality",
    "population-monotonicity": "population monotonicity",
    "sharing-incentive": "sharing incentive",
    "envy-freeness": "envy-freeness",
}


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Largest violations over draws; gains are relative to the tasks under the true report."""
    found = results.of("violations").long("measured")
    largest = found.groupby(["cluster", "measure", "alpha"])["value"].max()
    drawn, table = new(width, 2.5, 1, 2, stack=True)
    lies, others = table[0]
    for k, (cluster, label) in enumerate(_CLUSTERS.items()):
        part = largest[cluster, "strategy-proofness"]
        lies.plot(part.index, 100 * part / (1 - part), label=label, **line(k))
    _slope(lies, largest["one", "strategy-proofness"])
    lies.set(yscale="log", title="Gains from lies", ylabel="largest gain of a user")
    lies.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    lies.yaxis.set_major_formatter("{x:g}%")
    lies.yaxis.set_minor_locator(NullLocator())
    for k, (name, label) in enumerate(_OTHERS.items()):
        part = largest["several", name]
        others.plot(part.index, 100 * part, label=label, **line(k + 2))
    per_cent(others, 108 * float(largest["several"].loc[list(_OTHERS)].max()))
    others.set(title="Missing, three servers", ylabel="largest part of what is due")
    for axes in (lies, others):
        axes.set(xscale="log", xlabel="α")
        axes.set_xticks([0.3, 1, 4, 16], ["0.3", "1", "4", "16"])
        axes.minorticks_off()
    lies.legend(loc="lower left", fontsize=6.5)
    others.legend(loc="upper right", fontsize=6.5)
    return drawn


def _slope(axes: object, part: pd.Series) -> None:
    """Reference line 1/alpha through the gain at the largest alpha, from alpha = 1."""
    alpha = np.array([1.0, part.index.max()])
    last = 100 * float((part / (1 - part)).iloc[-1])
    if last > 0:
        axes.plot(alpha, last * alpha[1] / alpha, color="#9a9a9a", linewidth=0.8, linestyle=":", label="1/α")  # type: ignore[attr-defined]
