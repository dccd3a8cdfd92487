"""The plain e: next to nothing for proved answers, what was changed for those of changed data, at least what idles."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from families import FAMILIES, draw
from numpy.typing import NDArray
from reference import Kind, Reference, dominant_shares, reference

from fairopt.certificates import backward
from fairopt.certificates import backward_error as judged
from fairopt.mechanisms import Mechanism
from fairopt.mechanisms.alpha_fair import AlphaFair
from fairopt.mechanisms.alphapf_vds import AlphaPFVDS
from fairopt.model.cluster import Cluster
from fairopt.model.polytope import Polytope

from .plain_backward_error import TAUS, backward_error
from .plain_backward_error import backward_error as error

Array = NDArray[np.float64]
KINDS: tuple[Kind, ...] = ("global", "game")
CASES = [(family, kind, 0.5 if k % 2 else 3.0) for k, family in enumerate(FAMILIES) for kind in KINDS]
TABLE = ("family", "kind", "alpha")
#: By how much weights are changed.
CHANGE = 1e-4


@cache
def proved(family: str, kind: Kind, alpha: float, changed: bool = False) -> tuple[Cluster, Array | None, Reference]:
    """A cluster, its shares in a global program, and its answer, or that of changed weights."""
    cluster = draw(family, 0, 3, 4)
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


@pytest.mark.parametrize(TABLE, CASES)
def test_fairopt_finds_the_same(family: str, kind: Kind, alpha: float) -> None:
    """Of answers, of answers moved a little and much, at their prices in another scale and at wrong ones."""
    mechanism: Mechanism = AlphaPFVDS(alpha) if kind == "game" else AlphaFair(alpha)
    rng, compared = np.random.default_rng(0), 0
    for seed in range(4):
        cluster = draw(family, seed, 4, 4)
        best = mechanism.solve(cluster, throw=False)
        criterion = best.criterion
        polytope = Polytope(cluster, criterion.limits(cluster))
        share = None if kind == "game" else criterion.share
        assert best.log_prices is not None
        for size in (0.0, 1e-8, 1e-5, 1e-2):
            tasks = best.tasks * (1 - size * rng.random(best.tasks.shape))
            rows = polytope.log_row_prices(best.log_prices) + size * rng.normal(size=len(polytope.row_server)) + 3.0
            found = judged(polytope, criterion, tasks, rows)
            prices = polytope.by_server(found.every_row, unused=-np.inf)
            wanted = error(cluster, tasks, alpha, share, prices, (*backward.OPTIONS.levels, *backward.OPTIONS.coarse))
            assert found.error == pytest.approx(wanted, rel=1e-6, abs=2e-11), (seed, size)
            compared += found.error > 1e-9
    assert compared >= 8
