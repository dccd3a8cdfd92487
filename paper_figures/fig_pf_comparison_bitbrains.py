"""PF figure 5 on Bitbrains: utilization of PS-DSF, DRFH and TSF, and gains on the same clusters."""

from __future__ import annotations

from matplotlib.figure import Figure

from fairopt.report import Results

from .style import DOUBLE, legend, new
from .utilization import MECHANISMS, by_resource, gain_bars, gains, overall

NEEDS = ("pf_comparison_bitbrains",)
CAPTION = (
    "Utilization of PS-DSF, DRFH and TSF on machines of Bitbrains (Use), and what PS-DSF uses more on the same "
    "clusters, in per cent of the other's use (Gain); means over snapshots with 95% intervals, and the paper's `up "
    "to 20%` as a line. Demands are mean use, and machines may use any server; or CPU and memory are as "
    "provisioned, and a machine may use one type of server, and every other with probability one half."
)
_TITLES = {"bitbrains": "mean use, any server", "placed": "provisioned, by type of server"}
#: Mean use from which a gain counts, as for the verdicts.
_COUNTS = 0.1


def caption(results: Results) -> str:
    """Largest mean gain of a resource that is used, by set-up."""
    use, parts = overall(results.of("pf_comparison_bitbrains")), []
    for cluster, title in _TITLES.items():
        one = use[use["cluster"] == cluster]
        one = one[one.groupby("resource")["utilization"].transform("mean") >= _COUNTS]
        found = [(row["mean"], row["half"], row["resource"], over) for over in ("drfh", "tsf")
                 for _, row in gains(one, over).iterrows()]  # fmt: skip
        mean, half, resource, over = max(found)
        parts.append(f"{mean:.1f} ± {half:.1f}% of {resource} over {MECHANISMS[over]} ({title})")
    return f"The largest gains in a resource of which at least a tenth is used are {' and '.join(parts)}."


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Means over snapshots with 95% confidence intervals; the paper states `up to 20% for some resources`."""
    use = overall(results.of("pf_comparison_bitbrains"))
    drawn, table = new(width, 4.6, 2, 2, stack=6.6)
    for (left, right), (cluster, title) in zip(table, _TITLES.items(), strict=True):
        one = use[use["cluster"] == cluster]
        by_resource(left, one, "name", MECHANISMS)
        gain_bars(right, one)
        left.set_title(f"Use: {title}")
        right.set_title(f"Gain: {title}")
    legend(drawn, *table[0])
    return drawn
