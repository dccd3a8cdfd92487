"""PF section 6, figures 4, 6 and 7: utilization over a day of mechanisms that reallocate every five minutes."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairopt.report import Results

from .over_time import heaviest, lines, policy
from .style import DOUBLE, groups, legend, new, per_cent
from .utilization import series_of

NEEDS = ("pf_semidynamic",)
CAPTION = (
    "A day of arriving jobs under PF's mechanisms, re-solved every five minutes and when one ends: CPU in use, use "
    "of CPU and memory with 95% intervals over draws, and how many more jobs than under DRFH are completed within a "
    "time. Over a day the mechanisms are hard to tell apart: what arrives decides."
)
_LINES = ("fluid:ps-dsf", "fluid:drfh", "fluid:tsf", "fluid:alphapf-vds(alpha=1.0)")


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """CPU on the first day (hourly means), mean utilization of all days with 95% intervals, and completion times."""
    found = results.of("pf_semidynamic")
    cells = found.cells
    heavy, first = heaviest(cells)
    names = {text: policy(text) for text in dict.fromkeys(heavy["policy"])}
    drawn, table = new(width, 2.2, 1, 3, stack=True)
    left, middle, right = table.ravel()
    times = found.long("timeline", first)
    times = times[times["policy"].isin(_LINES)].assign(hour=times["time"] // 3600)
    wide = times.pivot_table(index=["policy", "hour", "time"], columns="what", values="value").dropna(subset="use_cpu")
    sums = wide.assign(used=wide["use_cpu"] * wide["span"]).groupby(level=["policy", "hour"])[["used", "span"]].sum()
    hourly = (sums["used"] / sums["span"]).rename("value").reset_index().rename(columns={"hour": "time"})
    shown = {text: names[text] for text in _LINES if text in names}
    lines(left, hourly, "policy", shown)
    left.set(title="CPU in use", xlabel="hours", ylabel="part of the pool", ylim=(None, 1.01))
    use = found.long("use", heavy)
    resources = list(dict.fromkeys(use["resource"]))
    series = series_of(use, "policy", names, "resource", resources)
    groups(middle, [{"cpu": "CPU"}.get(name, name) for name in resources], series)
    per_cent(middle, 105)
    middle.set_title("Mean use")
    jobs = found.long("each_job", heavy)
    within = np.geomspace(1, heavy["until"].iloc[0], 60)
    done = {text: [100 * (of["response"] <= time).mean() for time in within] for text, of in jobs.groupby("policy")}
    more = pd.DataFrame({text: np.subtract(done[text], done["fluid:drfh"]) for text in shown})
    lines(right, more.assign(time=within).melt("time", var_name="policy"), "policy", shown)
    right.set(title="Jobs done, against DRFH", xlabel="within seconds", ylabel="points of all jobs", xscale="log")
    legend(drawn, left, middle)
    return drawn
