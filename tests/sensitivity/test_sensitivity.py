"""Derivatives of tasks and measures against differences of certified solves, ties, adjoints, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from families import draw
from numpy.testing import assert_allclose

import fairopt as fo
from fairopt.errors import DataError, SolverError

from .differences import compared, sensitivity

MECHANISMS = (
    fo.AlphaPFVDS(0.5),
    fo.AlphaPFVDS(3.0),
    fo.AlphaFair(0.6),
    fo.AlphaFair(4.0, "asset", "pool"),
    fo.AlphaFair(2.0, "task"),
    fo.CEEI("servers"),
    fo.DRF(),
    fo.DRFH(),
    fo.TSF(),
    fo.AssetFairness("servers"),
    fo.TaskMaxMin(),
)


@pytest.mark.parametrize(
    ("mechanism", "family", "seeds", "verdict"),
    [(one, "plain", range(3), "right") for one in MECHANISMS]
    + [(one, "nice", range(4), "right") for one in (fo.AlphaPFVDS(3.0), fo.AlphaFair(2.0), fo.DRFH(), fo.TSF())]
    # Somebody pays the same where it has no tasks (4, 9), or what has no price is used up (0, 5).
    + [(fo.DRFH(), "integers", (0, 4, 5, 9), "noticed")],
    ids=str,
)
def test_derivatives_are_differences_of_solves_and_ties_are_noticed(
    mechanism: fo.mechanisms.Mechanism, family: str, seeds: Iterable[int], verdict: str
) -> None:
    users, rng = (5 if family == "plain" else 4), np.random.default_rng(0)
    found = [one for seed in seeds for one in compared(mechanism, draw(family, seed, users, 3, 3), rng, most=7)]
    assert [one for one in found if one.verdict in ("wrong", "missed")] == []
    often = sum(one.verdict == verdict for one in found)
    assert often > (len(found) / 2 if family == "plain" else 0)


def test_refinement_of_another_answer_have_none() -> None:
    """Half a percent away there is an exact answer, and it is not this one."""
    found = fo.AlphaFair(2.0).solve(draw("plain", 0, 6, 4, 3), 1e-9)
    for tol, remedy in ((1e-6, r"smaller tol, such as solve\(cluster, tol=1e-09\)"), (1e-9, "take the difference")):
        with pytest.raises(SolverError, match=remedy):
            replace(found, tasks=0.995 * found.tasks, tol=tol).sensitivity()


@pytest.mark.parametrize("mechanism", [fo.AlphaPFVDS(3.0), fo.AlphaFair(0.5), fo.AlphaFair(8.0), fo.CEEI()], ids=str)
@pytest.mark.parametrize("family", ["plain", "limits"])
def test_rough_answers_have_the_derivatives_of_good_ones(mechanism: fo.mechanisms.Mechanism, family: str) -> None:
    """Tasks that are off by 1e-7, pairs without tasks included."""
    rng = np.random.default_rng(0)
    for seed in range(2):
        found = mechanism.solve(draw(family, seed, 6, 4, 3), 1e-9)
        rough = found.tasks * (1 + 1e-7 * rng.random(found.tasks.shape))
        rough = rough + 1e-8 * found.cluster.usable * rough.sum(axis=1, keepdims=True)
        fine, other = (one.sensitivity() for one in (found, replace(found, tasks=rough)))
        for by in ("alpha", "weights", "demands", "capacities", "max_tasks"):
            assert_allclose(other.tasks(by), fine.tasks(by), rtol=1e-5, atol=1e-6)


def test_a_tie_of_levels_is_a_kink() -> None:
    """User 1 and the others have the same level by chance: who rises above the others loses to them."""
    cluster = fo.Cluster([[2], [1], [6]], [[1], [2], [1]], eligible=[[1, 1, 0], [1, 1, 1], [1, 1, 1]])
    found = fo.DRFH().solve(cluster).sensitivity()
    assert found.weights.isna().all(axis=None)
    for side, slopes in (("right", [0, 0, 0]), ("left", [2 / 3, -1 / 3, -1 / 3])):
        assert_allclose(found.one_sided().loc[("weights", "user1", "", side)], slopes, atol=1e-4)


def test_what_sets_gamma_ties_in_words() -> None:
    cluster = fo.Cluster([[5, 4, 3], [6, 4, 5]], [[3, 0, 0], [3, 2, 1], [2, 1, 0]], [2, 1, 2], [[0, 1], [1, 1], [1, 1]])
    found = sensitivity(fo.AlphaPFVDS(0.5), cluster)
    why = found.not_differentiable.loc[("demands", "user2", "resource1"), "why"]
    assert "tie for gamma of user 'user2' on server 'server2'" in why
    assert found.demands.xs("resource1", level=1).isna().to_numpy()[:2].tolist() == [[False] * 3, [True] * 3]


def test_marginal_values_in_words_and_as_a_picture() -> None:
    cluster = fo.Cluster(
        [[64, 3, 256], [32, 9, 128]],
        [[4, 1, 8], [2, 0.2, 16], [6, 0.1, 4]],
        servers=["rack1", "rack2"],
        resources=["cpu", "gpu", "mem"],
    )
    found = fo.AlphaPFVDS(3).solve(cluster, 1e-9)
    values, slopes = found.marginal_values(), found.sensitivity()
    more = cluster.with_capacity("rack1", cluster.capacity[0] + [1e-4, 0, 0])
    gained = (fo.AlphaPFVDS(3).solve(more, 1e-9).arrays.user_tasks - found.arrays.user_tasks) / 1e-4
    assert_allclose(values.loc[("rack1", "cpu"), list(cluster.users)], gained, atol=1e-3)
    assert values["all"].dropna().is_monotonic_decreasing
    assert re.search("one more cpu on rack1: .* tasks", slopes.in_words())
    assert repr(slopes).startswith("Sensitivity of alphaPF-VDS")
    assert "by alpha" in slopes._repr_html_()
    assert "cpu on rack1" in [text.get_text() for text in slopes.plot().axes[0].get_yticklabels()]


@pytest.mark.parametrize(
    "mechanism", [fo.PSDSF(), fo.PerServerDRF(), fo.AlphaFair(0.0), fo.GuaranteedAlphaFair(2.0), fo.MQDRF()], ids=str
)
def test_what_has_no_formula_is_refused(mechanism: fo.mechanisms.Mechanism) -> None:
    found = mechanism.solve(fo.Cluster([[9.1, 18]], [[1, 4], [3, 1]]))
    with pytest.raises(DataError, match="derivatives are for"):
        found.sensitivity()


def test_who_runs_nothing_has_no_derivative() -> None:
    cluster = fo.Cluster([[9.1, 18], [0, 3]], [[1, 4], [3, 1], [1, 1]], eligible=[[1, 1], [1, 1], [0, 1]])
    found = fo.AlphaPFVDS(2).solve(cluster).sensitivity()
    assert found.alpha["user3"].isna().all()
    assert not found.alpha[["user1", "user2"]].isna().any(axis=None)
    assert found.measures["tasks"].notna().all()


def test_what_has_no_derivative_by_its_nature() -> None:
    """Max-min has no alpha; nobody knows how a share that is a function follows the data."""
    cluster = fo.Cluster([[6.0, 9]], [[2.0, 1], [1, 2]])
    assert sensitivity(fo.DRFH(), cluster).alpha.isna().all(axis=None)
    found = fo.AlphaFair(2.0, lambda seen: seen.demand.sum(axis=1)).solve(cluster, 1e-9).sensitivity()
    for frame in (found.demands, found.capacities, found.counts):
        assert frame.isna().all(axis=None)
    assert found.weights.notna().all(axis=None)


@pytest.mark.parametrize("mechanism", [fo.TaskMaxMin(), fo.DRFH(), fo.AlphaFair(2.0), fo.AlphaPFVDS(3.0)], ids=str)
def test_limits_that_bind_and_limits_that_are_just_reached(mechanism: fo.mechanisms.Mechanism) -> None:
    one, everybody, just = (
        sensitivity(mechanism, fo.Cluster([[6.0]], [[1.0]] * 3, max_tasks=limits))
        for limits in ([1, np.inf, np.inf], [1, 1, 2], [2, np.inf, np.inf])
    )
    assert np.allclose(one.max_tasks.loc["user1"], [1, -1 / 5, -1 / 5])
    assert np.allclose(one.weights.loc["user1"], 0)
    assert np.allclose(everybody.max_tasks, np.eye(3))
    assert just.weights.isna().all(axis=None)
    assert "just reaches its task limit" in just.not_differentiable["why"].str.cat()


@pytest.mark.parametrize("mechanism", [fo.TaskMaxMin(), fo.CEEI()], ids=str)
def test_a_row_that_is_used_up_by_chance_is_a_kink(mechanism: fo.mechanisms.Mechanism) -> None:
    """Both resources are used up, and the first would do: more of the second changes nothing, and less does."""
    cluster = fo.Cluster([[2.0, 2.0]], [[1.0, 0.5], [1.0, 1.5]])
    found = sensitivity(mechanism, cluster)
    assert found.demands.loc[("user2", "resource2")].isna().any()


def test_a_jacobian_that_is_singular_in_floating_point_numbers_has_derivatives() -> None:
    """SuperLU finds the perturbed Jacobian of all equations exactly singular; the augmented matrix never is."""
    rng = np.random.default_rng(1)
    eligible = rng.random((8, 5)) < 0.7
    eligible[np.arange(8), rng.integers(0, 5, 8)] = True
    demand = rng.uniform(0.05, 1, (8, 3)) * (rng.random((8, 3)) < 0.9)
    demand[:, 0] += 0.01
    cluster = fo.Cluster(rng.uniform(5, 50, (5, 3)), demand, eligible=eligible)
    found = fo.DRFH().solve(cluster).sensitivity().tasks("capacities")
    assert found.sum().to_numpy() == pytest.approx(1.0, abs=1e-6)  # tasks are homogeneous of degree one in capacities
