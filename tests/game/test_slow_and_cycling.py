"""Small games in which best responses in turn take any number of rounds, or cycle (docs, Convergence)."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

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
    assert trace.rounds == math.ceil(1 / (2 * change)) + 1  # the last one finds nothing to change
    np.testing.assert_allclose(trace.frame["residual"].iloc[:-2], change, rtol=1e-6)
    elastic = best_response(shared, alpha, start=start).trace
    assert elastic.rounds <= 20


def test_max_min_cycles_in_exact_numbers() -> None:
    """Servers in turn go from one table to the other and back, by the conditions of each response in fractions."""
    even = [[Fraction(n, 9) for n in row] for row in ((3, 0), (0, 9), (5, 0))]
    odd = [[Fraction(n, 21) for n in row] for row in ((6, 1), (3, 18), (12, 6))]
    users = range(3)
    for before, after in pairwise((even, odd, even)):
        for i in range(2):
            x = [after[n][i] for n in users]
            gamma = [min(Fraction(c, d) for c, d in zip(CAPACITY[i], DEMAND[n], strict=True) if d) for n in users]
            level = [(x[n] + (before[n][1] if i == 0 else after[n][0])) / gamma[n] for n in users]
            used = [sum(x[n] * DEMAND[n][r] for n in users) for r in range(3)]
            assert all(use <= most for use, most in zip(used, CAPACITY[i], strict=True))
            for n in users:  # a full resource, where nobody who is served is above
                assert any(
                    DEMAND[n][r] and used[r] == CAPACITY[i][r]
                    and all(level[m] <= level[n] for m in users if DEMAND[m][r] and x[m])
                    for r in range(3)
                )  # fmt: skip


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
    # Rounds that turn count thrice towards the accelerated ones, which end it at once.
    assert not best_response(shared, alpha, max_rounds=80).flagged


def test_an_unstable_equilibrium_of_index_one() -> None:
    found = fo.game.equilibria(fo.Cluster(CAPACITY, DEMAND), 16)
    assert len(found) == 1
    assert found[0].index == 1
    assert found.radii[0] > 1.5
