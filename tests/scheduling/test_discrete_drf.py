"""DRF for whole tasks: table 1 of the paper, its rules one by one, and its laws on random pools."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairopt.errors import DataError
from fairopt.mechanisms import get
from fairopt.model.cluster import Cluster
from fairopt.scheduling import Workload, discrete_drf, policies, simulate, tasks_of

EXAMPLE = Cluster([[9, 18]], [[1, 4], [3, 1]], resources=["CPU", "RAM"], users=["A", "B"])


@pytest.mark.parametrize(("ties", "picks"), [(("B", "A"), "BAABA"), (("A", "B"), "ABABA"), (None, "ABABA")])
def test_table_1_of_the_paper(ties: tuple[str, ...] | None, picks: str) -> None:
    frame = discrete_drf(EXAMPLE, ties=ties)
    assert "".join(frame["picked"]) == picks
    assert list(frame.index) == [1, 2, 3, 4, 5]
    last = frame.drop(columns="picked").iloc[-1]
    assert last.to_dict() == pytest.approx(
        {
            "A CPU": 3 / 9,
            "A RAM": 12 / 18,
            "A dominant": 2 / 3,
            "B CPU": 6 / 9,
            "B RAM": 2 / 18,
            "B dominant": 2 / 3,
            "total CPU": 1,
            "total RAM": 14 / 18,
        }
    )
    assert tasks_of(frame).to_dict() == {"A": 3, "B": 2}


def test_ties_must_name_everyone_once() -> None:
    for ties in (("A",), ("A", "A"), ("A", "B", "C"), (0, 1), ("A", 1), 1):
        with pytest.raises(DataError, match="ties must name every user once, in any order: A, B"):
            discrete_drf(EXAMPLE, ties=ties)


def test_rounding_does_not_break_ties() -> None:
    """3 * (0.1/3) is a rounding error above 0.3/3, yet three tasks of 0.1 and one of 0.3 have the same share."""
    assert 3 * (0.1 / 3) > 0.3 / 3
    cluster = Cluster([[3, 3]], [[0.1, 0.01], [0.3, 0.03]], users=["many", "few"])
    picks = list(discrete_drf(cluster, ties=("many", "few"))["picked"])
    assert picks[:9] == ["many", "few", "many", "many", "many", "few", "many", "many", "many"]


def test_a_sum_that_fills_the_pool_but_for_rounding_fits() -> None:
    assert tasks_of(discrete_drf(Cluster([[0.3]], [[0.1]]))).to_list() == [3]


def test_the_first_task_that_does_not_fit_stops_everyone_unless_skipped() -> None:
    cluster = Cluster([[4, 10]], [[3, 0], [0, 1]], users=["big", "small"])
    assert tasks_of(discrete_drf(cluster)).to_dict() == {"big": 1, "small": 8}
    assert tasks_of(discrete_drf(cluster, skip=True)).to_dict() == {"big": 1, "small": 10}


def test_max_tasks_frees_the_rest_for_others() -> None:
    cluster = Cluster([[10]], [[1], [1], [1]], max_tasks=[2, 3.5, np.inf])
    assert tasks_of(discrete_drf(cluster)).to_list() == [2, 3, 5]


def test_who_can_run_nothing_is_never_picked() -> None:
    cluster = Cluster(
        [[4, 0]],
        [[1, 0], [1, 1], [1, 0], [1, 0], [5, 0]],
        eligible=[[1], [1], [0], [1], [1]],
        max_tasks=[np.inf, np.inf, np.inf, 0.5, np.inf],
    )
    frame = discrete_drf(cluster, skip=True)
    assert tasks_of(frame).to_list() == [4, 0, 0, 0, 0]
    assert not frame.isna().to_numpy().any()
    assert frame["total resource1"].iloc[-1] == 1


def test_nothing_fits() -> None:
    frame = discrete_drf(Cluster([[1]], [[2]], users=["u"], resources=["r"]))
    assert frame.empty
    assert list(frame.columns) == ["picked", "u r", "u dominant", "total r"]
    assert tasks_of(frame).to_dict() == {"u": 0}


def test_servers_are_pooled() -> None:
    split = Cluster([[4, 10], [5, 8]], EXAMPLE.demand, resources=["CPU", "RAM"], users=["A", "B"])
    pd.testing.assert_frame_equal(discrete_drf(split), discrete_drf(EXAMPLE))


@st.composite
def pools(draw: st.DrawFn) -> Cluster:
    users = draw(st.integers(1, 4))
    number = st.integers(1, 5)
    demand = draw(st.lists(st.lists(number, min_size=2, max_size=2), min_size=users, max_size=users))
    capacity = draw(st.lists(st.integers(5, 40), min_size=2, max_size=2))
    return Cluster([capacity], demand, weight=draw(st.lists(number, min_size=users, max_size=users)))


@given(pools())
@settings(max_examples=60, deadline=None)
def test_laws(cluster: Cluster) -> None:
    """Whoever is picked is furthest behind; the pool is never overdrawn; in the end a picked task did not fit."""
    tasks = np.zeros(len(cluster.users))
    level = cluster.dominant_share_per_task / cluster.weight
    for picked in discrete_drf(cluster)["picked"]:
        n = cluster.users.index(picked)
        assert tasks[n] * level[n] <= (tasks * level).min() + 1e-9
        tasks[n] += 1
        assert (tasks @ cluster.demand <= cluster.capacity[0] + 1e-9).all()
    lowest = np.flatnonzero(tasks * level <= (tasks * level).min() + 1e-9)
    assert any(((tasks @ cluster.demand + cluster.demand[n]) > cluster.capacity[0]).any() for n in lowest)


@given(pools())
@settings(max_examples=40, deadline=None)
def test_skipping_leaves_no_task_that_fits(cluster: Cluster) -> None:
    tasks = tasks_of(discrete_drf(cluster, skip=True)).to_numpy()
    left = cluster.capacity[0] - tasks @ cluster.demand
    assert not (cluster.demand <= left).all(axis=1).any()
    assert (tasks >= tasks_of(discrete_drf(cluster)).to_numpy()).all()


def _one_pool(cluster: Cluster) -> Workload:
    tasks = pd.DataFrame(cluster.demand, columns=list(cluster.resources))
    tasks = tasks.assign(user=list(cluster.users), duration=1.0, tasks=3000)
    servers = pd.DataFrame(cluster.capacity, columns=list(cluster.resources))
    users = pd.DataFrame({"user": list(cluster.users), "weight": cluster.weight})
    return Workload.from_frames(tasks, servers, users)


@given(pools())
@settings(max_examples=15, deadline=None)
def test_discrete_drf_and_the_policy_decide_alike(cluster: Cluster) -> None:
    """Algorithm 1 on one pool, as `discrete_drf` and as a policy; and DRF theorem 7: within one largest task of DRF."""
    demand, n = cluster.demand, len(cluster.users)
    w = _one_pool(cluster)
    for strict in (True, False):
        found = simulate(w, policies.get("discrete-drf", strict=strict), until=0)
        picks = [w.users[k] for k in w.user[w.group_of_task[found.runs.task]]]
        assert picks == discrete_drf(cluster, skip=not strict)["picked"].tolist()
    started = np.bincount(w.user[w.group_of_task[simulate(w, "discrete-drf", until=0).runs.task]], minlength=n)
    task = cluster.dominant_share_per_task / cluster.weight
    discrete = started * task
    level = (get("drf").solve(cluster).arrays.user_tasks * task).min()  # one level: positive demands
    assert (discrete - task <= discrete.min() + 1e-9).all()
    assert (discrete <= level + task + 1e-6).all()
    # What blocks the lowest user is used up but for a task of everybody, and what DRF takes of it is no more than all.
    short = (demand.sum(axis=0) + demand.max(axis=0)) / (demand / task[:, None]).sum(axis=0)
    assert level - discrete.min() <= short.max() + 1e-6
