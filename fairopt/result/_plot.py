"""Parts of all pictures: a figure that shows itself in a notebook, distinct colours, the axis of alpha."""

from __future__ import annotations

import math
from collections.abc import Sequence
from io import BytesIO
from itertools import cycle
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import ArrayLike

from ..errors import DataError
from ..model._arrays import Array

#: Names in legends are cut off behind this many characters.
_LONGEST = 28
#: Matplotlib's nine that are not grey, then ten as far as possible from all before (in CIELAB).
_COLOURS = (
    *("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#bcbd22", "#17becf"),
    *("#f2bb83", "#14144c", "#d7f29f", "#304c14", "#d71468", "#14f2bb", "#30149f", "#f214f2", "#14f214", "#1414f2"),
)
#: For stacks: by turns dark and light, so that neighbours differ in grey too; hues as far apart as can be.
_STACKED = (
    *("#1a6395", "#ff973b", "#1c671c", "#eda5d7", "#2424c1", "#c4c42e", "#82142f", "#31c531", "#b91c91", "#9be39b"),
    *("#7d6213", "#1cbebe", "#21493f", "#d0bd83", "#5959c0", "#97aae2", "#642d64", "#e29898", "#b1401b"),
)
#: Patterns of a stack, two colours each: who meets where those between have nothing differs in grey as well.
_PATTERNS = ("", "///", "...", "\\\\\\", "xxx")
_DASHES = ("-", "--", "-.", ":")
#: Nobody's colour: that of what is joined.
OTHERS = "#b8b8b8"
#: Figures from this width on, in inches, have room for more ticks.
NARROW = 5.0


class Picture(Figure):
    """A figure of no window: matplotlib shows such a one in a notebook only if pyplot is set up; this one always."""

    def _repr_png_(self) -> bytes:
        file = BytesIO()
        self.savefig(file, format="png", dpi=120)
        return file.getvalue()


def panels(ax: Any, size: tuple[float, float], count: int = 1, **more: Any) -> tuple[Figure, list[Axes]]:
    """So many axes to draw in, and their figure: those handed in, or a row of a new figure.

    Its size in inches is the caller's own, from rcParams, or else the one given.
    """
    if ax is None:
        own = list(mpl.rcParams["figure.figsize"])
        size = size if own == list(mpl.rcParamsDefault["figure.figsize"]) else (own[0], own[1])
        figure: Figure = Picture(figsize=size, layout="constrained")
        return figure, list(figure.subplots(1, count, squeeze=False, **more)[0])
    given = list(np.ravel(np.asarray(ax, dtype=object)))
    if len(given) != count or not all(isinstance(one, Axes) for one in given):
        named = "one of matplotlib's axes" if count == 1 else f"{count} of matplotlib's axes, subplots(1, {count})"
        raise DataError(f"ax is of type {type(ax).__name__}; this picture is drawn in {named}")
    return given[0].get_figure(root=True), given


def legend(ax: Any, axes: Axes, handles: Sequence[Any], labels: Sequence[str], place: str, **more: Any) -> None:
    """A legend outside of the panels of a new figure; in axes that were handed in (`ax`), inside of the first."""
    of: Any = axes.figure if ax is None else axes
    where = more | {"loc": f"outside {place}"} if ax is None else more | {"ncols": 1}
    of.legend(handles, labels, frameon=False, **where)


def from_zero(axes: Axes, top: float | None = None) -> None:
    """A vertical axis from 0 on, to `top` if that is given, with room for lines that run along its ends."""
    most = axes.dataLim.y1 if top is None else top
    most = most if 0 < most < math.inf else 1.0
    axes.set_ylim(-0.02 * most, (1.05 if top is None else 1.02) * most)


def level(axes: Axes) -> None:
    """Show a line that does not change as level: no rounding error fills the axis."""
    low, high = axes.get_ylim()
    room = max(0.0, 0.02 * max(abs(low), abs(high)) - (high - low)) / 2
    axes.set_ylim(low - room, high + room)


def colours(count: int, usual: Sequence[str] = _COLOURS) -> list[str]:
    """Colours that can be told apart, at most 19 and none of them grey; or the caller's own, from rcParams."""
    if mpl.rcParams["axes.prop_cycle"] == mpl.rcParamsDefault["axes.prop_cycle"]:
        return list(usual[:count])
    own = cycle(mpl.rcParams["axes.prop_cycle"].by_key().get("color", usual))
    return [next(own) for _ in range(count)]


def looks(count: int) -> list[dict[str, Any]]:
    """Styles of lines: colours, dashes, and falling widths, so that covered lines stay visible."""
    width = mpl.rcParams["lines.linewidth"]
    return [
        {"color": colour, "linestyle": dashes, "linewidth": width * max(1.4 - 0.2 * k, 0.8)}
        for k, (colour, dashes) in enumerate(zip(colours(count), cycle(_DASHES), strict=False))
    ]


def stacked(count: int) -> list[str]:
    """At most 19 colours of which neighbours differ in grey too; or the caller's own."""
    return colours(count, _STACKED)


def patterns(fills: Sequence[str]) -> list[str]:
    """The pattern of every part of a stack; of what is joined none."""
    return ["" if fill == OTHERS else _PATTERNS[k // 2 % len(_PATTERNS)] for k, fill in enumerate(fills)]


def plain(name: str) -> str:
    """A name as text of a legend: of bounded length, in which nothing is a formula or hidden."""
    text = " ".join(name.split()) or "''"
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text  # matplotlib leaves out labels that begin so


def legend_of_stack(ax: Any, axes: Axes, names: Sequence[str], fills: Sequence[str], hatches: Sequence[str]) -> None:
    """A legend beside a stack, in the order of the stack: what stands on top comes first."""
    parts = zip(fills[::-1], hatches[::-1], strict=True)
    handles = [Patch(facecolor=fill, edgecolor="white", hatch=hatch) for fill, hatch in parts]
    legend(ax, axes, handles, [*map(plain, names[::-1])], "right upper", fontsize="x-small")


def at_alpha(alpha: ArrayLike) -> Array:
    """Places of alpha on the axis from 0 to infinity: `alpha / (1 + alpha)`."""
    return np.asarray(1 - 1 / (1 + np.asarray(alpha, dtype=float)))


def alpha_axis(axes: Axes, wide: bool = False, label: str = "α") -> None:
    """Ticks of the axis from 0 to infinity."""
    ticks = (0, 0.5, 1, 2, 3, 8, math.inf) if wide else (0, 1, 3, math.inf)
    axes.set_xticks(at_alpha(ticks), ["∞" if math.isinf(tick) else f"{tick:g}" for tick in ticks])
    axes.set_xlim(-0.03, 1.03)
    if label:
        axes.set_xlabel(label)
