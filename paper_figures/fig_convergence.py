"""Convergence of best responses: residual by rounds, for different orders, alphas and damping."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairopt.report import Results

from .style import DOUBLE, NARROW, line, name, new

NEEDS = ("convergence",)
CAPTION = (
    "Residual of best responses by rounds, by order, alpha, damping and relaxation: the largest change that a "
    "response would still make, as a part of the user's tasks, the smallest so far; medians over draws, and a game "
    "that has ended stays at its last residual. Servers in turn converge at every alpha; all at once they need damping."
)
_ORDERS = ("elastic", "cyclic", "random", "over-relaxed", "jacobi", "asynchronous")
#: Alpha of the panels that vary another parameter.
ALPHA = 3.0


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Medians over draws; a game that has ended keeps its last residual."""
    curves = results.of("convergence").long("curve")
    curves = curves.assign(default=curves["damping"].isna())
    narrow = width < NARROW
    drawn, table = new(width, 1.4 * width, 3, 2, sharey=True) if narrow else new(width, 0.66 * width, 2, 3, sharey=True)
    panels = table.ravel()
    at = "" if narrow else f" α = {ALPHA:g},"  # omitted in half a column, where the caption states it
    for axes, cluster in zip(panels[:3], ("dense", "sparse", "bitbrains"), strict=True):
        of = curves[curves["default"] & (curves["cluster"] == cluster) & (curves["alpha"] == ALPHA)]
        _lines(axes, of, "order", _ORDERS)
        axes.set_title(f"{cluster.capitalize()},{at} by order")
    dense = curves[curves["cluster"] == "dense"]
    of = dense[dense["default"] & (dense["order"] == "elastic")]
    _lines(panels[3], of, "alpha", sorted(of["alpha"].unique()), "α = {:g}")
    panels[3].set_title("Dense, elastic, by α")
    for axes, order, title in zip(panels[4:], ("jacobi", "cyclic"), ("damping", "relaxation"), strict=True):
        of = dense[~dense["default"] & (dense["order"] == order) & (dense["alpha"] == ALPHA)]
        _lines(axes, of, "damping", sorted(of["damping"].unique()))
        axes.set_title(f"Dense,{at} {order}, by {title}")
    for axes in panels:
        axes.set(xscale="log", yscale="log")
        if narrow:
            axes.title.set_fontsize(7)
    # Residuals at the level of rounding would dominate the axis.
    panels[0].set_ylim(bottom=max(panels[0].get_ylim()[0], 1e-8))
    for axes in table[:, 0]:
        axes.set_ylabel("residual" if narrow else "residual: largest change of tasks")
    for axes in table[-1]:
        axes.set_xlabel("rounds")
    look = {"fontsize": 5.5, "handlelength": 2.6, "borderpad": 0.2, "labelspacing": 0.25} if narrow else {"fontsize": 6}
    for axes, varied in zip((panels[0], *panels[3:]), ("order", "α", "damping", "relaxation"), strict=True):
        axes.legend(loc="lower left", title=varied, title_fontsize=look["fontsize"], **look)
    return drawn


def _lines(axes: Axes, curves: pd.DataFrame, by: str, values: Iterable[Hashable], form: str = "{}") -> None:
    values = list(values)
    for k, value in enumerate(values):
        of = curves[curves[by] == value]
        if of.empty:
            continue
        each = of.pivot_table(index="round", columns="key", values="residual").ffill().cummin()
        middle = each.median(axis=1)
        middle = middle[middle > 0]  # zero cannot be shown on a logarithmic axis
        apart = 10 ** (0.3 * k / len(values))  # markers of coincident lines are shifted
        marks = np.unique(np.geomspace(apart, max(len(middle), apart), 7).astype(int) - 1).clip(min=0)
        text = name("ps-dsf") if value == np.inf else form.format(value)
        axes.plot(middle.index, middle, label=text, markevery=marks.tolist(), **line(k))
