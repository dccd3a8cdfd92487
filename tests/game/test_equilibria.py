"""All equilibria of small games, against known instances, an independent search, and what index theory says."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.core.game.selection import unique
from fairopt.core.solution import Solution
from fairopt.errors import DataError, SolverError
from fairopt.game import all_equilibria
from fairopt.game.all_equilibria import EnumerationOptions
from fairopt.model._arrays import Array
from fairopt.model.criterion import criterion, virtual_share_per_task
from fairopt.model.problem import Problem

from .clusters import FIRST, LAST, SEVERAL


def drawn(size: tuple[int, int, int], seed: int, **more: Any) -> fo.Cluster:
    users, servers, resources = size
    rng = np.random.default_rng([*size, seed])
    return fo.Cluster(
        np.exp(rng.normal(size=(servers, resources))), np.exp(rng.normal(size=(users, resources))),
        rng.integers(1, 3, users).astype(float), **more,
    )  # fmt: skip


def game(cluster: fo.Cluster, alpha: float) -> Problem:
    return Problem(cluster, criterion(cluster, partial(virtual_share_per_task, cluster), alpha, "game"))


def apart(one: Array, other: Array) -> float:
    return float(np.abs(np.log(one / other)).max())


def test_the_instance_with_three() -> None:
    found = fo.game.equilibria(SEVERAL, 3)
    assert found.complete
    assert found.indices == (1, -1, 1)
    assert found[0].arrays.user_tasks == pytest.approx(FIRST, abs=1e-7)
    assert found[2].arrays.user_tasks == pytest.approx(LAST, abs=1e-7)
    assert all(one.certificate.residual < 1e-12 for one in found)
    assert [radius < 1 for radius in found.radii] == [True, False, True]
    assert found.pareto().loc[1].tolist() == ["same", "better", "better"]
    assert found.preferences()["best"].tolist() == [1, 1, 1]
    assert list(found.to_frame()["index"]) == [1, -1, 1]
    assert "all of them" in repr(found)


def test_tasks_that_differ_by_less_than_a_millionth_are_the_same() -> None:
    cluster = fo.Cluster([[4]], [[1], [1]])
    pair = tuple(fo.Allocation.of(cluster, tasks, "made") for tasks in ([1, 1], [1 + 5e-7, 1 - 2e-6]))
    found = all_equilibria.Equilibria(pair, (1, 1), (0, 0), True, {})
    assert found.pareto().loc[1].tolist() == ["same", "better"]
    assert found.preferences()["best"].tolist() == [0, 1]


def test_best_responses_leave_index_minus_one_and_come_back_to_the_others() -> None:
    rng = np.random.default_rng(0)
    for one, sign in zip(fo.game.equilibria(SEVERAL, 3), (1, -1, 1), strict=True):
        start = one.tasks * np.exp(1e-4 * rng.normal(size=one.tasks.shape))
        end = fo.best_response(SEVERAL, 3, start=start, tol=1e-9)
        assert (apart(end.arrays.user_tasks, one.arrays.user_tasks) < 1e-6) == (sign > 0)
        assert end.index == 1


def test_an_engine_that_ends_at_index_minus_one_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    middle = fo.game.equilibria(SEVERAL, 3)[1]

    def answer(problem: Problem, tol: float, warm: object) -> Any:
        yield Solution(middle.tasks, None, "equilibrium", log=middle.log_prices, fine=True)

    monkeypatch.setattr("fairopt.core.game.engine.solutions", answer)
    left = fo.AlphaPFVDS(3).solve(SEVERAL)
    assert left.index == 1
    assert any("which best responses leave" in note for note in left.notes)
    assert any("first equilibrium on the curve" in note for note in left.notes)
    assert apart(left.arrays.user_tasks, middle.arrays.user_tasks) > 0.01
    monkeypatch.setattr("fairopt.core.game.selection._first_crossing", lambda *arguments: iter(()))
    assert any("chained in alpha" in note for note in fo.AlphaPFVDS(3).solve(SEVERAL).notes)
    monkeypatch.setattr(fo.AlphaPFVDS, "neighbours", lambda *arguments: iter(()))
    kept = fo.AlphaPFVDS(3).solve(SEVERAL)
    assert kept.index == -1
    assert any("best responses leave it" in note for note in kept.notes)


@pytest.mark.parametrize("size", [(3, 2, 2), (3, 2, 3), (3, 3, 2), (4, 2, 3), (3, 3, 3)])
def test_no_search_finds_one_that_enumeration_missed(size: tuple[int, int, int]) -> None:
    """Best responses from random starts, and the engines, which share no code with the enumeration."""
    for seed, alpha in enumerate((16, 2, 5, 0.4)):
        rng = np.random.default_rng(seed)
        eligible = rng.random(size[:2]) < 0.8
        eligible[:, 0] = True
        cluster = drawn(size, seed, eligible=eligible if seed % 2 else None)
        found = fo.game.equilibria(cluster, alpha)
        assert found.complete, (size, seed)
        assert sum(found.indices) == 1
        frame = fo.game.multi_start(cluster, alpha, 3, rng=seed, tol=1e-9)
        tasks = [fo.AlphaPFVDS(alpha).solve(cluster).arrays.user_tasks]
        tasks += list(frame.attrs["user_tasks"][frame["converged"].to_numpy()])
        for one in tasks:
            assert min(apart(one, known) for known in found.user_tasks) < 1e-6, (size, seed)


def test_near_an_instance_with_three_indices_sum_to_one() -> None:
    many = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        capacity = SEVERAL.capacity * np.exp(0.02 * rng.normal(size=(2, 3)))
        found = fo.game.equilibria(SEVERAL.replace(capacity=capacity), 3)
        assert found.complete
        assert all((radius > 1) == (sign < 0) for radius, sign in zip(found.radii, found.indices, strict=True))
        many.append(len(found))
    assert set(many) == {1, 3}


def test_where_one_row_a_server_binds_everybody_tasks_do_not_depend_on_alpha() -> None:
    """Each server has a row of its own that binds: gamma is no product, and ties go round in circles."""
    rng = np.random.default_rng(7)
    for number in range(4):
        demand = rng.integers(1, 5, (5, 3)).astype(float)
        least = rng.integers(1, 12, 3)  # server i is bound by resource i
        largest = np.stack([(demand / demand[:, [i]]).max(axis=0) for i in range(3)])
        cluster = fo.Cluster(least[:, None] * largest * (1 if number % 2 else 1.5), demand, rng.integers(1, 4, 5))
        cluster = cluster.replace(capacity=np.where(np.eye(3, dtype=bool), least[:, None], cluster.capacity))
        assert unique(game(cluster, 3))
        nash = fo.AlphaPFVDS(1).solve(cluster, 1e-8).arrays.user_tasks
        for mechanism in (fo.AlphaPFVDS(0.3), fo.AlphaPFVDS(6), fo.PSDSF()):
            np.testing.assert_allclose(mechanism.solve(cluster, 1e-8).arrays.user_tasks, nash, rtol=1e-7)
        assert not unique(game(cluster.replace(capacity=np.full((3, 3), 9.0) + np.eye(3)), 3))
        assert not unique(game(cluster.replace(max_tasks=np.full(5, 0.5)), 3))


@pytest.mark.parametrize("seed", range(4))
def test_proportional_servers_with_few_allowed_have_one_equilibrium(seed: int) -> None:
    """gamma is a product of factors of users and servers, which are found along chains of those who may meet."""
    rng = np.random.default_rng(seed)
    eligible = rng.random((40, 30)) < 2.5 / 30
    eligible[np.arange(40), rng.integers(30, size=40)] = True
    capacity = rng.uniform(1, 5, (30, 1)) * rng.uniform(1, 5, 2)
    cluster = fo.Cluster(capacity, rng.uniform(1, 5, (40, 2)), eligible=eligible)
    assert unique(game(cluster, 3))
    assert not unique(game(cluster.replace(max_tasks=cluster.gamma.sum(axis=1) / 2), 3))
    assert not unique(game(cluster.replace(capacity=capacity * rng.uniform(0.5, 2, (30, 2))), 3))


def test_a_continuum_has_index_0_and_two_ends() -> None:
    """The same prices for every split, although splits differ in what they give: small integers, alpha = 1/2."""
    rng = np.random.default_rng(251)
    capacity, demand = rng.integers(1, 13, (2, 3)), rng.integers(1, 10, (3, 3))
    rng.choice(6)
    cluster = fo.Cluster(capacity, demand, rng.integers(1, 3, 3))
    found = fo.game.equilibria(cluster, 0.5, rng=0)
    assert not found.complete
    assert found.indices == (0, 0)
    assert apart(*found.user_tasks) > 1e-3
    middle = (found[0].tasks + found[1].tasks) / 2
    assert fo.AlphaPFVDS(0.5).certify(cluster, middle)[0].residual < 1e-9  # a segment
    answer = fo.AlphaPFVDS(0.5).solve(cluster)
    assert answer.index == 0
    assert any("not locally unique" in note for note in answer.notes)


def test_what_is_not_proved_complete(out_of_reach: float) -> None:
    """Where a task count can bind; where an equilibrium misses the tolerance; where one is part of a continuum."""
    assert fo.game.equilibria(SEVERAL, 1).complete
    bounded = fo.game.equilibria(SEVERAL.replace(max_tasks=[0.1, np.inf, np.inf]), 3, rng=0)
    assert not bounded.complete
    assert "task counts can bind" in bounded.tried["enumeration"]
    assert bounded[0].arrays.user_tasks[0] == pytest.approx(0.1)
    missed = fo.game.equilibria(SEVERAL, 3, tol=out_of_reach)
    assert not missed.complete
    assert "missed tol=1e-20" in missed.tried["certificates"]


def test_a_candidate_that_is_lost_leaves_the_list_incomplete(monkeypatch: pytest.MonkeyPatch) -> None:
    """Although all are found: what was lost may have been another."""
    losses, identified = iter([SolverError("not near enough")]), all_equilibria.identified

    def first_lost(*given: Any) -> Any:
        for error in losses:
            raise error
        return identified(*given)

    monkeypatch.setattr(all_equilibria, "identified", first_lost)
    found = fo.game.equilibria(SEVERAL, 3, rng=0)
    assert sum(found.indices) == 1
    assert not found.complete


def test_users_and_servers_that_are_alike_count_once() -> None:
    once = fo.game.equilibria(SEVERAL, 3)
    twice = fo.Cluster(
        np.vstack([SEVERAL.capacity[[0]] / 2, SEVERAL.capacity[[0]] / 2, SEVERAL.capacity[[1]]]),
        np.vstack([SEVERAL.demand, 2 * SEVERAL.demand[[0]]]),
        (1, 1, 2, 1),
    )
    found = fo.game.equilibria(twice, 3)
    assert found.complete
    assert found.indices == once.indices
    tasks = found.user_tasks[:, :3] + np.outer(found.user_tasks[:, 3], [2, 0, 0])
    assert tasks == pytest.approx(once.user_tasks, rel=1e-9)


def test_too_large_to_enumerate() -> None:
    cluster = drawn((20, 10, 3), 0)
    found = fo.game.equilibria(cluster, 3, rng=0, options=EnumerationOptions(seconds=0.1, starts=2))
    assert not found.complete
    assert "not finished" in found.tried["enumeration"]
    assert {"engine", "best responses"} <= set(found.tried)
    assert found.indices == (1,)
    assert apart(found[0].arrays.user_tasks, fo.AlphaPFVDS(3).solve(cluster).arrays.user_tasks) < 1e-7
    assert "there may be more" in repr(found)


def test_arguments() -> None:
    for alpha, remedy in ((0, "small"), (np.inf, "PSDSF"), (-1, "alpha")):
        with pytest.raises(DataError, match=remedy):
            fo.game.equilibria(SEVERAL, alpha)
    with pytest.raises(DataError, match="rng"):
        fo.game.equilibria(SEVERAL, 3, rng="a")  # type: ignore[arg-type]
