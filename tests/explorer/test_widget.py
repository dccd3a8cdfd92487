"""`fo.explore` without a browser: messages as the view sends them."""

from __future__ import annotations

import math
import sys
from typing import Any

import pytest
from numpy.testing import assert_array_equal

import fairopt as fo
from fairopt.errors import DataError

pytest.importorskip("anywidget")


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No kernel is here that a widget could talk to."""
    monkeypatch.setattr("ipywidgets.Widget.open", lambda self: None)


def asked(widget: Any, content: Any) -> list[Any]:
    """What the widget sends when it is sent this."""
    sent: list[Any] = []
    widget.send = sent.append
    widget._handle_custom_msg(content, [])
    return sent


def test_an_allocation_is_what_runs() -> None:
    runs = fo.DRFH().solve(fo.papers.instance("drfh-fig1"))
    assert fo.explore(runs).start["running"] == pytest.approx([10, 10])


def test_questions_are_answered() -> None:
    widget = fo.explore(fo.papers.instance("drfh-fig1"))
    state = {"mechanism": "alphapf-vds", "alpha": 3, "edits": {"users/0/weight": "2"}}
    (sent,) = asked(widget, {"id": 7, "question": {"ask": "answer", "state": state}})
    assert (sent["id"], sent["reply"]["mechanism"]) == (7, "alphaPF-VDS(alpha=3)")
    assert widget.cluster.weight.tolist() == [2, 1]
    expected = fo.AlphaPFVDS(3).solve(widget.cluster)
    assert_array_equal(widget.allocation.arrays.user_tasks, expected.arrays.user_tasks)
    assert asked(widget, "nonsense") == []
    assert asked(widget, {"id": 8, "question": 5})[0]["reply"]["error"]


@pytest.mark.parametrize(
    ("mechanism", "name", "alpha"),
    [
        ("drfh", "drfh", 1.0),
        (fo.AlphaPFVDS(math.inf), "alphapf-vds", "inf"),
        (fo.AlphaFair(2.5), "alpha-fair", 2.5),
        (fo.FDS(beta=2), "fds(beta=2)", 1.0),
    ],
)
def test_where_to_begin(mechanism: Any, name: str, alpha: float | str) -> None:
    widget = fo.explore(fo.papers.instance("drf-4.1"), mechanism)
    assert widget.start["state"] == {"mechanism": name, "alpha": alpha, "edits": {}}


def test_what_cannot_be_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = fo.papers.instance("drf-4.1")
    for given in ({"mechanism": "nobody"}, {"alpha": -1}, {"alpha": "x"}, {"cluster": "cluster.toml"}):
        with pytest.raises(DataError):
            fo.explore(**{"cluster": cluster} | given)
    monkeypatch.delitem(sys.modules, "fairopt.app.explorer.widget", raising=False)
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(DataError, match=r"pip install 'fairopt\[notebook\]'"):
        fo.explore(cluster)
