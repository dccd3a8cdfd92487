"""What alpha does on a real cluster: Bitbrains and Google, in one figure."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from fairopt.report import Results, interval

from .style import DOUBLE, alpha_axis, apart, at_alpha, band, legend, line, new, per_cent

NEEDS = ("frontier",)
CAPTION = (
    "What alpha does to alphaPF-VDS on machines of Bitbrains and on users of Google: means over draws of "
    "utilization, the smallest dominant share and Jain's index, with 95% intervals; PS-DSF stands at infinity. "
    "Most of the fairness is there at alpha = 1, and from there on more alpha costs capacity."
)
_CLUSTERS = {"bitbrains": "Bitbrains", "google": "Google"}
_PANELS = {"utilization": (100, "utilization"), "min_share": (100, "smallest share"), "jain": (1, "Jain's index")}


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Means over draws with 95% confidence bands; PS-DSF stands at alpha = infinity."""
    cells = results.of("frontier").cells
    drawn, table = new(width, 2.3, 1, len(_PANELS), stack=True)
    for axes, (measure, (unit, label)) in zip(table[0], _PANELS.items(), strict=True):
        for k, (cluster, name) in enumerate(_CLUSTERS.items()):
            found = _means(cells, cluster, measure)
            x, mean, half = at_alpha(found.index), unit * found["mean"], unit * found["half"].fillna(0)
            axes.plot(x, mean, label=name, **line(k), markevery=apart(found.index))
            axes.fill_between(x, mean - half, mean + half, color=line(k)["color"], alpha=0.15, lw=0)
        alpha_axis(axes)
        axes.set_xlabel("α (PS-DSF at ∞)")
        axes.set_title(label[0].upper() + label[1:] + (" of αPF-VDS" if axes is table[0, 0] else ""))
        if unit == 100:
            per_cent(axes, axes.get_ylim()[1])
        axes.set_ylim(bottom=0)
    band(table[0, 0])
    legend(drawn, table[0, 0])
    return drawn


def _means(cells: pd.DataFrame, cluster: str, measure: str) -> pd.DataFrame:
    """`mean` and `half` by alpha."""
    found = interval(cells[cells["cluster"] == cluster], ["alpha"], measure)
    return found.set_index("alpha").sort_index()
