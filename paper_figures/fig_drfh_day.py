"""DRFH figures 5 to 8: utilization over a day, completion times and their reductions, and completed tasks by user."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairopt.harness.papers import statistics
from fairopt.report import Results

from .over_time import distribution, gains, lines, policy
from .style import DOUBLE, NARROW, legend, new

NEEDS = ("drfh_day",)
CAPTION = (
    "Use of resources over time on Google's sample under fits of DRFH and slots, in the first draw (DRFH figure 5); "
    "on days drawn like Google's at load 1, completion times and by how much jobs end sooner under Best-Fit than "
    "under slots, by three statistics as in DRF's figure 14 (6), and the part of every user's tasks that is done "
    "under Best-Fit, against slots (Users, figure 7) and against servers of their own (Users, figure 8), of all "
    "draws."
)
_POLICIES = ("best-fit-drfh", "first-fit-drfh", "slots")
_BEST, _SLOTS, _OWN = "best-fit-drfh", "slots", "dedicated:best-fit-drfh"
#: Bins of jobs by number of tasks; the paper has five, and does not state them.
_BIN_NAMES = ("1", "2-10", "11-100", "101-500", "> 500")


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Utilization in the first draw; jobs and users over all draws of the lowest load.

    Areas of circles of users are logarithmic in their number of tasks.
    """
    found = results.of("drfh_day")
    cells = found.cells
    first = cells[(cells["workload"] == "sample") & (cells["repetition"] == 0)]
    days = cells[cells["workload"] == "day"]
    days = days[days["source"] == days["source"].min()]
    use = found.long("timeline", first).assign(time=lambda t: t["time"] / 3600)
    jobs = found.long("each_job", days)
    narrow = width < NARROW
    drawn, table = new(width, (1.75 if narrow else 0.95) * width, 3, 2)
    panels = table.ravel()
    names = {text: policy(text) for text in _POLICIES}
    for axes, what, text in zip(panels[:2], ("use_cpu", "use_memory"), ("CPU", "Memory"), strict=True):
        lines(axes, use[use["what"] == what], "policy", names)
        axes.set(title=f"{text} in use", xlabel="hours", ylim=(0, 1.03))
    panels[0].set_ylabel("part of the pool")
    chosen = [(names[one], jobs.loc[jobs["policy"] == one, "response"].to_numpy(dtype=float),
               int((jobs["policy"] == one).sum())) for one in names]  # fmt: skip
    distribution(panels[2], chosen)
    panels[2].set(title="Completion times", xlabel="seconds", ylabel="part of all jobs")
    gains(panels[3], statistics.reductions(replace(found, cells=days), [], _BEST, _SLOTS, "DRFH"), _BIN_NAMES)
    panels[3].set_title("Sooner than slots")
    done = found.long("each_user", days)
    done = done.assign(user=done["user"] + done["repetition"].astype(str)).drop_duplicates(["policy", "user"])
    _done(panels[4], done, _SLOTS, "Users, figure 7", "done under slots")
    _done(panels[5], done, _OWN, "Users, figure 8", "done on own servers")
    panels[4].set_ylabel("done under Best-Fit")
    if narrow:
        panels[3].tick_params(axis="x", rotation=40)
    legend(drawn, panels[0], panels[3])
    return drawn


def _done(axes: Axes, users: pd.DataFrame, other: str, title: str, label: str) -> None:
    """Circles of users: completed fractions of tasks under another policy and under Best-Fit."""
    part = users.assign(part=users["tasks_done"] / users["tasks"])
    wide = part.pivot_table(index="user", columns="policy", values="part").reindex(columns=[_BEST, other])
    wide = wide.dropna()  # with few servers some users have no dedicated pool
    size = users.groupby("user")["tasks"].max().reindex(wide.index)
    axes.plot([0, 1], [0, 1], color="#999999", linewidth=0.6)
    axes.scatter(wide[other], wide[_BEST], 4 * np.log2(1 + size), facecolor="none", edgecolor="#111111",
                 linewidth=0.5)  # fmt: skip
    axes.set(title=title, xlabel=label)
