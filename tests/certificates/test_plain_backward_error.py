"""The plain e: next to nothing for proved answers, what was changed for those of changed data, at least what idles."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from families import FAMILIES, draw
from numpy.typing import NDArray
from reference import Kind, Reference, dominant_shares, reference

from fairopt.cluster import Cluster

from .plain_backward_error import TAUS, backward_error

Array = NDArray[np.float64]
KINDS: tuple[Kind, ...] = ("global", "game")
CASES = [(family, kind, 0.5 if k % 2 else 3.0) for k, family in enumerate(FAMILIES) for kind in KINDS]
TABLE = ("family", "kind", "alpha")
#: By how much weights are changed.
CHANGE = 1e-4


@cache
def proved(family: str, kind: Kind, alpha: float, changed: bool = False) -> tuple[Cluster, Array | None, Reference]:
    """A cluster, its shares in a global program, and its answer, or that of changed weights."""
    cluster = draw(family, 0, (3, 4))
    off = np.random.default_rng(1).uniform(-CHANGE, CHANGE, len(cluster.weight)) * changed
    found = reference(cluster.replace(weight=cluster.weight * np.exp(off)), alpha, kind)
    assert found is not None
    return cluster, None if kind == "game" else dominant_shares(cluster).astype(float), found


@pytest.mark.parametrize(TABLE, CASES)
def test_proved_answers(family: str, kind: Kind, alpha: float) -> None:
    cluster, share, found = proved(family, kind, alpha)
    assert backward_error(cluster, found.tasks, alpha, share, found.log_prices) <= 1e-12


@pytest.mark.parametrize(TABLE, CASES)
@pytest.mark.parametrize("size", [1e-4, 1e-2])
def test_everybody_has_less(family: str, kind: Kind, alpha: float, size: float) -> None:
    """Capacities idle by `size`, or would do so without the price that they lose."""
    cluster, share, found = proved(family, kind, alpha)
    assert size / 10 <= backward_error(cluster, found.tasks * (1 - size), alpha, share, found.log_prices)


@pytest.mark.parametrize(TABLE, CASES)
def test_the_answer_of_other_weights(family: str, kind: Kind, alpha: float) -> None:
    """Their logarithms changed by up to `CHANGE`: e of their exact answer is about that, with a tau just above it."""
    cluster, share, found = proved(family, kind, alpha, changed=True)
    taus = (1.01 * CHANGE, *TAUS)
    assert backward_error(cluster, found.tasks, alpha, share, found.log_prices, taus) <= 1.01 * CHANGE
