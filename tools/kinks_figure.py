"""docs/kinks.png: tasks along alpha, the alphas that `refine` places, and slopes, which jump where tasks have kinks.

python tools/kinks_figure.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]  # of this checkout, whatever is installed

import fairopt as fo  # noqa: E402

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
#: The ends of alpha / (1 + alpha), how many places are drawn between, and the goal of `refine`.
ENDS, PLACES, GOAL = (0.1, 0.95), 400, 1e-2


def main() -> None:
    rng = np.random.default_rng(3)
    cluster = fo.Cluster(rng.uniform(1, 9, (3, 2)), rng.lognormal(size=(6, 2)))
    places = np.linspace(*ENDS, PLACES)
    path = fo.alpha_path(cluster, places / (1 - places), jumps=False)
    fewer = fo.alpha_path(cluster, [place / (1 - place) for place in ENDS], refine=GOAL, jumps=False)
    tasks = np.array([found.user_tasks for found in path.allocations])
    slopes = np.array([found.sensitivity().alpha.to_numpy()[0] for found in path.allocations])
    slopes *= (1 / (1 - places) ** 2)[:, None]
    dots = np.array([found.user_tasks for found in fewer.allocations])
    at = np.array(fewer.index) / (1 + np.array(fewer.index))
    figure = Figure(figsize=(7, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    for n, colour in enumerate(COLOURS):
        left.plot(places, tasks[:, n] / tasks[0, n], color=colour, linewidth=1, label=f"user {n + 1}")
        left.plot(at, dots[:, n] / tasks[0, n], "o", color=colour, markersize=3)
        right.plot(places, slopes[:, n], color=colour, linewidth=1)
    left.set_title(f"tasks, {len(fewer)} alphas for {GOAL:.0%}", fontsize="medium")
    right.set_title("slopes of log tasks", fontsize="medium")
    left.legend(frameon=False, fontsize="x-small", ncols=2)
    for axes in (left, right):
        axes.set_xlabel("alpha / (1 + alpha)")
        axes.grid(linewidth=0.4, alpha=0.6)
    figure.savefig(ROOT / "docs" / "kinks.png", dpi=120)
    sys.stdout.write(f"{len(fewer)} alphas, largest error {fewer.errors.max():.3g}\n")


if __name__ == "__main__":
    main()
