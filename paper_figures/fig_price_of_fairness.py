"""Price of fairness on real clusters: relative loss of welfare under alphaPF-VDS, by alpha."""

from __future__ import annotations

from matplotlib.figure import Figure

from fairopt.report import Results

from .style import SINGLE, alpha_axis, band, by_alpha, legend, new

NEEDS = ("frontier",)
CAPTION = (
    "The price of fairness of alphaPF-VDS on machines of Bitbrains and on users of Google: the part of the "
    "largest sum of dominant shares that it does without; means over draws with 95% intervals. Most of "
    "it is paid by alpha = 1."
)
_CLUSTERS = {"bitbrains": "Bitbrains", "google": "Google"}


def figure(results: Results, width: float = SINGLE) -> Figure:
    """Price of fairness 1 - W(x)/W(x*) by alpha, from 0 to infinity (PS-DSF)."""
    cells = results.of("frontier").cells
    drawn, table = new(width, 2.3)
    axes = table[0, 0]
    for k, (cluster, text) in enumerate(_CLUSTERS.items()):
        by_alpha(axes, cells[cells["cluster"] == cluster], "price_of_fairness", k, text, 100)
    alpha_axis(axes)
    axes.yaxis.set_major_formatter("{x:g}%")
    axes.set(ylim=(0, None), ylabel="price of fairness of αPF-VDS")
    band(axes)
    legend(drawn, axes)
    return drawn
