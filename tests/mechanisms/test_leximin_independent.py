"""Every max-min mechanism against a lexicographic maximum in fractions, with shares and floors of the catalogue."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import clusters

from fairopt.mechanisms import Mechanism, get
from fairopt.model.cluster import Cluster
from mechanisms.exact import leximin

Row = list[Fraction]
MECHANISMS = [
    get("drf"),
    get("drfh"),
    get("tsf"),
    get("asset-fairness"),
    get("asset-fairness", scope="servers"),
    get("task-maxmin"),
    get("alpha-fair", alpha=np.inf),
    get("alpha-fair", alpha=np.inf, scope="pool"),
    get("guaranteed-alpha-fair", alpha=np.inf),
    get("guaranteed-alpha-fair", alpha=np.inf, part=0.7),
]


def alone(capacity: Row, demand: Row) -> Fraction:
    """Tasks of one user on an empty server."""
    return min(c / d for c, d in zip(capacity, demand, strict=True) if d > 0)


def share_of(name: str, capacity: list[Row], demand: list[Row]) -> Row:
    """Shares per task; 0 for who needs what nobody has."""
    if name == "task-maxmin":
        return [Fraction(1)] * len(demand)
    if name == "tsf":
        tasks = [sum(alone(whole, needs) for whole in capacity) for needs in demand]
        return [1 / most if most else Fraction(0) for most in tasks]
    total = [sum(column) for column in zip(*capacity, strict=True)]
    parts = [[d / c if c else None for d, c in zip(needs, total, strict=True) if d > 0] for needs in demand]
    of = sum if name == "asset-fairness" else max
    return [Fraction(0) if None in row else of(row) for row in parts]  # type: ignore[operator]


def compare(mechanism: Mechanism, cluster: Cluster, rtol: float) -> None:
    capacity, eligible = cluster.capacity, cluster.eligible
    if mechanism.name == "drf" or getattr(mechanism, "scope", "servers") == "pool":
        capacity, eligible = capacity.sum(axis=0, keepdims=True), eligible.any(axis=1, keepdims=True)
    have, need = ([[Fraction(v) for v in row] for row in table.tolist()] for table in (capacity, cluster.demand))
    weight = [Fraction(w) for w in cluster.weight.tolist()]
    limit = [None if np.isinf(q) else Fraction(q) for q in cluster.max_tasks.tolist()]
    floor = None
    if isinstance(part := getattr(mechanism, "part", None), float):
        own = [
            sum(alone(c, d) for c, e in zip(have, row, strict=True) if e) for d, row in zip(need, eligible, strict=True)
        ]
        floor = [Fraction(part) * w / sum(weight) * tasks for w, tasks in zip(weight, own, strict=True)]
        floor = [tasks if q is None else min(tasks, q) for tasks, q in zip(floor, limit, strict=True)]
    share = [u / w for u, w in zip(share_of(mechanism.name, have, need), weight, strict=True)]
    wanted = leximin(have, need, eligible.tolist(), share, limit, floor)
    found = np.array(share, dtype=float) * mechanism.solve(cluster, 1e-9).arrays.user_tasks
    np.testing.assert_allclose(found, np.array(wanted, dtype=float), rtol=rtol, atol=0)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: str(m).replace(" ", "-"))
def test_random_clusters(mechanism: Mechanism) -> None:
    """Ties, zeros, limits, users who can run nowhere; and numbers over eight decades."""

    @settings(max_examples=25)
    @given(clusters(styles=("nice", "nice", "plain"), max_users=4, max_servers=3))
    def law(cluster: Cluster) -> None:
        compare(mechanism, cluster, 2e-9)

    @settings(max_examples=10)
    @given(clusters(styles=("wide",), max_users=4, max_servers=3))
    def wide(cluster: Cluster) -> None:
        compare(mechanism, cluster, 1e-7)

    law()
    wide()


def test_the_reference_itself() -> None:
    """Catalogue items 2, 3 and 33, and by hand: it is not wrong in the same way as what it judges."""
    one, thirds = Fraction(1), [Fraction(2, 9), Fraction(1, 3)]
    pool = [[Fraction(9), Fraction(18)]], [[one, 4 * one], [3 * one, one]], [[True], [True]]
    assert leximin(*pool, thirds, [None] * 2) == [Fraction(2, 3)] * 2
    assert leximin(*pool, [one / 9 + Fraction(4, 18), one / 3 + one / 18], [None] * 2) == [Fraction(21, 25)] * 2
    limits: list[Fraction | None] = [Fraction(q) for q in (2, 3, 6, 7)]
    assert leximin([[15 * one]], [[one]] * 4, [[True]] * 4, [one] * 4, limits) == [2, 3, 5, 5]
    # Two servers of 6 and 2; the second user only fits the small one, the third has a limit.
    places = [[True, True], [False, True], [True, True]]
    assert leximin([[6 * one], [2 * one]], [[one]] * 3, places, [one] * 3, [None, None, one]) == [5, 2, 1]
