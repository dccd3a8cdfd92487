"""MQ-DRF: its caps, and what its parameters must be. What its paper shows are claims: `fairopt.papers`."""

from __future__ import annotations

import numpy as np
import pytest
from families import EXAMPLE
from hypothesis import given, settings
from numpy.testing import assert_allclose
from strategies import plain_clusters

from fairopt.errors import DataError
from fairopt.mechanisms import get
from fairopt.model.cluster import Cluster


@settings(max_examples=30)
@given(plain_clusters())
def test_mqdrf_caps_every_user(cluster: Cluster) -> None:
    count = cluster.shape[0]
    levels = tuple(1 + n % 2 for n in range(count))
    found = get("mqdrf", shares=(0.6, 0.4), sizes=(count, count), levels=levels).solve(cluster)
    cap = np.array([0.6, 0.4])[np.array(levels) - 1] / count
    assert_allclose(found.arrays.dominant_shares, cap, rtol=1e-6)  # the caps always fit, and are all reached


MQDRF_ERRORS = [
    ({"shares": (0.3, 0.4), "sizes": (1, 1)}, "must not increase"),
    ({"shares": ()}, "must not increase"),
    ({"shares": (0.5, 0.0), "sizes": (1, 1)}, "must all be > 0"),
    ({"shares": (0.5, 0.4)}, "give sizes, the most users of each level"),
    ({"shares": (0.5, 0.4), "sizes": (1,)}, "one per share"),
    ({"shares": (0.5, 0.4), "sizes": (0, 1)}, "whole numbers >= 1"),
    ({"shares": (0.5, 0.4, 0.3), "sizes": (1, 2, 2)}, "must be equal, the last one at least that"),
    ({"shares": (0.5, 0.4), "sizes": (2, 1)}, "must be equal, the last one at least that"),
]


@pytest.mark.parametrize(("parameters", "message"), MQDRF_ERRORS)
def test_mqdrf_bad_parameters(parameters: dict[str, tuple[float, ...]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        get("mqdrf", **parameters)


def test_mqdrf_levels_must_fit_the_cluster() -> None:
    with pytest.raises(DataError, match=r"levels must give each of the 2 users a level from 1 to 1"):
        get("mqdrf", levels=(1, 2)).solve(EXAMPLE)
    with pytest.raises(DataError, match="level 1 holds 2 users, more than its size 1"):
        get("mqdrf", shares=(0.5, 0.5), sizes=(1, 1), levels=(1, 1)).solve(EXAMPLE)
