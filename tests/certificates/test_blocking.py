"""Bottlenecks of max-min allocations: used up, needed, and used by nobody above; limits; what has no bottleneck."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from families import EXAMPLE, draw
from numpy.testing import assert_array_equal

from fairopt.errors import DataError, SolverError
from fairopt.mechanisms import Mechanism, get
from fairopt.model.cluster import Cluster
from fairopt.result.allocation import Allocation

THREE = Cluster([[4, 2], [1, 6]], [[1, 1], [1, 2], [3, 1]])
NAMED = EXAMPLE.replace(resources=["cpu", "ram"], users=["A", "B"])
LEXICOGRAPHIC = [
    get("drf"),
    get("drfh"),
    get("tsf"),
    get("task-maxmin"),
    get("asset-fairness", scope="servers"),
]


def check(found: Allocation, tol: float = 1e-6) -> pd.DataFrame:
    """Every named bottleneck is one by the words of its definition, without prices."""
    frame, cluster = found.bottlenecks(), found.cluster
    assert list(frame.index) == list(cluster.users)
    assert_array_equal(frame["tasks"], found.arrays.user_tasks)
    limits = found.criterion.limits(cluster)
    for n, row in enumerate(frame.itertuples()):
        if row.held_by == "nowhere to run":
            assert not cluster.usable[n].any()
            assert row.tasks == row.level == row.bound == 0
        elif row.held_by == "task limit":
            assert row.tasks == pytest.approx(limits[n], rel=2 * tol)
        else:
            assert row.held_by == "capacity", row
            assert row.bound <= tol
            assert row.level == pytest.approx(found.criterion.restrict(np.array([n])).levels(np.array([row.tasks]))[0])
            i, r = cluster.servers.index(row.server), cluster.resources.index(row.resource)
            assert cluster.usable[n, i]
            assert cluster.demand[n, r] > 0
            need = row.tasks * cluster.demand[n, r]
            use = found.tasks[:, i] * cluster.demand[:, r]
            levels = frame["level"].to_numpy()
            above = (use * (levels > row.level * (1 + 2 * tol))).sum()
            room = max(cluster.capacity[i, r] - use.sum(), 0.0) + above
            assert room <= 2 * len(cluster.resources) * tol * need + 1e-12 * cluster.capacity[i, r], row
        missing = row.held_by != "capacity"
        assert pd.isna(row.server) == pd.isna(row.resource) == missing
    return frame


# -- by hand -------------------------------------------------------------------------------------


def test_a_cap_of_the_mechanism_is_a_limit() -> None:
    frame = check(get("mqdrf", shares=(0.5, 0.1), sizes=(1, 1), levels=(1, 2)).solve(NAMED))
    assert frame["held_by"].tolist() == ["task limit", "task limit"]


def test_of_several_resources_the_one_needed_most() -> None:
    both_full = Cluster([[2, 2, 9]], [[1, 2, 1], [1, 0, 1]], resources=["cpu", "ram", "net"])
    frame = check(get("task-maxmin").solve(both_full))
    assert frame["resource"].tolist() == ["ram", "cpu"]  # CPU is used up as well, of which the first needs half


def test_merged_servers_and_users() -> None:
    twins = Cluster([[4, 2], [1, 6], [2, 1], [4, 2]], [[1, 1], [2, 2], [1, 4], [0, 1]], servers=["a", "b", "c", "d"])
    for name in ("drfh", "tsf", "task-maxmin"):
        frame = check(get(name).solve(twins))
        assert set(frame["server"]) <= {"a", "b"}  # a, c and d act as one
    alike = Cluster([[4, 2], [8, 4]], [[1, 1], [2, 2]])
    frame = check(get("drfh").solve(alike))  # they all act as one: no prices are needed
    assert frame[["server", "resource"]].to_numpy().tolist() == [["server1", "resource2"]] * 2


# -- by the hundred ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mechanism", "style"), [*product(LEXICOGRAPHIC, ["nice", "plain"]), *product(LEXICOGRAPHIC[:2], ["wide"])], ids=str
)
def test_every_named_bottleneck_is_one(mechanism: Mechanism, style: str) -> None:
    """Over eight decades of what the mechanism can solve at all."""
    seen, wide = Counter[str](), style == "wide"
    for seed in range(20 if wide else 30):
        found = mechanism.solve(draw(style, seed), throw=not wide)
        if not found.flagged:
            frame = check(found)
            seen.update(frame["held_by"], answered=1)
            assert wide or frame["bound"].max() <= max(found.certificate.optimality, 2e-7), f"seed {seed}"
    assert seen["answered"] > 16
    assert wide or min(seen[kind] for kind in ("capacity", "task limit", "nowhere to run")) >= 3, seen


def test_prices_are_found_where_none_came() -> None:
    """The declarative engine hands over no prices: the judge's linear programs find those that name bottlenecks."""
    several = 0
    for seed in range(12):
        found = get("drfh").solve(draw("plain", seed), engine="declarative")
        check(found)
        several += len(found.cluster.servers) > 1
    assert several > 5


# -- what has none -------------------------------------------------------------------------------


def test_who_could_rise_has_no_bottleneck() -> None:
    for name in ("drf", "drfh"):
        found = get(name).solve(THREE)
        less = replace(found, tasks=found.tasks * np.array([[0.5], [1], [1]]))
        frame = less.bottlenecks()
        assert frame.loc["user1", "held_by"] == "unproved"
        assert frame.loc["user1", "bound"] > 0.1
        assert pd.isna(frame.loc["user1", "server"])
        nothing = replace(found, tasks=found.tasks * np.array([[0], [1], [1]]))
        with pytest.raises(DataError, match="user 'user1' has no tasks, although it could run some"):
            nothing.bottlenecks()


@pytest.mark.parametrize(
    "name", ["ceei", "utilitarian", "bottleneck-fairness", "alphapf-vds", "ps-dsf", "per-server-drf", "fds"]
)
def test_only_lexicographic_max_min_has_them(name: str) -> None:
    found = get(name).solve(NAMED)
    with pytest.raises(DataError, match=r"only lexicographic max-min .* ask an allocation of DRF, DRFH, TSF"):
        found.bottlenecks()


def test_too_large_without_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    native, declared = get("drfh").solve(THREE), get("drfh").solve(THREE, engine="declarative")
    monkeypatch.setattr("fairopt.model.polytope.LARGE", 3)
    check(native)
    with pytest.raises(SolverError, match="too large to search for them: engine='native' gives them"):
        declared.bottlenecks()
