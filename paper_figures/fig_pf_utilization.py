"""PF section 6.A: utilization of the three-location cluster for alpha = 1, 3 and infinity, over Bitbrains snapshots."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from fairopt.report import Results

from .style import SINGLE, legend, new
from .utilization import by_resource

NEEDS = ("pf_utilization",)
CAPTION = (
    "Utilization of the three-location cluster of PF section 6 for alpha = 1, 3 and infinity: means over "
    "Bitbrains snapshots with 95% intervals. Memory is used up whatever alpha is, and the use of all else falls a "
    "little with alpha."
)


def figure(results: Results, width: float = SINGLE) -> Figure:
    """Means over snapshots with 95% confidence intervals; the paper states no numbers."""
    use = results.of("pf_utilization").long("use")
    labels = {
        alpha: "α = ∞ (PS-DSF)" if math.isinf(alpha) else f"α = {alpha:g}" for alpha in sorted(use["alpha"].unique())
    }
    drawn, table = new(width, 2.2)
    by_resource(table[0, 0], use[use["class"] == "all"], "alpha", labels)
    legend(drawn, table[0, 0])
    return drawn
