"""Column screening in the game's interior point: the same equilibria, and nobody is forgotten."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.engines.linalg import column_screening as rule
from fairopt.game.equilibrium import interior
from fairopt.game.model.equilibrium_system import EquilibriumSystem
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


@pytest.mark.parametrize(("alpha", "seed"), [(0.3, 0), (0.9, 1), (2.0, 2), (8.0, 3)])
def test_equilibria_are_those_of_all_pairs(alpha: float, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = spread(seed)
    found = fo.AlphaPFVDS(alpha).solve(cluster, 1e-9)
    assert found.stats.engine == "equilibrium"
    monkeypatch.setattr(rule, "applies", lambda *_: False)
    other = fo.AlphaPFVDS(alpha).solve(cluster, 1e-9)
    assert found.arrays.user_tasks == pytest.approx(other.arrays.user_tasks, rel=1e-6)


@pytest.mark.parametrize(("alpha", "seed"), [(0.5, 0), (2.0, 1), (8.0, 2)])
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
