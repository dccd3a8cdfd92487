"""pytest-benchmark of the game's engine: `make bench`. Certificates are checked; times never are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.families import ALPHAS, FAMILIES
from benchmarks.game import mechanism

SIZES = ((60, 25), (200, 100))


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("users", "servers"), SIZES)
def test_engine(benchmark: Any, users: int, servers: int, family: str, alpha: float) -> None:
    cluster = FAMILIES[family](users, servers, np.random.default_rng(0))
    found = benchmark(lambda: mechanism(alpha).solve(cluster, 1e-6, throw=False))
    benchmark.extra_info |= {"steps": found.stats.rounds, "certificate": found.certificate.residual}
    assert not found.flagged, f"not certified: {found.certificate}"
