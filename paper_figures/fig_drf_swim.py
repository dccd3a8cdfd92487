"""DRF figures 13 and 14: use of CPU and memory on Facebook's day, and how much sooner jobs end than under slots."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from fairopt.harness.papers import statistics
from fairopt.report import Results, StoredCells

from .over_time import gains, lines, policy
from .style import DOUBLE, legend, new

NEEDS = ("drf_swim",)
CAPTION = (
    "CPU and memory in use over 300 s of a day drawn like Facebook's (SWIM), after seven hours on 10 servers (DRF "
    "figure 13), and by how much jobs end sooner under DRF than under slots, by the number of their tasks: the "
    "reduction of means, and the median and the mean of reductions per job, without 5% of jobs at each end, with 6 "
    "and with 10 servers (figure 14); 95% intervals over draws. Red lines are what the paper prints of small and of "
    "large jobs."
)
_NAMES = ("1", "2-10", "11-50", "> 50")
_DRF, _SLOTS = "first-fit-drfh", "slots(n=12)"
#: Seconds that figure 13 shows.
_WINDOW = 300.0
#: Reductions in per cent that the paper prints of the smallest and of the largest jobs.
_PRINTED = {0: -3.0, 3: 66.0}


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Top: use in the first draw; bottom: reductions over draws, where a tenth of the jobs needs much memory."""
    found = results.of("drf_swim")
    drawn, table = new(width, 4.0, 2, 2, stack=6.8)
    panels = table.ravel()
    _use(panels[:2], found)
    sooner = statistics.reductions(_days(found), ["servers"], _DRF, _SLOTS, "DRF")
    for axes, number in zip(panels[2:], sorted(sooner["servers"].unique()), strict=False):
        gains(axes, sooner[sooner["servers"] == number], _NAMES)
        axes.set_title(f"{number:g} servers")
        for at, value in _PRINTED.items():
            axes.plot([at - 0.42, at + 0.42], 2 * [value], color="#b5152c", linewidth=1.4, alpha=0.8, label="printed")
    for axes in panels:
        if not axes.has_data():
            axes.remove()
    panels[0].set_ylabel("part of the servers")
    panels[2].set_ylabel("sooner than under slots")
    legend(drawn, panels[0], panels[2])
    return drawn


def _days(found: StoredCells) -> StoredCells:
    """Whole days on which least jobs need much memory."""
    cells = found.cells[found.cells["workload"] == "day"]
    least = cells["source"].str.extract(r"heavy=([0-9.]+)")[0]
    return replace(found, cells=cells[(least == least.min()) | least.isna()])


def _use(panels: np.ndarray, found: StoredCells) -> None:
    """Used CPU and memory at the end of the part of a day, in steps of ten seconds."""
    times = found.long("timeline")
    times = times[times["workload"] == "minutes"]
    times = times[times["time"] >= times["time"].max() - _WINDOW]
    times = times.assign(time=times["time"] - times["time"].min())
    for axes, what, title in zip(panels, ("use_cpu", "use_memory"), ("CPU in use", "Memory in use"), strict=True):
        lines(axes, times[times["what"] == what], "policy", {name: policy(name) for name in (_DRF, _SLOTS)})
        axes.set(title=title, xlabel="seconds", ylim=(0, 1.03))
