"""Pictures of a fluid schedule."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from .._libraries import pd
from ..result._plot import Picture, colours, plain

_HOUR = 3600.0


def plot(timeline: pd.DataFrame, jobs: pd.DataFrame, resources: Sequence[str], by: str, title: str) -> Figure:
    """Use of every resource over time; players present; response times of jobs."""
    figure = Picture(figsize=(9.0, 2.8), layout="constrained")
    use, present, times = figure.subplots(1, 3)
    edges = np.append(timeline.index, timeline.index[-1:] + timeline["span"].iloc[-1:]) / _HOUR
    for name, colour in zip(resources, colours(len(resources)), strict=False):
        use.stairs(timeline[name], edges, baseline=None, label=plain(name), color=colour)
    use.set_ylim(0, 1.02)
    use.set_ylabel("used part of capacity")
    use.legend(fontsize="x-small", frameon=False)
    present.stairs(timeline["players"], edges, baseline=None, color=colours(1)[0])
    present.set_ylim(bottom=0)
    present.set_ylabel(f"{by}s present")
    for axes in (use, present):
        axes.set_xlabel("hours")
    done = np.sort(jobs["response"].dropna().to_numpy()) / 60
    times.ecdf(done) if len(done) == len(jobs) else times.step(
        done, np.arange(1, len(done) + 1) / len(jobs), where="post"
    )
    times.set_xscale("log")
    times.set_ylim(0, 1.02)
    times.set_xlabel("response time [minutes]")
    times.set_ylabel("part of all jobs")
    figure.suptitle(plain(title), fontsize="medium")
    return figure
