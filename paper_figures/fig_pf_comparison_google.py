"""PF section 6.B on Google's cluster: utilization of PS-DSF, DRFH and TSF, in total and by class of machines."""

from __future__ import annotations

from matplotlib.figure import Figure

from fairopt.report import Results

from .style import DOUBLE, groups, legend, new, per_cent
from .utilization import MECHANISMS, by_resource, classes, series_of

NEEDS = ("pf_comparison_google",)
CAPTION = (
    "Utilization of PS-DSF, DRFH and TSF on Google's cluster, over all machines and by class (CPU x RAM of a "
    "machine, the largest machine being 1), most numerous first; means over draws with 95% intervals. Over all "
    "machines they are nearly alike, within classes they are not."
)
_TITLES = {"cpu": "CPU", "memory": "RAM"}


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Means over draws with 95% confidence intervals; classes by capacity (CPU x RAM), the largest ones first."""
    use = results.of("pf_comparison_google").long("use")
    shown = classes(use, 6)
    drawn, table = new(width, 2.6, 1, 3, stack=True, sharey=True, width_ratios=(2, 4, 4))
    by_resource(table[0, 0], use[use["class"] == "all"], "name", MECHANISMS)
    table[0, 0].set_title("All machines")
    for axes, (resource, title) in zip(table[0, 1:], _TITLES.items(), strict=True):
        series = series_of(use[use["resource"] == resource], "name", MECHANISMS, "class", shown)
        groups(axes, [text.replace(" x ", "×\n") for text in shown], series)
        per_cent(axes, 105)
        axes.set(title=f"{title} by class of machines", xlabel="class: CPU × RAM, largest = 1")
    legend(drawn, table[0, 0])
    return drawn
