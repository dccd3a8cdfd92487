"""Effect of alpha on real clusters: Bitbrains and Google."""

from __future__ import annotations

from matplotlib.figure import Figure

from fairopt.report import Results

from .style import DOUBLE, alpha_axis, band, by_alpha, legend, new, per_cent

NEEDS = ("frontier",)
CAPTION = (
    "What alpha does to alphaPF-VDS on machines of Bitbrains and on users of Google: means over draws of "
    "utilization, the smallest dominant share and Jain's index, with 95% intervals; PS-DSF stands at infinity. "
    "Most of the fairness is there at alpha = 1, and from there on more alpha costs capacity."
)
_CLUSTERS = {"bitbrains": "Bitbrains", "google": "Google"}
_PANELS = {"utilization": (100, "utilization"), "min_share": (100, "smallest share"), "jain": (1, "Jain's index")}


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Means over draws with 95% confidence bands; PS-DSF at alpha = infinity."""
    cells = results.of("frontier").cells
    drawn, table = new(width, 2.3, 1, len(_PANELS), stack=True)
    for axes, (measure, (unit, label)) in zip(table[0], _PANELS.items(), strict=True):
        for k, (cluster, name) in enumerate(_CLUSTERS.items()):
            by_alpha(axes, cells[cells["cluster"] == cluster], measure, k, name, unit)
        alpha_axis(axes)
        if unit == 100:
            per_cent(axes, axes.get_ylim()[1])
        title = label[0].upper() + label[1:] + (" of αPF-VDS" if axes is table[0, 0] else "")
        axes.set(xlabel="α (PS-DSF at ∞)", title=title, ylim=(0, None))
    band(table[0, 0])
    legend(drawn, table[0, 0])
    return drawn
