"""Small games in which best responses in turn take any number of rounds, or cycle (docs, Convergence)."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fairopt as fo
from fairopt.game import best_response

#: Capacities and demands of the game that cycles.
CAPACITY, DEMAND = [[2, 1, 1], [1, 1, 2]], [[1, 3, 0], [0, 1, 2], [3, 0, 1]]


@pytest.mark.parametrize(("k", "alpha"), [(3, 1.1), (3, math.inf), (300, math.inf)])
def test_the_number_of_rounds_until_a_surplus_pair_is_empty(k: int, alpha: float) -> None:
    """Each round asks for the same change; at alpha infinite it is 1/(2k + 1), and k + 1 rounds change anything."""
    shared = fo.Cluster([[k + 1, k], [k + 1, k + 1]], [[2, 1], [2, 2]])
    ratio = (k / (k + 1)) ** (1 - 1 / alpha)
    change = (1 - ratio) / (1 + ratio)
    start = np.full((2, 2), (k + 1) / 4)
    trace = best_response(shared, alpha, order="cyclic", start=start).trace
    assert trace is not None
    assert trace.rounds == math.ceil(1 / (2 * change)) + 1  # the last one finds nothing to change
    np.testing.assert_allclose(trace.frame["residual"].iloc[:-2], change, rtol=1e-6)
    elastic = best_response(shared, alpha, start=start).trace
    assert elastic is not None
    assert elastic.rounds <= 20


@pytest.mark.parametrize("alpha", [16.0, math.inf])
def test_servers_in_turn_cycle(alpha: float) -> None:
    """From the start that is used, for good; half of the way each, and in elastic order, they arrive."""
    shared = fo.Cluster(CAPACITY, DEMAND)
    rounds = [best_response(shared, alpha, order="cyclic", max_rounds=most, throw=False) for most in (200, 201, 202)]
    assert rounds[0].flagged
    np.testing.assert_allclose(rounds[2].tasks, rounds[0].tasks, atol=1e-9)
    assert np.abs(rounds[1].tasks - rounds[0].tasks).max() > 0.1
    assert not best_response(shared, alpha, order="cyclic", damping=0.5).flagged
    assert not best_response(shared, alpha, order="jacobi").flagged
    assert not best_response(shared, alpha).flagged


def test_an_unstable_equilibrium_of_index_one() -> None:
    found = fo.game.equilibria(fo.Cluster(CAPACITY, DEMAND), 16)
    assert len(found) == 1
    assert found[0].index == 1
    assert found.radii[0] > 1.5
