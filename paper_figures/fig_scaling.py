"""Rounds of best responses and seconds of the engine against users, servers, density and alpha."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.figure import Figure

from fairopt.report import Results, interval

from .style import DOUBLE, legend, line, new, styled

NEEDS = ("scaling",)
_ROWS = (("best-response", "rounds", "rounds of best responses"), ("best-response", "seconds", "seconds of the game"),
         ("equilibrium", "seconds", "seconds of the engine"))  # fmt: skip
_LABELS = {"users": "users", "servers": "servers", "density": "density"}


@styled
def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Means over draws with 95% confidence intervals. A cross: some games were still going on."""
    cells = results.of("scaling").cells
    drawn, table = new(width, 0.78 * max(width, 6), len(_ROWS), 3, sharey="row", sharex="col")
    for column, (by, label) in enumerate(_LABELS.items()):
        for row, (engine, measure, text) in enumerate(_ROWS):
            axes = table[row, column]
            of = _varied(cells[cells["engine"] == engine], by)
            for k, alpha in enumerate(sorted(of["alpha"].unique())):
                found = interval(of[of["alpha"] == alpha], ["x"], measure).sort_values("x")
                name = "PS-DSF" if math.isinf(alpha) else f"α = {alpha:g}"
                low = found["half"].fillna(0).clip(upper=0.9 * found["mean"])
                axes.errorbar(found["x"], found["mean"], yerr=[low, found["half"].fillna(0)], label=name, capsize=1.5,
                              elinewidth=0.6, **line(k))  # fmt: skip
            going = of[of["status"] == "missed"]
            if engine == "best-response" and len(going):
                at = going.groupby(["x", "alpha"])[measure].size().reset_index()[["x", "alpha"]]
                at = at.merge(of.groupby(["x", "alpha"])[measure].mean().reset_index())
                axes.plot(at["x"], at[measure], linestyle="none", marker="x", color="#b5152c", markersize=5,
                          label="some games did not end", zorder=4)  # fmt: skip
            axes.set_yscale("log")
            if by != "density":
                axes.set_xscale("log")
                ticks = sorted(of["x"].unique())
                axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
                axes.set_xticks([], minor=True)
            if column == 0:
                axes.set_ylabel(text)
        table[-1, column].set_xlabel(label)
    legend(drawn, *table.flat)
    drawn.align_ylabels()
    return drawn


def _varied(cells: pd.DataFrame, by: str) -> pd.DataFrame:
    """The cells where only one of the three is varied, with its value as `x`: one cell may belong to several panels."""
    asked = cells["source"].str.extract(r"density=([0-9.]+)")[0].astype(float)
    thin = cells[asked.notna()]
    base = {"users": thin["users"].iloc[0], "servers": thin["servers"].iloc[0]}
    if by == "density":
        chosen = (cells["users"] == base["users"]) & (cells["servers"] == base["servers"])
        return cells[chosen].assign(x=asked[chosen].fillna(1.0))
    other = "servers" if by == "users" else "users"
    chosen = asked.isna() & (cells[other] == base[other])
    return cells[chosen].assign(x=cells.loc[chosen, by])
