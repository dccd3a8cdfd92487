"""From the interior point at one alpha to that at the next, at constant mu."""

from __future__ import annotations

import numpy as np

import fairopt as fo
from fairopt.game.equilibrium import equilibria
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
