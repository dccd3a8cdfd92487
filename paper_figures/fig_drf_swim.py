"""DRF 7.3: how much sooner jobs of Facebook's day complete under DRF than under slots, by their size."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairopt.report import Results, interval

from .over_time import policy
from .style import DOUBLE, groups, legend, new, styled

NEEDS = ("drf_swim",)
CAPTION = (
    "By how much jobs end sooner than under slots, by the number of their tasks, on a day drawn like Facebook's "
    "(SWIM) with 6 and with 10 servers; 95% intervals over draws. Sharing by demands brings most where servers "
    "are not short."
)
_BINS = (1, 2, 11, 51, np.inf)
_NAMES = ("1", "2-10", "11-50", "> 50")
_SLOTS = "slots(n=12)"


@styled
def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Mean reductions over draws with 95% intervals; left on few servers, right on more; bars by policy."""
    found = results.of("drf_swim")
    jobs = found.long("each_job")
    jobs["size"] = pd.cut(jobs["tasks"], _BINS, right=False, labels=_NAMES)
    servers = jobs["source"].str.extract(r"servers=(\d+)")[0].astype(float)
    wide = jobs.assign(servers=servers).pivot_table(
        index=["servers", "source", "repetition", "size", "job"], columns="policy", values="response", observed=True
    )
    others = [name for name in ("best-fit-drfh", "first-fit-drfh", "cpu-fair") if name in wide]
    drawn, table = new(width, 2.1, 1, max(2, wide.index.get_level_values("servers").nunique()), stack=True)
    for axes, number in zip(table.ravel(), sorted(wide.index.get_level_values("servers").unique()), strict=False):
        here = wide.xs(number, level="servers").dropna()
        means = here.groupby(level=["source", "repetition", "size"], observed=True).mean()
        series = []
        for name in others:
            gain = (100 * (1 - means[name] / means[_SLOTS])).rename("gain").reset_index()
            one = interval(gain.assign(size=gain["size"].astype(str)), ["size"], "gain").set_index("size")
            one = one.reindex(_NAMES)
            series.append((policy(name), one["mean"].fillna(0.0), one["half"].fillna(0.0)))
        groups(axes, list(_NAMES), series)
        axes.axhline(0, color="#111111", linewidth=0.6)
        axes.yaxis.set_major_formatter("{x:g}%")
        axes.set(title=f"{number:g} servers", xlabel="tasks of the job")
    for axes in table.ravel():
        if not axes.has_data():
            axes.remove()
    table[0, 0].set_ylabel("sooner than under slots")
    legend(drawn, table[0, 0])
    return drawn
