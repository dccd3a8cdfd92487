"""The picture of a schedule, of whole tasks or fluid. It simulates nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._libraries import pd
from ..result.plot import colours, from_zero, looks, panels, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def schedule(
    over_time: pd.DataFrame,
    jobs: pd.DataFrame,
    resources: Sequence[str],
    lines: dict[str, pd.Series[float]],
    what: str,
    title: str,
    ax: Any = None,
) -> Figure:
    """Three panels: used part of every resource and counts (`what`) over time, and jobs by response time."""
    ends = float(over_time.index.max())
    units = ((3600.0, "h"), (60.0, "min"), (1.0, "s"))
    unit, word = next((seconds, name) for seconds, name in units if ends >= 3 * seconds or seconds == 1)
    figure, [use, queue, response] = panels(ax, (9.0, 2.8), 3)
    time = over_time.index.to_numpy() / unit
    for name, look in zip(resources, looks(len(resources)), strict=False):
        use.step(time, over_time[name], where="post", label=plain(name), **look)
    for (name, values), colour in zip(lines.items(), colours(len(lines)), strict=True):
        queue.step(time, values, where="post", color=colour, linewidth=1, label=name)
    for axes, label in ((use, "used part of capacity"), (queue, what)):
        from_zero(axes)
        axes.set_xlabel(f"time ({word})")
        axes.set_ylabel(label)
        axes.legend(fontsize="x-small", frameon=False)
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
