"""MQDRF figures 2 and 3: dominant shares of three users who come to one server, with caps by level and without."""

from __future__ import annotations

from matplotlib.figure import Figure

from fairopt.report import Results

from .over_time import lines, policy
from .style import DOUBLE, legend, new, styled

NEEDS = ("mqdrf_dynamic",)
CAPTION = (
    "Dominant shares of three users who arrive one after the other, under MQDRF (MQDRF figures 2 and 3) and under "
    "discrete DRF, which takes no task back. MQDRF keeps room for those who come; under DRF the first user keeps "
    "all it had."
)


@styled
def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Under caps who comes first leaves room for others; without, tasks that never end keep all of it."""
    shares = results.of("mqdrf_dynamic").long("shares").rename(columns={"share": "value"})
    drawn, table = new(width, 2.1, 1, 2, stack=True, sharey=True)
    for axes, text in zip(table.ravel(), ("mqdrf", "discrete-drf"), strict=True):
        here = shares[shares["policy"] == text]
        lines(axes, here, "user", {name: name for name in here["user"].unique()})
        axes.set_title(policy(text))
        axes.set_xlabel("seconds")
        axes.set_ylim(0, 1.03)
    table[0, 0].set_ylabel("dominant share")
    legend(drawn, *table.ravel())
    return drawn
