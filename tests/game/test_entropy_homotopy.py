"""The entropy homotopy: derivatives, both ends, and equilibria where the interior point jams."""

from __future__ import annotations

import numpy as np
import pytest
from families import some_zero

import fairopt as fo
from fairopt.core.game import equilibria
from fairopt.core.game.coupling import CoupledGame
from fairopt.model._arrays import Array

from .clusters import equations


def zeros(seed: int, users: int = 8, servers: int = 4, limits: bool = False) -> fo.Cluster:
    """Demands of which a third are zero."""
    rng = np.random.default_rng(seed)
    demand = some_zero(rng, rng.lognormal(size=(users, 3)), 2 / 3)
    counts = rng.choice([0.3, 3.0, np.inf], users) if limits else None
    return fo.Cluster(rng.lognormal(1.0, 0.5, (servers, 3)), demand, rng.uniform(0.5, 2, users), max_tasks=counts)


@pytest.mark.parametrize("limits", [False, True])
@pytest.mark.parametrize(("alpha", "tau"), [(0.3, 1.0), (2.0, 0.2), (16.0, 0.2), (16.0, 0.01), (4096.0, 1e-4)])
def test_derivatives(alpha: float, tau: float, limits: bool) -> None:
    """By prices and tau; and what weights that mean nothing and alpha do to tasks at one place, by solving again."""
    q = equations(zeros(3, limits=limits), alpha)
    rng = np.random.default_rng(0)
    price, unit, step = 0.1 * rng.normal(size=q.row.shape), rng.normal(size=len(q.row)), rng.normal(size=q.row.shape)

    def residual(change: Array | float = 0.0, by: float = 0.0) -> Array:
        return CoupledGame(q, price + change, tau * np.exp(by), unit).residual

    with np.errstate(all="ignore"):
        here, h = CoupledGame(q, price, tau, unit), 1e-6
        np.testing.assert_allclose(here.drift(), (residual(by=h) - residual(by=-h)) / (2 * h), atol=1e-7)
        step *= tau
        expected = ((residual(1e-5 * step) - residual(-1e-5 * step)) / 2e-5)[q.row]
        found = (here.matrix() @ np.where(q.row, step, 0.0).ravel()).reshape(step.shape)[q.row]
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(here.moved(step / 2).moved(step / 2).residual, residual(step), atol=1e-12)
        far = -25 / here.a * np.ones_like(price)  # little is left of what there was
        np.testing.assert_allclose(here.moved(far).residual, residual(far), atol=1e-9)


@pytest.mark.parametrize("alpha", [0.1, 5.0, 16.0])
def test_small_alpha_and_users_without_a_resource(alpha: float) -> None:
    """Like the users of Google's trace: demands of two resources over three decades, one of them zero, ten servers."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        demand = 10 ** rng.uniform(-3, 0, (40, 2))
        demand[0, 0] = demand[1, 1] = 0.0
        capacity = 10 ** rng.uniform(0, 3.5, (10, 1)) * rng.choice([0.25, 0.5, 0.75, 1.0], (10, 2))
        q = equations(fo.Cluster(capacity, demand), alpha)
        assert any(found.status == "converged" for found in equilibria._homotopy(q, 3e-7)), f"seed {seed}"
