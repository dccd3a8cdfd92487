"""A picture of a schedule: use and queue over time, completion of jobs. It simulates nothing."""

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
