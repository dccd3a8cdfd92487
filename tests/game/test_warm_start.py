"""From the interior point at one alpha to that at the next."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.core.market import Market, Start
from fairopt.model.problem import Problem
from fairopt.solving.earlier import Earlier


def cluster(users: int = 20, servers: int = 30) -> fo.Cluster:
    """A plain random one."""
    rng = np.random.default_rng(0)
    return fo.Cluster(rng.uniform(0.5, 5, (servers, 3)), rng.uniform(0.5, 5, (users, 3)))


@pytest.mark.parametrize("alpha", [0.1, 1.6, 2.4, 12.0, 60.0])
def test_the_answer_is_the_same_as_without_a_start(alpha: float) -> None:
    """However far the next alpha is."""
    first = fo.AlphaPFVDS(2.0).solve(cluster())
    found = fo.AlphaPFVDS(alpha).solve(cluster(), 1e-9, start=first)
    assert found.arrays.user_tasks == pytest.approx(
        fo.AlphaPFVDS(alpha).solve(cluster(), 1e-9).arrays.user_tasks, rel=1e-6
    )


def test_a_start_is_for_a_like_game() -> None:
    found = fo.AlphaPFVDS(2.0).solve(cluster())
    assert isinstance(found.warm, Earlier)
    start = found.warm.engine
    assert isinstance(start, Start)

    def market(other: fo.Cluster) -> Market:
        return Market(Problem(other, fo.AlphaPFVDS(4.0).criterion(other)))

    assert market(cluster()).fits(start)
    assert not market(cluster(users=21)).fits(start)
    assert not market(cluster(servers=31)).fits(start)
