"""DRFH figure 4: CPU, memory and dominant shares of three users with whole tasks, over arrivals and a departure."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from fairopt.report import Results

from .over_time import lines, printed
from .style import DOUBLE, IN_PAPER, legend, new

NEEDS = ("drfh_dynamic",)
CAPTION = (
    "Parts of CPU and of memory and dominant shares of three users who come and go under Best-Fit DRFH (DRFH figure "
    "4), in the first draw, on the most probable mix of servers with the printed totals. Red lines are what the paper "
    "prints."
)
#: Intervals in seconds with the shares stated in the text: of CPU and memory of user 1 alone, then dominant ones.
_PRINTED = {"cpu": ((0, 200, 0.40),), "memory": ((0, 200, 0.62),), "share": ((200, 500, 0.44), (500, 1080, 0.26))}
_TITLES = {"cpu": "CPU", "memory": "Memory", "share": "Dominant share"}
#: Demands (CPU, memory) of a task by user, and the totals of the pool.
_DEMANDS = {"user 1": (0.2, 0.3), "user 2": (0.5, 0.1), "user 3": (0.1, 0.3)}
_TOTAL = (52.75, 51.32)


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Shares of a resource follow from dominant shares, as all tasks of a user are alike."""
    found = results.of("drfh_dynamic")
    cells = found.cells
    chosen = cells[(cells["workload"] == "likeliest") & (cells["policy"] == "best-fit-drfh")]
    shares = found.long("shares", chosen[chosen["repetition"] == 0])
    part = np.array(list(_DEMANDS.values())) / _TOTAL
    of_dominant = dict(zip(_DEMANDS, part / part.max(axis=1, keepdims=True), strict=True))
    ratio = np.stack(shares["user"].map(of_dominant).to_list())
    shares = shares.assign(cpu=shares["share"] * ratio[:, 0], memory=shares["share"] * ratio[:, 1])
    drawn, table = new(width, 2.1, 1, 3, stack=True, sharey=True)
    for axes, (column, title) in zip(table.ravel(), _TITLES.items(), strict=True):
        lines(axes, shares.assign(value=shares[column]), "user", {name: name for name in _DEMANDS})
        for begin, end, value in _PRINTED[column]:
            printed(axes, begin, end, value, IN_PAPER)
        axes.set(title=title, xlabel="seconds", ylim=(0, 0.8))
    table[0, 0].set_ylabel("part of the pool")
    legend(drawn, table[0, 0])
    return drawn
