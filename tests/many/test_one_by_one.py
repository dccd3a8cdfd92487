"""What kernels do not cover, and what they do not solve: `Mechanism.solve`, the certificate and the reason."""

from __future__ import annotations

import numpy as np
import pytest
from families import draw

import fairopt as fo
from fairopt.core.engines.small import LARGEST
from fairopt.mechanisms import REGISTRY, Mechanism
from fairopt.model._arrays import Array
from fairopt.study import solve_many

SINGLE = [fo.FDS(2.0, -1.0), fo.BottleneckFairness(), fo.GuaranteedAlphaFair(2.0), fo.AlphaPFVDS(0.0)]
OURS = sorted(name for name, kind in REGISTRY.items() if kind.__module__.startswith("fairopt."))
CLUSTERS = [fo.Cluster([[6, 9], [3, 4]], [[1, 3], [2, 1], [1, 1]]), fo.Cluster([[5, 5]], [[1, 3], [2, 1]])]


@pytest.mark.parametrize("mechanism", SINGLE, ids=str)
def test_what_no_kernel_covers_goes_one_by_one(mechanism: Mechanism) -> None:
    assert "one by one: 2" in repr(fo.solve_many(mechanism, CLUSTERS))


@pytest.mark.parametrize("name", OURS)
def test_every_mechanism_answers_or_says_why_not(name: str) -> None:
    clusters = [draw("plain", seed, 3, 2, 2) for seed in range(3)]
    for mechanism in REGISTRY[name].variants():
        found = fo.solve_many(mechanism, clusters)
        reasons = dict(found.failed)
        for p, cluster in enumerate(clusters):
            if p in reasons:
                with pytest.raises(fo.errors.FairoptError) as raised:
                    mechanism.solve(cluster)
                assert str(raised.value) in reasons[p]
            else:
                alone = mechanism.solve(cluster)
                wanted, tasks = alone.arrays.user_tasks, found.user_tasks[p, : len(cluster.users)]
                if alone.criterion.starves and alone.criterion.share.ndim == 1:  # optima may be many, of one sum
                    share = np.where(alone.cluster.runnable, alone.criterion.share, 0)
                    wanted, tasks = share @ wanted, share @ tasks
                assert tasks == pytest.approx(wanted, rel=1e-4)


def test_who_misses_the_tolerance_fails_or_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = solve_many.together

    def short(*arguments: object) -> tuple[Array, Array, Array]:
        """The second problem is missed by a part of 1e-3, and the third has no answer."""
        tasks, certificate, unstable = whole(*arguments)
        tasks[1] *= 0.999
        certificate[1:] = 1e-3, np.inf
        return tasks, certificate, unstable

    monkeypatch.setattr(solve_many, "together", short)
    rng = np.random.default_rng(3)
    capacity, demand = rng.uniform(2, 9, (3, 2, 2)), rng.uniform(0.5, 4, (3, 3, 2))
    found = fo.solve_many(fo.CEEI(), capacity, demand)
    assert [p for p, _ in found.failed] == [1, 2]
    assert "its certificate 1.0e-03 misses tol=1e-06" in found.failed[0].reason
    assert "finds no answer; hand it to solve" in found.failed[1].reason
    np.testing.assert_array_equal(found.certificate[1:], [1e-3, np.nan])
    assert np.isnan(found.user_tasks[1:]).all()
    handed = fo.solve_many(fo.CEEI(), capacity, demand, fallback=True)
    assert not handed.failed
    assert handed.fallback.tolist() == [False, True, True]
    wanted = fo.CEEI().solve(fo.Cluster(capacity[1], demand[1]))
    assert handed.user_tasks[1] == pytest.approx(wanted.arrays.user_tasks)
    assert handed.certificate[1] == wanted.certificate.residual


def test_large_problems_go_one_by_one() -> None:
    large = draw("plain", 5, 40, 25, 2)
    assert large.shape[0] * large.shape[1] > LARGEST["global"]
    found = fo.solve_many(fo.AlphaFair(2), [*CLUSTERS, large])
    assert found.fallback.tolist() == [False, False, True]
    assert not found.failed


def test_a_mechanism_that_is_not_defined_somewhere_says_so_there() -> None:
    limited = CLUSTERS[0].replace(max_tasks=[0.1, np.inf, np.inf])
    found = fo.solve_many(fo.PerServerDRF(), [CLUSTERS[0], limited, CLUSTERS[1]])
    ((p, reason),) = found.failed
    assert p == 1
    assert "cannot keep the task limit of user 'user1'" in reason
