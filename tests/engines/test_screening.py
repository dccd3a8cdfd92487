"""Column screening: the same answers as with all pairs, and equations that hold while pairs leave and return."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import fairopt as fo
from fairopt.engines.base import Solution
from fairopt.engines.linalg import column_screening as rule
from fairopt.engines.welfare import interior_point, mehrotra, screening
from fairopt.engines.welfare import newton as newton_system
from fairopt.engines.welfare.conditions import Welfare
from fairopt.engines.welfare.point import Point
from fairopt.model.polytope import Polytope
from fairopt.model.problem import Problem


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small clusters are screened too."""
    monkeypatch.setattr(rule, "applies", lambda pairs, gap, *_: bool(np.isfinite(gap)))


def spread(seed: int, users: int = 60, servers: int = 40) -> fo.Cluster:
    """Dense, no two servers or users alike."""
    rng = np.random.default_rng(seed)
    capacity = 20 * np.exp(rng.standard_normal((servers, 4)))
    return fo.Cluster(capacity, np.exp(rng.standard_normal((users, 4))))


def points(alpha: float, seed: int = 0) -> Iterator[tuple[Welfare, Point, float, float]]:
    """A run on a cluster: welfare and point before each step, with the mean product and the relative gap."""
    cluster = spread(seed)
    criterion = fo.AlphaFair(alpha).criterion(cluster)
    welfare = Welfare(Polytope(cluster, criterion.limits(cluster)), criterion)
    at = welfare.begin()
    for _ in range(40):
        now = mehrotra.products(welfare, at)
        mu = mehrotra.mean(now, 1.0)
        gap = float(now.pair.sum() + now.capacity.sum()) / len(welfare.unit)
        if gap < 1e-9:
            return
        yield welfare, at, mu, gap
        welfare, at = screening.screened(welfare, at, mu, gap)
        now = mehrotra.products(welfare, at)
        newton = newton_system.Newton(welfare, at, mehrotra.mean(now, 1.0), True)
        at = mehrotra.advance(newton, 1.0)


def answers(cluster: fo.Cluster, alpha: float, tol: float = 1e-9, warm: object = None) -> list[Solution]:
    """What the interior point that leaves pairs aside offers, from the first to the best."""
    return [*interior_point.solutions(Problem(cluster, fo.AlphaFair(alpha).criterion(cluster)), tol, warm)]


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize(("alpha", "seed"), [(0.3, 1), (1.0, 2), (3.0, 3), (64.0, 0)])
def test_answers_are_those_of_all_pairs(alpha: float, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In about as many rounds."""
    cluster = spread(seed)
    found = answers(cluster, alpha)[0]
    monkeypatch.setattr(rule, "applies", lambda *_: False)
    other = answers(cluster, alpha)[0]
    assert found.rounds <= 1.5 * other.rounds + 3
    assert found.tasks.sum(axis=1) == pytest.approx(other.tasks.sum(axis=1), rel=2e-4)


@pytest.mark.parametrize("alpha", [0.5, 3.0])
def test_leaving_changes_nothing(alpha: float) -> None:
    """What those who leave had still counts: equations of users and capacities are as wrong as they were."""
    left = 0
    for welfare, at, mu, gap in points(alpha):
        other, there = screening.screened(welfare, at, mu, gap)
        came = len(np.setdiff1d(inside(other), inside(welfare)))
        if other is not welfare and not came:
            left += 1
            before = welfare.residuals(at, welfare.marginal(at))
            after = other.residuals(there, other.marginal(there))
            assert after.user == pytest.approx(before.user, abs=1e-12)
            assert after.capacity == pytest.approx(before.capacity, abs=1e-12)
            assert there.tasks == pytest.approx(at.tasks[np.isin(inside(welfare), inside(other))])
    assert left > 1


def inside(welfare: Welfare) -> np.ndarray:
    return np.arange(len(welfare.server)) if welfare.remainder is None else welfare.remainder.inside


def test_steps_end_before_a_pair_aside_is_worth_it_and_it_returns() -> None:
    *_, (welfare, at, mu, gap) = points(1.0)
    assert welfare.remainder is not None
    polytope, user = welfare.polytope, welfare.polytope.pair_user
    k = int(np.flatnonzero(welfare.remainder.aside)[0])
    slack = polytope.price_per_task(at.price[welfare.row])[k] * welfare.unit[user[k]] - at.user_price[user[k]]
    still = replace(at, price=np.zeros_like(at.price), user_price=np.zeros_like(at.user_price))
    assert screening.longest(welfare, at, still) == 1
    assert not welfare.remainder.called.any()
    rising = still.user_price.copy()
    rising[user[k]] = 10 * slack  # what its user pays would rise to far more than the pair costs
    part = screening.longest(welfare, at, replace(still, user_price=rising))
    assert part <= 0.09 * (1 + 1e-12)  # others of the user may be nearer
    assert welfare.remainder.called[k]
    other, there = screening.screened(welfare, at, mu, gap)
    assert k in inside(other)
    new = np.searchsorted(inside(other), k)
    assert 0 < there.tasks[new] <= 2e-4 * there.total[user[k]] * (1 + 1e-12)
    assert there.slack[new] == pytest.approx(slack)


@pytest.mark.usefixtures("always")
def test_starts_for_the_next_alpha_have_all_pairs() -> None:
    cluster = spread(5)
    found = answers(cluster, 2.0, 1e-6)[-1]
    warm, cold = answers(cluster, 2.2, 1e-6, found.warm), answers(cluster, 2.2, 1e-6)
    assert found.warm is not None
    assert warm[-1].tasks.sum(axis=1) == pytest.approx(cold[-1].tasks.sum(axis=1), rel=1e-3)
    assert warm[0].rounds < cold[0].rounds
