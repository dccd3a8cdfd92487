"""Pictures of schedules, of whole tasks and of fluid ones. They simulate nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._libraries import pd
from ..result._plot import Picture, colours, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def schedule(frame: pd.DataFrame, jobs: pd.DataFrame, names: Sequence[str], title: str) -> Figure:
    """Three panels: used part of every resource and waiting tasks over time, and jobs by response time."""
    ends = float(frame.index.max())
    units = ((3600.0, "h"), (60.0, "min"), (1.0, "s"))
    unit, word = next((seconds, name) for seconds, name in units if ends >= 3 * seconds or seconds == 1)
    figure = Picture(figsize=(9.0, 2.8), layout="constrained")
    use, queue, response = figure.subplots(1, 3)
    time = frame.index.to_numpy() / unit
    for name, colour in zip(names, colours(len(names)), strict=False):
        use.step(time, frame[name], where="post", color=colour, linewidth=1, label=plain(name))
    use.set_ylim(0, None)
    use.set_xlabel(f"time ({word})")
    use.set_ylabel("used part of capacity")
    use.legend(fontsize="x-small", frameon=False)
    for name, colour in zip(("running", "waiting"), colours(2), strict=True):
        queue.step(time, frame[name], where="post", color=colour, linewidth=1, label=name)
    queue.set_ylim(0, None)
    queue.set_xlabel(f"time ({word})")
    queue.set_ylabel("tasks")
    queue.legend(fontsize="x-small", frameon=False)
    took = np.sort(jobs["response"].dropna().to_numpy())
    response.step(took, np.arange(1, len(took) + 1) / max(len(jobs), 1), where="post", color=colours(1)[0])
    if len(took) and took[0] > 0 and took[-1] > 30 * took[0]:
        response.set_xscale("log")
    response.set_ylim(0, 1.02)
    response.set_xlabel("response time of jobs (s)")
    response.set_ylabel("part of all jobs")
    figure.suptitle(plain(title), fontsize="medium")
    return figure


def fluid(timeline: pd.DataFrame, jobs: pd.DataFrame, resources: Sequence[str], by: str, title: str) -> Figure:
    """Use of every resource over time; players present; response times of jobs."""
    figure = Picture(figsize=(9.0, 2.8), layout="constrained")
    use, present, times = figure.subplots(1, 3)
    hour = 3600.0
    edges = np.append(timeline.index, timeline.index[-1:] + timeline["span"].iloc[-1:]) / hour
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
