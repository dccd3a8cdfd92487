"""Small problems: kernels answer `Mechanism.solve` where they are fastest, and other engines where they fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from families import draw
from kernels import without_kernels

import fairopt as fo
from fairopt.core import maxmin
from fairopt.core.engines import small
from fairopt.mechanisms import Mechanism

pytestmark = pytest.mark.kernels

CLUSTER = fo.Cluster(
    [[9, 18], [7, 5]], [[1, 4], [3, 1], [2, 2.5]], weight=[1, 2, 1.5], eligible=[[1, 0], [1, 1], [1, 1]]
)
BY = {
    fo.DRFH(): "dense simplex",
    fo.TSF(): "dense simplex",
    fo.CEEI(): "dense interior point",
    fo.AlphaFair(3.0): "dense interior point",
    fo.AlphaPFVDS(3.0, select="fast"): "dense interior point",
}


@pytest.mark.parametrize("mechanism", BY, ids=str)
def test_a_kernel_answers_and_the_engines_for_any_size_agree(mechanism: Mechanism) -> None:
    found = mechanism.solve(CLUSTER)
    assert found.stats.solver == BY[mechanism]
    assert found.stats.engine == mechanism.engines(found.criterion)[0]
    assert found.certificate.residual < 1e-11
    with without_kernels():
        other = mechanism.solve(CLUSTER, 1e-9)
    assert other.stats.solver not in BY.values()
    np.testing.assert_allclose(found.arrays.user_tasks, other.arrays.user_tasks, rtol=1e-7)


@pytest.mark.parametrize("certificate", [1e-3, 0.0], ids=["says so", "lies"])
@pytest.mark.parametrize("mechanism", BY, ids=str)
def test_where_a_kernel_is_off_the_next_engine_answers(
    mechanism: Mechanism, certificate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missed(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: object) -> Any:
            found = method(*given)
            return found._replace(tasks=found.tasks * 0.99, certificate=found.certificate * 0 + certificate)

        return call

    for room, name in ((maxmin, "leximin"), (small, "finite")):
        monkeypatch.setattr(room, name, missed(getattr(room, name)))
    found = mechanism.solve(CLUSTER)
    assert found.stats.solver not in BY.values() or not certificate
    assert found.certify().passes(1e-6)
    with without_kernels():
        right = mechanism.solve(CLUSTER, 1e-9).arrays.user_tasks
    np.testing.assert_allclose(found.arrays.user_tasks, right, rtol=1e-5)


def test_few_usable_pairs_of_a_concave_program_are_few() -> None:
    """60 users who may run on two or three of 25 servers; the game is not concave."""
    rng = np.random.default_rng(5)
    sparse = rng.random((60, 25)) < 0.06
    sparse[np.arange(60), np.arange(60) % 25] = True
    some = fo.Cluster(100 * rng.lognormal(size=(25, 3)), rng.lognormal(size=(60, 3)), eligible=sparse)
    assert np.count_nonzero(some.usable) <= small.LARGEST["global"] < some.usable.size
    for mechanism in (fo.CEEI(scope="servers"), fo.AlphaFair(2.0), fo.AlphaPFVDS(1.0)):
        found = mechanism.solve(some)
        assert found.stats.solver == "dense interior point", mechanism
        with without_kernels():
            right = mechanism.solve(some, 1e-9).arrays.user_tasks
        np.testing.assert_allclose(found.arrays.user_tasks, right, rtol=1e-7)
    assert not small.fastest("game", some, 2.0)


@pytest.mark.parametrize("seed", [1, 6])
def test_where_a_task_count_binds_the_equilibrium_is_that_of_any_size(seed: int) -> None:
    """There are many, and a kernel's was 6% from it: answers must not depend on the size of a cluster."""
    cluster, mechanism = draw("limits", seed, 8, 8), fo.AlphaPFVDS(20.0, select="fast")
    found = mechanism.solve(cluster, 1e-9)
    assert (found.arrays.user_tasks >= cluster.max_tasks * (1 - 1e-6)).any()
    with without_kernels():
        np.testing.assert_allclose(found.arrays.user_tasks, mechanism.solve(cluster, 1e-9).arrays.user_tasks, rtol=1e-7)


@pytest.mark.parametrize("alpha", [0.01, 0.005, 0.003])
def test_tasks_span_hundreds_of_decades_at_small_alpha(alpha: float) -> None:
    """On two equal servers of one resource tasks go like the demand to the power -1/alpha."""
    cluster = fo.Cluster([[3], [3]], [[1], [1.1], [2.5], [7]])
    found = fo.AlphaFair(alpha, share="task").solve(cluster)
    log = np.log(found.arrays.user_tasks)
    np.testing.assert_allclose(log - log[0], -np.log([1, 1.1, 2.5, 7]) / alpha, rtol=1e-6)
    assert found.stats.solver == "dense interior point"
