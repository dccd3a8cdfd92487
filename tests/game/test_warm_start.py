"""From the interior point at one alpha to that at the next."""

from __future__ import annotations

import pytest

import fairopt as fo
from fairopt.core.market import Market, Start
from fairopt.model.problem import Problem
from fairopt.solving.earlier import Earlier

from .clusters import plain


@pytest.mark.parametrize("alpha", [0.1, 1.6, 2.4, 12.0, 60.0])
def test_the_answer_is_the_same_as_without_a_start(alpha: float) -> None:
    """However far the next alpha is."""
    shared = plain(0, 20, 30, 3)
    first = fo.AlphaPFVDS(2.0).solve(shared)
    warm, cold = (fo.AlphaPFVDS(alpha).solve(shared, 1e-9, start=start) for start in (first, None))
    assert warm.arrays.user_tasks == pytest.approx(cold.arrays.user_tasks, rel=1e-6)


def test_a_start_is_for_a_like_game() -> None:
    found = fo.AlphaPFVDS(2.0).solve(plain(0, 20, 30, 3))
    assert isinstance(found.warm, Earlier)
    start = found.warm.engine
    assert isinstance(start, Start)

    for users, servers in ((20, 30), (21, 30), (20, 31)):
        other = plain(0, users, servers, 3)
        market = Market(Problem(other, fo.AlphaPFVDS(4.0).criterion(other)))
        assert market.fits(start) == ((users, servers) == (20, 30))
