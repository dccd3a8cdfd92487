"""Servers with a utility of one's own: powers are alphaPF-VDS, others are equilibria by definition, and no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from numpy.typing import NDArray

import fairopt as fo
from fairopt.errors import DataError
from fairopt.model.concave_welfare import ConcaveWelfare

from .test_concave_utility import TWINS, saturating
from .test_statements import SMALL

Array = NDArray[np.float64]
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
    found = fo.ConcaveGame(utility).solve(cluster)
    assert found.stats.engine == "declarative"
    assert found.certificate.measure == "backward error"
    for i in range(len(cluster.servers)):
        assert gain(cluster, found.tasks, utility, i) < 1e-6
    # With a tenth less on one server that server has, and the certificate says so.
    worse = found.tasks.copy()
    worse[:, 0] *= 0.9
    assert gain(cluster, worse, utility, 0) > 1e-3
    assert fo.ConcaveGame(utility).certify(cluster, worse, found.log_prices)[0].optimality > 1e-2


def test_proportional_servers_are_not_one() -> None:
    """Sizes of shares matter: of half a server shares are twice as large. Under a power they do not."""
    split = TWINS.select(servers=TWINS.servers[:2])
    whole = split.replace(capacity=split.capacity.sum(axis=0, keepdims=True), servers=None, eligible=None)
    apart, joined = (fo.ConcaveGame(saturating).solve(c).arrays.user_tasks for c in (split, whole))
    assert np.abs(apart / joined - 1).max() > 1e-2
    apart, joined = (fo.ConcaveGame(cp.sqrt).solve(c).arrays.user_tasks for c in (split, whole))
    np.testing.assert_allclose(apart, joined, rtol=1e-3)


def test_by_hand() -> None:
    """One server, log1p of tasks over what one could run: `(1/gamma)/(1 + x/gamma)` is the price per resource."""
    found = fo.ConcaveGame(cp.log1p).solve(fo.Cluster([[6]], [[1], [2]]))
    # gamma = (6, 3); 1/(6 + x) = 1/2 1/(3 + y), x + 2 y = 6: both have half.
    np.testing.assert_allclose(found.arrays.user_tasks, [3, 1.5], rtol=1e-5)
    light = fo.ConcaveGame(cp.log1p).solve(fo.Cluster([[6]], [[1], [1]], [1, 100]))
    # U'(t) = 1/(1 + x/(6 phi)): a light user soon has little to gain, and a heavy one never.
    x = 6 / 101
    np.testing.assert_allclose(light.arrays.user_tasks, [x, 6 - x], rtol=1e-4)


def test_its_criterion() -> None:
    rule = fo.ConcaveGame(cp.log1p).criterion(TWINS)
    assert isinstance(rule, ConcaveWelfare)
    assert not rule.scale_free
    assert fo.ConcaveUtility(cp.log1p).criterion(TWINS).scale_free
    tasks = np.array([0.0, 1.0, 2.0])
    t = tasks[:, None] / TWINS.gamma / TWINS.weight[:, None]
    np.testing.assert_allclose(rule.log_marginal(tasks), -np.log(TWINS.gamma) - np.log1p(t))
    np.testing.assert_allclose(rule.elasticity(tasks), t / (1 + t), rtol=1e-6, atol=1e-9)
    unit = (TWINS.gamma * TWINS.weight[:, None]).min(axis=1) + tasks
    reach = TWINS.gamma.sum(axis=1)
    np.testing.assert_allclose(rule.measure(tasks, reach), np.minimum(unit, reach), rtol=1e-4)


def test_what_it_is_not() -> None:
    with pytest.raises(DataError, match=r"up to 2000 pairs of users and servers; here are 2002: choose some with"):
        fo.ConcaveGame().solve(fo.Cluster([[1]] * 2, [[1]] * 1001))
    with pytest.raises(DataError, match="no single program"):
        fo.ConcaveGame(cp.log).problem(TWINS)
    with pytest.raises(DataError, match="has no engine 'equilibrium'"):
        fo.ConcaveGame(cp.log).solve(TWINS, engine="equilibrium")
