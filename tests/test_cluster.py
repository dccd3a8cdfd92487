"""`Cluster`: derived quantities by hand, errors that say where and what to do, immutability, copies, frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal
from strategies import clusters
from test_intake import made

from fairopt.errors import DataError, FairoptError
from fairopt.model.cluster import Cluster

FIGURE_1 = Cluster(
    [[12, 4, 75], [8, 16, 0]],
    [[1, 1, 5], [1, 1 / 3, 5], [0.25, 1, 0], [0.5, 1, 0]],
    resources=["cpu", "ram", "net"],
)


def test_dominant_shares_of_pf_figure_1() -> None:
    assert_allclose(FIGURE_1.pooled_capacity, [20, 20, 75])
    assert_allclose(FIGURE_1.dominant_share_per_task, [1 / 15, 1 / 15, 1 / 20, 1 / 20])
    assert_array_equal(FIGURE_1.dominant_resource, [2, 2, 1, 1])


@given(clusters())
def test_derived_quantities_by_definition(cluster: Cluster) -> None:
    demand, capacity = cluster.demand[:, None], cluster.capacity
    with np.errstate(divide="ignore", invalid="ignore"):
        alone = np.where(demand > 0, capacity / demand, np.inf).min(axis=2)
        part = np.where((demand > 0) & cluster.usable[..., None], alone[..., None] * demand / capacity, 0)
    assert_allclose(cluster.gamma0, alone)
    assert_allclose(cluster.gamma, alone * cluster.eligible)
    assert_allclose(cluster.normalised_demand, part)
    assert_allclose(cluster.normalised_demand.max(axis=2), cluster.usable)
    assert_array_equal(cluster.runnable, cluster.usable.any(axis=1) & (cluster.max_tasks > 0))
    assert not np.isnan(cluster.share_per_task).any()


def test_edge_cases_of_the_theory() -> None:
    lacking = Cluster([[3, 0]], [[1, 0], [0, 1], [1, 1]])
    assert_array_equal(lacking.runnable, [True, False, False])
    assert_array_equal(lacking.share_per_task[1], [0, np.inf])
    assert np.isinf(lacking.dominant_share_per_task[1])


BAD: list[tuple[dict[str, Any], str, tuple[Any, ...]]] = [
    (
        {"demand": [[1, 4], [3, -1]]},
        r"user 'B' \(row 1\) has demand -1 of 'ram'.*finite number >= 0",
        ("users", 1, "demand", "ram"),
    ),
    ({"capacity": [[9, np.inf]]}, r"server 'S' \(row 0\) has capacity inf of 'ram'", ("servers", 0, "capacity", "ram")),
    (
        {"demand": [[1, 4], [0, 0]]},
        r"user 'B' \(row 1\) demands nothing; give it .* or drop it",
        ("users", 1, "demand"),
    ),
    ({"weight": [1, 0]}, r"user 'B' \(row 1\) has weight 0; it must be a finite number > 0", ("users", 1, "weight")),
    (
        {"max_tasks": [1, -2]},
        r"user 'B' \(row 1\) has max_tasks -2.*leave it out, or use inf",
        ("users", 1, "max_tasks"),
    ),
    ({"max_tasks": [np.nan, 2]}, r"user 'A' \(row 0\) has max_tasks nan", ("users", 0, "max_tasks")),
    ({"users": ["A"]}, r"2 users need 2 names; got 1: A", ()),
    ({"resources": ["cpu", "weight"]}, r"a resource cannot be called 'weight'", ()),
    ({"weight": [1, 2, 3]}, r"weight must have one number per user, 2 in all; got shape \(3,\)", ()),
    ({"demand": [[1, 4, 1], [3, 1, 1]]}, r"capacity has 2 resources and demand has 3; give both one column", ()),
    ({"demand": [1, 4]}, r"demand must have shape \(users, resources\).*got \(2,\).*\[\[\.\.\.\]\]", ()),
    (
        {"capacity": [[9, 18], [1]]},
        r"capacity must be a table of numbers.*all rows of one length: row 1 has 1 entries, and row 0 has 2",
        ("servers", 1, "capacity"),
    ),
    ({"weight": [1, "a"]}, r"user 'B' \(row 1\) has weight 'a'; weight must be one number", ("users", 1, "weight")),
    ({"demand": [[1, 4], "31"]}, r"row 1 is '31', which is not a list", ("users", 1, "demand")),
    ({"eligible": [[True, False]]}, r"eligible must have shape \(users, servers\) = \(2, 1\); got \(1, 2\)", ()),
    (
        {"eligible": [[2], [0]]},
        r"user 'A' has eligible 2 for server 'S'; eligible must hold only true or false",
        ("users", 0, "eligible"),
    ),
]


@pytest.mark.parametrize(("changes", "message", "where"), BAD)
def test_errors_name_the_row_and_the_remedy(changes: dict[str, Any], message: str, where: tuple[Any, ...]) -> None:
    with pytest.raises(DataError, match=message) as caught:
        made(**changes)
    assert caught.value.where == where
    assert isinstance(caught.value, FairoptError)
    assert isinstance(caught.value, ValueError)


def test_copies_with_changes() -> None:
    assert FIGURE_1.with_demand("user4", [1, 0.5, 0]).gamma[3].tolist() == [8, 8]
    for name, value in {"weight": 3, "max_tasks": 3, "capacity": [1, 2, 3], "eligible": [False, True]}.items():
        table = np.array(getattr(FIGURE_1, name))
        table[1] = value
        who = "server2" if name == "capacity" else "user2"
        assert getattr(FIGURE_1, f"with_{name}")(who, value) == FIGURE_1.replace(**{name: table})
    assert FIGURE_1.drop_user("user2").users == ("user1", "user3", "user4")
    with pytest.raises(DataError, match="'user1' is the only one"):
        Cluster([[1]], [[1]]).drop_user("user1")
    with pytest.raises(DataError, match="demand of 'user1' must have shape"):
        FIGURE_1.with_demand("user1", [1, 1])
    with pytest.raises(DataError, match=r"a cluster has no colour; it has capacity, demand"):
        FIGURE_1.replace(colour="red")


def test_select() -> None:
    part = FIGURE_1.select(users=["user3", "user1"], resources=["ram", "cpu"], servers=["server2"])
    wanted = Cluster([[16, 8]], [[1, 0.25], [1, 1]], None, None, None, ["ram", "cpu"], ["user3", "user1"], ["server2"])
    assert part == wanted
    assert FIGURE_1.select(resources="ram").resources == ("ram",)
    with pytest.raises(DataError, match="no 'disk' among the resources"):
        FIGURE_1.select(resources=["disk"])


def test_pool() -> None:
    pool = FIGURE_1.with_eligible("user1", [False, False]).pool()
    assert_allclose(pool.capacity, [[20, 20, 75]])
    assert pool.eligible.ravel().tolist() == [False, True, True, True]
    assert pool.pool() is pool


def test_equality() -> None:
    same = Cluster(FIGURE_1.capacity, FIGURE_1.demand, resources=["cpu", "ram", "net"])
    assert same == FIGURE_1
    assert FIGURE_1.with_weight("user1", 2) != FIGURE_1
    assert FIGURE_1.replace(users=["a", "b", "c", "d"]) != FIGURE_1
    assert FIGURE_1 != "figure 1"


def test_shown() -> None:
    text, html = repr(FIGURE_1), FIGURE_1._repr_html_()
    assert text.startswith("Cluster(4 users, 2 servers, 3 resources: cpu, ram, net)")
    assert all(name in shown for name in ("user4", "server2", "4 users, 2 servers", "cpu") for shown in (text, html))
    assert "<table" in html
    assert "\n" not in repr(Cluster(np.ones((20, 1)), np.ones((20, 1))))
