"""The adversary finds what a weak judge lets through, and nothing far off where e is judged and the answer is firm."""

from __future__ import annotations

import numpy as np
import pytest
from families import draw
from numpy.typing import NDArray

from fairopt.certificates import certify
from fairopt.mechanisms import Mechanism, get
from fairopt.model.cluster import Cluster
from fairopt.model.criterion import Criterion

from .adversary import attack, log_marginal, log_price

Array = NDArray[np.float64]
LONG = pytest.mark.long
TIE = Cluster([[1, 1], [1, 1]], [[1, 0.5], [1, 0.5]], eligible=[[0, 1], [1, 1]])


def fairopt_s(cluster: Cluster, tasks: Array, criterion: Criterion, log_prices: Array) -> float:
    """fairopt's own judge."""
    with np.errstate(divide="ignore"):
        per_unit = log_prices - np.log(cluster.capacity)
    return certify(cluster, tasks, criterion, np.where(np.isnan(per_unit), -np.inf, per_unit))[0].residual


def products(cluster: Cluster, tasks: Array, criterion: Criterion, log_prices: Array) -> float:
    """A weak judge: the part of a user's tasks on a pair *times* how much dearer it is there; 1 where it is owed."""
    total, found = tasks.sum(axis=1), [0.0]
    if not (total > 0).all() or (tasks.T @ cluster.demand > cluster.capacity * (1 + 1e-9)).any():
        return 1.0
    for n, i in np.argwhere(cluster.usable):
        worth = log_marginal(cluster, n, i, total[n], criterion.alpha, None)
        dearer = (log_price(cluster, n, i, log_prices) - worth) / criterion.alpha
        found.append(-dearer if dearer < 0 else tasks[n, i] / total[n] * dearer)
    return max(found)


@LONG
def test_it_finds_what_products_hide() -> None:
    """Part and dearness may both be 1e-3 where their product is 1e-6."""
    answer = get("alphapf-vds", alpha=3.0).solve(TIE)
    weak = attack(answer, products, np.random.default_rng(0))
    firm = attack(answer, fairopt_s, np.random.default_rng(0))
    assert weak.off > 1e-4
    assert 1e-7 < firm.off < 1e-5


@pytest.mark.parametrize(
    "mechanism",
    [
        get("alphapf-vds", alpha=0.5),
        pytest.param(get("alphapf-vds", alpha=5.0), marks=LONG),
        get("alpha-fair", alpha=2.0),
        pytest.param(get("ceei", scope="servers"), marks=LONG),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "family",
    ["near-ties", "nested", "limits", *(pytest.param(one, marks=LONG) for one in ("identical", "weights", "traces"))],
)
def test_nobody_is_farther_off_than_ten_times_the_condition_says(mechanism: Mechanism, family: str) -> None:
    """The worst of a search for allocations that fairopt's judge passes at 1e-6."""
    cluster = draw(family, 2, 4, 4)
    criterion = mechanism.criterion(cluster)
    found = attack(mechanism.solve(cluster, 1e-9), fairopt_s, np.random.default_rng(0), tries=250, starts=2)
    assert found.e <= 1e-6
    with np.errstate(divide="ignore"):
        certificate = certify(cluster, found.tasks, criterion, found.log_prices - np.log(cluster.capacity))[0]
    assert certificate.conditions is not None
    assert found.off <= 10 * found.e * certificate.conditions[found.user]
