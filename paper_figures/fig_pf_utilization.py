"""PF figure 4: utilization of the three-location cluster and of a random one by alpha, over draws."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from fairopt.report import Results

from .style import SINGLE, legend, new
from .utilization import by_resource, overall

NEEDS = ("pf_utilization",)
CAPTION = (
    "Utilization of the three-location cluster of PF section 6 over Bitbrains snapshots, and of random clusters in "
    "which no two users or servers are alike, for the alphas of the paper (1, 3 and infinity) and 1/2: means over "
    "draws with 95% intervals."
)
_TITLES = {"bitbrains": "Bitbrains", "lognormal": "No two alike"}


def caption(results: Results) -> str:
    """Mean utilization over resources at every alpha."""
    use = overall(results.of("pf_utilization")).groupby(["cluster", "alpha"], sort=True)["utilization"].mean()
    parts = []
    for cluster, title in _TITLES.items():
        values = ", ".join(f"{100 * one:.1f}% at {_alpha(alpha)}" for alpha, one in use[cluster].items())
        parts.append(f"{title}: {values}")
    return f"Averages over resources: {'; '.join(parts)}."


def figure(results: Results, width: float = SINGLE) -> Figure:
    """Means over draws with 95% confidence intervals; the paper states no numbers."""
    use = overall(results.of("pf_utilization"))
    labels = {alpha: f"α = {_alpha(alpha)}" for alpha in sorted(use["alpha"].unique())}
    drawn, table = new(width, 3.6, 2, 1)
    for axes, (cluster, title) in zip(table.flat, _TITLES.items(), strict=True):
        by_resource(axes, use[use["cluster"] == cluster], "alpha", labels)
        axes.set_title(title)
    legend(drawn, table[0, 0])
    return drawn


def _alpha(alpha: float) -> str:
    return "∞ (PS-DSF)" if math.isinf(alpha) else f"{alpha:g}"
