"""Pictures of answers: who uses what, mechanisms side by side, measures along alpha. They solve nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from .._libraries import pd
from ..errors import DataError
from ._answer import Answer
from ._plot import OTHERS, Picture, alpha_axis, at_alpha, colours, legend_of_stack, patterns, plain, stacked

__all__ = ["allocation", "compare", "paths", "two_users"]

#: More bars than this cannot be told apart: servers are then pooled.
_MOST_BARS = 24
#: From this many users on, the largest are shown and the others joined.
_MANY, _SHOWN = 20, 11
#: What pictures show unless told otherwise, and how it is called.
_MEASURES = ("utilization", "min_share", "jain")
_CALLED = {"min_share": "smallest share", "max_share": "largest share", "jain": "Jain's index"}
#: Names of at most this many characters stand beside each other in the legend above a picture of two users.
_SHORT = 14
_LINES = ("-", "--", "-.", ":")


def allocation(answer: Answer) -> Figure:
    """Used part of every capacity, stacked by user: one bar per server and resource.

    The legend is in the order of the stack, whose parts differ in grey too: by lightness, and by patterns. Of 20 users
    and more the 11 that use most are shown, and the others joined; more than 24 bars are those of all servers together.
    """
    cluster = answer.cluster
    there, servers = cluster.capacity, list(cluster.servers)
    if len(servers) * len(cluster.resources) > _MOST_BARS:
        there, servers = there.sum(axis=0, keepdims=True), ["all servers"]
        used = (answer.user_tasks[:, None] * cluster.demand)[:, None, :]
    else:
        used = answer.usage
    part = np.divide(used, there[None], out=np.zeros_like(used), where=there[None] > 0)
    names, heights, fills = _joined(list(cluster.users), part.reshape(len(part), -1))
    several = len(servers) > 1 or servers == ["all servers"]
    bars = [f"{plain(server)}\n{plain(name)}" if several else plain(name)
            for server in servers for name in cluster.resources]  # fmt: skip
    figure = Picture(
        figsize=(max(3.4, 0.75 * len(bars) + 1.8), max(2.8, 0.17 * len(names) + 0.4)), layout="constrained"
    )
    axes = figure.subplots()
    bottom, hatches = np.zeros(len(bars)), patterns(fills)
    for height, fill, hatch in zip(heights, fills, hatches, strict=True):
        axes.bar(range(len(bars)), height, bottom=bottom, color=fill, edgecolor="white", linewidth=0.5, hatch=hatch)
        bottom += height
    axes.set_xticks(range(len(bars)), bars)
    axes.set_ylim(0, 1.02)
    axes.set_ylabel("used part of capacity")
    axes.set_title(plain(answer.mechanism), fontsize="medium")
    axes.tick_params(axis="x", labelsize="small")
    legend_of_stack(figure, names, fills, hatches)
    return figure


def _joined(names: list[str], part: NDArray[np.float64]) -> tuple[list[str], NDArray[np.float64], list[Any]]:
    """Names, heights and colours of a stack; of many users those who use less are joined."""
    if len(names) < _MANY:
        return names, part, [*stacked(len(names)), OTHERS][: len(names)]
    order = np.argsort(-part.sum(axis=1), kind="stable")
    shown, others = order[:_SHOWN], order[_SHOWN:]
    heights = np.vstack([part[shown], part[others].sum(axis=0, keepdims=True)])
    return [*(names[n] for n in shown), f"{len(others)} others"], heights, [*stacked(_SHOWN), OTHERS]


def compare(frame: pd.DataFrame, measures: Sequence[str] = _MEASURES) -> Figure:
    """Mechanisms side by side: a row for each, a panel for each measure, from a frame of `fairopt.compare`.

    What has no number (a mechanism that does not apply) has a row without a bar.

    Parameters
    ----------
    frame : as of `fairopt.compare`
    measures : columns of it, a panel each

    Raises
    ------
    DataError
        `frame` is not a data frame, or lacks a measure.
    """
    if not isinstance(frame, pd.DataFrame):
        raise DataError(f"plot.compare draws what fairopt.compare returns; got a {type(frame).__name__}")
    _known(frame, measures)
    rows = np.arange(len(frame))
    figure = Picture(figsize=(2.1 * len(measures) + 1.6, 0.24 * len(frame) + 0.9), layout="constrained")
    for axes, measure in zip(figure.subplots(1, len(measures), squeeze=False, sharey=True)[0], measures, strict=True):
        axes.barh(rows, frame[measure].to_numpy(dtype=float), color=colours(1)[0])
        axes.set_title(_CALLED.get(measure, measure), fontsize="medium")
        axes.set_xlim(left=0)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.grid(axis="x", linewidth=0.4, alpha=0.6)
        axes.set_axisbelow(True)
        axes.set_yticks(rows, [plain(str(name)) for name in frame.index], fontsize="small")
    figure.axes[0].invert_yaxis()
    return figure


def paths(
    *frames: pd.DataFrame,
    measures: Sequence[str] = _MEASURES,
    marks: Mapping[str, float] | None = None,
) -> Figure:
    """Measures along alpha, one curve per frame of `fairopt.alpha_path`, on an axis from 0 to infinity.

    Parameters
    ----------
    frames : as of `fairopt.alpha_path`, at least one
    measures : columns of the frames, a panel each
    marks : alphas to mark with a vertical line, by what the legend calls them

    Raises
    ------
    DataError
        A frame lacks a measure, or there is none.
    """
    if not frames or not all(isinstance(frame, pd.DataFrame) for frame in frames):
        raise DataError("plot.paths draws frames of fairopt.alpha_path: plot.paths(first, second)")
    for frame in frames:
        _known(frame, measures)
    figure = Picture(figsize=(2.5 * len(measures) + 0.3, 2.7), layout="constrained")
    for axes, measure in zip(figure.subplots(1, len(measures), squeeze=False)[0], measures, strict=True):
        for frame, fill, dashes in zip(frames, cycle(colours(9)), cycle(_LINES), strict=False):
            shown = frame[~frame.index.duplicated()].sort_index()
            label = plain(str(getattr(frame, "mechanism", "")))
            shown = _broken(shown[measure], frame.attrs.get("jumps"))
            axes.plot(at_alpha(shown.index), shown, color=fill, linestyle=dashes, label=label)
        for name, alpha in (marks or {}).items():
            axes.axvline(
                float(at_alpha(alpha)), color="#444444", linewidth=0.8, linestyle=(0, (1, 2)), label=plain(name)
            )
        alpha_axis(axes)
        axes.set_title(_CALLED.get(measure, measure), fontsize="medium")
        if measure != "utilization":  # which seldom is near 0
            axes.set_ylim(bottom=0)
        axes.grid(linewidth=0.4, alpha=0.6)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=max(1, min(len(labels), 3)), frameon=False)
    return figure


def two_users(*answers: Answer, path: Sequence[Answer] = ()) -> Figure:
    """What two users can have, as an area, and what each answer gives them.

    The area is of tasks over all servers of the cluster.

    Parameters
    ----------
    answers : of one cluster of two users, a mark each
    path : answers of the same cluster, drawn as a curve

    Raises
    ------
    DataError
        No answers; their clusters differ, or have not two users.
    """
    from ._feasible_set import border

    if not answers and not path:
        raise DataError("plot.two_users draws answers: plot.two_users(fo.DRF().solve(cluster))")
    every = [*answers, *path]
    cluster = every[0].cluster
    if any(not np.array_equal(one.cluster.demand, cluster.demand) for one in every):
        raise DataError("plot.two_users draws answers of one cluster; these are of several")
    edge = border(cluster)
    figure = Picture(figsize=(4.2, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.fill([0, edge[0, 0], *edge[:, 0], 0], [0, 0, *edge[:, 1], edge[-1, 1]], color="#e9edf3", linewidth=0)
    axes.plot([edge[0, 0], *edge[:, 0], 0], [0, *edge[:, 1], edge[-1, 1]], color="#7d8aa0", linewidth=1)
    if path:
        tasks = np.array([one.user_tasks for one in path])
        axes.plot(tasks[:, 0], tasks[:, 1], color="#111111", linewidth=2.5, alpha=0.8, label="path of α")
    for answer, fill, mark in zip(answers, cycle(colours(9)), cycle("osD^vPX*"), strict=False):
        axes.plot(*answer.user_tasks, mark, color=fill, markersize=7, markeredgecolor="white",
                  label=plain(answer.mechanism), zorder=3, linestyle="none")  # fmt: skip
    axes.set_xlim(0, 1.06 * edge[0, 0])
    axes.set_ylim(0, 1.06 * edge[-1, 1])
    axes.set_xlabel(f"tasks of {plain(cluster.users[0])}")
    axes.set_ylabel(f"tasks of {plain(cluster.users[1])}")
    labels = axes.get_legend_handles_labels()[1]
    beside = 1 if max(map(len, labels)) > _SHORT else min(len(labels), 3)
    figure.legend(loc="outside upper center", ncols=beside, fontsize="small", frameon=False)
    return figure


def _broken(values: pd.Series, jumps: pd.DataFrame | None) -> pd.Series:
    """Values along alpha with a gap where the answer jumps."""
    if jumps is None or not len(jumps):
        return values
    gaps = [alpha for alpha in jumps["alpha"].unique() if values.index[0] < alpha < values.index[-1]]
    return pd.concat([values, pd.Series(np.nan, index=gaps, dtype=float)]).sort_index(kind="stable")


def _known(frame: pd.DataFrame, measures: Sequence[str]) -> None:
    if isinstance(measures, str) or not measures:
        raise DataError(f"measures is {measures!r}; give a list of columns, such as measures=['jain']")
    if missing := [name for name in measures if name not in frame]:
        raise DataError(f"the frame has no column {missing[0]!r}; it has {', '.join(map(str, frame.columns))}")
