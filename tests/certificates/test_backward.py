"""The backward error: the changed data of its theorem are built, and all their optimality conditions checked."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from families import draw
from numpy.testing import assert_allclose

import fairopt as fo
from fairopt.certificates import BackwardError, backward_error, certify
from fairopt.mechanisms import Mechanism
from fairopt.model._arrays import Array
from fairopt.model.criterion import Criterion, FairnessEfficiency
from fairopt.model.polytope import Polytope

from .reference import cut

MECHANISMS = [
    fo.AlphaFair(0.5), fo.CEEI(), fo.AlphaFair(2.0), fo.AlphaFair(7.0), fo.AlphaFair(50.0),
    fo.GuaranteedAlphaFair(0.5), fo.GuaranteedAlphaFair(2.0), fo.GuaranteedAlphaFair(50.0, 0.9),
    fo.AlphaPFVDS(0.3), fo.AlphaPFVDS(1.0), fo.AlphaPFVDS(2.0), fo.AlphaPFVDS(20.0),
    fo.FDS(2.0, -2.0), fo.GFJ(5.0, -3.0),
]  # fmt: skip
#: Two that show what `GuaranteedAlphaFair(2.0)` does, and take a minute.
SLOW = {"guaranteed alpha-fair(alpha=0.5)", "guaranteed alpha-fair(alpha=50, part=0.9)"}
QUICK = [pytest.param(one, marks=pytest.mark.long) if str(one) in SLOW else one for one in MECHANISMS]


def largest_change(cluster: fo.Cluster, criterion: Criterion, tasks: Array, found: BackwardError) -> float:
    """The largest |log factor| of data for which the tasks kept are exactly optimal, all conditions checked.

    Marginals are from their formula in docs/certificates.md and not from the criterion.
    """
    polytope = Polytope(cluster, criterion.limits(cluster))
    alpha, game, unit, users = criterion.alpha, criterion.scope == "game", max(criterion.alpha, 1.0), polytope.users
    log_price = np.full(cluster.capacity.shape, -np.inf)
    at = polytope.row_server, polytope.row_resource
    log_price[at] = found.log_rows - np.log(cluster.capacity[at])
    kept = np.zeros(cluster.shape[:2], dtype=bool)
    kept[users[polytope.pair_user], polytope.pair_server] = found.pairs
    x, kept, usable = np.where(kept, tasks, 0.0)[users], kept[users], cluster.usable[users]
    total, limit, floor = x.sum(axis=1), criterion.limits(cluster)[users], criterion.floor[users]
    assert (total > 0).all(), "whoever loses all tasks has an error of 1"
    with np.errstate(divide="ignore"):
        cost = np.logaddexp.reduce(np.log(cluster.demand[users])[:, None] + log_price, axis=2)
        by_limit, by_floor = np.abs(np.log(total / limit)), np.abs(np.log(total / floor))
    cost[~usable] = np.inf
    least = cost.min(axis=1, keepdims=True)
    # Either the weight makes worth and cost equal (below alpha = 1 the demands), or the limit is what a user has.
    share = np.where(usable, criterion.share[users] if game else criterion.share[users, None], 1.0)
    own = alpha * (np.log(cluster.weight[users]) - np.log(total))
    change = (cost if game else least) - (1 - alpha) * np.log(share) - own[:, None]
    if isinstance(criterion, FairnessEfficiency):
        unit, sigma = 1.0, criterion.share[users] * total
        fair = criterion.weight[users] ** alpha * sigma**-alpha
        worth = criterion.fair * fair / (fair @ sigma) + criterion.efficient / sigma.sum()
        change = least - np.log(criterion.share[users] * worth)[:, None]
    by_weight = np.abs(change).max(axis=1, initial=0.0, where=usable & (kept | (change < 0))) / unit
    dear = change.max(axis=1, initial=0.0, where=kept) / unit  # a limit does not make up for it
    by_limit = np.maximum(by_limit, dear)
    # Or the floor is what it has, if that costs more than it is worth.
    floored = (by_floor < by_weight) & (change.min(axis=1, initial=np.inf, where=usable) > 0) & (not game)
    limited = floored | (by_limit < by_weight)  # nothing else is changed
    lacking = np.where(floored, 0.0, np.log(np.maximum(floor / total, 1.0)))
    # Demands of pairs that are dearer than others, and of users.
    dearer = kept & (cost > least) & (not game)
    more = np.subtract(least, cost, out=np.zeros_like(cost), where=dearer)
    if alpha < 1 or isinstance(criterion, FairnessEfficiency):
        more -= np.where(kept & ~limited[:, None], change, 0.0)
    use = np.einsum("ni,nr->ir", x * np.exp(more), cluster.demand[users])
    with np.errstate(divide="ignore", invalid="ignore"):
        part = use / cluster.capacity
        # Rows with a price are full, others hold what is used.
        full = np.abs(np.log(part))[(cluster.capacity > 0) & ((log_price > -np.inf) | (part > 1))]
    by_user = np.where(floored, by_floor, np.where(limited, by_limit, by_weight))
    return max(np.max(one, initial=0.0) for one in (by_user, lacking, np.abs(more), full))


def judged(
    mechanism: Mechanism, cluster: fo.Cluster, tasks: Array, log_prices: Array
) -> tuple[Criterion, BackwardError]:
    criterion = mechanism.criterion(cluster)
    polytope = Polytope(cluster, criterion.limits(cluster))
    return criterion, backward_error(polytope, criterion, tasks, polytope.log_row_prices(log_prices))


@pytest.mark.parametrize("mechanism", QUICK, ids=str)
def test_the_tasks_are_exact_for_data_that_differ_by_it(mechanism: Mechanism) -> None:
    """Right answers, and some that are wrong in one user's tasks, in prices or in where tasks are.

    What the judge passes is so an exact answer of nearly the same data: how far off that may be, its condition says.
    """
    checked = 0
    for seed in range(8):
        cluster = draw(("plain", "nice")[seed % 2], seed)
        if isinstance(mechanism, fo.FDS) and not cluster.pool().runnable.all():
            continue  # refused
        answer = mechanism.solve(cluster, throw=False)
        if not len(Polytope(cluster, cluster.max_tasks).users) or answer.log_prices is None:
            continue
        rng = np.random.default_rng(seed)
        size = 10.0 ** rng.uniform(-9, -3)
        some = answer.tasks.copy()
        some[rng.integers(len(some))] *= 1 - size
        elsewhere = np.where(answer.cluster.usable, np.roll(answer.tasks, 1, axis=1), 0.0)
        moved = cut(answer.cluster, (1 - size) * answer.tasks + size * elsewhere)
        for tasks, noise in product((answer.tasks, some, 0.999 * answer.tasks, moved), (0.0, size)):
            prices = answer.log_prices + rng.normal(0, noise, answer.log_prices.shape)
            criterion, found = judged(mechanism, answer.cluster, tasks, prices)
            if found.error > 0.01:
                continue
            lacking = float((-np.minimum(1 - criterion.floor / np.maximum(tasks.sum(axis=1), 1e-300), 0.0)).max())
            by_demand = criterion.alpha < 1 or isinstance(criterion, FairnessEfficiency)
            bound = (5 if by_demand else 3) * max(found.error, lacking)
            assert largest_change(answer.cluster, criterion, tasks, found) <= bound * 1.05 + 1e-11, (seed, found)
            checked += 1
    assert checked > 20


HUGE = fo.Cluster([[1e8, 1e8], [1, 2]], [[1, 1], [1, 1]], eligible=[[1, 1], [0, 1]])


def reported() -> list[object]:
    """What was once certified and wrong, with the right answer by hand."""
    stuck = fo.Cluster([[1, 1], [1, 1]], [[1, 0.5], [1, 0.5]], eligible=[[0, 1], [1, 1]])
    large = HUGE.replace(capacity=[[1e6, 1e6], [1, 2]])
    served = fo.Cluster(
        [[10, 20], [0.7, 0.4]], [[3, 4], [5, 2]], weight=[0.5, 0.5], eligible=[[1, 0], [1, 1]], max_tasks=[0.2, 1]
    )
    apart = fo.Cluster([[1], [10]], [[1], [1]], eligible=[[1, 0], [0, 1]])
    return [
        pytest.param(fo.AlphaFair(50), served, [0.2, 1], [0.2, 0.652], id="room that a user of small welfare wants"),
        *(
            pytest.param(fo.AlphaPFVDS(alpha), stuck, [1, 1], [1 - 1e-4, 1 + 1e-4], id=f"tie, alpha={alpha}")
            for alpha in (0.2, 0.5, 2, 5, 20)
        ),
        pytest.param(fo.CEEI(), stuck, [1, 1], [1 - 1e-4, 1 + 1e-4], id="tie, CEEI"),
        pytest.param(fo.AlphaPFVDS(0.3), HUGE, [1e8, 1], [1e8, 0.9746], id="stray tasks of a large user"),
        pytest.param(fo.AlphaPFVDS(0.3), large, [1e6, 1], [1e6, 0.5], id="half of a small user"),
        pytest.param(fo.AlphaFair(20), apart, [1, 10], [1, 5], id="half of the tasks of small welfare"),
    ]


@pytest.mark.parametrize(("mechanism", "cluster", "right", "wrong"), reported())
def test_what_was_certified_and_wrong(
    mechanism: Mechanism, cluster: fo.Cluster, right: list[float], wrong: list[float]
) -> None:
    for tol in (1e-6, 1e-9):
        found = mechanism.solve(cluster, tol)
        assert_allclose(found.arrays.user_tasks, right, rtol=10 * tol)
    tasks = found.tasks * (np.array(wrong) / np.array(right))[:, None]
    for prices in (found.log_prices, None):
        assert certify(found.cluster, tasks, found.criterion, prices)[0].optimality > 1e-5


@pytest.mark.parametrize(
    "mechanism", [fo.AlphaPFVDS(0.3), fo.AlphaPFVDS(2.0), fo.AlphaFair(0.5), fo.AlphaFair(2.0)], ids=str
)
def test_stray_tasks_count_by_what_they_take_from_others(mechanism: Mechanism) -> None:
    """A part of 1e-10 of a large user's tasks is a fortieth of the small server on which another user has its own."""
    found = mechanism.solve(HUGE)
    assert_allclose(found.tasks, [[1e8, 0], [0, 1]], atol=1e-9)
    tasks = np.array([[1e8, 0.025], [0, 0.975]])
    for prices in (found.log_prices, None):
        certificate = certify(HUGE, tasks, found.criterion, prices)[0]
        assert certificate.feasibility <= 1e-12
        assert 0.01 < certificate.optimality < 0.1


@pytest.mark.parametrize(
    "mechanism",
    [pytest.param(fo.AlphaFair(7.0), marks=pytest.mark.long), fo.AlphaFair(50.0), fo.AlphaPFVDS(2.0)],
    ids=str,
)
def test_a_tighter_tolerance_is_never_worse(mechanism: Mechanism) -> None:
    for seed in range(8):
        cluster = draw("wide", seed)
        tols = (1e-4, 1e-6, 1e-9, 1e-11)
        errors = [mechanism.solve(cluster, tol, throw=False).certificate.residual for tol in tols]
        for loose, tight, tol in zip(errors, errors[1:], tols[1:], strict=False):
            assert tight <= max(loose, tol), (seed, errors)
