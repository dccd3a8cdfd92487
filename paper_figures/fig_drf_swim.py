"""DRF 7.3: utilization of CPU and memory on Facebook's day, and reductions of completion times by DRF against slots."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairopt.report import Results, StoredCells

from .over_time import lines, policy
from .style import DOUBLE, NARROW, groups, legend, new, ordered

NEEDS = ("drf_swim",)
CAPTION = (
    "Use of a day drawn like Facebook's (SWIM) on 6 servers (DRF figure 13), and by how much jobs end sooner "
    "than under slots, by the number of their tasks, with 6 and with 10 servers (figure 14); 95% intervals over draws. "
    "Sharing by demands uses more of servers that are short, and brings most where they are not."
)
_BINS = (1, 2, 11, 51, np.inf)
_NAMES = ("1", "2-10", "11-50", "> 50")
_SLOTS = "slots(n=12)"


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Top: the first draw on 6 servers; bottom: mean reductions over draws with 95% intervals, by policy."""
    found = results.of("drf_swim")
    jobs = found.long("each_job")
    jobs["size"] = pd.cut(jobs["tasks"], _BINS, right=False, labels=_NAMES)
    servers = jobs["source"].str.extract(r"servers=(\d+)")[0].astype(float)
    wide = jobs.assign(servers=servers).pivot_table(
        index=["servers", "source", "repetition", "size", "job"], columns="policy", values="response", observed=True
    )
    others = [name for name in ("best-fit-drfh", "first-fit-drfh", "cpu-fair") if name in wide]
    drawn, table = new(width, 6.8, 4, 1) if width < NARROW else new(width, 4.0, 2, 2)
    panels = table.ravel()
    _use(panels[:2], found)
    for axes, number in zip(panels[2:], sorted(wide.index.get_level_values("servers").unique()), strict=False):
        here = wide.xs(number, level="servers").dropna()
        means = here.groupby(level=["source", "repetition", "size"], observed=True).mean()
        series = []
        for name in others:
            gain = (100 * (1 - means[name] / means[_SLOTS])).rename("gain").reset_index()
            one = ordered(gain.assign(size=gain["size"].astype(str)), "size", "gain", _NAMES)
            series.append((policy(name), one["mean"].fillna(0.0), one["half"].fillna(0.0)))
        groups(axes, list(_NAMES), series)
        axes.axhline(0, color="#111111", linewidth=0.6)
        axes.yaxis.set_major_formatter("{x:g}%")
        axes.set(title=f"{number:g} servers", xlabel="tasks of the job")
    for axes in panels:
        if not axes.has_data():
            axes.remove()
    panels[0].set_ylabel("part of the servers")
    panels[2].set_ylabel("sooner than under slots")
    legend(drawn, panels[0], panels[2])
    return drawn


def _use(panels: np.ndarray, found: StoredCells) -> None:
    """Hourly means of used CPU and memory, in the first draw of the middle source of high load."""
    times = found.long("timeline")
    crowded = sorted(one for one in times["source"].unique() if "servers=10" not in one)
    times = times[(times["source"] == crowded[len(crowded) // 2]) & (times["repetition"] == 0)]
    hour = (times["time"] // 3600).rename("hour")
    means = times.groupby(["policy", "what", hour], as_index=False)["value"].mean()
    means = means.rename(columns={"hour": "time"})
    for axes, what, title in zip(panels, ("use_cpu", "use_memory"), ("CPU in use", "Memory in use"), strict=True):
        lines(axes, means[means["what"] == what], "policy", {name: policy(name) for name in ("first-fit-drfh", _SLOTS)})
        axes.set(title=title, xlabel="hours", ylim=(0, 1.03))
