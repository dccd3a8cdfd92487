"""What prices prove: hints sharpen a bound and cannot fake one; the gap bounds the welfare that is missing."""

from __future__ import annotations

import numpy as np
import pytest
from families import EXAMPLE, draw
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import plain_clusters

from fairopt.certificates import certify
from fairopt.mechanisms import Mechanism, get
from fairopt.model._arrays import Array
from fairopt.model.cluster import Cluster
from fairopt.model.criterion import Criterion

from .reference import random_feasible
from .test_judges import JUDGED

PRICED = [
    *JUDGED,
    get("alpha-fair", alpha=0.0),
    *(get("alphapf-vds", alpha=alpha) for alpha in (0.0, 20.0)),
    get("fds", beta=3.0, lam=-2.0),
    get("guaranteed-alpha-fair", alpha=2.0),
]


@pytest.mark.parametrize("mechanism", PRICED, ids=str)
def test_no_prices_make_a_bad_allocation_pass(mechanism: Mechanism) -> None:
    """Everybody's tasks less by 3%, the richest user's by a tenth, or any with a tenth idle; without prices any."""
    prices = st.sampled_from([0.0, 1e-12, 1e-3, 1.0, 7.0, 1e6, np.inf, -1.0])
    maxmin = mechanism.name in ("drf", "drfh", "tsf", "asset-fairness", "task-maxmin")

    @settings(max_examples=3)
    @given(plain_clusters(max_users=3, max_servers=2, max_resources=2), st.lists(prices, min_size=4, max_size=4))
    def law(cluster: Cluster, given_prices: list[float]) -> None:
        seen, rng = mechanism.prepare(cluster)[0], np.random.default_rng(len(cluster.users))
        best = mechanism.solve(cluster)
        with np.errstate(divide="ignore", invalid="ignore"):  # no number is no price
            lam = np.log(np.array(given_prices)[: seen.capacity.size].reshape(seen.capacity.shape))
        richest = np.arange(len(best.tasks)) == best.arrays.dominant_shares.argmax()
        less = best.tasks * np.where(richest, 0.9, 1.0)[:, None]
        full = random_feasible(seen, rng)
        noise = None if best.log_prices is None else best.log_prices + rng.normal(0, 3, best.log_prices.shape)
        for tasks in (0.97 * best.tasks, less, 0.9 * full):
            for hint in (lam, best.log_prices, noise):
                found = mechanism.certify(seen, tasks, hint)[0]
                assert not found.passes(1e-2 if maxmin else 1e-4), (found, hint)
        # An optimum is in the tasks of users where those are unique; equilibria may be others.
        off = np.abs(full.sum(axis=1) / best.arrays.user_tasks - 1).max()
        if mechanism in JUDGED and mechanism.unique and off > 0.01:
            assert not mechanism.certify(seen, full)[0].passes()

    law()


@pytest.mark.parametrize("mechanism", [get("alpha-fair", alpha=0.0), get("guaranteed-alpha-fair", alpha=2.0)], ids=str)
def test_optima_at_limits_and_floors_need_no_prices(mechanism: Mechanism) -> None:
    for seed in (2, 6):
        best = mechanism.solve(draw("limits", seed))
        assert mechanism.certify(best.cluster, best.tasks)[0].passes()


def welfare(criterion: Criterion, user_tasks: Array) -> float:
    """`sum phi f_alpha(u x / phi)` straight from its definition."""
    t = criterion.share * user_tasks / criterion.weight
    if criterion.alpha == 1:
        return float(criterion.weight @ np.log(t))
    return float(criterion.weight @ t ** (1 - criterion.alpha) / (1 - criterion.alpha))


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 5.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_gap_bounds_the_missing_welfare(alpha: float, seed: int) -> None:
    mechanism, rng = get("alpha-fair", alpha=alpha), np.random.default_rng(seed)
    cluster = Cluster(rng.uniform(0.25, 5, (3, 2)), rng.uniform(0.25, 5, (4, 2)), rng.uniform(0.25, 5, 4))
    criterion, best = mechanism.criterion(cluster), mechanism.solve(cluster)
    others = [best.arrays.user_tasks, *(random_feasible(cluster, rng).sum(axis=1) for _ in range(3))]
    for tasks in (random_feasible(cluster, rng), 0.95 * best.tasks + 0.05 * random_feasible(cluster, rng, False)):
        x = tasks.sum(axis=1)
        marginal = cluster.weight**alpha * criterion.share ** (1 - alpha) * x**-alpha
        for hint in (None, best.log_prices):
            gap = certify(cluster, tasks, criterion, hint)[0].gap
            for other in others:
                if alpha < 1 or other.all():
                    missing = (welfare(criterion, other) - welfare(criterion, x)) / float(marginal @ x)
                    assert missing <= gap + 1e-9
    # And with the right prices it is not much more than what is missing.
    assert certify(cluster, 0.99 * best.tasks, criterion, best.log_prices)[0].gap <= 0.05


@pytest.mark.parametrize("mechanism", [one for one in PRICED if one.criterion(EXAMPLE).scope == "pool"], ids=str)
def test_users_who_can_run_nothing_hide_no_prices(mechanism: Mechanism) -> None:
    """What others' tasks are worth does not hang on a user whose resource there is none of."""
    cluster = Cluster([[420.0, 0.0]], [[0.02, 0.47], [1.0, 0.0], [3.0, 0.0]])
    found = mechanism.solve(cluster)
    assert mechanism.certify(cluster, found.tasks)[0].residual < 1e-6
