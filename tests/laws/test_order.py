"""The order in which users and servers are named decides nothing, nor do numbers that no engine can hold take long."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from families import in_another_order
from numpy.testing import assert_allclose, assert_array_equal

import fairopt as fo
from fairopt.base.loops import compiling
from fairopt.core.solution import Solution
from fairopt.errors import FairoptError, SolverError
from fairopt.mechanisms import Mechanism, _solve, get
from fairopt.model.criterion import Criterion
from fairopt.model.problem import Problem
from fairopt.result.allocation import Allocation

from .registry import VARIANTS, identify, refuses, resources

USERS, SERVERS = 6, 4


def far_apart(seed: int, resources: int = 2, weighted: bool = False) -> fo.Cluster:
    """One server is 1e-9 and one 1e9 of the others; or weights are from 1e-4 to 1e4."""
    rng = np.random.default_rng(seed)
    capacity, demand = rng.uniform(1, 10, (SERVERS, resources)), rng.uniform(0.1, 3, (USERS, resources))
    if weighted:
        eligible = rng.random((USERS, SERVERS)) < 0.7
        eligible[:, 0] = True
        return fo.Cluster(capacity, demand, rng.permutation(10 ** np.linspace(-4, 4, USERS)), eligible)
    return fo.Cluster(capacity * [[1e-9], [1e9], [1], [1]], demand)


class Ranked(fo.AlphaFair):
    """Weights by the place in the list of users, of which a cluster in another order knows nothing."""

    def criterion(self, cluster: fo.Cluster) -> Criterion:
        return replace(super().criterion(cluster), weight=np.arange(1.0, len(cluster.users) + 1))


def answer(mechanism: Mechanism, cluster: fo.Cluster) -> Allocation | type[FairoptError]:
    try:
        return mechanism.solve(cluster)
    except FairoptError as error:
        return type(error)


@pytest.mark.parametrize(
    "mechanism", [*VARIANTS, get("alpha-fair", alpha=20), get("alphapf-vds", alpha=20)], ids=identify
)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_order_decides_nothing(mechanism: Mechanism, weighted: bool) -> None:
    """Not a bit of an answer for those who are judged by a criterion alone; the certificate is of the order given."""
    cluster = far_apart(5 * weighted + 10, resources(mechanism, 2), weighted)
    other, places = in_another_order(cluster, np.random.default_rng(1))
    if refuses(mechanism, cluster):
        return
    with compiling():  # a loop that runs as it is written, and is compiled for the other, differs in last digits
        first, second = answer(mechanism, cluster), answer(mechanism, other)
    if isinstance(first, type) or isinstance(second, type):
        assert first == second
        return
    if mechanism.judged_by_criterion and not mechanism.prepare(cluster)[1]:
        assert_array_equal(first.tasks[np.ix_(*places)], second.tasks)
    assert_allclose(first.arrays.user_tasks[places[0]], second.arrays.user_tasks, rtol=1e-5)
    for one in (first, second):
        again = one.certify()  # with its prices
        assert again.passes(mechanism.default_tol)
        assert again.residual == pytest.approx(one.certificate.residual, rel=1e-3, abs=1e-14)
        if again.conditions is not None:
            assert_allclose(one.certificate.conditions, again.conditions, rtol=1e-6)


@pytest.mark.parametrize(
    "mechanism",
    [
        Ranked(2.0),
        get("alpha-fair", share=[1, 2, 3, 4, 5, 6]),
        get("guaranteed-alpha-fair", part=[0, 0.1, 0.2, 0.3, 0.4, 0.5]),
    ],
)
def test_places_that_count_stay(mechanism: Mechanism) -> None:
    """Parameters by user belong to the order of the cluster."""
    cluster = far_apart(0, weighted=True)
    found = mechanism.solve(cluster)
    assert found.certify().passes(mechanism.default_tol)
    weights = mechanism.criterion(cluster).weight
    assert (found.criterion.weight == weights).all()


@pytest.mark.parametrize(("users", "servers", "most"), [(6, 4, 1), (20, 10, 0)])
def test_too_far_apart_is_refused_early_with_the_ratio(
    users: int, servers: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Solvers get a second on a small cluster, which one answer takes, and are not asked on a larger one."""
    asked: list[str] = []

    def solutions(self: Mechanism, problem: Problem, engine: str, *_: object, **__: object) -> Iterator[Solution]:
        for _ in range(3 if engine == "declarative" else 1):
            asked.append(engine)
            yield Solution(np.full(problem.cluster.shape[:2], 1e-9), None, engine, status="optimal")

    monkeypatch.setattr(fo.AlphaFair, "solutions", solutions)
    monkeypatch.setattr(_solve, "BEYOND_RANGE_SECONDS", 0.0)
    rng = np.random.default_rng(0)
    weight = 10 ** np.linspace(-8, 8, users)
    cluster = fo.Cluster(rng.uniform(1, 10, (servers, 2)), rng.uniform(0.1, 3, (users, 2)), weight)
    with pytest.raises(SolverError, match=r"largest of the weights is 1e\+16 times the smallest, and at alpha = 64"):
        fo.AlphaFair(64).solve(cluster)
    assert asked.count("declarative") == most
    asked.clear()
    with pytest.raises(FairoptError, match="misses tol"):
        fo.AlphaFair(2).solve(cluster)
    assert asked.count("declarative") == 3
