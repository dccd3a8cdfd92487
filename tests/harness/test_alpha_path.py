"""`alpha_path`: the same answers as one by one, for less work."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.errors import DataError, NotConverged
from fairopt.harness.alpha_path import ALPHAS

PATH = [*(float(alpha) for alpha in np.geomspace(0.2, 64, 9)), math.inf]


def cluster(seed: int = 0, users: int = 12, servers: int = 5, resources: int = 3) -> fo.Cluster:
    """A plain random cluster."""
    rng = np.random.default_rng(seed)
    return fo.Cluster(rng.uniform(0.5, 5, (servers, resources)), rng.uniform(0.5, 5, (users, resources)))


@pytest.mark.parametrize("seed", range(3))
def test_same_answers_as_one_by_one(seed: int) -> None:
    shared = cluster(seed)
    frame = fo.alpha_path(shared, PATH, tol=1e-8)  # tasks may be off by a hundred times the certificate
    assert list(frame.index) == PATH
    assert frame.index.name == "alpha"
    for alpha, found in frame["allocation"].items():
        assert isinstance(found, fo.Allocation)
        assert not found.flagged
        assert found.certify().passes(1e-8)
        assert found.criterion.alpha == alpha
        alone = fo.AlphaPFVDS(alpha).solve(shared, tol=1e-8)
        np.testing.assert_allclose(found.user_tasks, alone.user_tasks, rtol=1e-6)


def test_frame() -> None:
    frame = fo.alpha_path(cluster(), [0.5, 2.0])
    assert (frame["steps"] > 0).all()
    assert frame["tasks"].tolist() == [found.user_tasks.sum() for found in frame["allocation"]]
    for column in ("min_share", "max_share", "use_resource1", "jain"):
        assert frame[column].between(0, 1 + 1e-9).all()


def test_warm_starts_save_steps() -> None:
    path = [float(alpha) for alpha in np.geomspace(0.5, 8, 10)]
    shared = cluster(1, 30, 10)
    warm = int(fo.alpha_path(shared, path)["steps"].sum())
    cold = sum(fo.AlphaPFVDS(alpha).solve(shared).stats.rounds for alpha in path)
    assert 0 < warm < cold


def test_order_is_kept() -> None:
    path = [3.0, math.inf, 0.5, 3.0]
    frame = fo.alpha_path(cluster(), path)
    assert list(frame.index) == path
    first, last = frame["allocation"].iloc[[0, -1]]
    np.testing.assert_allclose(first.user_tasks, last.user_tasks, rtol=1e-6)


def test_linear_programs_are_on_the_path() -> None:
    frame = fo.alpha_path(cluster(), [0.0, 1.0])
    assert not any(found.flagged for found in frame["allocation"])


def test_default_path() -> None:
    assert len(ALPHAS) == 40
    assert ALPHAS[0] == pytest.approx(0.1)
    assert ALPHAS[-1] == math.inf
    frame = fo.alpha_path(cluster(2, 5, 3))
    assert len(frame) == 40
    assert not any(found.flagged for found in frame["allocation"])


def test_accepts_an_iterator() -> None:
    assert list(fo.alpha_path(cluster(), (alpha for alpha in (1, 2))).index) == [1.0, 2.0]


def test_nothing_to_do() -> None:
    with pytest.raises(DataError, match="give at least one"):
        fo.alpha_path(cluster(), [])


@pytest.mark.parametrize(
    ("alphas", "mechanism", "message"),
    [
        (2, fo.AlphaPFVDS, r"alphas is 2; give a list of them, such as alpha_path\(cluster, \[1, 3\]\)"),
        ([1, "x"], fo.AlphaPFVDS, r"alpha is 'x', of type str; it must be a number from 0"),
        ([1, -2], fo.AlphaPFVDS, r"alpha is -2; it must be a number from 0"),
        ([1, 2], fo.DRF, "DRF has no parameter alpha to follow; AlphaPFVDS and AlphaFair have one"),
        ([1, 2], fo.AlphaFair(), r"mechanism is one alpha-fair\(alpha=2\); give the class, mechanism=AlphaFair"),
        ([1, 2], "alpha-fair", "mechanism is 'alpha-fair'; it must be a class of mechanisms"),
    ],
)
def test_what_cannot_be_followed(alphas: Any, mechanism: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        fo.alpha_path(cluster(), alphas, mechanism=mechanism)


def test_out_of_reach() -> None:
    with pytest.raises(NotConverged, match="misses tol"):
        fo.alpha_path(cluster(), [1.5], tol=1e-300)
    frame = fo.alpha_path(cluster(), [1.5, 2.0], tol=1e-300, throw=False)
    assert all(found.flagged for found in frame["allocation"])


def test_progress(capsys: pytest.CaptureFixture[str]) -> None:
    fo.alpha_path(cluster(), [1.0, 2.0], progress=True)
    assert "alpha path" in capsys.readouterr().err


def test_another_mechanism() -> None:
    frame = fo.alpha_path(cluster(0, 4, 2), [1.0, 2.0], mechanism=fo.AlphaFair)
    for alpha, found in frame["allocation"].items():
        np.testing.assert_allclose(
            found.user_tasks, fo.AlphaFair(alpha=alpha).solve(cluster(0, 4, 2)).user_tasks, rtol=1e-6
        )


def test_what_does_not_depend_on_alpha_is_made_once() -> None:
    shared = cluster(0, 8, 4)
    doubled = fo.Cluster(np.vstack([shared.capacity] * 2), shared.demand)  # it merges
    first, second = fo.alpha_path(doubled, [2.0, 3.0])["allocation"]
    assert len(second.warm.merging.cluster.servers) == 4
    assert second.warm.merging is first.warm.merging
    assert second.warm.engine.equations.per_task is first.warm.engine.equations.per_task
    assert (first.warm.engine.equations.alpha, second.warm.engine.equations.alpha) == (2.0, 3.0)


@pytest.mark.parametrize(
    "other",
    [
        {"weight": np.linspace(1, 3, 12)},
        {"max_tasks": np.full(12, 0.2)},
        {"capacity": cluster(7).capacity},
        {"demand": cluster(8).demand},
    ],
)
def test_a_start_from_another_cluster_changes_no_answer(other: dict[str, np.ndarray]) -> None:
    first = fo.AlphaPFVDS(2.0).solve(cluster())
    changed = cluster().replace(**other)
    found = fo.AlphaPFVDS(2.5).solve(changed, tol=1e-8, start=first)
    alone = fo.AlphaPFVDS(2.5).solve(changed, tol=1e-8)
    assert found.certify().passes(1e-8)
    np.testing.assert_allclose(found.user_tasks, alone.user_tasks, rtol=1e-6)
