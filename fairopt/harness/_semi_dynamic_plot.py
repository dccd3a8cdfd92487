"""Pictures of semi-dynamic runs."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from .._libraries import pd
from ..result._plot import Picture, colours, plain

#: PF's moving average, in seconds.
_AVERAGE = 3600.0


def plot(used: pd.DataFrame, jobs: pd.DataFrame, every: float, base: str, speedups: pd.DataFrame) -> Figure:
    """Use over time (means over workloads and resources, moving average of an hour); response times; gains."""
    names = list(dict.fromkeys(used["mechanism"]))
    figure = Picture(figsize=(10.5, 3.2), layout="constrained")
    use, response, gain = figure.subplots(1, 3)
    window = max(round(_AVERAGE / every), 1)
    for name, colour in zip(names, colours(len(names)), strict=False):
        rows = used[used["mechanism"] == name]
        first = rows.groupby("source")["time"].transform("min")
        mean = rows.assign(hour=(rows["time"] - first) / 3600).groupby("hour")["used"].mean()
        use.plot(mean.index, mean.rolling(window, min_periods=1).mean(), color=colour, label=plain(name), linewidth=1)
        times = jobs.loc[jobs["mechanism"] == name, "response"]
        done = np.sort(times.dropna().to_numpy()) / 60
        response.step(done, np.arange(1, len(done) + 1) / len(times), where="post", color=colour, linewidth=1)
    use.set_ylim(0, 1.02)
    use.set_xlabel("hours")
    use.set_ylabel("utilization (average of an hour)")
    response.set_xscale("log")
    response.set_ylim(0, 1.02)
    response.set_xlabel("response time [minutes]")
    response.set_ylabel("part of all jobs")
    table = speedups
    gain.barh(np.arange(len(table)), table["mean"], xerr=table["half"].fillna(0.0), color=colours(1)[0], height=0.6)
    gain.set_yticks(np.arange(len(table)), [plain(name) for name in table["over"]], fontsize="small")
    gain.axvline(0, color="#111111", linewidth=0.6)
    gain.set_xlabel(f"jobs sooner with {base} [log2]")
    figure.legend(fontsize="x-small", frameon=False, loc="outside upper center", ncols=len(names))
    return figure
