"""FDS away from the alpha-fair line on its native engine: agreement, equations, certificates that bound."""

from __future__ import annotations

import numpy as np
import pytest
from families import draw

import fairopt as fo
from fairopt.mechanisms.fds import FDS
from fairopt.model.criterion import FairnessEfficiency


def mechanism(seed: int, betas: tuple[float, ...]) -> FDS:
    """FDS or GFJ where it is convex, efficiency counting a hundredth to a hundred times as much."""
    rng = np.random.default_rng(seed)
    beta = float(rng.choice(betas))
    line = (1 - beta) / beta
    return (fo.FDS, fo.GFJ)[seed % 2](beta, line + np.sign(line) * abs(line) * 10 ** rng.uniform(-2, 2))


@pytest.mark.parametrize("seed", range(8))
def test_it_agrees_with_the_declared_problem(seed: int) -> None:
    cluster, chosen = draw(("nice", "plain")[seed % 2], seed), mechanism(seed, (0.3, 0.5, 0.9, 1.5, 2.0, 5.0))
    found = chosen.solve(cluster, 1e-9, engine="native")
    assert found.stats.engine == "native"
    declared = chosen.solve(cluster, 1e-8, engine="declarative")
    value = [_value(found.criterion, each.arrays.user_tasks) for each in (found, declared)]
    assert value[0] == pytest.approx(value[1], abs=1e-7)
    assert found.certify().passes(1e-9)


def _value(criterion: fo.Criterion, tasks: np.ndarray) -> float:
    """`fair log M + efficient log T`, of those who can run anything."""
    assert isinstance(criterion, FairnessEfficiency)
    share, weight, beta = (criterion.share * tasks)[tasks > 0], criterion.weight[tasks > 0], criterion.alpha
    mean = np.log((weight**beta * share ** (1 - beta)).sum()) / (1 - beta)
    return float(criterion.fair * mean + criterion.efficient * np.log(share.sum()))


def crowded(seed: int) -> fo.Cluster:
    """300 users of one pool."""
    rng = np.random.default_rng(seed)
    demand = rng.lognormal(0, 1, (300, 4))
    return fo.Cluster([demand.sum(axis=0) * rng.uniform(0.5, 2, 4)], demand, rng.lognormal(0, 0.5, 300))


@pytest.mark.parametrize(("beta", "lam"), [(0.2, 40.0), (2.0, -2.0), (16.0, -3.0), (64.0, -20.0)])
def test_many_users(beta: float, lam: float) -> None:
    found = fo.GFJ(beta, lam).solve(crowded(3), engine="native")
    assert found.certify().passes(1e-6)


def test_hardly_any_run_goes_to_and_fro() -> None:
    """Pools of which whole Newton steps solve none or one."""
    refused = 0
    for seed in (0, 16, 22, 23, 36, 37, 39, 48):
        refused += fo.GFJ(16.0, -3.0).solve(crowded(seed), engine="native", throw=False).flagged
    assert refused <= 1


@pytest.mark.parametrize("seed", range(3))
def test_efficiency_alone_counts_for_users_of_little_weight_until_they_have_little(seed: int) -> None:
    """What a task is worth to them hardly falls, and then as a power: runs went to and fro between the two."""
    found = fo.FDS(3.0, -2.0).solve(draw("weights", seed, 40, 10, 4), engine="native")
    assert found.certify().passes(1e-6)
    assert found.stats.rounds <= 40


@pytest.mark.parametrize("seed", range(10))
def test_the_gap_bounds_what_is_missing(seed: int) -> None:
    """The certificate of a worse allocation is at least what the best has more."""
    cluster, chosen = draw("plain", seed).pool(), mechanism(seed, (0.3, 0.9, 2.0, 16.0))
    found = chosen.solve(cluster, 1e-9)
    worse = found.tasks * np.random.default_rng(seed).uniform(0.5, 1, (len(cluster.users), 1))
    certificate = chosen.certify(cluster, worse)[0]
    gap = certificate.gap
    assert gap is not None
    if not found.arrays.user_tasks.any():
        assert gap == certificate.optimality == 0
        return
    missing = _value(found.criterion, found.arrays.user_tasks) - _value(found.criterion, worse.sum(axis=1))
    assert isinstance(found.criterion, FairnessEfficiency)
    whole = found.criterion.fair + found.criterion.efficient
    assert gap >= missing / whole - 1e-9
    assert min(gap, certificate.optimality) > 1e-6


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("larger", [1e3, 1e6, 1e9])
def test_one_server_is_far_larger_than_the_others(larger: float, seed: int) -> None:
    """These give nobody a millionth of what it could have in all, and are judged all the same."""
    rng = np.random.default_rng(seed)
    capacity, demand = 100 * np.exp(0.5 * rng.standard_normal((19, 3))), np.exp(0.5 * rng.standard_normal((46, 3)))
    capacity[0] *= larger
    found = fo.Utilitarian().solve(fo.Cluster(capacity, demand), engine="native")
    assert found.certificate.residual < 1e-7
