"""Partial allocation: closed forms, Gavel's policy written out, what lies gain, and a certificate that knows others."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import fairopt as fo
from fairopt.certificates import Certificate
from fairopt.properties import Deviation
from fairopt.properties.strategy_proofness import misreports

PARTIAL, NASH = fo.PartialAllocation(), fo.CEEI("servers")


def drawn(seed: int, users: int = 4, timed: bool = True) -> fo.Cluster:
    rng = np.random.default_rng(seed)
    return fo.Cluster(
        rng.uniform(0.5, 1.5, (3, 2)), rng.uniform(0.2, 1, (users, 2)), rng.uniform(0.5, 2, users),
        max_tasks=rng.uniform(0.3, 1.5, users) if timed else None, rate=rng.lognormal(0, 0.7, (users, 3)),
    )  # fmt: skip


def test_one_resource_by_weight() -> None:
    """With phi_n of Phi each: without n the others have Phi / (Phi - phi_n) times as much. Alike users are alike."""
    weight = np.array([1, 2, 2, 5, 1e-3])
    rest = weight.sum() - weight
    found = PARTIAL.solve(fo.Cluster([[6]], [[1], [3], [3], [2], [1]], weight))
    fraction = (rest / weight.sum()) ** (rest / weight)
    assert_allclose(found.user_tasks * [1, 3, 3, 2, 1], 6 * fraction * weight / weight.sum(), rtol=1e-8)
    assert fraction.min() > np.exp(-1)
    assert PARTIAL.solve(fo.Cluster([[6]], [[2]])).user_tasks.tolist() == pytest.approx([3])


def _nash(cluster: fo.Cluster, without: int | None = None) -> np.ndarray:
    """Work of all users but one at the Nash optimum, as CVXPY finds it."""
    here = [n for n in range(len(cluster.users)) if n != without]
    x = cp.Variable((len(here), len(cluster.servers)), nonneg=True)
    work = cp.sum(cp.multiply(cluster.rate[here], x), axis=1)
    rules = [x.T @ cluster.demand[here] <= cluster.capacity, cp.sum(x, axis=1) <= cluster.max_tasks[here]]
    cp.Problem(cp.Maximize(cluster.weight[here] @ cp.log(work)), rules).solve("CLARABEL")
    return np.asarray(work.value)


@pytest.mark.parametrize("seed", range(3))
def test_definition(seed: int) -> None:
    cluster = drawn(seed)
    whole, w = _nash(cluster), cluster.weight
    due = [whole[n] * np.prod((np.delete(whole, n) / _nash(cluster, n)) ** (np.delete(w, n) / w[n])) for n in range(4)]
    assert_allclose(PARTIAL.solve(cluster).work, due, rtol=1e-5)


@pytest.mark.parametrize("timed", [False, True])
def test_no_lie_gains_and_most_of_the_nash_optimum_is_kept(timed: bool) -> None:
    """Lies by which users gain of the Nash optimum: about rates and, without limits, demands.

    With limits it may pay to report tasks of twice the size, as what is left of these reaches the limit.
    """
    prop, rng = fo.properties.get("strategy-proofness"), np.random.default_rng(1)
    gains: dict[fo.mechanisms.Mechanism, list[float]] = {PARTIAL: [], NASH: []}
    for seed in range(2):
        cluster = drawn(20 + seed, 3, timed)
        if timed:
            cluster = cluster.derived(demand=np.ones((3, 1)), capacity=np.ones((3, 1)), resources=("gpu",))
        truth = {rule: rule.solve(cluster) for rule in gains}
        assert (truth[PARTIAL].arrays.work >= np.exp(-1) * truth[NASH].arrays.work).all()
        lies = misreports(cluster, ("rate",) if timed else ("demand",), rng)
        for _, (lie, user) in zip(range(4), lies, strict=False):
            change = Deviation(lie, (cluster.users[user],))
            for rule, found in truth.items():
                case = fo.properties.Case(cluster, found.tasks, change, rule.solve(lie).tasks)
                gains[rule].append(float(prop.find(case).violation))
    assert max(gains[PARTIAL]) < 1e-7
    assert max(gains[NASH]) > 1e-2 or not timed


def test_its_certificate_is_of_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = drawn(3, timed=False)
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
