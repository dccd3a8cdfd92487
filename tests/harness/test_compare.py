from __future__ import annotations

import re
from typing import Any

import pytest

import fairopt as fo
from fairopt.errors import DataError


def test_compare_default_is_every_registered_mechanism() -> None:
    frame = fo.compare(fo.papers.instance("drf-4.1"))
    assert {str(one) for name in fo.mechanisms.names() for one in fo.mechanisms.get(name).variants()} == set(
        frame.index
    )
    assert set(frame["status"].str.split(":").str[0]) == {"ok", "not applicable"}


def test_status_and_notes_come_before_what_scrolls_away() -> None:
    frame = fo.compare(fo.papers.instance("drf-4.1"), ["drf", "cmmf"])
    assert list(frame.columns[:2]) == ["status", "notes"]
    assert frame.loc["DRF", "notes"] == frame.loc["CMMF", "notes"] == ""


def test_utilization_is_a_column() -> None:
    cluster = fo.Cluster([[9, 18, 0]], [[1, 4, 0], [3, 1, 0]], resources=["cpu", "ram", "gpu"])
    frame = fo.compare(cluster, ["drf"])
    assert frame["utilization"].iloc[0] == pytest.approx(1 / 2 + 14 / 36)
    assert fo.DRF().solve(cluster).summary()["utilization"] == frame["utilization"].iloc[0]


def test_what_is_absent_is_blank() -> None:
    cluster = fo.Cluster([[9, 18, 0]], [[1, 4, 0], [3, 1, 0]], resources=["cpu", "ram", "gpu"])
    frame = fo.compare(cluster, ["drf", "cmmf"])
    assert frame["use_gpu"].isna().all()
    assert frame["tasks"].dtype == float
    found = fo.DRF().solve(cluster)
    shown = (frame, frame[["status", "tasks", "use_gpu"]], frame.round(2))
    for text in (*map(repr, shown), *(one._repr_html_() for one in shown), repr(found), found._repr_html_()):
        assert not re.search(r"\bnan\b", text.lower())
    assert "gpu" not in repr(found).splitlines()[-2]


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ("drf", r"mechanisms are 'drf'; give a list of them, such as \['drf'\]"),
        (fo.DRF(), r"give a list of them, such as \['drf'\]"),
        (fo.DRF, r"give a list of them, such as \['drf'\]"),
        (3, "mechanisms are 3; give a list"),
        ([fo.DRF], r"DRF is a class; give an instance of it, DRF\(\), or its name"),
        ([3], r"3 is no mechanism; give a name, or an instance"),
        ([], "the list of mechanisms is empty; known: alpha-fair"),
        (["alphapfvsd"], "no mechanism 'alphapfvsd'; known: .*; did you mean alphapf-vds?"),
    ],
)
def test_what_was_meant_is_said(chosen: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        fo.compare(fo.papers.instance("drf-4.1"), chosen)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[1, 2]], r"cluster is \[\[1, 2\]\], of type list; make one with fairopt.Cluster\(capacity, demand\)"),
        ("c.toml", r"read a file with fairopt.Cluster.load"),
        (fo.DRF().solve(fo.papers.instance("drf-4.1")), "of type Allocation; pass its .cluster"),
    ],
)
def test_what_is_no_cluster_is_said(given: Any, message: str) -> None:
    for use in (fo.DRF().solve, fo.DRF().problem, fo.alpha_path, fo.compare, lambda one: fo.best_response(one, 1)):
        with pytest.raises(DataError, match=message):
            use(given)


def test_class_names_are_names() -> None:
    assert type(fo.mechanisms.get("AlphaPFVDS")) is fo.AlphaPFVDS
    assert type(fo.mechanisms.get("GFJ", beta=2)) is fo.GFJ


def test_dir_shows_what_is_public() -> None:
    assert {name for name in dir(fo) if not name.startswith("__")} == {*fo.__all__}
