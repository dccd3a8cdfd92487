"""Partial allocation: a closed form, what lies gain, and its certificate; claims have the numbers of Gavel."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fairopt as fo
from fairopt.certificates import Certificate
from fairopt.properties import Deviation
from fairopt.properties.strategy_proofness import misreports

PARTIAL, NASH = fo.PartialAllocation(), fo.CEEI("servers")


def drawn(seed: int, users: int = 4) -> fo.Cluster:
    rng = np.random.default_rng(seed)
    rates, capacity, demand = rng.lognormal(0, 0.7, (users, 3)), rng.uniform(0.5, 1.5, (3, 2)), rng.random((users, 2))
    return fo.Cluster(capacity, demand, rng.uniform(0.5, 2, users), rate=rates)


def test_one_resource_by_weight() -> None:
    """With phi_n of Phi each: without n the others have Phi / (Phi - phi_n) times as much. Alike users are alike."""
    weight = np.array([1, 2, 2, 5, 1e-3])
    rest = weight.sum() - weight
    found = PARTIAL.solve(fo.Cluster([[6]], [[1], [3], [3], [2], [1]], weight))
    fraction = (rest / weight.sum()) ** (rest / weight)
    assert_allclose(found.user_tasks * [1, 3, 3, 2, 1], 6 * fraction * weight / weight.sum(), rtol=1e-8)
    assert fraction.min() > np.exp(-1)
    assert PARTIAL.solve(fo.Cluster([[6]], [[2]])).user_tasks.tolist() == pytest.approx([3])


def test_small_weights_magnify_errors_of_the_optima() -> None:
    """The fraction of a weight of 1e-6 beside 3 is a power of that ratio; 1e-12 is beyond doubles."""
    weight = np.array([1e-6, 1, 2])
    found = PARTIAL.solve(fo.Cluster([[0.7]], [[1.3], [0.3], [0.9]], weight))
    small, rest = 1e-6, 3
    exact = 0.7 / 1.3 * small / (small + rest) * np.exp(rest / small * np.log1p(-small / (small + rest)))
    off = abs(found.work.iloc[0] / exact - 1)
    assert off <= found.certificate.residual
    assert found.certificate.residual > 1e-10
    with pytest.raises(fo.errors.SolverError, match="fraction of user 'user1'"):
        PARTIAL.solve(found.cluster.replace(weight=[1e-12, 1, 2]))


def test_no_lie_about_rates_gains_and_most_of_the_nash_optimum_is_kept() -> None:
    """With own time; the law of claims has lies without it. Of the Nash optimum such lies gain."""
    prop, rng = fo.properties.get("strategy-proofness"), np.random.default_rng(1)
    gains: dict[fo.mechanisms.Mechanism, list[float]] = {PARTIAL: [], NASH: []}
    for seed in range(5, 7):
        gpus = fo.Cluster(np.ones((3, 1)), np.ones((3, 1)), max_tasks=1, rate=drawn(seed, 3).rate)
        truth = {rule: rule.solve(gpus) for rule in gains}
        assert (truth[PARTIAL].arrays.work >= np.exp(-1) * truth[NASH].arrays.work).all()
        for _, (lie, user) in zip(range(4), misreports(gpus, ("rate",), rng), strict=False):
            for rule, found in truth.items():
                case = fo.properties.Case(
                    gpus, found.tasks, Deviation(lie, gpus.users[user:][:1]), rule.solve(lie).tasks
                )
                gains[rule].append(float(prop.find(case).violation))
    assert max(gains[PARTIAL]) < 1e-7
    assert max(gains[NASH]) > 1e-2


def test_its_certificate_is_of_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = drawn(3)
    found = PARTIAL.solve(cluster)
    assert found.certificate.residual < 1e-7
    off = found.tasks * np.array([1, 1, 0.99, 1])[:, None]
    for tasks, error, where in ((off, 0.01, "user3"), (NASH.solve(cluster).tasks, 0.2, "user")):
        judged = dataclasses.replace(found, tasks=tasks).certify()
        assert judged.optimality >= error * (1 - 1e-6)
        assert where in judged.worst
    found.save(tmp_path / "answer.json")  # which is no optimum of a criterion
    assert not fo.Allocation.load(tmp_path / "answer.json").certificate.judged
    with pytest.raises(fo.errors.DataError, match="no derivatives"):
        found.sensitivity()
    residual = Certificate.residual.fget
    bad = property(lambda self: 1e-3 if self.measure == "backward error" else residual(self))
    monkeypatch.setattr(Certificate, "residual", bad)  # a Nash optimum that is none is seen
    alone = fo.Cluster([[1]], [[1]])
    assert PARTIAL.certify(alone, np.ones((1, 1)))[0].optimality == 1e-3
