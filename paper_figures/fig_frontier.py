"""Efficiency against fairness as alpha goes from 0 to infinity: utilization, smallest share, Jain's index."""

from __future__ import annotations

from matplotlib.figure import Figure

from fairopt.report import Results, interval

from .style import DOUBLE, NARROW, alpha_axis, at_alpha, line, new, styled

NEEDS = ("frontier",)
_TITLES = {"paper": "PF figure 1, variant", "bitbrains": "Bitbrains", "google": "Google"}
_MEASURES = {"utilization": "utilization", "min_share": "smallest share", "jain": "Jain's index"}

#: The least height of a panel, as part of the largest value in it.
_SPAN = 0.05


@styled
def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Means over draws with 95% confidence bands; PS-DSF stands at alpha = infinity."""
    cells = results.of("frontier").cells
    clusters = [name for name in _TITLES if name in set(cells["cluster"])]
    drawn, table = new(width, 0.62 * max(width, 5.5), len(_MEASURES), len(clusters), sharex=True)
    for column, cluster in enumerate(clusters):
        of = cells[cells["cluster"] == cluster]
        for row, (measure, label) in enumerate(_MEASURES.items()):
            axes = table[row, column]
            found = interval(of, ["alpha"], measure).sort_values("alpha")
            x = at_alpha(found["alpha"])
            axes.plot(x, found["mean"], **line(row))
            half = found["half"].fillna(0)
            axes.fill_between(x, found["mean"] - half, found["mean"] + half, color=line(row)["color"], alpha=0.15, lw=0)
            alpha_axis(axes, label=row == len(_MEASURES) - 1)
            axes.margins(y=0.12)
            low, high = axes.get_ylim()
            least = _SPAN * found["mean"].max()
            if high - low < least:  # differences of rounding are no curve
                axes.set_ylim((low + high - least) / 2, (low + high + least) / 2)
            if column == 0:
                axes.set_ylabel(label)
        table[0, column].set_title(_TITLES[cluster].replace(", ", ",\n") if width < NARROW else _TITLES[cluster])
    drawn.align_ylabels()
    return drawn
