"""DRFH figure 4: CPU, memory and dominant shares of three users with whole tasks, over arrivals and a departure."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from fairopt.report import Results

from .over_time import of_users, parts
from .style import DOUBLE, legend, new

NEEDS = ("drfh_dynamic",)
CAPTION = (
    "Parts of CPU and of memory and dominant shares of three users who come and go under Best-Fit DRFH (DRFH figure "
    "4), in the first draw, on the most probable mix of servers with the printed totals. Red lines are what the paper "
    "prints."
)
#: Intervals in seconds with the shares stated in the text: of CPU and memory of user 1 alone, then dominant ones.
_PRINTED = {"cpu": ((0, 200, 0.40),), "memory": ((0, 200, 0.62),), "share": ((200, 500, 0.44), (500, 1080, 0.26))}
#: Demands (CPU, memory) of a task by user, and the totals of the pool.
_DEMANDS = {"user 1": (0.2, 0.3), "user 2": (0.5, 0.1), "user 3": (0.1, 0.3)}
_TOTAL = (52.75, 51.32)


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Shares of a resource follow from dominant shares, as all tasks of a user are alike."""
    found = results.of("drfh_dynamic")
    cells = found.cells
    chosen = cells[(cells["workload"] == "likeliest") & (cells["policy"] == "best-fit-drfh")]
    shares = found.long("shares", chosen[chosen["repetition"] == 0])
    demands = {one: np.array(of) / _TOTAL for one, of in _DEMANDS.items()}
    drawn, table = new(width, 2.1, 1, 3, stack=True, sharey=True)
    of_users(table.ravel(), parts(shares, demands), [*_DEMANDS], _PRINTED)
    for axes in table.ravel():
        axes.set_ylim(0, 0.8)
    legend(drawn, table[0, 0])
    return drawn
