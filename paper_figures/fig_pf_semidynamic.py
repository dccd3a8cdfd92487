"""PF figures 4, 6 and 7 over a day: utilization of mechanisms that reallocate every five minutes."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairopt.report import Results

from .over_time import lines, policy
from .style import DOUBLE, groups, legend, new, per_cent
from .utilization import points, series_of

NEEDS = ("pf_semidynamic",)
CAPTION = (
    "Days of arriving jobs under PS-DSF and DRFH, re-solved every five minutes and when a job ends: CPU in use on "
    "the first day, hour by hour, where a user may use one type of servers, and every other with probability .3; "
    "mean use of CPU and memory over all days, with and without that placement, with 95% intervals; and, with it, "
    "how many more jobs than under DRFH are completed within a time."
)
_PLACED = "density=0.3"


def caption(results: Results) -> str:
    """Mean difference in use, in points, by placement."""
    use = results.of("pf_semidynamic").long("use")
    texts = {one: "with placement" if _PLACED in one else "without" for one in dict.fromkeys(use["source"])}
    return points(use, "source", texts, "policy", "fluid:ps-dsf", "fluid:drfh")


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """CPU on the first day (hourly means), mean utilization of all days with 95% intervals, and completion times."""
    found = results.of("pf_semidynamic")
    cells = found.cells
    placed = cells[cells["source"].str.contains(_PLACED)]
    placed = cells if placed.empty else placed
    first = placed[placed["repetition"] == placed["repetition"].min()]
    names = {text: policy(text) for text in dict.fromkeys(cells["policy"])}
    drawn, table = new(width, 2.2, 1, 3, stack=True)
    left, middle, right = table.ravel()
    times = found.long("timeline", first)
    times = times.assign(hour=times["time"] // 3600)
    wide = times.pivot_table(index=["policy", "hour", "time"], columns="what", values="value").dropna(subset="use_cpu")
    sums = wide.assign(used=wide["use_cpu"] * wide["span"]).groupby(level=["policy", "hour"])[["used", "span"]].sum()
    hourly = (sums["used"] / sums["span"]).rename("value").reset_index().rename(columns={"hour": "time"})
    lines(left, hourly, "policy", names)
    left.set(title="CPU in use", xlabel="hours", ylabel="part of the pool", ylim=(None, 1.01))
    use = found.long("use", cells)
    where = use["source"].str.contains(_PLACED).map({True: "\nplaced", False: ""})
    use = use.assign(resource=use["resource"].replace({"cpu": "CPU", "memory": "RAM"}) + where)
    resources = list(dict.fromkeys(use["resource"]))
    groups(middle, resources, series_of(use, "policy", names, "resource", resources))
    per_cent(middle, 105)
    middle.set_title("Mean use")
    jobs = found.long("each_job", placed)
    within = np.geomspace(1, placed["until"].iloc[0], 60)
    done = {text: [100 * (of["response"] <= time).mean() for time in within] for text, of in jobs.groupby("policy")}
    more = pd.DataFrame({text: np.subtract(done[text], done["fluid:drfh"]) for text in names})
    lines(right, more.assign(time=within).melt("time", var_name="policy"), "policy", names)
    right.set(title="Jobs done, against DRFH", xlabel="within seconds", ylabel="points of all jobs", xscale="log")
    legend(drawn, left, middle)
    return drawn
