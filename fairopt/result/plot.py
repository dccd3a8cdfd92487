"""Pictures of answers: who uses what, mechanisms side by side, measures along alpha; they solve nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from io import BytesIO
from itertools import cycle
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from ..base.errors import DataError, SolverError
from ..base.libraries import pd
from ..base.names import meant
from ..certificates import _linear
from ..model._arrays import Array, ratio
from ..model._validate import whole
from ..model.cluster import Cluster
from ..model.polytope import Polytope
from .arrays import Answer

__all__ = ["allocation", "compare", "paths", "tasks", "two_users"]

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


def plain(name: str) -> str:
    """A name as text of a legend: of bounded length, in which nothing is a formula or hidden."""
    text = " ".join(name.split()) or "''"
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text  # matplotlib leaves out labels that begin so


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


#: From this many users on, the largest are shown and the others joined.
_MANY, _SHOWN = 20, 11
#: What pictures show unless told otherwise, and how it is called.
_MEASURES = ("utilization", "min_share", "jain")
_CALLED = {"min_share": "smallest share", "max_share": "largest share", "jain": "Jain's index"}
#: Users with a colour of their own.
_COLOURED = 10
Point = Array


def allocation(answer: Answer, *, ax: Any = None) -> Figure:
    """Used part of every capacity, stacked by user: one bar per server and resource.

    The legend is in the order of the stack, whose parts differ in grey too: by lightness, and by patterns. Of 20 users
    and more the 11 that use most are shown, and the others joined; more than 24 bars are those of all servers together.
    With `ax` it is drawn there.
    """
    cluster = answer.cluster
    there, servers = cluster.capacity, list(cluster.servers)
    # More bars than this cannot be told apart: servers are then pooled.
    if len(servers) * len(cluster.resources) > 24:
        there, servers = there.sum(axis=0, keepdims=True), ["all servers"]
        used = (answer.arrays.user_tasks[:, None] * cluster.demand)[:, None, :]
    else:
        used = answer.arrays.usage
    part = ratio(used, there[None])
    most = len(part) if len(part) < _MANY else _SHOWN
    several = len(servers) > 1 or servers == ["all servers"]
    bars = [f"{plain(server)}\n{plain(name)}" if several else plain(name)
            for server in servers for name in cluster.resources]  # fmt: skip
    size = max(3.4, 0.75 * len(bars) + 1.8), max(2.8, 0.17 * min(len(part), most + 1) + 0.4)
    figure, [axes] = panels(ax, size)
    _stack(axes.bar, cluster.users, most, part.reshape(len(part), -1))
    axes.set_xticks(range(len(bars)), bars, fontsize="small")
    axes.set(ylim=(0, 1.02), ylabel="used part of capacity")
    axes.set_title(plain(answer.mechanism), fontsize="medium")
    handles, labels = axes.get_legend_handles_labels()
    legend(ax, axes, handles[::-1], labels[::-1], "right upper", fontsize="x-small")
    return figure


def _stack(bar: Any, names: Sequence[str], most: int, *sides: Array) -> None:
    """Bars of users' parts that stand on each other, each side (users, bars) from 0 on.

    Colours are at most 19 of which neighbours differ in grey too, or the caller's own. Of more users than `most` those
    who use less are joined.
    """
    if len(names) > most:
        order = np.argsort(-sum(np.abs(side).sum(axis=1) for side in sides), kind="stable")
        shown, others = order[:most], order[most:]
        names = [*(names[n] for n in shown), f"{len(others)} others"]
        sides = tuple(np.vstack([side[shown], side[others].sum(axis=0, keepdims=True)]) for side in sides)
    fills = [*colours(most, _STACKED), OTHERS]
    for side in sides:
        end = np.zeros(side.shape[1])
        for k, (part, name, fill) in enumerate(zip(side, names, fills, strict=False)):
            hatch = "" if fill == OTHERS else _PATTERNS[k // 2 % len(_PATTERNS)]
            label = plain(name) if side is sides[0] else ""
            bar(range(len(end)), part, 0.8, end, label=label, color=fill, hatch=hatch, edgecolor="white", linewidth=0.5)
            end = end + part


def compare(frame: pd.DataFrame, measures: Sequence[str] = _MEASURES, *, ax: Any = None) -> Figure:
    """Mechanisms side by side: a row for each, a panel for each measure, from a frame of `fairopt.compare`.

    What has no number (a mechanism that does not apply) has a row without a bar.

    Parameters
    ----------
    frame : as of `fairopt.compare`
    measures : columns of it, a panel each
    ax : where to draw, as many axes as measures; by default in a new figure

    Raises
    ------
    DataError
        `frame` is not a data frame, or lacks a measure.
    """
    if not isinstance(frame, pd.DataFrame):
        raise DataError(f"plot.compare draws what fairopt.compare returns; got a {type(frame).__name__}")
    _known(frame, measures)
    rows = np.arange(len(frame))
    size = 2.1 * len(measures) + 1.6, 0.24 * len(frame) + 0.9
    figure, drawn = panels(ax, size, len(measures), sharey=True)
    for axes, measure in zip(drawn, measures, strict=True):
        axes.barh(rows, frame[measure].to_numpy(dtype=float), color=colours(1)[0])
        axes.set_title(_CALLED.get(measure, measure), fontsize="medium")
        axes.set_xlim(left=0)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        _lines_below(axes)
        axes.set_yticks(rows, [plain(str(name)) for name in frame.index], fontsize="small")
    drawn[0].invert_yaxis()
    return figure


def _lines_below(axes: Any) -> None:
    """Vertical lines behind bars."""
    axes.grid(axis="x", linewidth=0.4, alpha=0.6)
    axes.set_axisbelow(True)


def paths(
    *frames: pd.DataFrame | Answer,
    measures: Sequence[str] = _MEASURES,
    marks: Mapping[str, float] | None = None,
    ax: Any = None,
) -> Figure:
    """Measures along alpha, one curve per frame of `fairopt.alpha_path`, on an axis from 0 to infinity.

    Parameters
    ----------
    frames : as of `fairopt.alpha_path`, at least one; allocations among them are horizontal lines
    measures : columns of the frames, a panel each
    marks : alphas to mark with a vertical line, by what the legend calls them
    ax : where to draw, as many axes as measures; by default in a new figure

    Raises
    ------
    DataError
        A frame lacks a measure, or there is none.
    """
    followed = [one for one in frames if isinstance(one, pd.DataFrame)]
    if not followed or not all(isinstance(one, pd.DataFrame) or hasattr(one, "summary") for one in frames):
        raise DataError("plot.paths draws frames of fairopt.alpha_path, and allocations: plot.paths(first, second)")
    for frame in followed:
        _known(frame, measures)
    figure, drawn = panels(ax, (2.5 * len(measures) + 0.3, 2.7), len(measures))
    for axes, measure in zip(drawn, measures, strict=True):
        for frame, look in zip(frames, cycle(looks(9)), strict=False):
            if not isinstance(frame, pd.DataFrame):
                axes.axhline(frame.summary()[measure], label=plain(frame.mechanism), **look)
                continue
            label = plain(str(getattr(frame, "mechanism", "")))
            _curve(axes, frame[measure], frame.attrs.get("jumps"), label, look)
        for name, alpha in (marks or {}).items():
            look = {"color": "#444444", "linewidth": 0.8, "linestyle": (0, (1, 2))}
            axes.axvline(float(at_alpha(alpha)), label=plain(name), **look)
        alpha_axis(axes)
        axes.set_title(_CALLED.get(measure, measure), fontsize="medium")
        (level if measure == "utilization" else from_zero)(axes)  # utilization seldom is near 0
        axes.grid(linewidth=0.4, alpha=0.6)
    handles, labels = drawn[0].get_legend_handles_labels()
    legend(ax, drawn[0], handles, labels, "upper center", ncols=max(1, min(len(labels), 3)))
    return figure


def tasks(frame: pd.DataFrame, most: int = 8, *, jumps: pd.DataFrame | None = None, ax: Any = None) -> Figure:
    """Plot tasks along alpha: a line for each of the users with most tasks, and the mean of all others.

    Parameters
    ----------
    frame : tasks by alpha (rows) and user, as `AlphaPath.tasks`
    most : users with a line of their own, at most 19
    jumps : where tasks jump, as `attrs["jumps"]` of a path
    ax : where to draw; by default in a new figure

    Raises
    ------
    DataError
        `frame` is no frame of tasks, or `most` no such number.
    """
    if (
        not isinstance(frame, pd.DataFrame)
        or not len(frame.columns)
        or {"jain", "certificate"} <= {*frame.columns}  # a path
        or not pd.api.types.is_numeric_dtype(frame.index)
    ):
        raise DataError("plot.tasks draws tasks by alpha and user: plot.tasks(path.tasks)")
    if not 1 <= whole(most, "most") <= len(colours(19)):
        raise DataError(f"most is {most}; there are {len(colours(19))} colours")
    order = frame.max().sort_values(ascending=False, kind="stable").index
    own, others = order[:most], order[most:]
    figure, [axes] = panels(ax, (5.2, max(2.9, 0.19 * len(own) + 0.6)))
    lines = [(plain(str(user)), frame[user], look) for user, look in zip(own, looks(len(own)), strict=True)]
    if len(others):
        mean = frame[others].mean(axis=1)
        lines.append((f"{len(others)} others, mean", mean, {"color": OTHERS, "linewidth": 2.0, "zorder": 1}))
    for label, values, look in lines:
        _curve(axes, values, jumps, label, look)
    alpha_axis(axes, wide=True)
    from_zero(axes)
    axes.set_ylabel("tasks")
    axes.grid(linewidth=0.4, alpha=0.6)
    legend(ax, axes, *axes.get_legend_handles_labels(), "right upper", fontsize="small")
    return figure


def two_users(*answers: Answer, path: Sequence[Answer] = (), ax: Any = None) -> Figure:
    """The set of tasks that two users can have, as an area, and what each answer gives them.

    The area is of tasks over all servers of the cluster.

    Parameters
    ----------
    answers : of one cluster of two users, a mark each
    path : answers of the same cluster, drawn as a curve
    ax : where to draw; by default in a new figure

    Raises
    ------
    DataError
        No answers; their clusters differ, or have not two users.
    """
    every = [*answers, *path]
    if not every or not all(hasattr(one, "cluster") for one in every):
        raise DataError("plot.two_users draws answers: plot.two_users(fo.DRF().solve(cluster))")
    cluster = every[0].cluster
    if any(not np.array_equal(one.cluster.demand, cluster.demand) for one in every):
        raise DataError("plot.two_users draws answers of one cluster; these are of several")
    edge = border(cluster)
    figure, [axes] = panels(ax, (4.2, 3.2))
    corners = [0, edge[0, 0], *edge[:, 0], 0], [0, 0, *edge[:, 1], edge[-1, 1]]
    axes.fill(*corners, facecolor="#e9edf3", edgecolor="#7d8aa0", linewidth=1)
    if path:
        x = np.array([one.arrays.user_tasks for one in path])
        axes.plot(*x.T, color="#111111", linewidth=2.5, alpha=0.8, label="path of α")
    for answer, fill, mark in zip(answers, cycle(colours(9)), cycle("osD^vPX*"), strict=False):
        axes.plot(*answer.arrays.user_tasks, mark, color=fill, markersize=7, markeredgecolor="white",
                  label=plain(answer.mechanism), zorder=3, linestyle="none")  # fmt: skip
    one, other = (f"tasks of {plain(user)}" for user in cluster.users)
    axes.set(xlim=(0, 1.06 * edge[0, 0]), ylim=(0, 1.06 * edge[-1, 1]), xlabel=one, ylabel=other)
    handles, labels = axes.get_legend_handles_labels()
    # Short names stand beside each other.
    beside = 1 if max(map(len, labels)) > 14 else min(len(labels), 3)
    legend(ax, axes, handles, labels, "upper center", ncols=beside, fontsize="small")
    return figure


def _curve(axes: Any, values: pd.Series, jumps: pd.DataFrame | None, label: str, look: Mapping[str, Any]) -> None:
    """Values along alpha, with a gap where the answer jumps."""
    values = values[~values.index.duplicated()].sort_index()
    if jumps is not None and len(jumps):
        gaps = [alpha for alpha in jumps["alpha"].unique() if values.index[0] < alpha < values.index[-1]]
        values = pd.concat([values, pd.Series(np.nan, index=gaps, dtype=float)]).sort_index(kind="stable")
    axes.plot(at_alpha(values.index), values, label=label, **look)


def _known(frame: pd.DataFrame, measures: Sequence[str]) -> None:
    if isinstance(measures, str) or not measures:
        raise DataError(f"measures is {measures!r}; give a list of columns, such as measures=['jain']")
    if missing := [name for name in measures if name not in frame]:
        known = [*map(str, frame.columns)]
        hint = meant(str(missing[0]), known)
        raise DataError(f"the frame has no column {missing[0]!r}; it has {', '.join(known)}{hint}")


def marginal_values(frame: pd.DataFrame, mechanism: str, most: int, ax: Any = None) -> Figure:
    """A bar per row (server, resource) of a frame of gains by user: gains to the right, losses to the left."""
    shown = frame.dropna().head(most)
    shown = shown[shown.abs().sum().sort_values(ascending=False, kind="stable").index]
    gains = shown.to_numpy(dtype=float).T
    height = max(2.6, 0.3 * len(shown) + 1.2, 0.2 * min(len(gains), _COLOURED + 1) + 0.9)
    figure, [axes] = panels(ax, (7.2, height))
    _stack(axes.barh, [*map(str, shown.columns)], _COLOURED, np.maximum(gains, 0), np.minimum(gains, 0))
    names = [f"{plain(str(resource))} on {plain(str(server))}" for server, resource in shown.index]
    axes.set_yticks(range(len(names)), names, fontsize="small")
    axes.invert_yaxis()
    axes.axvline(0, color="#444444", linewidth=0.8)
    axes.set_xlabel("tasks gained by one more unit")
    axes.set_title(plain(mechanism), fontsize="medium")
    _lines_below(axes)
    legend(ax, axes, *axes.get_legend_handles_labels(), "right upper", fontsize="x-small")
    return figure


def misfit(
    curve: pd.Series, residuals: pd.DataFrame, interval: tuple[float, float], title: str, ax: Any = None
) -> Figure:
    """Left the misfit along alpha, with the interval shaded; right fitted tasks against observed ones, by user.

    `curve` is by alpha, `residuals` has the columns `observed` and `fitted`, `interval` its ends, 0 and infinity for
    none.
    """
    figure, [left, right] = panels(ax, (7.2, 3.0), 2)
    fill = colours(1)[0]
    left.axvspan(*at_alpha(interval), color=fill, alpha=0.15, linewidth=0)
    left.plot(at_alpha(curve.index), curve.to_numpy(), color=fill, marker=".", markersize=3)
    from_zero(left)
    left.set(ylabel="misfit (rms of log tasks)")
    left.set_title(plain(title), fontsize="medium")
    alpha_axis(left, wide=True)
    tasks = residuals[["observed", "fitted"]].to_numpy()
    ends = tasks.min(), tasks.max()
    right.plot(ends, ends, color="#444444", linewidth=0.8, linestyle=(0, (1, 2)))
    right.plot(*tasks.T, ".", color=fill)
    right.set(xscale="log", yscale="log", xlabel="observed tasks", ylabel="fitted tasks")
    return figure


def border(cluster: Cluster) -> Point:
    """Corners of {(x_1, x_2)} that are efficient, from the most of user 1 to the most of user 2: (corners, 2).

        x_n = sum_i y[n,i],   sum_n y[n,i] d[n,r] <= c[i,r],   y >= 0, 0 where n may not use i,   x_n <= max_tasks[n]

    It is cut off by limits, and else the (Minkowski) sum of what servers can run: all sides are normal to demands for a
    resource, or to an axis. For a direction between two of these one corner is the furthest.

    Raises
    ------
    DataError
        There are not two users that can run something.
    """
    if len(cluster.users) != 2:
        raise DataError(f"a picture of what users can have needs two; this cluster has {len(cluster.users)}")
    polytope = Polytope(cluster, cluster.max_tasks)
    if len(polytope.users) < 2:
        raise DataError("a picture of what users can have needs two users that can run something")
    sides = np.unique([0.0, *np.arctan2(cluster.demand[1], cluster.demand[0]), np.pi / 2])
    rows = [polytope.use, polytope.use_of_limit]
    found = []
    for angle in (sides[1:] + sides[:-1]) / 2:
        unit = np.array([np.cos(angle), np.sin(angle)])
        furthest = _linear.maximise(unit @ polytope.tasks, rows, [np.ones(each.shape[0]) for each in rows])
        if furthest is None:
            raise SolverError("the linear program of a corner was not solved")
        found.append(polytope.tasks @ furthest[0])
    apart = np.abs(np.diff(found, axis=0)) > 1e-9 * np.max(found, axis=0)
    return np.asarray(np.array(found)[np.append(True, apart.any(axis=1))])


def schedule(
    over_time: pd.DataFrame,
    jobs: pd.DataFrame,
    resources: Sequence[str],
    lines: dict[str, pd.Series[float]],
    what: str,
    title: str,
    ax: Any = None,
) -> Figure:
    """Three panels: used part of every resource and counts (`what`) over time, and jobs by response time."""
    ends = float(over_time.index.max())
    units = ((3600.0, "h"), (60.0, "min"), (1.0, "s"))
    unit, word = next((seconds, name) for seconds, name in units if ends >= 3 * seconds or seconds == 1)
    figure, [use, queue, response] = panels(ax, (9.0, 2.8), 3)
    time = over_time.index.to_numpy() / unit
    for name, look in zip(resources, looks(len(resources)), strict=False):
        use.step(time, over_time[name], where="post", label=plain(name), **look)
    for (name, values), colour in zip(lines.items(), colours(len(lines)), strict=True):
        queue.step(time, values, where="post", color=colour, linewidth=1, label=name)
    for axes, label in ((use, "used part of capacity"), (queue, what)):
        from_zero(axes)
        axes.set(xlabel=f"time ({word})", ylabel=label)
        axes.legend(fontsize="x-small", frameon=False)
    took = np.sort(jobs["response"].dropna().to_numpy())
    response.step(took, np.arange(1, len(took) + 1) / max(len(jobs), 1), where="post", color=colours(1)[0])
    if len(took) and took[0] > 0 and took[-1] > 30 * took[0]:
        response.set_xscale("log")
    from_zero(response, 1)
    response.set(xlabel="response time of jobs (s)", ylabel="part of all jobs")
    if ax is None:
        figure.suptitle(plain(title), fontsize="medium")
    return figure
