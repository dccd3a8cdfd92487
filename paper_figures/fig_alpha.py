"""What alpha does on a real cluster: Bitbrains and Google, in one figure and three sentences (those of the README)."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.figure import Figure

from fairopt.report import Results, interval

from .style import DOUBLE, alpha_axis, apart, at_alpha, band, legend, line, new, per_cent, styled

NEEDS = ("frontier",)
CAPTION = (
    "What alpha does to alphaPF-VDS on machines of Bitbrains and on users of Google: means over draws of "
    "utilization, the smallest dominant share and Jain's index, with 95% intervals; PS-DSF stands at infinity. "
    "Most of the fairness is there at alpha = 1, and from there on more alpha costs capacity."
)
_CLUSTERS = {"bitbrains": "Bitbrains", "google": "Google"}
_PANELS = {"utilization": (100, "utilization"), "min_share": (100, "smallest share"), "jain": (1, "Jain's index")}


@styled
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


def sentences(results: Results) -> str:
    """The same in words, every number from the store: fairness is the smallest dominant share and Jain's index."""
    cells = results.of("frontier").cells
    drawn = cells[cells["cluster"] != "paper"]
    size = {name: drawn[drawn["cluster"] == name][["users", "servers"]].max() for name in _CLUSTERS}

    def at(alpha: float, measure: str, form: str = ".1%") -> str:
        """The means of both clusters."""
        every = (_means(cells, cluster, measure).loc[alpha] for cluster in _CLUSTERS)
        return " and ".join(format(one["mean"], form) for one in every)

    (machines, servers), (people, pool) = ([f"{number:,}" for number in size[name]] for name in _CLUSTERS)
    return (
        f"{machines} machines of Bitbrains on {servers} servers, and {people} users of Google's {pool} machines "
        f"(means of {drawn['repetition'].nunique()} draws each): at alpha = 0 alphaPF-VDS uses {at(0, 'utilization')} "
        f"of the capacity, averaged over resources, but the smallest dominant share is {at(0, 'min_share', '.2%')} and "
        f"Jain's index {at(0, 'jain', '.2f')}.\n"
        f"At alpha = 1 it has most of the fairness that there is to be had, with smallest shares of "
        f"{at(1, 'min_share', '.2%')} and a Jain's index of {at(1, 'jain', '.2f')}, for {at(1, 'utilization')} of the "
        f"capacity.\n"
        f"From there on more alpha costs capacity for hardly any more fairness: PS-DSF, at infinity, uses "
        f"{at(math.inf, 'utilization')}, with smallest shares of {at(math.inf, 'min_share', '.2%')} and a Jain's index "
        f"of {at(math.inf, 'jain', '.2f')}."
    )


def _means(cells: pd.DataFrame, cluster: str, measure: str) -> pd.DataFrame:
    """`mean` and `half` by alpha."""
    found = interval(cells[cells["cluster"] == cluster], ["alpha"], measure)
    return found.set_index("alpha").sort_index()
