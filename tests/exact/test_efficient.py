"""The largest sum of shares in fractions: right, and known to be the only optimum or not."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest
from mechanisms.exact import fractions, maximise

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
    assert limited.ravel().tolist() == [F(2, 3), F(2, 3), F(1, 3)]
    barred = fo.Cluster([[3], [5]], [[1], [1]], eligible=[[1, 0], [0, 1]], max_tasks=[0, np.inf])
    assert unique_optimum(barred, {1: F(1)}, {0: F(0)}).tolist() == [[0, 0], [0, 5]]  # type: ignore[union-attr]


def test_a_degenerate_optimum_may_be_the_only_one() -> None:
    """Two rows are used up by one user: a basis has a price of zero, and nothing moves."""
    cluster = fo.Cluster([[1, 1]], [[1, 1], [1, 2]])
    found = unique_optimum(cluster, {0: F(3), 1: F(2)}, {})
    assert found.ravel().tolist() == [1, 0]


def both_ends(cluster: fo.Cluster) -> tuple[np.ndarray, F, bool]:
    """Dominant shares, their largest sum, in fractions, and whether any pair's tasks can be others at that sum.

    The largest sums with a little more and less for a pair's task differ from it by the most and the fewest such tasks.
    """
    share = (fractions(cluster.demand) / fractions(cluster.capacity.sum(axis=0))).max(axis=1)
    user, server = np.nonzero(cluster.usable)
    rows = [fractions(server == i) * cluster.demand[user, r] for i, r in np.ndindex(*cluster.capacity.shape)]

    def most(gain: np.ndarray) -> F:
        return maximise(gain, fractions(rows), fractions(cluster.capacity.ravel()))[0]

    gain, little = share[user], fractions(np.eye(len(user))) / 10**9
    best = most(gain)
    return share, best, any(most(gain + more) + most(gain - more) > 2 * best for more in little)


def test_ties_of_any_pair_count() -> None:
    """On two servers alike but for the order, one user alone, or another on either: the first pair is not tied."""
    cluster = fo.Cluster([[2, 1], [1, 2]], [[2, 1], [2, 2]])
    assert both_ends(cluster)[2]
    assert exact_tasks(fo.Utilitarian(), cluster) is None


@pytest.mark.parametrize("seed", range(30))
def test_what_another_simplex_method_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    demand = rng.integers(0, 4, (3, 2))
    demand[np.arange(3), rng.integers(2, size=3)] += 1
    cluster = fo.Cluster(rng.integers(1, 6, (1 + seed % 2, 2)), demand, eligible=rng.random((3, 1 + seed % 2)) < 0.8)
    share, best, several = both_ends(cluster)
    found = exact_tasks(fo.Utilitarian(), cluster)
    assert (found is None) == several
    if found is not None:
        assert found.sum(axis=1) @ share == best
        assert found.astype(float) == pytest.approx(fo.Utilitarian().solve(cluster, 1e-9).tasks, abs=1e-6)
