"""Column screening in the game's interior point: the same equilibria, and nobody is forgotten."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fairopt as fo
from fairopt.engines.linalg import column_screening as rule
from fairopt.game.equilibrium import interior, screening
from fairopt.game.model.equilibrium_system import EquilibriumPoint, EquilibriumSystem
from fairopt.model.polytope import Polytope


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small clusters are screened too."""
    monkeypatch.setattr(rule, "applies", lambda pairs, gap, *_: bool(np.isfinite(gap)))


def spread(seed: int, users: int = 60, servers: int = 30) -> fo.Cluster:
    """Dense, no two servers or users alike."""
    rng = np.random.default_rng(seed)
    capacity = 20 * np.exp(0.7 * rng.standard_normal((servers, 4)))
    return fo.Cluster(capacity, np.exp(0.7 * rng.standard_normal((users, 4))))


def game(alpha: float, seed: int = 0) -> EquilibriumSystem:
    cluster = spread(seed)
    return EquilibriumSystem(Polytope(cluster, np.full(60, np.inf)), np.ones(60), alpha)


def near(q: EquilibriumSystem) -> EquilibriumPoint:
    """A point near the equilibrium, with all pairs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rule, "applies", lambda *_: False)
        return next(found.point for found in interior.run(q, interior.FIRST, 1e-12) if found.point.mu < 1e-6)


@pytest.mark.parametrize("alpha", [0.3, 0.9, 2.0, 5.0, 8.0])
@pytest.mark.parametrize("seed", range(4))
def test_equilibria_are_those_of_all_pairs(alpha: float, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = spread(seed)
    found = fo.AlphaPFVDS(alpha).solve(cluster, 1e-9)
    assert found.stats.engine == "equilibrium"
    monkeypatch.setattr(rule, "applies", lambda *_: False)
    other = fo.AlphaPFVDS(alpha).solve(cluster, 1e-9)
    assert found.user_tasks == pytest.approx(other.user_tasks, rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("alpha", [0.5, 2.0, 8.0])
def test_most_pairs_leave_on_the_way(alpha: float, seed: int) -> None:
    """To products of 1e-7: what one run reaches below that hangs on rounding, whoever is screened out."""
    q = game(alpha, seed)
    *_, last = interior.run(q, interior.FIRST, 1e-7)
    assert last.error <= 1e-7
    assert last.inside is not None
    assert len(last.point.tasks) == len(last.inside) < 0.4 * len(q.server)
    whole = q.whole(last.point, last.inside)
    aside = np.setdiff1d(np.arange(len(q.server)), last.inside)
    assert (q.priced(whole, alpha)[0][aside] > 0).all()
    assert not whole.tasks[aside].any()


def test_what_leaves_is_made_up_for_by_steps() -> None:
    q = game(2.0)
    screen, at = screening.Screening.of(q), near(q)
    now, point = screen.screened(q, at, 2.0, 1e-4)
    assert len(point.tasks) == len(screen.inside) < len(at.tasks)
    assert sorted([*screen.inside, *screen.outside]) == list(range(len(at.tasks)))
    before, after = np.add.reduceat(at.tasks, q.start[:-1]), np.add.reduceat(point.tasks, now.start[:-1])
    assert screen.sums == pytest.approx(before - after, abs=1e-14)
    assert screen.use == pytest.approx(q.used(at.tasks) - now.used(point.tasks), abs=1e-14)
    missing = screen.sums.copy()
    screen.went(0.75)
    assert screen.sums == pytest.approx(missing / 4)
    # By prices the slacks of those outside are what the equations say.
    assert screen.least[screen.outside] == pytest.approx(q.priced(at, 2.0)[0][screen.outside])


@pytest.mark.parametrize("size", [1e-3, 0.05, 1.0])
def test_bounds_of_slacks_hold_and_are_exact_where_that_matters(size: float) -> None:
    q, rng = game(2.0), np.random.default_rng(5)
    screen, at = screening.Screening.of(q), near(q)
    _, at = screen.screened(q, at, 2.0, 1e-4)
    outside = screen.outside
    for _ in range(4):
        price = at.log_price + size * rng.uniform(-0.5, 1, at.log_price.shape)
        at = replace(at, log_price=price, log_level=at.log_level + size * rng.uniform(-0.5, 1, at.log_level.shape))
        real = q.priced(at, 2.0)[0][outside]
        bound = screen.at_least(at, 2.0, enough := float(np.median(real)))
        assert (bound <= real + 1e-12).all()
        assert bound[bound < enough] == pytest.approx(real[bound < enough], rel=1e-12)
        screen.least[outside], screen.seen = bound, (at, 2.0)
    assert (bound < real - 1e-6).any()
    assert screen.at_least(at, 1.9, np.inf) == pytest.approx(q.priced(at, 1.9)[0][outside], rel=1e-12)


def test_no_resource_loses_all_who_need_it() -> None:
    """Weights over four decades, 1000 x 200, alpha = 16: all pairs of a server left, and nothing held its price."""
    q = game(8.0)
    screen, at = screening.Screening.of(q), near(q)
    dear = q.server == 3
    price = at.log_price.copy()
    price[3] += 5
    slack = np.where(dear, q.priced(replace(at, log_price=price), 8.0)[0], at.slack)
    point = replace(at, log_price=price, slack=slack, tasks=np.where(dear, 1e-12, at.tasks))
    now, kept = screen.screened(q, point, 8.0, 1e-4)
    assert len(now.server) < len(q.server)
    assert dear[screen.inside].sum() == dear.sum()
    assert ((now.used(np.ones(len(kept.tasks))) > 0) == q.row).all()


def test_a_step_ends_before_a_pair_outside_is_worth_it_and_it_returns() -> None:
    q = game(2.0)
    screen, at = screening.Screening.of(q), near(q)
    now, point = screen.screened(q, at, 2.0, 1e-4)
    slack = screen.least[screen.outside]
    k = int(np.argmin(slack))
    user = q.user[screen.outside[k]]
    assert screen.longest(point, 2.0) == 1
    assert not screen.soon.any()
    lower = point.log_level.copy()
    lower[user] -= np.log1p(slack[k])  # the level at which the pair costs what others do, and a little more
    part = screen.longest(replace(point, log_level=lower), 2.0)
    assert 0 < part < 0.95
    assert screen.soon[k]
    pair = screen.outside[k]
    there, again = screen.screened(now, point, 2.0, 1e-4)
    assert pair in screen.inside
    where = int(np.searchsorted(screen.inside, pair))
    assert there.user[where] == user
    assert 0 < again.tasks[where] <= 2e-4 * np.exp(at.log_level[user]) * (1 + 1e-12)


@pytest.mark.parametrize("alpha", [0.5, 2.0])
def test_points_for_other_alphas_have_all_pairs(alpha: float) -> None:
    q = game(alpha, seed=3)
    *_, last = interior.run(q, interior.FIRST, 1e-9)
    assert last.inside is not None
    assert len(last.inside) < len(q.server)
    assert last.warm is not None
    assert len(last.warm.tasks) == len(last.warm.slack) == len(q.server)
    assert (last.warm.tasks > 0).all()
    assert (last.warm.slack > 0).all()
    cluster = spread(3)
    second = fo.AlphaPFVDS(1.1 * alpha).solve(cluster, start=fo.AlphaPFVDS(alpha).solve(cluster))
    assert second.certify().passes(1e-6)


def test_what_is_not_a_number_stays_to_be_noticed() -> None:
    """A system that could not be solved leaves steps that are not numbers; whoever comes next ends the run."""
    q = game(8.0)
    at = near(q)
    screen = screening.Screening.of(q)
    lost = replace(at, tasks=np.full_like(at.tasks, np.nan), slack=np.full_like(at.slack, np.nan))
    now, _ = screen.screened(q, lost, 8.0, 1e-3)
    assert len(now.server) == len(q.server)
