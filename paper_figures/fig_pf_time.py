"""PF figure 3, processing time: on the three-location cluster and on the doubled one, by alpha."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import Figure

from fairopt.report import Results

from .style import DOUBLE, legend, line, name, new, ordered

NEEDS = ("pf_time",)
CAPTION = (
    "Seconds for one allocation on the cluster of three locations, on the doubled one, and on one with 2,000 users, "
    "by alpha: the game as the paper plays it, and the engine for the equilibrium; means with 95% intervals, and "
    "the paper's seconds, which are of another machine, as lines."
)
_ENGINES = {"best-response": "The game, as the paper plays it", "equilibrium": "Engine for the equilibrium"}
_CLUSTERS = {"three-locations": "three locations", "doubled": "doubled", "thousands": "2,000 users"}
#: Seconds in the text: "around" for PS-DSF, "less than" for other alphas.
AROUND, BELOW = 0.03, 1.0


def caption(results: Results) -> str:
    """Mean seconds of PS-DSF, and of the slowest finite alpha."""
    cells = results.of("pf_time").cells
    cells = cells[cells["cluster"] == "three-locations"]
    mean = cells.groupby(["engine", "alpha"])["seconds"].mean()
    said = []
    for engine, text in (("best-response", "the game"), ("equilibrium", "the engine")):
        slowest = mean[engine].drop(math.inf).max()
        said.append(f"{mean[engine, math.inf]:.2g} s by {text}, where the slowest finite alpha takes {slowest:.2g} s")
    return f"PS-DSF takes {'; and '.join(said)}."


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Means of the second solution of each cluster, with 95% confidence intervals; the paper's seconds as lines."""
    cells = results.of("pf_time").cells
    alphas = sorted(cells["alpha"].unique())
    labels = ["PS-DSF" if math.isinf(alpha) else name("alphapf-vds", alpha) for alpha in alphas]
    drawn, table = new(width, 2.4, 1, 2, stack=True, sharey=True)
    for axes, (engine, title) in zip(table[0], _ENGINES.items(), strict=True):
        of = cells[cells["engine"] == engine]
        for k, (cluster, text) in enumerate(_CLUSTERS.items()):
            one = ordered(of[of["cluster"] == cluster], "alpha", "seconds", alphas)
            low = one["half"].clip(upper=0.9 * one["mean"])  # the logarithmic axis requires a positive lower end
            look = line(k) | {"linestyle": "none"}
            x = np.arange(len(alphas)) + (k - 1) * 0.25
            axes.errorbar(x, one["mean"], yerr=[low, one["half"]], label=text, elinewidth=0.8, capsize=2, **look)
        axes.set_xticks(range(len(labels)), labels)
        axes.grid(False, axis="x")
        last = len(alphas) - 1
        axes.hlines(AROUND, last - 0.5, last + 0.5, color="#b5152c", linestyle="--", linewidth=1, label="PF: 0.03 s")
        axes.hlines(BELOW, -0.5, last - 0.5, color="#b5152c", linestyle=":", linewidth=1.2, label="PF: below 1 s")
        axes.set(yscale="log", title=title)
    table[0, 0].set_ylabel("seconds")
    legend(drawn, table[0, 0])
    return drawn
