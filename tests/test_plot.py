"""Pictures of answers: what stands where, and that nothing in a name is a formula."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from itertools import combinations
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

import fairopt as fo
from fairopt.app.explorer import Session
from fairopt.app.explorer.page import style
from fairopt.errors import DataError
from fairopt.result.palette import USERS, of_users


def drawn(users: int, servers: int = 1) -> fo.Allocation:
    rng = np.random.default_rng(users)
    return fo.DRFH().solve(fo.Cluster(rng.uniform(1, 2, (servers, 2)), rng.uniform(0.1, 1, (users, 2))))


def test_legend_is_in_the_order_of_the_stack() -> None:
    figure = drawn(4).plot()
    bottoms = [bar.get_y() for bar in figure.axes[0].patches if bar.get_x() < 0.5]
    assert bottoms == sorted(bottoms)
    fills = [bar.get_facecolor() for bar in figure.axes[0].patches if bar.get_x() < 0.5]
    assert [one.get_facecolor() for one in figure.legends[0].get_patches()] == fills[::-1]
    assert [one.get_text() for one in figure.legends[0].get_texts()] == ["user4", "user3", "user2", "user1"]


@pytest.mark.parametrize(("users", "shown"), [(1, 1), (19, 19), (20, 12), (60, 12)])
def test_colours_can_be_told_apart(users: int, shown: int) -> None:
    figure = drawn(users).plot()
    labels = [one.get_text() for one in figure.legends[0].get_texts()]
    assert len(labels) == shown
    assert (labels[0] == f"{users - 11} others") == (users > shown)
    fills = [to_rgb(one.get_facecolor()) for one in figure.legends[0].get_patches()]
    assert min((np.abs(np.subtract(a, b)).max() for a, b in combinations(fills, 2)), default=1) > 0.1


def test_a_user_has_one_colour_in_every_picture() -> None:
    """In bars, along alpha, of marginal values, and in the explorer; users of different size, so that orders differ."""
    rng = np.random.default_rng(7)
    cluster = fo.Cluster(rng.uniform(4, 9, (3, 2)), rng.uniform(0.1, 2, (9, 2)))
    found, path = fo.AlphaPFVDS(2).solve(cluster), fo.alpha_path(cluster, [1, 2])
    wanted = dict(zip(cluster.users, (light for light, _ in USERS), strict=False))
    for axes in (
        picture().axes[0] for picture in (found.plot, found.sensitivity().plot, partial(path.draw, "user_tasks"))
    ):
        parts, names = axes.get_legend_handles_labels()
        drawn = [one.get_color() if hasattr(one, "get_color") else to_hex(one[0].get_facecolor()) for one in parts]
        assert len(names) >= 8
        shown = {name: fill for name, fill in zip(names, drawn, strict=True) if name in wanted}
        assert shown == {name: wanted[name] for name in shown}
    bars = Session(cluster).reply({"ask": "answer", "state": {}})["bars"]
    assert [wanted[name] for name in bars["bands"]] == [USERS[k][0] for k in bars["colours"]]
    assert all(f"--fo-user-{k}: {shade};" in style() for k, pair in enumerate(USERS) for shade in pair)


def test_colours_of_many_users_differ_in_a_picture() -> None:
    assert of_users([3, 22, 0, 41]) == [3, 4, 0, 5]
    assert len({*of_users(range(0, 19 * 30, 30))}) == 19


def test_no_resource_is_left_out_without_a_word() -> None:
    """The memory of both servers of PF's figure 1 is used up, and has derivatives from one side only."""
    moves = solved().sensitivity()
    [axes] = moves.plot().axes
    rows = [text.get_text() for text in axes.get_yticklabels()]
    assert len(rows) == int((solved().cluster.capacity > 0).sum())
    assert rows[:2] == ["RAM on server 1 *", "RAM on server 2 *"]
    ends = [sum(bar.get_width() for bar in axes.patches if abs(bar.get_y() + 0.4 - row) < 0.1) for row in (0, 1)]
    slopes = moves.one_sided().loc["capacities"].xs("right", level="side")[list(solved().cluster.users)]
    wanted = [(slopes.loc[name, "RAM"] * solved().user_tasks.to_numpy()).sum() for name in ("server 1", "server 2")]
    assert_allclose(ends, np.array(wanted) / solved().cluster.capacity[:, 1], rtol=1e-4)
    [axes] = moves.plot(3, one_sided=False).axes
    assert [text.get_text() for text in axes.texts] == ["not differentiable"] * 2
    assert "2 more resources of servers are not shown" in axes.get_xlabel()


def test_rounds_are_whole() -> None:
    trace = fo.best_response(solved().cluster, 1, max_rounds=2, tol=1e-12, throw=False).trace
    assert all(float(tick).is_integer() for tick in trace.plot().axes[0].get_xticks())


def test_a_game_of_one_step_is_seen() -> None:
    """A logarithmic scale leaves out 0, and a line through a single point has no length."""
    [axes] = fo.best_response(fo.papers.instance("pf-fig1"), 3).trace.plot().axes
    assert [line.get_marker() for line in axes.lines] == [".", "."]
    assert axes.lines[0].get_label() == "residual (0 in round 2)"


def test_no_name_is_a_formula_or_hidden() -> None:
    names = ["_a", "$x^", "b" * 60, "$\\frac$", "line\nbreak"]
    cluster = fo.Cluster(
        [[9, 9], [9, 9]], np.eye(5, 2) + 0.1, users=names, servers=["$_{", "_"], resources=["$c$", "_d"]
    )
    figure = fo.DRFH().solve(cluster).plot()
    figure.draw_without_rendering()
    lengths = [len(one.get_text()) for one in figure.legends[0].get_texts()]
    assert len(lengths) == 5
    assert max(lengths) <= 29


#: Borders, areas, paths and axes, which are no data.
_INK = ("#111111", "#7d8aa0", "#e9edf3")


@cache
def solved() -> fo.Allocation:
    return fo.AlphaPFVDS(3).solve(fo.papers.instance("pf-fig1"))


@cache
def two() -> fo.Allocation:
    return fo.DRFH().solve(fo.papers.instance("drf-4.1"))


@cache
def inferred() -> Any:
    return fo.infer_alpha(solved().cluster, solved().user_tasks)


@cache
def path() -> Any:
    return fo.alpha_path(two().cluster, [0.5, 1, 3])


#: Every picture, made when it is asked for, and in how many panels.
PICTURES: dict[str, tuple[Callable[[], Any], int]] = {
    "allocation": (lambda: solved().plot, 1),
    "sensitivity": (lambda: solved().sensitivity().plot, 1),
    "trace": (lambda: fo.best_response(solved().cluster, 1, max_rounds=5, throw=False).trace.plot, 1),
    "path": (lambda: path().draw, 3),
    "two users": (lambda: partial(fo.plot.two_users, two(), path=list(path().allocations)), 1),
    "compare": (lambda: partial(fo.plot.compare, fo.compare(two().cluster, ["drf", "ceei"])), 3),
    "inferred": (lambda: inferred().plot, 2),
    "schedule": (lambda: fo.simulate("drf-policies?jobs=2", "fifo").plot, 3),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_drawn_where_it_is_told(name: str) -> None:
    draw, count = PICTURES[name][0](), PICTURES[name][1]
    figure = Figure(layout="constrained")
    drawn = figure.subplots(1, count + 1)
    assert draw(ax=drawn[0] if count == 1 else drawn[:-1]) is figure
    assert all(axes.has_data() for axes in drawn[:-1])
    assert not drawn[-1].has_data()
    assert not figure.legends
    for wrong in ("here", [*drawn], figure):
        with pytest.raises(DataError, match="this picture is drawn in"):
            draw(ax=wrong)


@pytest.mark.parametrize("name", PICTURES)
def test_settings_of_the_caller_count(name: str) -> None:
    own = {"axes.prop_cycle": mpl.cycler(color=["#123456", "#654321"]), "figure.figsize": (9.0, 5.0)}
    with mpl.rc_context({"font.size": 21.0} | own):
        figure = PICTURES[name][0]()()
        [axes, *_] = figure.axes
        assert figure.get_size_inches().tolist() == [9.0, 5.0]
        assert axes.xaxis.label.get_fontsize() == 21.0
        assert {to_hex(bar.get_facecolor()) for bar in axes.patches} <= {"#123456", "#654321", *_INK}
        assert {to_hex(line.get_color()) for line in axes.lines} <= {"#123456", "#654321", "#444444", *_INK}


def test_lines_at_the_ends_of_an_axis_are_whole_and_level_ones_level() -> None:
    """Of two who fill one server with nothing else, all measures are the same at every alpha."""
    path = fo.alpha_path(fo.Cluster([[4, 4]], [[1, 1], [1, 1]]), [0.5, 1, 3])
    for axes in path.draw(measures=["utilization", "jain", "min_share"]).axes:
        low, high = axes.get_ylim()
        for line in axes.lines:
            height = (line.get_ydata() - low) / (high - low)
            assert np.ptp(height) < 1e-5
            assert 0.01 < height.min() <= height.max() < 0.99
    [axes] = path.draw("user_tasks").axes
    assert axes.lines[0].get_linewidth() > axes.lines[1].get_linewidth()  # both are seen, one beneath the other


def test_comparison_has_a_bar_per_mechanism_and_none_for_what_failed() -> None:
    frame = fo.compare(fo.papers.instance("drf-4.1"), ["drf", "cmmf", "ceei"], details=True)
    figure = fo.plot.compare(frame)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["DRF", "CMMF", "CEEI"]
    widths = [bar.get_width() for bar in figure.axes[0].patches]
    assert_allclose(widths, frame["utilization"])
    assert np.isnan(widths[1])
    with pytest.raises(DataError, match="the frame has no column 'jane'"):
        fo.plot.compare(frame, ["jane"])
    with pytest.raises(DataError, match=r"draws what fairopt.compare returns; got a Cluster"):
        fo.plot.compare(fo.papers.instance("drf-4.1"))  # type: ignore[arg-type]
