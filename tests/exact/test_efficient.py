"""The largest sum of shares in fractions: right, and known to be the only optimum or not."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest
from scipy import optimize

import fairopt as fo
from fairopt.exact.rational import unique_optimum
from fairopt.properties._tasks import exact_tasks


def test_optima_by_hand() -> None:
    cluster = fo.Cluster([[1, 1]], [[1, 0], [0, 1], [1, 1]])
    ones = {n: F(1) for n in range(3)}
    assert unique_optimum(cluster, ones, {}).ravel().tolist() == [1, 1, 0]  # type: ignore[union-attr]
    assert unique_optimum(cluster, ones | {2: F(2)}, {}) is None  # 1 + 1 or 2
    assert unique_optimum(cluster, ones | {2: F(5, 2)}, {}).ravel().tolist() == [0, 0, 1]  # type: ignore[union-attr]
    limited = unique_optimum(cluster, ones | {2: F(5, 2)}, {2: F(1, 3)})
    assert limited is not None
    assert limited.ravel().tolist() == [F(2, 3), F(2, 3), F(1, 3)]
    barred = fo.Cluster([[3], [5]], [[1], [1]], eligible=[[1, 0], [0, 1]], max_tasks=[0, np.inf])
    assert unique_optimum(barred, {1: F(1)}, {0: F(0)}).tolist() == [[0, 0], [0, 5]]  # type: ignore[union-attr]


def test_a_degenerate_optimum_may_be_the_only_one() -> None:
    """Two rows are used up by one user: a basis has a price of zero, and nothing moves."""
    cluster = fo.Cluster([[1, 1]], [[1, 1], [1, 2]])
    found = unique_optimum(cluster, {0: F(3), 1: F(2)}, {})
    assert found is not None
    assert found.ravel().tolist() == [1, 0]


def test_ties_of_any_pair_count() -> None:
    """On two servers alike but for the order, one user alone, or another on either: the first pair is not tied."""
    cluster = fo.Cluster([[2, 1], [1, 2]], [[2, 1], [2, 2]])
    share = np.array(fo.Utilitarian().criterion(cluster).share)
    assert both_ends(cluster, share)[1]
    assert exact_tasks(fo.Utilitarian(), cluster) is None


def both_ends(cluster: fo.Cluster, share: np.ndarray) -> tuple[float, bool]:
    """The largest sum by HiGHS, and whether any pair's tasks can be others at that sum."""
    users, servers, resources = cluster.shape
    rows, most = [], []
    for i in range(servers):
        for r in range(resources):
            row = np.zeros((users, servers))
            row[:, i] = cluster.demand[:, r]
            rows.append(row.ravel())
            most.append(cluster.capacity[i, r])
    bounds = [(0, None if able else 0) for able in cluster.usable.ravel()]
    gain = np.repeat(share, servers)
    best = -optimize.linprog(-gain, rows, most, bounds=bounds).fun
    rows.append(-gain)
    most.append(-best + 1e-9)
    ends = [
        [optimize.linprog(sign * unit, rows, most, bounds=bounds).fun * sign for sign in (1, -1)]
        for unit in np.eye(users * servers)
    ]
    return best, bool(max(high - low for low, high in ends) > 1e-6)


@pytest.mark.parametrize("seed", range(30))
def test_what_highs_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    demand = rng.integers(0, 4, (3, 2))
    demand[np.arange(3), rng.integers(2, size=3)] += 1
    cluster = fo.Cluster(rng.integers(1, 6, (1 + seed % 2, 2)), demand, eligible=rng.random((3, 1 + seed % 2)) < 0.8)
    rule = fo.Utilitarian().criterion(cluster)
    share = np.where(cluster.runnable, rule.share, 0)
    best, several = both_ends(cluster, share)
    found = exact_tasks(fo.Utilitarian(), cluster)
    assert (found is None) == several
    if found is not None:
        assert float(found.sum(axis=1).astype(float) @ share) == pytest.approx(best, rel=1e-9)
        assert found.astype(float) == pytest.approx(fo.Utilitarian().solve(cluster, 1e-9).tasks, abs=1e-6)
