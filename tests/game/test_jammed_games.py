"""Games in which Newton steps jam: exact ties and many zero demands at alpha >= 8, 200 users on 100 servers."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from benchmarks.families import FAMILIES

#: Family, alpha and seeds.
GAMES = [
    ("integers", 8.0, 6),
    ("integers", 16.0, 3),
    ("integers", 64.0, 3),
    ("zeros", 8.0, 3),
    ("zeros", 16.0, 6),
    ("zeros", 64.0, 3),
]


def game(family: str, seed: int) -> fo.Cluster:
    return FAMILIES[family](200, 100, np.random.default_rng(seed))


def test_games_that_jam_are_certified() -> None:
    found = fo.AlphaPFVDS(8.0).solve(game("integers", 5))
    assert (found.stats.engine, found.stats.solver) == ("equilibrium", "HiGHS")
    assert found.certify().residual < 1e-6


@pytest.mark.long
@pytest.mark.parametrize(("family", "alpha", "seeds"), GAMES)
def test_all_of_them_are(family: str, alpha: float, seeds: int) -> None:
    for seed in range(seeds):
        assert fo.AlphaPFVDS(alpha).solve(game(family, seed)).certify().residual < 1e-6
