"""What prices prove: hints sharpen a bound and cannot fake one; the gap bounds the welfare that is missing."""

from __future__ import annotations

import numpy as np
import pytest
from families import EXAMPLE, draw

from fairopt.certificates import backward_error, certify
from fairopt.mechanisms import Mechanism, get
from fairopt.model._arrays import Array
from fairopt.model.cluster import Cluster
from fairopt.model.criterion import Criterion
from fairopt.model.polytope import Polytope

from .reference import random_feasible
from .test_judges import JUDGED

PRICED = [*JUDGED, get("alpha-fair", alpha=0.0), get("fds", beta=3.0, lam=-2.0)]


@pytest.mark.parametrize("mechanism", [get("alpha-fair", alpha=0.0), get("guaranteed-alpha-fair", alpha=2.0)], ids=str)
def test_optima_at_limits_and_floors_need_no_prices(mechanism: Mechanism) -> None:
    for seed in (2, 6):
        best = mechanism.solve(draw("limits", seed))
        assert mechanism.certify(best.cluster, best.tasks)[0].passes()


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_what_is_no_number_is_no_price(odd: float) -> None:
    best = get("ceei").solve(EXAMPLE)
    polytope = Polytope(EXAMPLE, EXAMPLE.max_tasks)
    found, none = (backward_error(polytope, best.criterion, best.tasks, np.array([0.1, one])) for one in (odd, -np.inf))
    assert found.error == none.error > 0.09


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
