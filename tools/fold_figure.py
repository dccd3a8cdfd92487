"""docs/fold.png: a fold of the curve of equilibria, and where the answer jumps away from alpha = 1 and coming back.

python tools/fold_figure.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]  # of this checkout, whatever is installed

from selections import FAMILIES  # noqa: E402

import fairopt as fo  # noqa: E402

#: Of properties: three equilibria at alpha = 3; and the widest fold that tools/selections.py found.
FIRST = fo.Cluster([[20, 11, 2], [3, 9, 4]], [[1, 9, 8], [3, 8, 1], [16, 8, 1]], weight=[2, 1, 2])
WIDEST = ("lognormal 4x3x3", 597)
BLUE, RED, GREY = "#0072b2", "#d55e00", "#999999"


def panel(axes: Axes, cluster: fo.Cluster, alphas: np.ndarray, title: str) -> None:
    """Tasks of the first user along the curve: branches of index +1 full, of -1 dotted, jumps as arrows."""
    curve = fo.game.equilibrium_curve(cluster, alphas)
    frame = curve.to_frame()
    user = cluster.users[0]
    label = {1: "index +1", -1: "index -1 (unstable)"}
    start = 0
    for k in range(1, len(frame) + 1):
        if k == len(frame) or frame["index"][k] != frame["index"][start]:
            part, sign = frame[start:k], int(frame["index"][start])
            line = "-" if sign > 0 else ":"
            axes.plot(part["alpha"], part[user], line, color=BLUE if sign > 0 else GREY, label=label.pop(sign, None))
            start = k
    jump = curve.jumps()
    jump = jump[jump["user"] == user].iloc[0]
    arrow = {"arrowstyle": "->", "color": RED}
    axes.annotate("", (jump["alpha"], jump["after"]), (jump["alpha"], jump["before"]), arrowprops=arrow)
    several = frame[frame.groupby("alpha")["place"].transform("max") > 0]
    low = several[several["alpha"] == several["alpha"].min()].sort_values("place")
    axes.annotate(
        "", (low["alpha"].iloc[0], low[user].iloc[0]), (low["alpha"].iloc[0], low[user].iloc[-1]), arrowprops=arrow
    )
    axes.set_xlabel("alpha")
    axes.set_title(title, fontsize="medium")
    axes.grid(linewidth=0.4, alpha=0.6)


def main() -> None:
    figure = Figure(figsize=(7, 2.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    panel(left, FIRST, np.linspace(2.9, 3.1, 401), "the instance with three equilibria at alpha = 3")
    name, seed = WIDEST
    draw, shape = FAMILIES[name]
    panel(right, draw(shape, np.random.default_rng([seed, *shape])), np.geomspace(*RANGE, 401), f"{name}, draw {seed}")
    left.set_ylabel("tasks of user 1")
    right.legend(frameon=False, fontsize="small", loc="upper right")
    figure.savefig(ROOT / "docs" / "fold.png", dpi=120)


#: Alphas of the right panel.
RANGE = (4.0, 8.0)


if __name__ == "__main__":
    main()
