"""Jobs on accelerators by published generators, and heuristics for them, on clusters that can be solved by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fairopt as fo
from fairopt.harness.papers import accelerators


def test_jobs_are_drawn_by_the_published_rule() -> None:
    """Parts of the Philly trace's distribution, priorities in turn, and no job of one GPU that has several."""
    cluster = fo.papers.instance("soroush-8192")
    part = [number / 8192 for _, number in sorted(Counter(cluster.demand[:, 0]).items())]
    assert_allclose(part, [0.7, 0.1, 0.15, 0.05], atol=0.012)
    assert cluster.weight[:5].tolist() == [1, 2, 4, 8, 1]
    several = [user for user, gpus in zip(cluster.users, cluster.demand[:, 0], strict=True) if gpus > 1]
    assert not any(user.startswith(("Recommendation", "A3C", "CycleGAN")) for user in several)
    assert {user.partition(" ")[0] for user in several} == {"ResNet-18", "ResNet-50", "Transformer", "LM"}


def _cluster(rate: list[list[float]], weight: list[float], gpus: list[float]) -> fo.Cluster:
    each = np.ones((len(rate), 1))
    return fo.Cluster(np.array(gpus)[:, None], each, rate=rate, weight=weight, max_tasks=each[:, 0])


def test_one_pass_lowers_only_what_is_above() -> None:
    r"""A row of use 2 and 1 at levels 1 and .2 has .4 of the first left of capacity 1: 2 (.4) + .2."""
    levels = accelerators._lowered(np.array([[1, 0.2], [0.3, 0.3]]), np.array([[2.0, 1.0], [1.0, 1.0]]), 1.0)
    assert_allclose(levels, [[0.4, 0.2], [0.3, 0.3]])
    assert_allclose(accelerators._lowered(np.array([[1.0, 1.0, 1.0]]), np.array([[1.0, 0.0, 3.0]]), 2.0), [[0.5] * 3])


@pytest.mark.parametrize("heuristic", accelerators.HEURISTICS.values(), ids=accelerators.HEURISTICS)
def test_a_heuristic_keeps_to_the_cluster(heuristic: object) -> None:
    rng = np.random.default_rng(64)
    for _ in range(4):
        rate = rng.uniform(0.5, 5, (6, 2)) * (rng.random((6, 2)) > 0.2)
        rate[:, 0] += 0.1
        cluster = _cluster(rate.tolist(), rng.integers(1, 5, 6).tolist(), [2, 1])
        assert not fo.Allocation.of(cluster, heuristic(cluster)).flagged  # type: ignore[operator]


def test_alike_jobs_share_evenly_and_what_overflows_has_nothing() -> None:
    alike = _cluster([[1, 1]] * 4, [1] * 4, [1, 1])
    for heuristic in accelerators.HEURISTICS.values():
        assert_allclose(accelerators.levels(alike, heuristic(alike)), 0.5)
    fast = _cluster([[2000, 1], [1, 1]], [1, 1], [1, 1])
    assert accelerators.water_filling(fast)[0].tolist() == [0, 0]
    assert accelerators.water_filling(fast)[1].sum() > 0


def test_pop_in_one_part_is_exact() -> None:
    cluster = accelerators.flat_test(12)
    assert_allclose(accelerators.pop(cluster, 1), fo.TSF().solve(cluster, tol=1e-8).tasks, atol=1e-7)


def test_gandiva_is_the_mean_over_random_pairs() -> None:
    cluster = accelerators.published(32, (1,), several=False)
    rng, kinds = np.random.default_rng(0), [user.rpartition(", ")[0] for user in cluster.users]
    fair, rates, found = accelerators.paired_levels(cluster).mean(), accelerators.pair_rates(), []
    for _ in range(150):
        for one, other in rng.permutation(32).reshape(-1, 2):
            pair = [rates.get((kinds[one], kinds[other], gpu), (0.0, 0.0)) for gpu in accelerators.GPUS]
            found += (np.array(pair).sum(axis=0) / 3 / cluster.rate[[one, other]].mean(axis=1)).tolist()
    expected, nothing = accelerators.gandiva(cluster)
    assert_allclose(expected, np.mean(found) / fair, rtol=0.02)
    assert_allclose(nothing, np.mean(np.array(found) == 0), atol=0.01)
