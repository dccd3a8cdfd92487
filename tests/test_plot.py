"""Pictures of answers: what stands where, and that nothing in a name is a formula."""

from __future__ import annotations

import io
from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

import fairopt as fo
from fairopt.errors import DataError


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


@pytest.mark.parametrize("users", [1, 9, 19, 20, 60])
def test_colours_can_be_told_apart(users: int) -> None:
    figure = drawn(users).plot()
    shown = users if users < 20 else 12
    labels = [one.get_text() for one in figure.legends[0].get_texts()]
    assert len(labels) == shown
    assert (labels[0] == f"{users - 11} others") == (users >= 20)
    fills = [to_rgb(one.get_facecolor()) for one in figure.legends[0].get_patches()]
    assert min((np.abs(np.subtract(a, b)).max() for a, b in combinations(fills, 2)), default=1) > 0.1


def test_no_name_is_a_formula_or_hidden() -> None:
    names = ["_a", "$x^", "b" * 60, "$\\frac$", "line\nbreak"]
    cluster = fo.Cluster(
        [[9, 9], [9, 9]], np.eye(5, 2) + 0.1, users=names, servers=["$_{", "_"], resources=["$c$", "_d"]
    )
    figure = fo.DRFH().solve(cluster).plot()
    figure.savefig(io.BytesIO(), format="png")
    assert len(figure.legends[0].get_texts()) == 5
    assert max(len(one.get_text()) for one in figure.legends[0].get_texts()) <= 29


def test_comparison_has_a_bar_per_mechanism_and_none_for_what_failed() -> None:
    frame = fo.compare(fo.papers.instance("drf-4.1"), ["drf", "cmmf", "ceei"])
    figure = fo.plot.compare(frame)
    assert [axes.get_title() for axes in figure.axes] == ["utilization", "smallest share", "Jain's index"]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["DRF", "CMMF", "CEEI"]
    widths = [bar.get_width() for bar in figure.axes[0].patches]
    np.testing.assert_allclose(widths, frame["utilization"])
    assert np.isnan(widths[1])
    with pytest.raises(DataError, match="the frame has no column 'jane'"):
        fo.plot.compare(frame, ["jane"])
    with pytest.raises(DataError, match="measures is 'jain'; give a list"):
        fo.plot.compare(frame, "jain")
    with pytest.raises(DataError, match=r"draws what fairopt.compare returns; got a Cluster"):
        fo.plot.compare(fo.papers.instance("drf-4.1"))  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"draws frames of fairopt.alpha_path"):
        fo.plot.paths()
