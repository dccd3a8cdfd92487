"""The picture of marginal values: who gains and who loses by one more unit of a resource."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._libraries import pd
from ._plot import OTHERS, Picture, legend_of_stack, patterns, plain, stacked

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Users with a colour of their own.
_SHOWN = 10


def marginal_values(frame: pd.DataFrame, mechanism: str, most: int) -> Figure:
    """A bar per row (server, resource) of a frame of gains by user: gains to the right, losses to the left."""
    shown = frame.dropna().head(most)
    largest = shown.abs().sum().sort_values(ascending=False, kind="stable").index
    own, others = list(largest[:_SHOWN]), list(largest[_SHOWN:])
    columns = [(str(name), shown[[name]].to_numpy(dtype=float)) for name in own]
    if others:
        columns.append((f"{len(others)} others", shown[others].to_numpy(dtype=float)))
    fills = [*stacked(len(own)), *([OTHERS] if others else [])]
    hatches = patterns(fills)
    rows = np.arange(len(shown))
    height = max(2.6, 0.3 * len(shown) + 1.2, 0.2 * len(columns) + 0.9)
    figure = Picture(figsize=(7.2, height), layout="constrained")
    axes = figure.subplots()
    right, left = np.zeros(len(shown)), np.zeros(len(shown))
    for (_, values), fill, hatch in zip(columns, fills, hatches, strict=True):
        gain, loss = np.maximum(values, 0).sum(axis=1), np.minimum(values, 0).sum(axis=1)
        axes.barh(rows, gain, left=right, color=fill, hatch=hatch, edgecolor="white", linewidth=0.4)
        axes.barh(rows, loss, left=left, color=fill, hatch=hatch, edgecolor="white", linewidth=0.4)
        right, left = right + gain, left + loss
    names = [f"{plain(str(resource))} on {plain(str(server))}" for server, resource in shown.index]
    axes.set_yticks(rows, names, fontsize="small")
    axes.invert_yaxis()
    axes.axvline(0, color="#444444", linewidth=0.8)
    axes.set_xlabel("tasks gained by one more unit")
    axes.set_title(plain(mechanism), fontsize="medium")
    axes.grid(axis="x", linewidth=0.4, alpha=0.6)
    axes.set_axisbelow(True)
    legend_of_stack(figure, [name for name, _ in columns][::-1], fills[::-1], hatches[::-1])
    return figure
