"""Pictures of schedules, of whole tasks and of fluid ones. They simulate nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._libraries import pd
from ..result._plot import colours, from_zero, looks, panels, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def schedule(frame: pd.DataFrame, jobs: pd.DataFrame, names: Sequence[str], title: str, ax: Any = None) -> Figure:
    """Three panels: used part of every resource and waiting tasks over time, and jobs by response time."""
    ends = float(frame.index.max())
    units = ((3600.0, "h"), (60.0, "min"), (1.0, "s"))
    unit, word = next((seconds, name) for seconds, name in units if ends >= 3 * seconds or seconds == 1)
    figure, [use, queue, response] = panels(ax, (9.0, 2.8), 3)
    time = frame.index.to_numpy() / unit
    for name, look in zip(names, looks(len(names)), strict=False):
        use.step(time, frame[name], where="post", label=plain(name), **look)
    from_zero(use)
    use.set_xlabel(f"time ({word})")
    use.set_ylabel("used part of capacity")
    use.legend(fontsize="x-small", frameon=False)
    for name, colour in zip(("running", "waiting"), colours(2), strict=True):
        queue.step(time, frame[name], where="post", color=colour, linewidth=1, label=name)
    from_zero(queue)
    queue.set_xlabel(f"time ({word})")
    queue.set_ylabel("tasks")
    queue.legend(fontsize="x-small", frameon=False)
    took = np.sort(jobs["response"].dropna().to_numpy())
    response.step(took, np.arange(1, len(took) + 1) / max(len(jobs), 1), where="post", color=colours(1)[0])
    if len(took) and took[0] > 0 and took[-1] > 30 * took[0]:
        response.set_xscale("log")
    from_zero(response, 1)
    response.set_xlabel("response time of jobs (s)")
    response.set_ylabel("part of all jobs")
    if ax is None:
        figure.suptitle(plain(title), fontsize="medium")
    return figure


def fluid(
    timeline: pd.DataFrame, jobs: pd.DataFrame, resources: Sequence[str], by: str, title: str, ax: Any = None
) -> Figure:
    """Use of every resource over time; players present; response times of jobs."""
    figure, [use, present, times] = panels(ax, (9.0, 2.8), 3)
    hour = 3600.0
    edges = np.append(timeline.index, timeline.index[-1:] + timeline["span"].iloc[-1:]) / hour
    for name, look in zip(resources, looks(len(resources)), strict=False):
        use.stairs(timeline[name], edges, baseline=None, label=plain(name), **look)
    from_zero(use, 1)
    use.set_ylabel("used part of capacity")
    use.legend(fontsize="x-small", frameon=False)
    present.stairs(timeline["players"], edges, baseline=None, color=colours(1)[0])
    from_zero(present)
    present.set_ylabel(f"{by}s present")
    for axes in (use, present):
        axes.set_xlabel("hours")
    done = np.sort(jobs["response"].dropna().to_numpy()) / 60
    times.ecdf(done) if len(done) == len(jobs) else times.step(
        done, np.arange(1, len(done) + 1) / len(jobs), where="post"
    )
    times.set_xscale("log")
    from_zero(times, 1)
    times.set_xlabel("response time [minutes]")
    times.set_ylabel("part of all jobs")
    if ax is None:
        figure.suptitle(plain(title), fontsize="medium")
    return figure
