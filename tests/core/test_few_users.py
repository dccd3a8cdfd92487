"""Few users on many servers: the conditions of an equilibrium hold at what the interior point finds."""

from __future__ import annotations

import numpy as np
import pytest

from fairopt.core.few_users import Market, solved


@pytest.mark.parametrize("game", [True, False])
@pytest.mark.parametrize("alpha", [0.3, 1.0, 3.0, 8.0])
def test_conditions(alpha: float, game: bool) -> None:
    """No row is overused, priced rows are full, and users run where a task costs them what it is worth."""
    rng = np.random.default_rng(3)
    capacity, demand = rng.gamma(4, 0.25, (2, 120)) + 0.05, rng.gamma(2, 0.5, (2, 5)) + 0.05
    size = (capacity[:, None] / demand[:, :, None]).min(axis=0)
    size[1, ::3] = 0.0  # pairs that may not be used
    use = demand[:, :, None] * size / capacity[:, None]
    with np.errstate(divide="ignore"):
        log_worth = np.log(size) * (alpha if game else 1.0)
    found = solved(Market(use, np.where(size > 0, log_worth, 0.0), size, alpha), 1e-9)
    tasks = (found.fraction * size).sum(axis=1)
    idle = 1 - np.einsum("rnk,nk->rk", use, found.fraction)
    price = np.exp(found.log_row)
    cost = np.einsum("rnk,rk->nk", use, price)
    worth = np.exp(log_worth) * (tasks**-alpha)[:, None]
    slack = np.where(size > 0, cost / np.where(size > 0, worth, 1.0) - 1, 0.0)
    assert found.error < 1e-7
    assert (found.fraction >= 0).all()
    assert (found.fraction[size == 0] == 0).all()
    assert idle.min() > -1e-7
    assert slack.min() > -1e-6
    assert (found.fraction * size / tasks[:, None] * np.maximum(slack, 0)).max() < 1e-6
    assert (price / price.max(axis=0) * np.maximum(idle, 0)).max() < 1e-6
