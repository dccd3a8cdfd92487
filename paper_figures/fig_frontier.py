"""Efficiency and fairness for alpha from 0 to infinity: utilization, smallest share, Jain's index, price."""

from __future__ import annotations

from matplotlib.figure import Figure

from fairopt.report import Results

from .style import DOUBLE, NARROW, alpha_axis, band, by_alpha, legend, new

NEEDS = ("frontier",)
CAPTION = (
    "alphaPF-VDS from alpha = 0 to infinity (PS-DSF) on the variant of PF's figure 1, on Bitbrains and on Google: "
    "means over draws with 95% intervals, all axes from 0; the price of fairness is the part of the largest sum of "
    "dominant shares that is done without. On the real clusters utilization falls with alpha, smallest share and "
    "Jain's index rise most before alpha = 1, and most of the price is paid by then."
)
_TITLES = {"paper": "PF figure 1, variant", "bitbrains": "Bitbrains", "google": "Google"}
_MEASURES = {
    "utilization": (100, "utilization"), "min_share": (100, "smallest share"), "jain": (1, "Jain's index"),
    "price_of_fairness": (100, "price of fairness"),
}  # fmt: skip


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Means over draws with 95% confidence bands; PS-DSF at alpha = infinity."""
    cells = results.of("frontier").cells
    clusters = [name for name in _TITLES if name in set(cells["cluster"])]
    drawn, table = new(width, 0.8 * max(width, 5.5), len(_MEASURES), len(clusters), sharex=True)
    for column, cluster in enumerate(clusters):
        of = cells[cells["cluster"] == cluster]
        for row, (measure, (unit, label)) in enumerate(_MEASURES.items()):
            axes = table[row, column]
            top = by_alpha(axes, of, measure, row, unit=unit)
            alpha_axis(axes, label=row == len(_MEASURES) - 1)
            if unit == 100:
                axes.yaxis.set_major_formatter("{x:g}%")
            axes.set_ylim(0, 1.12 * top)  # the axis starts at 0, so that heights are comparable
            if column == 0:
                axes.set_ylabel(label)
        table[0, column].set_title(_TITLES[cluster].replace(", ", ",\n") if width < NARROW else _TITLES[cluster])
    drawn.align_ylabels()
    band(table[0, 0])
    legend(drawn, table[0, 0])
    return drawn
