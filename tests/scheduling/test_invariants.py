"""What holds of every schedule, whatever the policy: read from its frames and runs alone, on random workloads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairopt.mechanisms import get
from fairopt.model.cluster import Cluster
from fairopt.scheduling import Workload, discrete_drf, policies, simulate
from fairopt.scheduling.loop.tables import DONE, EVICTED, GONE, RUNNING
from fairopt.scheduling.schedule import STATES
from fairopt.scheduling.workload import SECOND

from .draw import workload

SEEDS = st.integers(0, 2**32)


@pytest.mark.parametrize("name", policies.names())
@given(seed=SEEDS, until=st.sampled_from([None, 5.0]))
@settings(max_examples=12, deadline=None)
def test_every_task_is_in_one_state_and_runs_to_its_end(name: str, seed: int, until: float | None) -> None:
    found = simulate(workload(seed), name, until=until, impossible="report")
    w, runs, tasks = found.workload, found.runs, found.tasks
    for task in range(w.tasks):
        mine = np.flatnonzero(runs.task == task)
        state, group = tasks["state"].iloc[task], w.group_of_task[task]
        assert (runs.how[mine[:-1]] == EVICTED).all()
        assert (runs.start[mine[1:]] >= runs.end[mine[:-1]]).all()
        assert (runs.start[mine] >= w.arrival[group]).all()
        assert tasks["restarts"].iloc[task] == (runs.how[mine] == EVICTED).sum()
        last = runs.how[mine[-1]] if len(mine) else EVICTED
        expected = {"done": [DONE], "running": [RUNNING], "gone": [GONE, EVICTED]}.get(state, [EVICTED])
        assert last in expected
        if state == "done":
            assert runs.end[mine[-1]] - runs.start[mine[-1]] == w.duration[task]
        if state == "gone":
            assert w.leaves[w.user[group]] <= runs.time
    assert sum(found.summary()[f"tasks {state}"] for state in STATES) == w.tasks
    times = np.linspace(0, found.end, 23)
    timeline = found.at(times)
    waits = [(w.arrival[w.group_of_task] <= t * SECOND).sum() for t in times]
    assert (timeline["waiting"] >= 0).all()
    assert (timeline["waiting"] + timeline["running"] <= waits).all()


def _one_pool(cluster: Cluster) -> Workload:
    import pandas as pd

    tasks = pd.DataFrame(cluster.demand, columns=list(cluster.resources))
    tasks = tasks.assign(user=list(cluster.users), duration=1.0, tasks=3000)
    servers = pd.DataFrame(cluster.capacity, columns=list(cluster.resources))
    users = pd.DataFrame({"user": list(cluster.users), "weight": cluster.weight})
    return Workload.from_frames(tasks, servers, users)


@given(seed=SEEDS)
@settings(max_examples=15, deadline=None)
def test_discrete_drf_and_the_policy_decide_alike(seed: int) -> None:
    """Algorithm 1 on one pool, as `discrete_drf` and as a policy; and DRF theorem 7: within one largest task of DRF."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    demand = rng.integers(1, 6, (n, m)).astype(float)
    cluster = Cluster([rng.integers(30, 90, m)], demand, weight=rng.integers(1, 4, n))
    w = _one_pool(cluster)
    for strict in (True, False):
        found = simulate(w, policies.get("discrete-drf", strict=strict), until=0)
        picks = [w.users[k] for k in w.user[w.group_of_task[found.runs.task]]]
        assert picks == discrete_drf(cluster, skip=not strict)["picked"].tolist()
    started = np.bincount(w.user[w.group_of_task[simulate(w, "discrete-drf", until=0).runs.task]], minlength=n)
    task = cluster.dominant_share_per_task / cluster.weight
    discrete, level = (
        started * task,
        (get("drf").solve(cluster).arrays.user_tasks * task).min(),
    )  # one level: positive demands
    assert (discrete - task <= discrete.min() + 1e-9).all()
    assert (discrete <= level + task + 1e-6).all()
    # What blocks the lowest user is used up but for a task of everybody, and what DRF takes of it is no more than all.
    short = (demand.sum(axis=0) + demand.max(axis=0)) / (demand / task[:, None]).sum(axis=0)
    assert level - discrete.min() <= short.max() + 1e-6


@pytest.mark.parametrize(("parts", "within"), [(1, 0.34), (10, 0.034), (100, 0.0034)])
def test_ever_smaller_tasks_tend_to_the_fluid_mechanism(parts: int, within: float) -> None:
    cluster = Cluster([[9, 18]], [[1 / parts, 4 / parts], [3 / parts, 1 / parts]], weight=[1, 2])
    found = simulate(_one_pool(cluster), "discrete-drf", until=0)
    share = found.shares_at([0]).iloc[0].to_numpy()
    fluid = get("drf").solve(cluster).arrays.user_tasks * cluster.dominant_share_per_task
    np.testing.assert_allclose(share, fluid, atol=within)


def test_first_fit_does_not_tend_to_drfh_on_several_servers() -> None:
    """DRFH figure 1 with tasks of 1/1000: First-Fit 3.34 each, Best-Fit 8.67, DRFH 10."""
    import pandas as pd

    tasks = pd.DataFrame({"user": ["1", "2"], "duration": 1.0, "tasks": 20_000, "cpu": [2e-4, 1e-3],
                          "memory": [1e-3, 2e-4]})  # fmt: skip
    w = Workload.from_frames(tasks, pd.DataFrame({"cpu": [2, 12], "memory": [12, 2]}))
    for name, each in (("first-fit-drfh", 3.34), ("best-fit-drfh", 8.67)):
        started = np.bincount(w.user[w.group_of_task[simulate(w, name, until=0).runs.task]]) / 1000
        np.testing.assert_allclose(started, each, atol=0.01)
    assert get("drfh").solve(Cluster([[2, 12], [12, 2]], [[0.2, 1], [1, 0.2]])).arrays.user_tasks == pytest.approx(
        [10, 10]
    )


def test_the_same_input_gives_the_same_events() -> None:
    for name in policies.names():
        first, second = (simulate(workload(7), name, impossible="report").runs for _ in range(2))
        assert first.same(second)
