"""PF section 6.B on Bitbrains: utilization of PS-DSF, DRFH and TSF, and gains on the same clusters."""

from __future__ import annotations

from matplotlib.figure import Figure

from fairopt.report import Results

from .style import DOUBLE, new
from .utilization import MECHANISMS, by_resource, gain_bars

NEEDS = ("pf_comparison_bitbrains",)
CAPTION = (
    "Utilization of PS-DSF, DRFH and TSF on machines of Bitbrains, and what PS-DSF uses more on the same "
    "clusters, in per cent of the other's use; means over snapshots with 95% intervals, and the paper's `up to "
    "20%` as a line. The gain is largest on resources that are hardly used."
)


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Means over snapshots with 95% confidence intervals; the paper states `up to 20% for some resources`."""
    use = results.of("pf_comparison_bitbrains").long("use")
    use = use[use["class"] == "all"]
    drawn, table = new(width, 2.5, 1, 2, stack=True)
    by_resource(table.flat[0], use, "name", MECHANISMS)
    gain_bars(table.flat[1], use)
    for axes in table.flat:
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return drawn
