"""MQDRF figures 2 and 3: CPU, memory and dominant shares of users and queues on one server, over arrivals of users."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairopt.report import Results

from .over_time import lines
from .style import DOUBLE, NARROW, legend, new

NEEDS = ("mqdrf_dynamic",)
CAPTION = (
    "CPU, memory and dominant shares of three users under MQDRF who come at 0, 100 and 300 s (MQDRF figure 2), and "
    "their dominant shares under discrete DRF; CPU and memory of the three queues where a user comes every 200 s (CPU, "
    "queues and Memory, queues; figure 3). Tasks last ten seconds; caps of the levels are .4, .3 and .3."
)
#: Times at which one, two and three users are there.
_AT = (50, 250, 450)
#: Demands of U1, U2 and U3 relative to their largest one (CPU, memory); later users repeat them in rotation.
_TAKES = {"CPU": (0.5, 1, 1), "Memory": (1, 0.5, 1)}


def caption(results: Results) -> str:
    """Dominant shares of the three users at three times, under both policies."""
    shares = results.of("mqdrf_dynamic").long("shares")
    shares = shares[(shares["workload"] == "figure2") & shares["time"].isin(_AT)]
    parts = []
    for policy, of in shares.groupby("policy", sort=False):
        wide = of.pivot_table(index="time", columns="user", values="share").fillna(0)
        said = "; ".join(
            f"{' '.join(f'{100 * one:.0f}%' for one in row)} at {time:.0f} s" for time, row in wide.iterrows()
        )
        parts.append(f"{'MQDRF' if policy.startswith('mqdrf') else 'DRF'}: {said}")
    return f"Dominant shares of the users: {'. '.join(parts)}."


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """First row: users; second row: queues, the newest user being in the first, the previous one in the second."""
    shares = results.of("mqdrf_dynamic").long("shares").rename(columns={"share": "value"})
    kind = (shares["user"].str[1:].astype(int) - 1) % 3
    three, many = (shares["workload"] == one for one in ("figure2", "figure3"))
    capped = shares["policy"].str.startswith("mqdrf")
    queues = _in_queues(shares[many])
    narrow = width < NARROW
    drawn, table = new(width, 5.4, 3, 2, sharey=True) if narrow else new(width, 4.0, 2, 3, sharey=True)
    table = table.T if narrow else table
    for column, (name, takes) in enumerate(_TAKES.items()):
        part = shares["value"] * kind.map(dict(enumerate(takes)))
        for row, (chosen, by) in enumerate(((shares[three & capped], "user"), (queues, "queue"))):
            here = chosen.assign(value=part[chosen.index]).groupby([by, "time"], as_index=False)["value"].sum()
            lines(table[row, column], here, by, {one: one for one in here[by].unique()}, first=3 * row)
            table[row, column].set_title(f"{name}, {by}s")
    for row, (chosen, title) in enumerate(
        ((shares[three & capped], "Dominant share"), (shares[three & ~capped], "The same, DRF"))
    ):
        lines(table[row, 2], chosen, "user", {one: one for one in chosen["user"].unique()})
        table[row, 2].set_title(title)
    for axes in table.ravel():
        axes.set(xlabel="seconds", ylim=(0, 1.03))
    for axes in table[0] if narrow else table[:, 0]:
        axes.set_ylabel("part of the server")
    legend(drawn, *table[:, 0])
    return drawn


def _in_queues(shares: pd.DataFrame) -> pd.DataFrame:
    """Queues of users over time, by the number of later arrivals."""
    come = shares[shares["value"] > 0].groupby("user")["time"].min()
    shares = shares[shares["user"].isin(come.index)]
    first, order = shares["user"].map(come), np.sort(come)
    later = order.searchsorted(shares["time"], "right") - order.searchsorted(first, "right")
    return shares.assign(queue=[f"queue {k + 1}" for k in later.clip(0, 2)]).sort_values("queue")
