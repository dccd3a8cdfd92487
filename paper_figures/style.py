"""Common style of figures: widths, line styles that are distinct in grey, and an axis from alpha = 0 to infinity."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend_handler import HandlerTuple
from numpy.typing import ArrayLike, NDArray

from fairopt.report import interval
from fairopt.result import plot
from fairopt.result.palette import USERS
from fairopt.result.plot import Picture
from fairopt.result.plot import at_alpha as at_alpha

#: Widths of one column and of two, in inches.
SINGLE, DOUBLE = 3.4, 7.0
#: Height in inches of a figure of one column that leaves room for its caption.
TALLEST = 7.0
#: Width in inches below which a row has only one panel.
NARROW = plot.NARROW
#: Label of red diamonds and lines.
IN_PAPER = "value in the paper"

_LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 2)), (0, (8, 2)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
#: Fills of bars, from dark to light, with hatches.
_FILLS = ("#33415c", "#7d93b8", "#c9d3e3", "#f2f2f2", "#a36a4f", "#dcc3b4")
_HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "||||")

#: Names of mechanisms in figures.
NAMES = {
    "ps-dsf": "PS-DSF", "drfh": "DRFH", "tsf": "TSF", "drf": "DRF", "ceei": "CEEI", "asset-fairness": "asset fairness",
    "per-server-drf": "DRF per server", "alphapf-vds": "αPF-VDS",
}  # fmt: skip


def new(
    width: float, height: float, rows: int = 1, columns: int = 1, *, stack: bool | float = False, **more: Any
) -> tuple[Figure, NDArray[Any]]:
    """Create a figure of this size in inches, with a table of axes, outside of any window.

    With `stack` the panels are in one column in a figure of one column, whose height is `stack` if this is a number,
    and at most `TALLEST`.
    """
    shape, narrow = (rows, columns), width < NARROW
    if stack and narrow:
        more.pop("width_ratios", None)
        shape, height = (rows * columns, 1), height * columns * 0.85 if stack is True else stack
    height = min(height, TALLEST) if narrow else height
    layout = ConstrainedLayoutEngine(w_pad=0.03, h_pad=0.03, hspace=0.04, wspace=0.03)
    figure = Picture(figsize=(width, height), layout=layout)
    table = figure.subplots(*shape, squeeze=False, **more)
    return figure, table.reshape(rows, columns)


def line(k: int) -> dict[str, Any]:
    """Style of the k-th line: colour, dashes, marker and width all differ, so that overlaid lines remain visible."""
    k %= len(_LINES)
    width = mpl.rcParams["lines.linewidth"] * max(1.9 - 0.35 * k, 0.9)
    return {"color": colour(k), "linestyle": _LINES[k], "linewidth": width, "marker": _MARKERS[k],
            "markerfacecolor": "white"}  # fmt: skip


def colour(k: int) -> str:
    """Colour k of the style."""
    cycle = mpl.rcParams["axes.prop_cycle"].by_key()["color"]
    return str(cycle[k % len(cycle)])


def user(n: int) -> str:
    """Colour of user n of a cluster, the same in all pictures of fairopt."""
    return USERS[n % len(USERS)][0]


def bar(k: int) -> dict[str, Any]:
    """Style of the k-th kind of bar: fill and hatch."""
    k %= len(_FILLS)
    return {"facecolor": _FILLS[k], "hatch": _HATCHES[k], "edgecolor": "#111111", "linewidth": 0.5}


def name(mechanism: str, alpha: float = math.nan) -> str:
    """Name of a mechanism in figures; alpha = infinity is PS-DSF."""
    if mechanism == "alphapf-vds" and math.isfinite(alpha):
        return f"α = {alpha:g}"
    return NAMES.get(mechanism, mechanism)


def alpha_axis(axes: Axes, label: bool = True) -> None:
    """Ticks of the alpha axis from 0 to infinity."""
    figure = axes.get_figure()
    wide = isinstance(figure, Figure) and figure.get_figwidth() >= NARROW
    plot.alpha_axis(axes, wide, ("α (PS-DSF at ∞)" if wide else "α") if label else "")


def apart(alphas: ArrayLike, least: float = 0.03) -> list[int]:
    """Select the sorted alphas to be marked: those with a minimum distance on the axis, and infinity."""
    chosen: list[int] = []
    x = at_alpha(alphas)
    for k, here in enumerate(x):
        if k == len(x) - 1 or ((not chosen or here - x[chosen[-1]] >= least) and here <= x[-1] - 1.5 * least):
            chosen.append(k)
    return chosen


def by_alpha(
    axes: Axes, cells: pd.DataFrame, measure: str, k: int, label: str | None = None, unit: float = 1, marks: bool = True
) -> float:
    """Draw the k-th line of means by alpha with 95% bands, and return the top; `marks` omits close markers."""
    found = interval(cells, ["alpha"], measure).sort_values("alpha")
    x, mean, half = at_alpha(found["alpha"]), unit * found["mean"], unit * found["half"].fillna(0)
    axes.plot(x, mean, label=label, **line(k), markevery=apart(found["alpha"]) if marks else None)
    axes.fill_between(x, mean - half, mean + half, color=line(k)["color"], alpha=0.15, lw=0)
    return float((mean + half).max())


def ordered(frame: pd.DataFrame, by: str, values: str, order: Iterable[Any]) -> pd.DataFrame:
    """Means and half-widths of intervals of a column by another one, in the given order."""
    return interval(frame, [by], values).set_index(by).reindex(order)


def groups(axes: Axes, labels: Sequence[str], series: Iterable[tuple[str, ArrayLike, ArrayLike | None]]) -> None:
    """Draw grouped bars: `labels` of groups, and `series` of (name, heights, half-widths or None)."""
    every = list(series)
    width = 0.8 / len(every)
    for k, (text, heights, half) in enumerate(every):
        x = np.arange(len(labels)) + (k - (len(every) - 1) / 2) * width
        axes.bar(x, heights, width * 0.94, label=text, **bar(k))
        if half is not None and np.isfinite(np.asarray(half, dtype=float)).any():
            axes.errorbar(
                x, heights, yerr=half, fmt="none", ecolor="#111111", elinewidth=0.7, capsize=1.8, capthick=0.7
            )
    axes.set_xticks(range(len(labels)), labels)
    axes.grid(False, axis="x")


def per_cent(axes: Axes, most: float = 100.0) -> None:
    """Format the vertical axis as percentages."""
    axes.yaxis.set_major_formatter("{x:g}%")
    axes.set_ylim(0, most)


def band(axes: Axes) -> None:
    """Legend entry of bands around means."""
    axes.fill_between([], [], [], color="#777777", alpha=0.3, lw=0, label="95% interval of the mean")


def legend(figure: Figure, *panels: Axes) -> None:
    """Add one legend above the figure, with each label once, in as many rows as necessary.

    A label of a line in one panel and of a bar in another has both symbols.
    """
    entries: dict[str, dict[type, Any]] = {}
    for axes in panels:
        for one, text in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(text, {}).setdefault(type(one), one)
    columns = min(len(entries), 6 if figure.get_figwidth() >= NARROW else 3)
    shown: list[Any] = [tuple(one.values()) if len(one) > 1 else next(iter(one.values())) for one in entries.values()]
    both = {tuple: HandlerTuple(ndivide=None, pad=0.6)}
    figure.legend(shown, list(entries), loc="outside upper center", ncols=columns, handler_map=both)
