"""Servers with a utility of one's own: powers are alphaPF-VDS, others are equilibria by definition, and no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import fairopt as fo
from fairopt.errors import DataError
from fairopt.model._arrays import Array

from .test_concave_utility import TWINS, saturating
from .test_statements import SMALL

Utility = Callable[[Any], Any]


def gain(cluster: fo.Cluster, tasks: Array, utility: Utility, i: int) -> float:
    """By how much server i could raise its own welfare: a program of its own."""
    usable = np.flatnonzero(cluster.gamma[:, i] > 0)
    others = tasks.sum(axis=1) - tasks[:, i]
    scale = 1 / (cluster.gamma[usable, i] * cluster.weight[usable])

    def welfare(x: Any) -> Any:
        return cluster.weight[usable] @ utility(cp.multiply(scale, others[usable] + x))

    x = cp.Variable(len(usable), nonneg=True)
    rules = [
        x @ cluster.demand[usable] <= cluster.capacity[i],
        x <= np.clip(cluster.max_tasks - others, 0, 1e3)[usable],
    ]
    best = cp.Problem(cp.Maximize(welfare(x)), rules).solve(solver="CLARABEL")
    return float(best - welfare(cp.Constant(tasks[usable, i])).value)


@pytest.mark.parametrize(
    ("cluster", "utility"), [*zip([*SMALL.values(), TWINS], [cp.log1p, saturating, cp.sqrt, saturating], strict=True)]
)
def test_no_server_has_anything_better(cluster: fo.Cluster, utility: Utility) -> None:
    # Proportional servers are several: sizes of shares matter.
    found = fo.ConcaveGame(utility).solve(cluster, engine="best-response")
    declared = fo.ConcaveGame(utility).solve(cluster, engine="declarative")
    np.testing.assert_allclose(declared.user_tasks, found.user_tasks, rtol=1e-3, atol=1e-6)
    assert found.certificate.measure == "backward error"
    for i in range(len(cluster.servers)):
        assert gain(cluster, found.tasks, utility, i) < 1e-6
    # With a tenth less on one server that server has, and the certificate says so.
    worse = found.tasks.copy()
    worse[:, 0] *= 0.9
    assert gain(cluster, worse, utility, 0) > 1e-3
    assert fo.ConcaveGame(utility).certify(cluster, worse, found.log_prices)[0].optimality > 1e-2


def test_what_it_is_not() -> None:
    with pytest.raises(DataError, match="no single program"):
        fo.ConcaveGame(cp.log).problem(TWINS)
    with pytest.raises(DataError, match="has no engine 'equilibrium'"):
        fo.ConcaveGame(cp.log).solve(TWINS, engine="equilibrium")
