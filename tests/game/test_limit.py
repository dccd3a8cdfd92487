"""PS-DSF with zero demands: the limit of alphaPF-VDS, extrapolated from places that are all but equilibria."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo


def sparse_demands(seed: int, users: int = 30, servers: int = 8) -> fo.Cluster:
    """Demands over two decades; a fifth of the users do without one of three resources."""
    rng = np.random.default_rng(seed)
    demand = 10 ** rng.uniform(-1, 1, (users, 3))
    without = rng.permutation(users)[: users // 5]
    demand[without, rng.integers(0, 3, len(without))] = 0.0
    return fo.Cluster(30 * rng.lognormal(0, 0.6, (servers, 3)), demand, rng.uniform(0.5, 2, users))


def limits(seeds: range) -> list[tuple[fo.Cluster, fo.Allocation]]:
    """Clusters and answers that say to be the limit."""
    answers = [(shared := sparse_demands(seed), fo.PSDSF().solve(shared)) for seed in seeds]
    assert all(found.certify().passes(1e-6) for _, found in answers)
    return [(shared, found) for shared, found in answers if not found.notes]


def test_most_are_the_limit() -> None:
    found = limits(range(10))
    assert len(found) >= 7
    assert sum(answer.stats.solver == "extrapolated equilibria" for _, answer in found) >= 6


def test_alpha_tends_to_it() -> None:
    """Equilibria, found by other means and certified, are within a constant over alpha."""
    compared = 0
    for shared, answer in limits(range(4)):
        for alpha in (64.0, 256.0, 512.0):
            equilibrium = fo.AlphaPFVDS(alpha).solve(shared, throw=False)
            if not equilibrium.flagged:
                apart = np.abs(equilibrium.user_tasks / answer.user_tasks - 1).max()
                assert apart < 15 / alpha
                compared += alpha >= 256
    assert compared >= 3


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_order_and_units_do_not_matter(seed: int) -> None:
    shared = sparse_demands(seed)
    answer = fo.PSDSF().solve(shared)
    rng = np.random.default_rng(seed)
    users, servers, unit = rng.permutation(30), rng.permutation(8), 10.0 ** rng.integers(-3, 4, 3)
    other = fo.PSDSF().solve(
        fo.Cluster(shared.capacity[servers] * unit, shared.demand[users] * unit, 7 * shared.weight[users])
    )
    if not answer.notes and not other.notes:
        np.testing.assert_allclose(other.user_tasks, answer.user_tasks[users], rtol=3e-6)
    assert answer.certificate.passes(1e-6)
    assert other.certificate.passes(1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_however_the_cluster_is_written_down(seed: int) -> None:
    """Small integers: one PS-DSF allocation of many, but always the same one."""
    rng = np.random.default_rng(seed)
    demand = rng.integers(0, 3, (12, 3)).astype(float)
    demand[~demand.any(axis=1), 0] = 1.0
    cluster = fo.Cluster(10.0 * rng.integers(1, 5, (5, 3)), demand, eligible=rng.random((12, 5)) < 0.8)
    first = fo.PSDSF().solve(cluster, throw=False).tasks
    for _ in range(3):
        users, servers = rng.permutation(12), rng.permutation(5)
        moved = cluster.select([cluster.users[n] for n in users], [cluster.servers[i] for i in servers])
        again = fo.PSDSF().solve(moved, throw=False).tasks
        np.testing.assert_allclose(again.sum(axis=1), first.sum(axis=1)[users], rtol=1e-9, atol=1e-12)
