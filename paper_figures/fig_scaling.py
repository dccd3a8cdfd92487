"""Rounds of best responses and seconds of the engine, by users, servers, density and alpha."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from fairopt.report import Results, interval

from .style import DOUBLE, NARROW, legend, line, new

NEEDS = ("scaling",)
CAPTION = (
    "Rounds and seconds of best responses until the game's residual is small, and seconds of the engine that "
    "solves for the equilibrium, against users, servers and density of placement: means over draws with 95% "
    "intervals; a full marker says that some games were still going on. The engine takes less at every "
    "size."
)
_ROWS = (("best-response", "rounds", "rounds of best responses", "rounds"),
         ("best-response", "seconds", "seconds of the game", "game, s"),
         ("equilibrium", "seconds", "seconds of the engine", "engine, s"))  # fmt: skip
_LABELS = {"users": "users", "servers": "servers", "density": "density"}
#: Alphas that fit in one column.
_FEW = (1.0, 3.0, math.inf)


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Means over draws with 95% confidence intervals; full markers if some games did not end."""
    cells, narrow = results.of("scaling").cells, width < NARROW
    if narrow:
        cells = cells[cells["alpha"].isin(_FEW)]
    drawn, table = new(width, (1.25 if narrow else 0.78) * width, len(_ROWS), 3, sharey="row", sharex="col")
    for column, (by, label) in enumerate(_LABELS.items()):
        for row, (engine, measure, text, short) in enumerate(_ROWS):
            axes = table[row, column]
            of = _varied(cells[cells["engine"] == engine], by)
            axes.set_yscale("log")
            if by != "density":
                axes.set_xscale("log")
                ticks = sorted(of["x"].unique())
                shown = ticks[:: 2 if narrow else 1]
                axes.set_xticks(shown, [f"{tick:g}" for tick in shown])
                axes.set_xticks([], minor=True)
            _lines(axes, of, measure)
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=12))
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_locator(NullLocator())
            if column == 0:
                axes.set_ylabel(short if narrow else text)
        table[-1, column].set_xlabel(label)
    legend(drawn, *table.flat)
    drawn.align_ylabels()
    return drawn


def _lines(axes: Axes, cells: pd.DataFrame, measure: str) -> None:
    """Lines by alpha with their intervals; markers of one size are shifted."""
    alphas = sorted(cells["alpha"].unique())
    for k, alpha in enumerate(alphas):
        of = cells[cells["alpha"] == alpha]
        found = interval(of, ["x"], measure).sort_values("x")
        aside, half = k - (len(alphas) - 1) / 2, found["half"].fillna(0)
        x = found["x"] * 1.04**aside if axes.get_xscale() == "log" else found["x"] + 0.008 * aside
        name = "PS-DSF" if math.isinf(alpha) else f"α = {alpha:g}"
        low = half.clip(upper=0.9 * found["mean"])
        axes.errorbar(x, found["mean"], [low, half], label=name, elinewidth=0.6, capsize=1.5, capthick=0.6, **line(k))
        going = found["x"].isin(of[of["status"] == "missed"]["x"])
        full = line(k) | {"linestyle": "none", "markerfacecolor": line(k)["color"]}
        axes.plot(x[going], found["mean"][going], zorder=4, **full)


def _varied(cells: pd.DataFrame, by: str) -> pd.DataFrame:
    """Cells in which only one of the three parameters varies, its value being `x`; panels may share cells."""
    asked = cells["source"].str.extract(r"density=([0-9.]+)")[0].astype(float)
    thin = cells[asked.notna()]
    base = {"users": thin["users"].iloc[0], "servers": thin["servers"].iloc[0]}
    if by == "density":
        chosen = (cells["users"] == base["users"]) & (cells["servers"] == base["servers"])
        return cells[chosen].assign(x=asked[chosen].fillna(1.0))
    other = "servers" if by == "users" else "users"
    chosen = asked.isna() & (cells[other] == base[other])
    return cells[chosen].assign(x=cells.loc[chosen, by])
