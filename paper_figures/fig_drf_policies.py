"""DRF figures 9 to 12: completed small and large jobs in ten minutes, and completion times, by policy and thrashing."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairopt.report import Results

from .over_time import policy
from .style import DOUBLE, groups, legend, new, ordered

NEEDS = ("drf_policies",)
CAPTION = (
    "Jobs of small and of large tasks done, and how many seconds these took, under policies of whole tasks on the "
    "set-up of DRF's section 7.2, where a user's next job comes when one is done, with and without thrashing of "
    "servers that are over-committed, which makes tasks that are short of a resource three times slower; 95% intervals "
    "over draws."
)


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Means over draws with 95% intervals.

    Left: completed jobs if short tasks run three times slower; middle: completion times; right: completed jobs without
    slowdown.
    """
    found = results.of("drf_policies")
    jobs = found.long("each_job")
    jobs = jobs[jobs["workload"] == "loop"].rename(columns={"response": "took"})
    jobs["kind"] = jobs["user"].str.partition(" ")[0]
    by = ["thrashing", "policy", "kind", "repetition"]
    each = jobs.groupby(by, sort=False)["took"].agg(done="count", took="mean").reset_index()
    drawn, table = new(width, 2.5, 1, 3, stack=True)
    panels = (
        (3.0, "done", "Jobs done, thrashing"),
        (3.0, "took", "Seconds a job, thrashing"),
        (1.0, "done", "Jobs done, no thrashing"),
    )
    for axes, (factor, what, title) in zip(table.ravel(), panels, strict=True):
        _bars(axes, each[each["thrashing"] == factor].dropna(subset=what), what)
        axes.set_title(title)
    legend(drawn, table[0, 0])
    return drawn


def _bars(axes: Axes, frame: pd.DataFrame, what: str) -> None:
    policies = list(dict.fromkeys(frame["policy"]))
    series = []
    for kind in ("small", "large"):
        one = ordered(frame[frame["kind"] == kind], "policy", what, policies).fillna(0.0)
        series.append((f"{kind} tasks", one["mean"], one["half"]))
    groups(axes, [policy(text) for text in policies], series)
    axes.tick_params(axis="x", rotation=60, labelsize=6)
