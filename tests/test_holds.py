"""What holds each user: proved for max-min, read off prices and what is used up for the others."""

from __future__ import annotations

import math
from typing import Any

import pytest
from numpy.testing import assert_allclose

import fairopt as fo
from fairopt.errors import SolverError
from fairopt.result import holds as module
from fairopt.result.holds import holds


def words(allocation: fo.Allocation) -> list[str]:
    """Of each user what holds it, in one word or as `resource@server`."""
    found, cluster = holds(allocation), allocation.cluster
    return [
        f"{cluster.resources[r]}@{cluster.servers[i]}" if by == "capacity" else str(by)
        for by, i, r in zip(found.by, found.server, found.resource, strict=True)
    ]


def two(**more: Any) -> fo.Cluster:
    """User a is placed on a server short of cpu, b on one short of memory."""
    given = {"eligible": [[1, 0], [0, 1]], "resources": ["cpu", "memory"], "users": ["a", "b"], "servers": ["s", "t"]}
    return fo.Cluster([[4, 100], [100, 4]], [[1, 1], [1, 1]], **(given | more))


EVERY = [fo.AlphaPFVDS(0.5), fo.AlphaPFVDS(3), fo.AlphaFair(2), fo.DRFH(), fo.TSF(), fo.PSDSF(), fo.PerServerDRF()]


@pytest.mark.parametrize("mechanism", EVERY, ids=str)
def test_the_resource_that_is_used_up(mechanism: Any) -> None:
    assert words(mechanism.solve(two())) == ["cpu@s", "memory@t"]


@pytest.mark.parametrize("mechanism", EVERY[:-1], ids=str)
def test_task_limits_and_nowhere_to_run(mechanism: Any) -> None:
    assert words(mechanism.solve(two(max_tasks=[1, math.inf]))) == ["task limit", "memory@t"]
    assert words(mechanism.solve(two(eligible=[[0, 0], [0, 1]]))) == ["nowhere to run", "memory@t"]


def test_the_dearest_part_of_a_task() -> None:
    """Cpu and memory of one server are both used up; a task of a is mostly cpu, one of b mostly memory."""
    cluster = fo.Cluster([[11, 11]], [[10, 1], [1, 10]], resources=["cpu", "memory"])
    for mechanism in (fo.AlphaPFVDS(1), fo.AlphaFair(2)):
        allocation = mechanism.solve(cluster)
        assert_allclose(allocation.utilization, 1, rtol=1e-6)
        assert words(allocation) in (["cpu@server1", "memory@server1"], ["cpu@pool", "memory@pool"])


def test_prices_count_and_not_demands_alone() -> None:
    """All memory is used up too, and a task of a takes more of it; but at these prices it costs next to nothing.

    Alpha = 1: x_a = 4.9, x_b = 5.1, cpu costs 1 / 5.1 and memory (1 / 4.9 - 1 / 5.1) / 2.
    """
    cluster = fo.Cluster([[10, 9.8]], [[1, 2], [1, 0]], resources=["cpu", "memory"], users=["a", "b"])
    allocation = fo.AlphaPFVDS(1).solve(cluster)
    assert_allclose(allocation.arrays.user_tasks, [4.9, 5.1], rtol=1e-6)
    assert words(allocation) == ["cpu@server1", "cpu@server1"]


@pytest.mark.parametrize("mechanism", [fo.PSDSF(), fo.PerServerDRF()], ids=str)
def test_without_prices_only_what_is_used_up_holds(mechanism: Any) -> None:
    """A task of a takes a larger part of the memory than of the cpu, but there is memory left."""
    cluster = fo.Cluster([[10, 15]], [[1, 2], [1, 0]], resources=["cpu", "memory"], users=["a", "b"])
    allocation = mechanism.solve(cluster)
    assert (allocation.user_tasks @ cluster.demand)[1] < 14
    assert words(allocation) == ["cpu@server1", "cpu@server1"]


def test_who_gets_nothing() -> None:
    """A task of b takes what one of a and one of c take, and counts half as much as these two."""
    cluster = fo.Cluster([[10, 10]], [[1, 0], [1, 1], [0, 1]], users=["a", "b", "c"], resources=["cpu", "memory"])
    assert words(fo.AlphaPFVDS(0).solve(cluster)) == ["cpu@server1", "gets nothing", "memory@server1"]


def test_where_it_runs_most() -> None:
    """Of a user on several servers the one where it has most tasks is named, of servers that are alike the first."""
    cluster = fo.Cluster([[1, 9], [9, 9], [9, 9]], [[1, 0.1]], resources=["cpu", "memory"])
    assert words(fo.AlphaPFVDS(2).solve(cluster)) == ["cpu@server2"]


def test_a_proof_that_fails_is_read_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise SolverError("no proof")

    monkeypatch.setattr(module, "blocking", fails)
    assert words(fo.DRFH().solve(two())) == ["cpu@s", "memory@t"]


@pytest.mark.parametrize("cpu", [100, 8])
def test_limits_of_queues(cpu: float) -> None:
    """What an exhausted limit holds does not depend on the capacity; of nested limits the inner is first."""
    queues = {"lab": {"limit": {"cpu": 3}}, "top": {"limit": {"cpu": 6}}, "no": {"limit": {"cpu": 0}}}
    users = {"ann": "lab", "bob": "lab", "eve": "sub", "fay": "top", "gus": "no"}
    tree = fo.Tree(
        queues | {"sub": {"parent": "top", "limit": {"cpu": 1}}} | {u: {"parent": q} for u, q in users.items()}
    )
    wanted = {"max_tasks": [*[9] * 5, 2], "users": [*users, "hal"], "resources": ["cpu"], "servers": ["s"]}
    limits = [f"the limit of 'cpu' of queue '{name}'" for name in ("lab", "lab", "sub", "top", "no")]
    limits[3] = "cpu@s" if cpu == 8 else limits[3]
    assert words(tree.solve(fo.Cluster([[cpu]], [[1]] * 6, **wanted))) == [*limits, "task limit"]
