"""Parts of all pictures: a figure that shows itself in a notebook, distinct colours, the axis of alpha."""

from __future__ import annotations

import math
from collections.abc import Sequence
from io import BytesIO

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import ArrayLike, NDArray

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


def colours(count: int) -> list[str]:
    """At most 19 colours, none of them grey."""
    return list(_COLOURS[:count])


def stacked(count: int) -> list[str]:
    """At most 19 colours of which neighbours differ in grey too."""
    return list(_STACKED[:count])


def patterns(fills: Sequence[str]) -> list[str]:
    """The pattern of every part of a stack; of what is joined none."""
    return ["" if fill == OTHERS else _PATTERNS[k // 2 % len(_PATTERNS)] for k, fill in enumerate(fills)]


def plain(name: str) -> str:
    """A name as text of a legend: of bounded length, in which nothing is a formula or hidden."""
    text = " ".join(name.split()) or "''"
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text  # matplotlib leaves out labels that begin so


def legend_of_stack(figure: Figure, names: Sequence[str], fills: Sequence[str], hatches: Sequence[str]) -> None:
    """A legend beside a stack, in the order of the stack: what stands on top comes first."""
    handles = [
        Patch(facecolor=fill, edgecolor="white", hatch=hatch) for fill, hatch in zip(fills, hatches, strict=True)
    ]
    labels = [plain(name) for name in names]
    figure.legend(handles[::-1], labels[::-1], loc="outside right upper", fontsize="x-small", frameon=False)


def at_alpha(alpha: ArrayLike) -> NDArray[np.float64]:
    """Places of alpha on the axis from 0 to infinity: `alpha / (1 + alpha)`."""
    values = np.asarray(alpha, dtype=float)
    return np.where(np.isinf(values), 1.0, values / (1 + np.where(np.isinf(values), 0, values)))


def alpha_axis(axes: Axes, wide: bool = False, label: str = "α") -> None:
    """Ticks of the axis from 0 to infinity."""
    ticks = (0, 0.5, 1, 2, 3, 8, math.inf) if wide else (0, 1, 3, math.inf)
    axes.set_xticks(at_alpha(ticks), ["∞" if math.isinf(tick) else f"{tick:g}" for tick in ticks])
    axes.set_xlim(-0.03, 1.03)
    if label:
        axes.set_xlabel(label)
