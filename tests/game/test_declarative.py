"""The per-server game as it is declared: finite tasks, and the end of rounds."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from fairopt.errors import NotConverged
from fairopt.game.reference import declarative
from fairopt.mechanisms import get
from fairopt.model.cluster import Cluster
from fairopt.papers import instance

Array = NDArray[np.float64]


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0, np.inf])
def test_finite_tasks(alpha: float) -> None:
    """User 3 of the variant needs 4 tasks only: user 4 gets what it leaves of the CPU, 8 - 4/4 = 7 tasks."""
    found = get("alphapf-vds", alpha=alpha).solve(instance("pf-fig1-variant").with_max_tasks("user 3", 4))
    np.testing.assert_allclose(found.arrays.user_tasks[2:], [4, 7], rtol=1e-3)
    np.testing.assert_allclose(found.arrays.user_tasks[:2], [2, 6], rtol=1e-3)


def test_not_converged_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster([[9, 6], [14, 5], [3, 8]], [[1, 1], [3, 1], [2, 3], [1, 4]])
    monkeypatch.setattr(declarative, "solutions", partial(declarative.solutions, max_rounds=1))
    with pytest.raises(
        NotConverged, match=r"after \d+ steps .* misses tol=1e-12 .*Relax tol .* take the answer flagged"
    ):
        get("ps-dsf").solve(cluster, tol=1e-12, engine="declarative")
