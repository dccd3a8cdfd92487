"""Hysteresis of tasks in alpha: paths of rising and of falling alpha on two clusters with a fold."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairopt.report import Results

from .style import DOUBLE, colour, legend, new

NEEDS = ("hysteresis",)
CAPTION = (
    "Tasks of one user under alphaPF-VDS as alpha grows from 1 (thick) and as it falls back to 1 (dashed), on two "
    "clusters. Between two alphas there are three equilibria, the middle one unstable (dotted): each path follows its "
    "branch to the end and jumps there, with four users by a quarter of the tasks."
)
#: Users whose tasks are drawn, by cluster.
_USERS = {"three": "user1", "four": "user4"}
_SIZES = {"three": "3 users, 2 servers", "four": "4 users, 3 servers"}
_MEASURE = r"crossing (?P<place>\d+): tasks of (?P<user>.*)"


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """First and last crossings of the curve by alpha, the ones between, and the jumps."""
    found = results.of("hysteresis").long("measured")
    found = found.join(found["measure"].str.extract(_MEASURE)).dropna(subset="user")
    drawn, table = new(width, 2.4, 1, 2, stack=True)
    for axes, (cluster, user) in zip(table[0], _USERS.items(), strict=True):
        of = found[(found["cluster"] == cluster) & (found["user"] == user)]
        _panel(axes, of.assign(place=of["place"].astype(int)).sort_values(["alpha", "place"]))
        axes.locator_params(axis="x", nbins=5)
        axes.set(title=_SIZES[cluster], xlabel="α of αPF-VDS", ylabel=f"tasks of user {user[-1]}")
    legend(drawn, table[0, 0])
    return drawn


def _panel(axes: Axes, rows: pd.DataFrame) -> None:
    """Both paths, with jumps as vertical lines, and the unstable branch."""
    every = rows.groupby("alpha")["value"]
    below, above = _upright(every.first()), _upright(every.last()[::-1])
    axes.plot(*below, color=colour(1), linewidth=3.2, alpha=0.45, label="alpha rises")
    axes.plot(*above, color=colour(2), linewidth=1.2, linestyle="--", label="alpha falls")
    for (alpha, tasks), fill in ((below, colour(1)), (above, colour(2))):
        for k in np.flatnonzero(np.diff(alpha) == 0):
            middle = float(tasks.iloc[k : k + 2].mean())
            ahead = middle + 0.05 * float(tasks.iloc[k + 1] - tasks.iloc[k])
            arrow = {"arrowstyle": "-|>", "color": fill, "mutation_scale": 12}
            axes.annotate("", (alpha.iloc[k], ahead), (alpha.iloc[k], middle), arrowprops=arrow)
    between = every.nth(1)[every.transform("size") > 2]
    axes.plot(rows["alpha"].loc[between.index], between, color=colour(0), linestyle=":", linewidth=1, label="unstable")


def _upright(path: pd.Series) -> tuple[pd.Series, pd.Series]:
    """Path whose largest step, if much larger than the usual ones, is drawn as a jump at the following alpha."""
    steps = path.diff().abs()
    jump = steps.idxmax()
    if steps[jump] > 4 * steps.median():
        k = path.index.get_loc(jump)
        path = pd.concat([path[:k], pd.Series([path.iloc[k - 1]], index=[jump]), path[k:]])
    return path.index.to_series(), path
