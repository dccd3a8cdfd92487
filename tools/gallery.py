"""docs/gallery.png: the smallest counterexample of every property, as a picture.

python tools/gallery.py
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # of this checkout, whatever is installed

from fairopt.properties import Witness  # noqa: E402
from fairopt.properties._base import described  # noqa: E402

PICTURE = ROOT / "docs" / "gallery.png"
NOT_SHOWN = ("task-maxmin", "utilitarian", "gfj", "mqdrf")
BLUE, ORANGE, RED = "#0072b2", "#e69f00", "#c00000"
#: What a panel's marks are, as legends say it.
BEFORE, AFTER, LIE, DUE = "tasks", "after the change", "after a lie, as reported", "due to the user who misses it"


def smallest() -> dict[str, Witness]:
    """Of every property the counterexample with the fewest numbers, and of these the one in the shortest words.

    Of mechanisms that look at demands and share all there is: rules about numbers of tasks, and MQDRF, which reserves
    capacity, have nearly the smallest of all.
    """
    found: dict[str, Witness] = {}
    for path in sorted((ROOT / "docs" / "witnesses").rglob("*.json")):
        one = Witness.load(path)
        if one.mechanism.startswith(NOT_SHOWN):
            continue
        if one.property not in found or size(one) < size(found[one.property]):
            found[one.property] = one
    return dict(sorted(found.items()))


def size(one: Witness) -> tuple[int, int]:
    """Numbers in the cluster, and the length of the words."""
    return one.cluster.capacity.size + one.cluster.demand.size, len(one.sentence)


def panel(axes: Axes, one: Witness, title: str, size: float = 6.5) -> None:
    """Tasks of every user, after the change beside them, and a diamond at what is due to whom it is missing.

    Below stand the cluster and its change; `size` is that of the smallest letters, in points."""
    finding, users = one.replay(), one.cluster.users
    at = np.arange(len(users))
    shift = 0.2 if one.changed is not None else 0
    axes.bar(at - shift, [float(value) for value in one.before], 0.38, color=BLUE, label=BEFORE)
    if one.changed is not None:
        there = [users.index(user) for user in one.changed.users]
        name = LIE if one.users and len(there) == len(users) else AFTER
        axes.bar(np.array(there) + shift, [float(value) for value in one.after], 0.38, color=ORANGE, label=name)
    axes.plot(users.index(finding.user), float(finding.due), "D", color=RED, markersize=5, label=DUE)
    axes.set_xticks(at, users, fontsize=size + 1)
    axes.tick_params(axis="y", labelsize=size)
    axes.set_title(title, fontsize=size + 1.5)
    lines = [re.sub(r"(?<=\d), (?=\d)", ",\u00a0", line) for line in described(*one.instance)]  # rows stay whole
    axes.set_xlabel("\n".join(fill(line, 50) for line in lines), fontsize=size)
    axes.set_xlim(-0.6, len(users) - 0.4)
    axes.margins(y=0.12)


def legend(figure: Figure, size: float = 7.5) -> None:
    """One for all panels, above them."""
    found = {}
    for axes in figure.axes:
        found |= {name: mark for mark, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    shown = [name for name in (BEFORE, AFTER, LIE, DUE) if name in found]
    figure.legend([found[name] for name in shown], shown, loc="outside upper center", ncols=4, fontsize=size,
                  frameon=False)  # fmt: skip


def draw() -> Figure:
    """All of them."""
    found = smallest()
    columns = 3
    rows = -(-len(found) // columns)
    figure = Figure(figsize=(8, 2.1 * rows), layout="constrained")
    table = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, one in zip(table, found.values(), strict=False):
        panel(axes, one, f"{one.property}\n{one.mechanism}")
    for axes in table[len(found) :]:
        axes.set_axis_off()
    legend(figure)
    return figure


if __name__ == "__main__":
    draw().savefig(PICTURE, dpi=110)
