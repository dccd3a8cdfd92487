"""DRFH figures 5 to 8: utilization over a day, completion times and their reductions, and completed tasks by user."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairopt.report import Results

from .over_time import distribution, heaviest, lines, policy
from .style import DOUBLE, NARROW, groups, legend, new, per_cent

NEEDS = ("drfh_day",)
CAPTION = (
    "A day drawn like Google's, and Google's sample, under fits of DRFH and under slots: use of resources over "
    "time (DRFH figure 5), completion times and by how much jobs end sooner (6), and the part of every user's tasks "
    "that is done under Best-Fit, against slots (Users, figure 7) and against servers of their own (Users, figure 8). "
    "Best fit and first fit are alike, and slots leave capacity unused; some users have more done on their own."
)
_POLICIES = ("best-fit-drfh", "first-fit-drfh", "slots")
#: Bins of jobs by number of tasks; the paper has five, and does not state them.
_BINS = (1, 2, 11, 101, 501, np.inf)
_BIN_NAMES = ("1", "2-10", "11-100", "101-500", "> 500")


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Utilization in the first draw at the highest load; completion of jobs over all draws of that load.

    Areas of circles of users are logarithmic in their number of tasks.
    """
    found = results.of("drfh_day")
    cells = found.cells[found.cells["workload"] == "day"]
    heavy, first = heaviest(cells)
    names = {text: policy(text) for text in heavy["policy"] if text.partition("(")[0] in _POLICIES}
    use = found.long("timeline", first).assign(time=lambda t: t["time"] / 3600)
    jobs = found.long("each_job", heavy)
    narrow = width < NARROW
    drawn, table = new(width, (1.75 if narrow else 0.95) * width, 3, 2)
    panels = table.ravel()
    for axes, what, text in zip(panels[:2], ("use_cpu", "use_memory"), ("CPU", "Memory"), strict=True):
        lines(axes, use[use["what"] == what], "policy", names)
        axes.set(title=f"{text} in use", xlabel="hours", ylim=(0, 1.03))
    panels[0].set_ylabel("part of the pool")
    chosen = [(names[one], jobs.loc[jobs["policy"] == one, "response"].to_numpy(dtype=float),
               int((jobs["policy"] == one).sum())) for one in names]  # fmt: skip
    distribution(panels[2], chosen)
    panels[2].set(title="Completion times", xlabel="seconds", ylabel="part of all jobs")
    slots = next((text for text in names if text.startswith("slots")), "")
    _gain(panels[3], jobs, slots)
    done = found.long("each_user", first).drop_duplicates(["policy", "user"])
    _done(panels[4], done, slots, "Users, figure 7", "done under slots")
    _done(panels[5], done, "dedicated:best-fit-drfh", "Users, figure 8", "done on own servers")
    panels[4].set_ylabel("done under Best-Fit")
    if narrow:
        panels[3].tick_params(axis="x", rotation=40)
    legend(drawn, panels[0])
    return drawn


def _done(axes: Axes, users: pd.DataFrame, other: str, title: str, label: str) -> None:
    """Circles of users: completed fractions of tasks under another policy and under Best-Fit."""
    part = users.assign(part=users["tasks_done"] / users["tasks"])
    wide = part.pivot_table(index="user", columns="policy", values="part").reindex(columns=["best-fit-drfh", other])
    wide = wide.dropna()  # with few servers some users have no dedicated pool
    size = users.groupby("user")["tasks"].max().reindex(wide.index)
    axes.plot([0, 1], [0, 1], color="#999999", linewidth=0.6)
    axes.scatter(wide[other], wide["best-fit-drfh"], 4 * np.log2(1 + size), facecolor="none", edgecolor="#111111",
                 linewidth=0.5)  # fmt: skip
    axes.set(title=title, xlabel=label)


def _gain(axes: Axes, jobs: pd.DataFrame, slots: str) -> None:
    """Reduction of completion times by Best-Fit against slots, of jobs completed by both, by size."""
    by = ["source", "repetition", "job"]
    wide = jobs[jobs["policy"].isin(["best-fit-drfh", slots])]
    size = pd.cut(wide["tasks"], _BINS, right=False, labels=_BIN_NAMES)
    table = wide.assign(size=size).pivot_table(
        index=[*by, "size"], columns="policy", values="response", observed=True
    ).dropna()  # fmt: skip
    means = table.groupby(level="size", observed=False).mean().reindex(_BIN_NAMES)
    if slots in means and "best-fit-drfh" in means:
        gain = 100 * (1 - means["best-fit-drfh"] / means[slots])
    else:
        gain = pd.Series(0.0, index=list(_BIN_NAMES))
    groups(axes, list(_BIN_NAMES), [("gain", gain.fillna(0.0), None)])
    per_cent(axes)
    axes.set_ylim(min(0.0, float(gain.min(skipna=True) or 0.0)) * 1.1, 100)
    axes.set(title="Sooner than slots", xlabel="tasks of the job")
