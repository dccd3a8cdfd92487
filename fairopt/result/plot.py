"""Plots of allocations, comparisons and paths in alpha; no plot solves a problem."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from io import BytesIO
from itertools import cycle
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from ..base.errors import DataError, SolverError
from ..base.libraries import pd
from ..base.names import meant
from ..certificates import _linear
from ..model._arrays import Array, ratio
from ..model._validate import whole
from ..model.cluster import Cluster, expected
from ..model.polytope import Polytope
from . import palette
from .arrays import Answer

__all__ = ["allocation", "compare", "paths", "tasks", "two_users"]

#: Number of characters to which names in legends are truncated.
_LONGEST = 28
#: Hatches of stacked bars, each for two successive colours, so that bars that are similar in greyscale differ by hatch.
_PATTERNS = ("", "///", "...", "\\\\\\", "xxx")
#: Styles of dashes, which lines have in turn.
_DASHES = ("-", "--", "-.", ":")
#: Colour of the users that are combined.
OTHERS = palette.OTHERS[0]
#: Width in inches above which figures have more ticks.
NARROW = 5.0


class Picture(Figure):
    """Figure that needs no pyplot and is displayed in notebooks."""

    def _repr_png_(self) -> bytes:
        file = BytesIO()
        self.savefig(file, format="png", dpi=120)
        return file.getvalue()


def panels(ax: Any, size: tuple[float, float], count: int = 1, **more: Any) -> tuple[Figure, list[Axes]]:
    """Figure and `count` axes: the given axes `ax`, or a row of axes of a new figure.

    The size of a new figure in inches is matplotlib's `figure.figsize` if the user set it, and otherwise `size`. If
    `ax` is not `count` axes, `DataError` is raised.
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
    """Add a legend, outside the panels of a new figure, or inside the given axes `ax`."""
    of: Any = axes.figure if ax is None else axes
    where = more | {"loc": f"outside {place}"} if ax is None else more | {"ncols": 1}
    of.legend(handles, labels, frameon=False, **where)


def from_zero(axes: Axes, top: float | None = None) -> None:
    """Let the vertical axis start at 0, and end at `top` if given, with margins for lines along its ends."""
    most = axes.dataLim.y1 if top is None else top
    most = most if 0 < most < math.inf else 1.0
    axes.set_ylim(-0.02 * most, (1.05 if top is None else 1.02) * most)


def level(axes: Axes) -> None:
    """Widen the vertical axis, so that a constant line with rounding errors appears constant."""
    low, high = axes.get_ylim()
    room = max(0.0, 0.02 * max(abs(low), abs(high)) - (high - low)) / 2
    axes.set_ylim(low - room, high + room)


def colours(count: int) -> list[str]:
    """First `count` colours of matplotlib's colour cycle, for everything but users."""
    return [to_hex(f"C{k}") for k in range(count)]


def users(positions: Sequence[int]) -> list[str]:
    """Colours of the users at the given positions: `palette.USERS`, or matplotlib's colour cycle if it was changed."""
    if mpl.rcParams["axes.prop_cycle"] == mpl.rcParamsDefault["axes.prop_cycle"]:
        return [palette.USERS[k][0] for k in palette.of_users(positions)]
    return [to_hex(f"C{n}") for n in positions]


def looks(fills: Sequence[str]) -> list[dict[str, Any]]:
    """Styles of lines of given colours, with dashes and decreasing widths, so that coinciding lines remain visible."""
    width = mpl.rcParams["lines.linewidth"]
    return [
        {"color": colour, "linestyle": dashes, "linewidth": width * max(1.4 - 0.2 * k, 0.8)}
        for k, (colour, dashes) in enumerate(zip(fills, cycle(_DASHES), strict=False))
    ]


def plain(name: str) -> str:
    """Convert a name to a legend's text: truncated, and escaped so that matplotlib neither hides nor typesets it."""
    text = " ".join(name.split()) or "''"
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text  # matplotlib omits labels that begin with "_"


def at_alpha(alpha: ArrayLike) -> Array:
    """Positions `alpha / (1 + alpha)` of alpha on the axis from 0 to infinity."""
    return np.asarray(1 - 1 / (1 + np.asarray(alpha, dtype=float)))


def alpha_axis(axes: Axes, wide: bool = False, label: str = "α") -> None:
    """Set ticks, limits and label of the axis of alpha from 0 to infinity; `wide` axes have more ticks."""
    ticks = (0, 0.5, 1, 2, 3, 8, math.inf) if wide else (0, 1, 3, math.inf)
    axes.set_xticks(at_alpha(ticks), ["∞" if math.isinf(tick) else f"{tick:g}" for tick in ticks])
    axes.set_xlim(-0.03, 1.03)
    if label:
        axes.set_xlabel(label)


#: From `_MANY` users on, only the `_SHOWN` users of largest use are plotted one by one, and the others are combined.
_MANY, _SHOWN = 20, 11
#: Measures that plots show by default.
_MEASURES = ("utilization", "min_share", "jain")
#: Titles of the measures whose titles differ from their names.
_CALLED = {"min_share": "smallest share", "max_share": "largest share", "jain": "Jain's index"}
#: Number of users with an individual colour.
_COLOURED = 10
Point = Array


def allocation(answer: Answer, *, ax: Any = None) -> Figure:
    """Plot the used fraction of every capacity, stacked by user, with a bar per server and resource.

    Of 20 or more users, the 11 with the largest use are plotted one by one, and the others are combined. Servers are
    pooled if there would be more than 24 bars.

    Parameters
    ----------
    answer : Allocation
    ax : optional
        Axes of matplotlib. Default: the axes of a new figure.

    >>> import fairopt as fo
    >>> figure = fo.plot.allocation(fo.DRF().solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]])))
    >>> len(figure.axes[0].patches)  # bars of two users for two resources
    4
    """
    cluster = answer.cluster
    there, servers = cluster.capacity, list(cluster.servers)
    # More than 24 bars would be illegible.
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
    """Draw stacked bars of each array (users, bars), starting at 0; all but the `most` largest users are combined."""
    order = np.arange(len(names))
    if len(names) > most:
        order = np.argsort(-sum(np.abs(side).sum(axis=1) for side in sides), kind="stable")
        shown, others = order[:most], order[most:]
        names = [*(names[n] for n in shown), f"{len(others)} others"]
        sides = tuple(np.vstack([side[shown], side[others].sum(axis=0, keepdims=True)]) for side in sides)
    positions = order[:most].tolist()
    fills = [*users(positions), OTHERS]
    hatches = [*(_PATTERNS[k // 2 % len(_PATTERNS)] for k in palette.of_users(positions)), ""]
    for side in sides:
        end = np.zeros(side.shape[1])
        for part, name, fill, hatch in zip(side, names, fills, hatches, strict=False):
            label = plain(name) if side is sides[0] else ""
            bar(range(len(end)), part, 0.8, end, label=label, color=fill, hatch=hatch, edgecolor="white", linewidth=0.5)
            end = end + part


def compare(frame: pd.DataFrame, measures: Sequence[str] = _MEASURES, *, ax: Any = None) -> Figure:
    """Plot mechanisms side by side: a row for each, a panel for each measure.

    A missing value, for example of a mechanism that is not applicable, has no bar.

    Parameters
    ----------
    frame : DataFrame
        Result of `fairopt.compare`.
    measures : sequence of str
        Columns of the frame, a panel each.
    ax : optional
        As many axes as measures. Default: the axes of a new figure.

    Raises
    ------
    DataError
        `frame` is not a data frame, or lacks a measure.

    >>> import fairopt as fo
    >>> frame = fo.compare(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]), ["drf", "ceei"])
    >>> len(fo.plot.compare(frame, ["utilization", "jain"]).axes)
    2
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
    """Draw vertical grid lines behind bars."""
    axes.grid(axis="x", linewidth=0.4, alpha=0.6)
    axes.set_axisbelow(True)


def paths(
    *frames: pd.DataFrame | Answer,
    measures: Sequence[str] = _MEASURES,
    marks: Mapping[str, float] | None = None,
    ax: Any = None,
) -> Figure:
    """Plot measures by alpha, one curve per frame of `fairopt.alpha_path`, on an axis from 0 to infinity.

    Parameters
    ----------
    frames : DataFrame or Allocation
        At least one frame of `fairopt.alpha_path`; allocations are horizontal lines.
    measures : sequence of str
        Columns of the frames, a panel each.
    marks : mapping of str to float, optional
        Values of alpha to mark by vertical lines, with the labels as keys.
    ax : optional
        As many axes as measures. Default: the axes of a new figure.

    Raises
    ------
    DataError
        A frame lacks a measure, or there is no frame.

    >>> import fairopt as fo
    >>> path = fo.alpha_path(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]), [1, 4], mechanism="alpha-fair")
    >>> len(fo.plot.paths(path, measures=["jain"]).axes)
    1
    """
    followed = [one for one in frames if isinstance(one, pd.DataFrame)]
    if not followed or not all(isinstance(one, pd.DataFrame) or hasattr(one, "summary") for one in frames):
        raise DataError("plot.paths draws frames of fairopt.alpha_path, and allocations: plot.paths(first, second)")
    for frame in followed:
        _known(frame, measures)
    figure, drawn = panels(ax, (2.5 * len(measures) + 0.3, 2.7), len(measures))
    for axes, measure in zip(drawn, measures, strict=True):
        for frame, look in zip(frames, cycle(looks(colours(9))), strict=False):
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
        (level if measure == "utilization" else from_zero)(axes)  # utilization rarely is near 0
        axes.grid(linewidth=0.4, alpha=0.6)
    handles, labels = drawn[0].get_legend_handles_labels()
    legend(ax, drawn[0], handles, labels, "upper center", ncols=max(1, min(len(labels), 3)))
    return figure


def tasks(frame: pd.DataFrame, most: int = 8, *, jumps: pd.DataFrame | None = None, ax: Any = None) -> Figure:
    """Plot tasks by alpha: a line for each of the users with most tasks, and the mean of all other users.

    Parameters
    ----------
    frame : DataFrame (alphas, users)
        Tasks, such as `AlphaPath.user_tasks`.
    most : int
        Number of users with an individual line, at most 19.
    jumps : DataFrame, optional
        Discontinuities of tasks, such as `attrs["jumps"]` of a path.
    ax : optional
        Axes of matplotlib. Default: the axes of a new figure.

    Raises
    ------
    DataError
        `frame` is not a frame of tasks, or `most` is out of range.

    >>> import fairopt as fo
    >>> path = fo.alpha_path(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]), [1, 4], mechanism="alpha-fair")
    >>> len(fo.plot.tasks(path.user_tasks).axes[0].lines)
    2
    """
    if (
        not isinstance(frame, pd.DataFrame)
        or not len(frame.columns)
        or {"jain", "certified"} <= {*frame.columns}  # columns of a path of measures
        or not pd.api.types.is_numeric_dtype(frame.index)
    ):
        raise DataError("plot.tasks draws tasks by alpha and user: plot.tasks(path.user_tasks)")
    if not 1 <= whole(most, "most") <= len(palette.USERS):
        raise DataError(f"most is {most}; there are {len(palette.USERS)} colours")
    order = np.argsort(-frame.max().to_numpy(), kind="stable").tolist()
    own, others = order[:most], order[most:]
    figure, [axes] = panels(ax, (5.2, max(2.9, 0.19 * len(own) + 0.6)))
    own_looks = zip(own, looks(users(own)), strict=True)
    lines = [(plain(str(frame.columns[n])), frame.iloc[:, n], look) for n, look in own_looks]
    if others:
        mean = frame.iloc[:, others].mean(axis=1)
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
    r"""Plot the feasible tasks :math:`(x_1, x_2)` of two users, summed over servers, and the given allocations.

    Parameters
    ----------
    answers : Allocation
        Allocations of one cluster of two users, a marker each.
    path : sequence of Allocation
        Allocations of the same cluster, drawn as a curve.
    ax : optional
        Axes of matplotlib. Default: the axes of a new figure.

    Raises
    ------
    DataError
        There are no allocations, their demands differ, or their cluster does not have two users that can run tasks.
    SolverError
        A linear program of the feasible set was not solved.

    >>> import fairopt as fo
    >>> cluster = fo.Cluster([[9, 18]], [[1, 4], [3, 1]])
    >>> len(fo.plot.two_users(fo.DRF().solve(cluster), fo.CEEI().solve(cluster)).axes[0].lines)
    2
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
    # Legend entries with short names are arranged in one row.
    beside = 1 if max(map(len, labels)) > 14 else min(len(labels), 3)
    legend(ax, axes, handles, labels, "upper center", ncols=beside, fontsize="small")
    return figure


def _curve(axes: Any, values: pd.Series, jumps: pd.DataFrame | None, label: str, look: Mapping[str, Any]) -> None:
    """Draw values by alpha, with gaps at jumps."""
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


def marginal_values(frame: pd.DataFrame, right: set[Any], mechanism: str, most: int, ax: Any = None) -> Figure:
    """Plot gains by user, with a bar per (server, resource): gains to the right, losses to the left.

    `frame` has a row per bar and a column per user; the `most` rows with the largest sums are plotted. Rows in `right`
    are marked as derivatives from the right; a row with NaN has a remark in place of a bar.
    """
    total = frame.sum(axis=1, skipna=False).sort_values(ascending=False, kind="stable", na_position="last")
    shown = frame.loc[total.index].head(most)
    gains = np.array(shown, dtype=float).T
    unknown = np.isnan(gains).any(axis=0)
    gains[:, unknown] = 0.0
    height = max(2.6, 0.3 * len(shown) + 1.2, 0.2 * min(len(gains), _COLOURED + 1) + 0.9)
    figure, [axes] = panels(ax, (7.2, height))
    _stack(axes.barh, [*map(str, shown.columns)], _COLOURED, np.maximum(gains, 0), np.minimum(gains, 0))
    names = [f"{plain(str(label[1]))} on {plain(str(label[0]))}" + " *" * (label in right) for label in shown.index]
    axes.set_yticks(range(len(names)), names, fontsize="small")
    axes.invert_yaxis()
    axes.axvline(0, color="#444444", linewidth=0.8)
    for row in np.flatnonzero(unknown):
        axes.annotate(
            "not differentiable", (0, row), (4, 0), textcoords="offset points", va="center", fontsize="x-small"
        )
    said = ["tasks gained by one more unit"]
    said += ["* derivative from the right; one unit less changes tasks by another amount"] * bool(
        right & {*shown.index}
    )
    said += [f"{len(frame) - len(shown)} more resources of servers are not shown"] * (len(frame) > len(shown))
    axes.set_xlabel("\n".join(said))
    axes.set_title(plain(mechanism), fontsize="medium")
    _lines_below(axes)
    legend(ax, axes, *axes.get_legend_handles_labels(), "right upper", fontsize="x-small")
    return figure


def misfit(
    curve: pd.Series, residuals: pd.DataFrame, interval: tuple[float, float], title: str, ax: Any = None
) -> Figure:
    """Plot the misfit by alpha, with the interval shaded (left), and fitted against observed tasks of users (right).

    `curve` has the misfit by alpha, `residuals` the columns `observed` and `fitted`. `interval` has the lower end (0 if
    unbounded) and the upper end (infinity if unbounded).
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
    r"""Efficient vertices, (vertices, 2), of the set of feasible :math:`(x_1, x_2)`, from the largest :math:`x_1` on.

    .. math:: x_n = \sum_i y_{ni} \le q_n, \qquad \sum_n y_{ni} d_{nr} \le c_{ir}, \qquad y_{ni} \ge 0

    and :math:`y_{ni} = 0` where user n may not use server i. The set is the Minkowski sum of the feasible sets of
    servers, intersected with the limits. The normals of its edges are the demands of both users for a resource, and the
    axes. In a direction between two neighbouring normals a single vertex is maximal.

    Raises
    ------
    DataError
        There are not two users that can run tasks.
    SolverError
        A linear program was not solved.
    """
    if len(cluster.users) != 2:
        raise DataError(f"a picture of what users can have needs two; this cluster has {len(cluster.users)}")
    polytope = Polytope(expected(cluster, "pictures of what users can have"), cluster.max_tasks)
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
    """Plot the use of resources and the counts `lines` over time, and the distribution of response times of jobs.

    `over_time` (index: time in s) has the used fraction of each of the `resources`, and `jobs` the column `response` in
    s, NaN for unfinished jobs. `what` is the label of the axis of counts.
    """
    ends = float(over_time.index.max())
    units = ((3600.0, "h"), (60.0, "min"), (1.0, "s"))
    unit, word = next((seconds, name) for seconds, name in units if ends >= 3 * seconds or seconds == 1)
    figure, [use, queue, response] = panels(ax, (9.0, 2.8), 3)
    time = over_time.index.to_numpy() / unit
    for name, look in zip(resources, looks(colours(len(resources))), strict=False):
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
