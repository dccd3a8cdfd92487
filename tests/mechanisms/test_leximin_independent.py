"""Every max-min mechanism against a lexicographic maximum in fractions, with shares and floors of the catalogue."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose
from strategies import clusters

from fairopt.mechanisms import Mechanism, get
from fairopt.model.cluster import Cluster
from mechanisms.exact import Table, fractions, leximin

#: Alpha-fairness at infinity is DRFH by `test_closed_forms.py`.
MECHANISMS = [
    get("alpha-fair", alpha=np.inf, scope="pool"),
    get("drf"),
    get("drfh"),
    get("tsf"),
    get("asset-fairness"),
    get("asset-fairness", scope="servers"),
    get("task-maxmin"),
    get("guaranteed-alpha-fair", alpha=np.inf),
    get("guaranteed-alpha-fair", alpha=np.inf, part=0.7),
]


def share_of(name: str, capacity: Table, demand: Table, alone: Table) -> Table:
    """Shares per task, (users,); of who can run nothing any number."""
    if name == "task-maxmin":
        return np.asarray(fractions(np.ones(len(demand))))
    if name == "tsf":
        return np.array([1 / (tasks or F(1)) for tasks in alone.sum(axis=1)])
    total = capacity.sum(axis=0)
    parts = demand / (total + fractions(total == 0))
    return np.asarray(parts.sum(axis=1) if name == "asset-fairness" else parts.max(axis=1))


def compare(mechanism: Mechanism, cluster: Cluster, rtol: float) -> None:
    capacity, demand, weight = (fractions(one) for one in (cluster.capacity, cluster.demand, cluster.weight))
    eligible, limit = np.asarray(cluster.eligible), cluster.max_tasks
    if mechanism.name == "drf" or getattr(mechanism, "scope", "servers") == "pool":
        capacity, eligible = capacity.sum(axis=0, keepdims=True), np.any(eligible, axis=1, keepdims=True)
    alone = np.array(
        [[min(c / d for c, d in zip(there, row, strict=True) if d) for there in capacity] for row in demand]
    )
    floor = 0 * weight
    if isinstance(part := getattr(mechanism, "part", None), float):
        floor = np.minimum(F(part) * weight / weight.sum() * (alone * eligible).sum(axis=1), limit)
    share = share_of(mechanism.name, capacity, demand, alone) / weight
    able = eligible & (alone > 0) & (limit > 0)[:, None]
    wanted = leximin(capacity, demand, able, share, limit, fractions(floor))
    found = share.astype(float) * mechanism.solve(cluster, 1e-9).arrays.user_tasks
    assert_allclose(found, wanted.astype(float), rtol=rtol, atol=0)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: str(m).replace(" ", "-"))
def test_random_clusters(mechanism: Mechanism) -> None:
    """Ties, zeros, limits, users who can run nowhere; and numbers over eight decades."""

    @settings(max_examples=16)
    @given(clusters(styles=("nice", "nice", "plain"), max_users=4, max_servers=3))
    def law(cluster: Cluster) -> None:
        compare(mechanism, cluster, 2e-9)

    @settings(max_examples=7)
    @given(clusters(styles=("wide",), max_users=4, max_servers=3))
    def wide(cluster: Cluster) -> None:
        compare(mechanism, cluster, 1e-7)

    law()
    wide()
