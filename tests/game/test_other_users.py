"""Starts from an answer for other users on the same servers: the same answer, in fewer systems."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.mechanisms import one
from fairopt.mechanisms._earlier import OtherUsers
from fairopt.workloads import google_like


def crowd(users: list[int], servers: int = 400, reverse: bool = False) -> fo.Cluster:
    """Some of a hundred users like Google's, among them some with zero demands; the prices of all decide."""
    whole = google_like(np.random.default_rng(1), 100, servers).cluster
    names = [whole.users[n] for n in users]
    return whole.select(users=names, servers=whole.servers[::-1] if reverse else None)


BEFORE, AFTER = list(range(80)), list(range(3, 84))


@pytest.mark.parametrize("reverse", [False, True])
def test_psdsf_starts_from_prices_whoever_paid_them(reverse: bool) -> None:
    there = crowd(AFTER, reverse=reverse)
    cold = fo.PSDSF().solve(there)
    warm = fo.PSDSF().solve(there, start=OtherUsers(fo.PSDSF().solve(crowd(BEFORE))))
    assert cold.stats.solver == warm.stats.solver == "equilibria followed to infinity"
    np.testing.assert_allclose(warm.arrays.user_tasks, cold.arrays.user_tasks, rtol=1e-6)
    if not reverse:  # merged servers then have other names
        assert warm.stats.rounds < 0.6 * cold.stats.rounds


@pytest.mark.parametrize("mechanism", ["ps-dsf", "drfh", "alphapf-vds(alpha=3)", "alpha-fair(alpha=2)"])
def test_what_knows_users_is_left_out(mechanism: str) -> None:
    there = crowd(AFTER)
    start = one(mechanism).solve(crowd(list(range(81)), 100))
    assert mechanism == "ps-dsf" or OtherUsers(start).earlier is None
    warm, cold = one(mechanism).solve(there, start=OtherUsers(start)), one(mechanism).solve(there)
    np.testing.assert_allclose(warm.arrays.user_tasks, cold.arrays.user_tasks, rtol=1e-6)
