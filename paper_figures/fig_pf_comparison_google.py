"""PF figures 6 and 7 on Google's cluster: utilization of PS-DSF, DRFH and TSF, in total and by class of machines."""

from __future__ import annotations

from matplotlib.figure import Figure

from fairopt.report import Results

from .style import DOUBLE, groups, legend, new, per_cent
from .utilization import MECHANISMS, by_resource, classes, overall, points, series_of

NEEDS = ("pf_comparison_google",)
CAPTION = (
    "Utilization of PS-DSF, DRFH and TSF on Google's cluster, over all machines and by class (CPU x RAM of a machine, "
    "the largest machine being 1), most numerous first; means over draws with 95% intervals. Users may run on any "
    "machine; or they are placed on one class of machines, and on every other with probability .3."
)
_TITLES = {"cpu": "CPU", "memory": "RAM"}
_CLUSTERS = {"google": "any machine", "placed": "placed"}


def caption(results: Results) -> str:
    """Mean difference in utilization between PS-DSF and DRFH, in points."""
    return points(overall(results.of("pf_comparison_google")), "cluster", _CLUSTERS)


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Means over draws with 95% confidence intervals; classes by capacity (CPU x RAM), the largest ones first."""
    found = results.of("pf_comparison_google")
    use, every = found.long("use"), overall(found)
    shown = classes(use, 4)
    drawn, table = new(width, 4.4, 2, 3, stack=7.0, sharey=True, width_ratios=(2, 4, 4))
    for row, (cluster, where) in zip(table, _CLUSTERS.items(), strict=True):
        of = use[use["cluster"] == cluster]
        by_resource(row[0], every[every["cluster"] == cluster], "name", MECHANISMS)
        row[0].set_title(f"All, {where}")
        for axes, (resource, title) in zip(row[1:], _TITLES.items(), strict=True):
            series = series_of(of[of["resource"] == resource], "name", MECHANISMS, "class", shown)
            groups(axes, [text.replace(" x ", "×\n") for text in shown], series)
            per_cent(axes, 105)
            axes.set_title(f"{title} by class, {where}")
    legend(drawn, table[0, 0])
    return drawn
