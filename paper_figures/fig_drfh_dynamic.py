"""DRFH figure 4: CPU, memory and dominant shares of three users with whole tasks, over arrivals and a departure."""

from __future__ import annotations

from matplotlib.figure import Figure

from fairopt.report import Results

from .over_time import lines, printed
from .style import DOUBLE, IN_PAPER, legend, new

NEEDS = ("drfh_dynamic",)
CAPTION = (
    "Dominant shares of three users who come and go under Best-Fit DRFH (DRFH figure 4), with what the paper "
    "prints, and the use of the pool. Whoever is there has the same share, and it changes when users come and "
    "leave."
)
#: Intervals in seconds with the dominant share stated in the text.
_PRINTED = ((0, 200, 0.62), (200, 500, 0.44), (500, 1080, 0.26))


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Best-Fit on the most likely mix of servers, in the first draw of durations; the paper's shares in red."""
    found = results.of("drfh_dynamic")
    cells = found.cells
    chosen = cells[(cells["workload"] == "likely") & (cells["policy"] == "best-fit-drfh") & (cells["repetition"] == 0)]
    shares = found.long("shares", chosen).rename(columns={"share": "value"})
    use = found.long("timeline", chosen)
    drawn, table = new(width, 2.1, 1, 2, stack=True, sharey=True)
    left, right = table.ravel()
    lines(left, shares, "user", {name: name for name in shares["user"].unique()})
    for k, (begin, end, value) in enumerate(_PRINTED):
        printed(left, begin, end, value, None if k else IN_PAPER)
    lines(right, use, "what", {"use_cpu": "CPU in use", "use_memory": "memory in use"}, first=3)
    for axes, title in ((left, "Dominant share"), (right, "All users together")):
        axes.set(title=title, xlabel="seconds", ylim=(0, 1.02))
    left.set_ylabel("part of the pool")
    legend(drawn, left, right)
    return drawn
