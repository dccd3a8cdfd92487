"""From the interior point at one alpha to that at the next, at constant mu."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.game.equilibrium import equilibria
from fairopt.game.equilibrium.interior import FOLLOWED, run
from fairopt.game.equilibrium.kkt_system import KKTSystem
from fairopt.game.equilibrium.warm_start import WarmStart, followed
from fairopt.game.model.equilibrium_system import EquilibriumPoint, EquilibriumSystem
from fairopt.model.polytope import Polytope
from fairopt.solving.earlier import Earlier


def equations(alpha: float, seed: int = 0, users: int = 20, servers: int = 6) -> EquilibriumSystem:
    """The game on a plain random cluster."""
    rng = np.random.default_rng(seed)
    cluster = fo.Cluster(rng.uniform(0.5, 5, (servers, 3)), rng.uniform(0.5, 5, (users, 3)))
    return EquilibriumSystem(Polytope(cluster, np.full(users, np.inf)), np.ones(users), alpha)


def warm(alpha: float, seed: int = 0) -> EquilibriumPoint:
    """What a solution at alpha offers to start from."""
    found = next(equilibria.equilibria(equations(alpha, seed), 1e-6))
    assert found.warm is not None
    return found.warm


@pytest.mark.parametrize("alpha", [0.3, 0.95, 3.0])
def test_the_next_point_satisfies_the_next_equations_at_about_the_same_mu(alpha: float) -> None:
    start, there = warm(alpha), equations(1.5 * alpha)
    before = KKTSystem(there, start.measured(there.power), there.alpha, there.alpha, False)
    point, steps = followed(there, start)
    assert point is not None
    assert 1 <= steps <= 12
    after = KKTSystem(there, point, there.alpha, there.alpha, False)
    assert after.residual() < 0.1 < before.residual()
    assert 1e-5 < after.average < 0.3
    assert after.error > 1e-6  # mu has not been brought down: that is what the interior point does from here
    *_, found = run(there, FOLLOWED, 1e-7, point)
    assert found.error <= 1e-7


def test_it_is_left_where_the_next_alpha_is_too_far() -> None:
    there = equations(0.1)
    start = warm(60.0)
    point, steps = followed(there, start)
    assert steps == 12 or point is not None
    # Whatever came of it, the answer is the same as without a start.
    *_, found = equilibria.equilibria(there, 1e-6, start)
    *_, cold = equilibria.equilibria(there, 1e-6)
    assert found.error <= 1e-6
    np.testing.assert_allclose(there.used(found.point.tasks), there.used(cold.point.tasks), atol=1e-3)


def test_numbers_that_are_none_are_left_at_once() -> None:
    start = warm(2.0)
    broken = EquilibriumPoint(
        start.tasks * np.nan, start.slack, start.log_price, start.log_level, start.idle, start.mu, start.power
    )
    with np.errstate(all="ignore"):
        assert followed(equations(2.4), broken) == (None, 0)


def test_a_start_saves_half_of_the_steps() -> None:
    alphas = [float(alpha) for alpha in np.geomspace(1.2, 8, 12)]
    rng = np.random.default_rng(3)
    cluster = fo.Cluster(rng.uniform(0.5, 5, (12, 3)), rng.uniform(0.5, 5, (40, 3)))
    frame = fo.alpha_path(cluster, alphas)
    cold = sum(fo.AlphaPFVDS(alpha).solve(cluster).stats.rounds for alpha in alphas)
    assert 0 < frame["steps"].sum() < 0.65 * cold


def test_a_start_is_for_a_like_game() -> None:
    found = fo.AlphaPFVDS(2.0).solve(equations(2.0).polytope.cluster)
    assert isinstance(found.warm, Earlier)
    start = found.warm.engine
    assert isinstance(start, WarmStart)
    assert start.fits(equations(1.0))
    assert start.fits(equations(4.0))
    assert not start.fits(equations(0.5))
    assert not start.fits(equations(6.0))
    assert not start.fits(equations(2.0, users=21))
    assert not start.fits(equations(2.0, servers=7))
