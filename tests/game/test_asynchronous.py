"""The distributed game of PF section 5.2 at size: messages lost and late, every server on its own clock."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

import fairopt as fo


@pytest.mark.parametrize("seed", [0, 1])
def test_1e_4_with_a_fifth_of_the_messages_lost_and_delays_of_ten_rounds(seed: int) -> None:
    """50 users, 20 servers, 2.5 servers per user."""
    rng = np.random.default_rng(seed)
    eligible = rng.random((50, 20)) < 2.5 / 20
    eligible[np.arange(50), rng.integers(20, size=50)] = True
    shared = fo.Cluster(100 * rng.lognormal(0, 0.5, (20, 4)), rng.lognormal(0, 0.5, (50, 4)), eligible=eligible)
    network = fo.game.Network(loss=0.2, delay=10)
    answer = fo.best_response(
        shared, 2, order="asynchronous", network=network, damping=0.5, tol=1e-4, max_rounds=3000, rng=seed
    )
    curve = answer.trace.frame
    assert curve["residual"].iloc[-1] <= 1e-4 < curve["residual"].iloc[0]
    assert (curve["messages"].diff().dropna() > 0).all()
    assert answer.certify().residual <= 2e-4
    assert answer.arrays.user_tasks == pytest.approx(fo.AlphaPFVDS(2).solve(shared).arrays.user_tasks, rel=5e-3)
    assert isinstance(answer.trace.plot(), Figure)
