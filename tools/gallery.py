"""docs/gallery.png: the smallest counterexample of every property, as a picture.

python tools/gallery.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # of this checkout, whatever is installed

from fairopt.properties import Witness  # noqa: E402
from fairopt.properties._words import described  # noqa: E402

PICTURE = ROOT / "docs" / "gallery.png"
NOT_SHOWN = ("task-maxmin", "utilitarian", "gfj")
BLUE, ORANGE, RED = "#0072b2", "#e69f00", "#c00000"


def smallest() -> dict[str, Witness]:
    """Of every property the counterexample with the fewest numbers, and of these the one in the shortest words.

    Of mechanisms that look at demands: rules about numbers of tasks have nearly the smallest of all.
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


def panel(axes: Axes, one: Witness) -> None:
    """Tasks of every user, after the change beside them, and a diamond at what is due to whom it is missing."""
    finding, users = one.replay(), one.cluster.users
    at = np.arange(len(users))
    axes.bar(at - (0.2 if one.changed is not None else 0), [float(value) for value in one.before], 0.38, color=BLUE)
    if one.changed is not None:
        there = [users.index(user) for user in one.changed.users]
        axes.bar(np.array(there) + 0.2, [float(value) for value in one.after], 0.38, color=ORANGE)
    axes.plot(users.index(finding.user), float(finding.due), "D", color=RED, markersize=5)
    axes.set_xticks(at, users, fontsize=6)
    axes.tick_params(axis="y", labelsize=6)
    axes.set_title(f"{one.property}\n{one.mechanism}", fontsize=7)
    axes.set_xlabel(fill("; ".join(described(*one.instance)), 52), fontsize=5.5)
    axes.margins(y=0.12)


def draw() -> Figure:
    """All of them."""
    found = smallest()
    columns = 3
    rows = -(-len(found) // columns)
    figure = Figure(figsize=(8, 1.75 * rows), layout="constrained")
    table = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, one in zip(table, found.values(), strict=False):
        panel(axes, one)
    for axes in table[len(found) :]:
        axes.set_axis_off()
    return figure


if __name__ == "__main__":
    draw().savefig(PICTURE, dpi=110)
