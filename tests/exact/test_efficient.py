"""The largest sum of shares in fractions: right, and known to be the only optimum or not."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest
from mechanisms.exact import fractions, maximise

import fairopt as fo
from fairopt.properties._tasks import exact_tasks


def both_ends(cluster: fo.Cluster) -> tuple[np.ndarray, F, bool]:
    """Dominant shares, their largest sum, in fractions, and whether any pair's tasks can be others at that sum.

    The largest sums with a little more and less for a pair's task differ from it by the most and the fewest such tasks.
    """
    share = (fractions(cluster.demand) / fractions(cluster.capacity.sum(axis=0))).max(axis=1)
    user, server = np.nonzero(cluster.usable)
    rows = [fractions(server == i) * cluster.demand[user, r] for i, r in np.ndindex(*cluster.capacity.shape)]
    few = np.flatnonzero(np.isfinite(cluster.max_tasks))
    bounds = fractions([*cluster.capacity.ravel(), *cluster.max_tasks[few]])

    def most(gain: np.ndarray) -> F:
        return maximise(gain, fractions([*rows, *(user == n for n in few)]), bounds)[0]

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
    if seed % 3 == 0:
        cluster = cluster.replace(max_tasks=rng.choice([0, 0.25, 0.5, np.inf], 3))
    share, best, several = both_ends(cluster)
    found = exact_tasks(fo.Utilitarian(), cluster)
    assert (found is None) == several
    if found is not None:
        assert found.sum(axis=1) @ share == best
        assert found.astype(float) == pytest.approx(fo.Utilitarian().solve(cluster, 1e-9).tasks, abs=1e-6)
