"""Mechanisms that are special cases of each other, and closed forms. Numbers of papers are claims: `fairopt.papers`."""

from __future__ import annotations

import numpy as np
import pytest
from families import EXAMPLE
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from strategies import clusters

from fairopt.errors import DataError
from fairopt.mechanisms import get
from fairopt.model._arrays import Array
from fairopt.model.cluster import Cluster

# -- mechanisms that are special cases of each other ---------------------------------------------

SAME = [
    ("alphaPF-VDS(1) is CEEI on servers", get("alphapf-vds", alpha=1.0), get("ceei", scope="servers"), {}),
    ("bottleneck fairness without limits is CEEI", get("bottleneck-fairness"), get("ceei"), {"limits": False}),
    ("alpha-fair(1) is CEEI", get("alpha-fair", alpha=1.0, scope="pool"), get("ceei"), {}),
    ("alpha-fair(1) with any share", get("alpha-fair", alpha=1.0, share="task"), get("alpha-fair", alpha=1.0), {}),
    ("alpha-fair(inf) is DRFH", get("alpha-fair", alpha=np.inf), get("drfh"), {}),
    (
        "alpha-fair(inf) of assets",
        get("alpha-fair", alpha=np.inf, share="asset", scope="pool"),
        get("asset-fairness"),
        {},
    ),
    ("alphaPF-VDS(inf) is PS-DSF", get("alphapf-vds", alpha=np.inf), get("ps-dsf"), {}),
    ("PS-DSF on one server is DRF", get("ps-dsf"), get("drf"), {"max_servers": 1}),
    ("per-server DRF on one server is DRF", get("per-server-drf"), get("drf"), {"max_servers": 1, "limits": False}),
    ("MQDRF with one level is DRF", get("mqdrf", shares=(1000.0,)), get("drf"), {"weights": False}),
    ("CMMF on one resource is DRFH", get("cmmf"), get("drfh"), {"max_resources": 1}),
    ("max-min on one resource is DRF", get("maxmin"), get("drf"), {"max_resources": 1}),
    ("FDS(2) is alpha-fair(2)", get("fds", beta=2.0), get("alpha-fair", alpha=2.0, scope="pool"), {}),
    ("FDS(1/2) is alpha-fair(1/2)", get("fds", beta=0.5), get("alpha-fair", alpha=0.5, scope="pool"), {}),
    (
        "guaranteed-alpha-fair without floors",
        get("guaranteed-alpha-fair", alpha=2.0, part=0.0),
        get("alpha-fair", alpha=2.0),
        {},
    ),
    ("GFJ(2) is alpha-fair(2) of tasks", get("gfj"), get("alpha-fair", alpha=2.0, share="task", scope="pool"), {}),
]


@pytest.mark.parametrize(("what", "one", "other", "changes"), SAME, ids=[row[0] for row in SAME])
def test_special_cases(what: str, one: object, other: object, changes: dict[str, object]) -> None:
    arguments: dict[str, object] = {"styles": ("nice", "plain"), "max_users": 4, "max_servers": 3} | changes

    @settings(max_examples=10)
    @given(clusters(**arguments))
    def law(cluster: Cluster) -> None:
        first, second = (mechanism.solve(cluster) for mechanism in (one, other))
        # Both have gaps of at most 1e-6 or 1e-4, of second order in the tasks.
        rtol = 2e-2 if "VDS" in what else 1e-3
        assert_allclose(first.user_tasks, second.user_tasks, rtol=rtol, atol=1e-9)

    law()


# -- closed forms --------------------------------------------------------------------------------


@given(st.lists(st.floats(0.5, 5), min_size=1, max_size=5), st.floats(1, 100))
@settings(max_examples=25)
def test_ceei_on_one_resource_splits_it_by_weight(weight: list[float], capacity: float) -> None:
    """Everybody buys phi_n / sum phi of the only resource, whatever the size of its tasks."""
    demand = np.linspace(0.3, 4, len(weight))
    found = get("ceei").solve(Cluster([[capacity]], demand[:, None], weight=weight))
    assert_allclose(found.arrays.user_tasks * demand / capacity, np.array(weight) / sum(weight), rtol=1e-4)


@given(st.floats(0.2, 5), st.floats(0.2, 5))
@settings(max_examples=25)
def test_ceei_of_two_users_with_opposite_demands(a: float, b: float) -> None:
    """`max log x + log y`, x + b y <= 1, a x + y <= 1: the vertex where both bind, or the middle of one face."""
    found = get("ceei").solve(Cluster([[1, 1]], [[1, a], [b, 1]])).arrays.user_tasks
    candidates = [(0.5, 0.5 / b), (0.5 / a, 0.5)]
    if abs(1 - a * b) > 1e-9:
        candidates.append(((1 - b) / (1 - a * b), (1 - a) / (1 - a * b)))
    feasible = [p for p in candidates if min(p) > 0 and p[0] + b * p[1] <= 1 + 1e-9 and a * p[0] + p[1] <= 1 + 1e-9]
    best = max(feasible, key=lambda p: p[0] * p[1])
    assert_allclose(found, best, rtol=1e-3)


def test_weights_of_resources() -> None:
    """Those of a user's own weight are DRF's; others enter the share."""
    same = get("drf", resource_weights=((2.0, 2.0), (1.0, 1.0))).solve(EXAMPLE)
    weighted = get("drf").solve(EXAMPLE.replace(weight=[2, 1]))
    assert_allclose(same.arrays.user_tasks, weighted.arrays.user_tasks)
    # w = 4 on A's RAM makes CPU its dominant resource: max(1/9, 4/18/4) = 1/9 against 3/9 for B.
    odd = get("drf", resource_weights=((1, 4), (1, 1))).solve(EXAMPLE).arrays.user_tasks
    assert_allclose(odd, [54 / 13, 18 / 13])


def test_utilitarian_gives_all_to_the_cheapest() -> None:
    found = get("utilitarian", share="task").solve(Cluster([[12]], [[1], [2], [3]])).arrays.user_tasks
    assert_allclose(found, [12, 0, 0], atol=1e-6)


# -- FDS -----------------------------------------------------------------------------------------


def fds_value(shares: Array, beta: float, lam: float) -> Array:
    """The printed objective, for shares (..., users)."""
    total = shares.sum(axis=-1)
    inner = ((shares / total[..., None]) ** (1 - beta)).sum(axis=-1)
    return np.asarray(np.sign(1 - beta) * inner ** (1 / beta) * total**lam)


@pytest.mark.parametrize(("beta", "lam"), [(0.5, 1.0), (0.5, 2.0), (0.8, 0.5), (2.0, -0.5), (2.0, -2.0), (3.0, -1.0)])
def test_fds_is_the_best_of_a_fine_grid(beta: float, lam: float) -> None:
    found = get("fds", beta=beta, lam=lam).solve(EXAMPLE).arrays.dominant_shares
    first = np.linspace(1e-4, 4.49, 40001)
    grid = np.stack([first * 4 / 18, np.minimum((9 - first) / 3, 18 - 4 * first) / 3], axis=1)
    best = fds_value(grid, beta, lam).max()
    assert fds_value(found, beta, lam) >= best - 1e-6 * abs(best)


@pytest.mark.parametrize(
    ("beta", "lam", "message"), [(0.5, 0.5, "lam >= 1"), (2.0, -0.4, "lam <= -0.5"), (3.0, 0.0, "lam <= -0.66")]
)
def test_fds_says_where_it_is_not_convex(beta: float, lam: float, message: str) -> None:
    with pytest.raises(DataError, match=rf"FDS\(beta=.*\) is not convex; for this beta it is when {message}"):
        get("fds", beta=beta, lam=lam)
    with pytest.raises(DataError, match="GFJ"):
        get("gfj", beta=beta, lam=lam)


@pytest.mark.parametrize(
    ("beta", "lam", "message"),
    [
        *((beta, None, "beta is .*; it must be a finite number > 0") for beta in (0.0, -1.0, np.inf, np.nan)),
        (1.0, 0.5, "at beta = 1 only lam = 0 has a meaning"),
        *((2.0, lam, "lam is .*; it must be a finite number") for lam in (np.nan, np.inf)),
    ],
)
def test_fds_bad_parameters(beta: float, lam: float | None, message: str) -> None:
    with pytest.raises(DataError, match=message):
        get("fds", beta=beta, **({} if lam is None else {"lam": lam}))
