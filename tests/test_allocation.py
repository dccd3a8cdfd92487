"""`Allocation`: what it derives, judges, shows and turns into."""

from __future__ import annotations

import numpy as np
import pytest
from families import EXAMPLE
from hypothesis import given, settings
from numpy.testing import assert_allclose, assert_array_equal
from strategies import clusters

from fairopt.errors import DataError, FairoptError
from fairopt.mechanisms import get, one
from fairopt.model.cluster import Cluster
from fairopt.papers import instance
from fairopt.report import comparison, for_people
from fairopt.result.allocation import Allocation
from fairopt.study.compare import compare

NAMED = EXAMPLE.replace(resources=["cpu", "ram"], users=["A", "B"])


@pytest.fixture(scope="module")
def drf() -> Allocation:
    return get("drf").solve(NAMED)


def test_the_example_of_drf_4_1(drf: Allocation) -> None:
    assert_allclose(drf.usage, [[3, 12], [6, 2]])
    assert_allclose(drf.dominant_shares, [2 / 3, 2 / 3])
    assert_allclose(drf.virtual_dominant_shares["server1"], [2 / 3, 2 / 3])
    assert_allclose(drf.used_parts.loc["server1"], [1, 14 / 18])
    row, names = drf.summary(), ("tasks", "use_cpu", "use_ram", "jain", "min_share", "max_share", "welfare")
    assert [row[name] for name in names] == pytest.approx([5, 1, 14 / 18, 1, 2 / 3, 2 / 3, 4 / 3])


@settings(max_examples=12)
@given(clusters())
def test_anything_can_be_shown_and_numbers_have_the_names_of_the_cluster(cluster: Cluster) -> None:
    for mechanism in ("drfh", "alphapf-vds"):
        found = get(mechanism).solve(cluster, throw=False)
        axes = {"user": cluster.users, "server": cluster.servers, "resource": cluster.resources}
        for name in ("user_tasks", "dominant_shares", "virtual_dominant_shares", "usage", "used_parts", "utilization"):
            shown, inside = getattr(found, name), getattr(found.arrays, name)
            assert_array_equal(np.ravel(shown), np.ravel(inside))
            for index in shown.axes:
                for level, labels in zip(index.names, getattr(index, "levels", [index]), strict=True):
                    assert sorted(labels) == sorted(axes[level])
        if found.prices is not None:
            assert_array_equal(np.ravel(found.prices), np.ravel(found.arrays.prices))
            assert tuple(found.prices.columns) == cluster.resources
        for n, user in enumerate(cluster.users):
            assert found[user].to_dict() == dict(zip(cluster.servers, found.tasks[n].tolist(), strict=True))
        assert np.isfinite(found.dominant_shares).all()
        for shown in (repr(found), found._repr_html_(), found.plot().axes):
            assert shown


@pytest.mark.parametrize("mechanism", ["alphapf-vds(alpha=3)", "alpha-fair", "drfh", "concave-utility"])
def test_criteria_take_tasks_with_names(mechanism: str) -> None:
    found = one(mechanism).solve(NAMED)
    for name in ("levels", "log_marginal", "elasticity", "surplus"):
        of = getattr(found.criterion, name)
        assert_array_equal(of(found.user_tasks), of(found.arrays.user_tasks))


def test_an_allocation_is_no_sequence(drf: Allocation) -> None:
    for key in (0, "nobody", ["A"]):
        with pytest.raises(DataError, match="among the users: A, B"):
            drf[key]
    with pytest.raises(TypeError):
        iter(drf)


def test_of_what_a_server_lacks_no_part_is_used() -> None:
    """Server 2 has no bandwidth, and users 1 and 2 cannot run there."""
    found = get("ps-dsf").solve(instance("pf-fig1"))
    assert_array_equal(np.isnan(found.arrays.virtual_dominant_shares), ~found.cluster.usable)
    assert found.used_parts.isna().to_numpy().tolist() == [[False] * 3, [False, False, True]]


def test_tolerance_and_throw(out_of_reach: float) -> None:
    pair = Cluster([[1.1, 3.3]], [[0.7, 0.9], [0.2, 1.7]])
    with pytest.raises(FairoptError, match="misses tol=1e-20"):
        get("ceei").solve(pair, tol=out_of_reach)
    flagged = get("ceei").solve(pair, tol=out_of_reach, throw=False)
    assert flagged.flagged
    assert flagged.tol == out_of_reach
    assert all("misses the tolerance" in shown for shown in (repr(flagged), flagged._repr_html_()))


def test_names_are_escaped_in_html() -> None:
    odd = Cluster([[1.0], [0.0]], [[1.0], [1.0]], users=["<script>", "b"], eligible=[[0, 1], [1, 0]])
    html = get("drfh").solve(odd)._repr_html_()
    assert "<script>" not in html
    assert html.count("<table") == 2
    assert "100.0%" in html


def test_users_servers_and_resources_are_called_as_they_like() -> None:
    """Nobody is called so that a column, or a row, is lost."""
    names = ["tasks", "weight", "jain", "dominant_share", "overall", "tasks (server)", "level"]
    odd = Cluster(
        np.ones((7, 2)) + np.eye(7, 2), np.ones((7, 2)), users=names, servers=names, resources=["tasks", "jain"]
    )
    found = get("alphapf-vds").solve(odd)
    frame = found.to_frame()
    columns = ["tasks (server) (server)", "weight (server)", "jain", "dominant_share (server)", *names[4:]]
    assert list(frame.columns) == ["tasks", "dominant_share", "weight", *columns]
    assert_allclose(frame["tasks"], found.user_tasks)
    assert_allclose(frame["weight"], 1)
    assert_allclose(frame[columns], found.tasks)
    other = get("drfh").solve(odd)
    assert_allclose(other.bottlenecks()["tasks"], other.user_tasks)
    assert Cluster.from_frames(**odd.to_frames()) == odd
    table = compare(odd, ["drfh", "alphapf-vds"], details=True)
    shown = for_people(comparison(table)[0])
    assert len({*shown.columns}) == len(shown.columns)
    assert float(shown["tasks"][0]) == pytest.approx(table["tasks"].iloc[0], rel=1e-3)
    assert "tasks (use)" in shown.columns


def test_notes() -> None:
    two = Cluster([[9, 0], [0, 18]], [[1, 0], [1, 1], [0, 2]], eligible=[[1, 0], [1, 1], [0, 1]])
    pooled = get("drf").solve(two)
    assert "2 servers pooled into one; placement constraints ignored" in pooled.notes
    spread = get("drfh").solve(Cluster([[1, 0]], [[1, 1]] * 7 + [[1, 0]]))
    assert spread.notes == ("can run nowhere, so gets 0 tasks: user1, user2, user3, user4, user5 and 2 more",)
    assert "note: can run nowhere" in repr(spread)


def test_bars_add_up_to_the_use(drf: Allocation) -> None:
    (axes,) = drf.plot().axes
    tops: dict[float, float] = {}
    for bar in axes.patches:
        tops[bar.get_x()] = max(tops.get(bar.get_x(), 0.0), bar.get_y() + bar.get_height())
    assert_allclose(list(tops.values()), [1, 14 / 18])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["cpu", "ram"]
