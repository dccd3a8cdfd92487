"""Schedules as frames, thrashing, dedicated servers, and what `simulate` refuses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fairopt.errors import DataError
from fairopt.mechanisms import get
from fairopt.model.cluster import Cluster
from fairopt.scheduling import Thrashing, Workload, dedicated, simulate
from fairopt.scheduling.loop.tables import DONE, EVICTED, GONE, RUNNING
from fairopt.scheduling.policies import Policy
from fairopt.scheduling.schedule import STATES
from fairopt.scheduling.workload import SECOND

from .draw import workload

SERVERS = pd.DataFrame({"cpu": [4.0], "memory": [8.0]})
TASKS = pd.DataFrame(
    {
        "user": ["a", "b", "b"], "job": ["j", "k", "l"], "arrival": [1.0, 1.0, 3.0], "duration": [4.0, 2.0, 2.0],
        "tasks": [3, 2, 1], "cpu": [1.0, 2.0, 1.0], "memory": [1.0, 1.0, 8.0],
    }
)  # fmt: skip


def test_frames_of_a_small_schedule() -> None:
    """By hand: at 1 a, b, a start (shares 1/4, 1/2), at 3 b's second; at 5 a's third, and l waits for all memory."""
    found = simulate(Workload.from_frames(TASKS, SERVERS), "first-fit-drfh")
    tasks = found.tasks
    assert tasks["start"].tolist() == [1, 1, 5, 1, 3, 9]
    assert tasks["end"].tolist() == [5, 5, 9, 3, 5, 11]
    assert set(tasks["state"]) == {"done"}
    assert found.jobs["response"].tolist() == [8, 4, 8]
    assert found.users["mean_wait"].tolist() == pytest.approx([4 / 3, 8 / 3])
    timeline = found.at([0, 1, 3, 5, 9, 11])
    assert timeline["cpu"].tolist() == [0, 1, 1, 0.25, 0.25, 0]
    assert timeline["waiting"].tolist() == [0, 2, 2, 1, 0, 0]
    assert found.shares_at([1, 9])["b"].tolist() == [0.5, 1]
    assert found.utilization["cpu"] == pytest.approx((3 * 4 + 2 * 2 * 2 + 2) / 4 / 10)
    with pytest.warns(DeprecationWarning, match="no method any more"):
        assert found.utilization().equals(found.utilization)
    share_a = (0.5 * 4 + 0.25 * 4) / 10
    assert found.users["mean_dominant_share"].tolist() == pytest.approx([share_a, (0.5 * 4 + 1 * 2) / 10])
    assert "tasks 6 done; 11 s" in repr(found)
    assert found.summary()["mean response"] == pytest.approx(20 / 3)
    assert len(found.plot().axes) == 3


def test_frames_are_the_sum_of_what_tasks_do() -> None:
    ways = {"done": {DONE}, "running": {RUNNING}, "gone": {GONE, EVICTED}}
    for seed in range(20):
        until = 9 if seed % 2 else None
        found = simulate(workload(seed), "best-fit-drfh", until=until, timeline="events", impossible="report")
        w, tasks, runs = found.workload, found.tasks, found.runs
        for time in found.instants:
            now = (runs.start <= time * SECOND) & (runs.end > time * SECOND)
            used = w.demand[w.group_of_task[runs.task[now]]]
            row = found.timeline.loc[time]
            assert row["running"] == now.sum()
            group = w.group_of_task
            came = (w.arrival[group] <= time * SECOND) & (w.arrival[group] < w.leaves[w.user[group]])
            over = np.isin(np.arange(w.tasks), runs.task[(runs.end <= time * SECOND) & (runs.how != 2)])
            left = (w.leaves[w.user[group]] <= time * SECOND) & ~np.isin(np.arange(w.tasks), runs.task[now])
            assert row["waiting"] == (came & ~over & ~left).sum() - now.sum()
            share = np.zeros((len(w.users), len(w.resources)))
            np.add.at(share, w.user[w.group_of_task[runs.task[now]]], used / w.total)
            np.testing.assert_allclose(found.shares.loc[time], share.max(axis=1))
        assert (tasks.groupby("job", observed=False).size() == found.jobs["tasks"]).all()
        last = dict(zip(runs.task.tolist(), runs.how.tolist(), strict=True))
        assert all(last.get(task, EVICTED) in ways.get(state, {EVICTED}) for task, state in enumerate(tasks["state"]))
        assert (w.leaves[w.user[group[tasks["state"] == "gone"]]] <= runs.time).all()
        assert tasks["restarts"].tolist() == np.bincount(runs.task[runs.how == EVICTED], minlength=w.tasks).tolist()
        assert sum(found.summary()[f"tasks {state}"] for state in STATES) == w.tasks


def test_a_server_that_leaves_gives_its_tasks_back() -> None:
    changes = pd.DataFrame({"time": [2.0, 6.0], "server": "server1", "up": [False, True]})
    w = Workload.from_frames(TASKS.iloc[:1], SERVERS, changes=changes)
    found = simulate(w, "fifo")
    assert found.tasks["restarts"].tolist() == [1, 1, 1]
    assert found.tasks["end"].tolist() == [10, 10, 10]
    assert found.at([1, 3, 6])["servers"].tolist() == [1, 0, 1]


def test_what_can_never_start_is_refused_or_reported() -> None:
    tasks = TASKS.assign(memory=[1.0, 9.0, 8.0])
    w = Workload.from_frames(tasks, SERVERS)
    with pytest.raises(DataError, match=r"of job 'k' \(user 'b'\) ask for 2 cpu, 9 memory; best-fit-drfh finds no"):
        simulate(w)
    found = simulate(w, impossible="report")
    assert found.summary()["tasks impossible"] == 2
    assert simulate(w, "cpu-fair").summary()["tasks done"] == 6  # that looks at CPU alone


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "best-fit"}, "there is no policy 'best-fit'; known: .*; did you mean best-fit-drfh"),
        ({"policy": "slots(m=1)"}, "slots does not take m; its parameters: strict, n, whole"),
        ({"policy": "slots(n=0)"}, "n is 0; it must be a whole number"),
        ({"policy": "tetris(fairness=2)"}, "from 0 to 1"),
        ({"policy": "ps-dsf(strict=True)"}, "compares pairs"),
        ({"policy": "cpu-fair(resource=gpu)"}, "there is no resource 'gpu'"),
        ({"policy": Policy}, "is a class"),
        ({"policy": 3}, "3 is no policy"),
        ({"until": -1}, "until is -1"),
        ({"engine": "fast"}, "engine is 'fast'"),
        ({"timeline": 0}, "timeline is 0"),
    ],
)
def test_what_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        simulate(Workload.from_frames(TASKS, SERVERS), **options)  # type: ignore[arg-type]


def test_thrashing_slows_who_is_short() -> None:
    """Two tasks of 2 and 3 GB on 4 GB: the level is 2, so that the large one is short until the small one ends."""
    tasks = pd.DataFrame({"user": ["a", "b"], "duration": [10.0, 10.0], "cpu": 1.0, "memory": [2.0, 3.0]})
    w = Workload.from_frames(tasks, pd.DataFrame({"cpu": [2.0], "memory": [4.0]}))
    assert simulate(w, "cpu-fair").tasks["end"].tolist() == [10, 10]
    # By 10 s it has done 2 s of work at a fifth of the speed; 8 are left.
    assert simulate(w, "cpu-fair", thrashing=Thrashing(5)).tasks["end"].tolist() == [10, 18]
    assert simulate(w, "cpu-fair", thrashing=Thrashing(5, "all")).tasks["end"].tolist() == [50, 50]
    assert simulate(w, "best-fit-drfh", thrashing=Thrashing(5)).tasks["end"].tolist() == [10, 20]
    with pytest.raises(DataError, match=r"factor is 0\.5"):
        Thrashing(0.5)


def test_dedicated_servers_are_given_out_once() -> None:
    tasks = pd.DataFrame({"user": ["a", "b", "b"], "duration": 1.0, "cpu": 1.0, "tasks": [20, 5, 5]})
    users = pd.DataFrame({"user": ["a", "b"], "weight": [1, 2]})
    w = Workload.from_frames(tasks, pd.DataFrame({"type": ["x", "y"], "cpu": [1.0, 2.0], "count": [6, 5]}), users)
    found = dedicated(w, "first-fit-drfh")
    assert {name: len(one.workload.servers) for name, one in found.items()} == {"a": 2 + 2, "b": 4 + 3}
    servers = [name for one in found.values() for name in one.workload.servers]
    assert sorted(servers) == sorted(w.servers)
    assert found["a"].end == 20 / 6 // 1 + 1
    assert found["b"].workload.jobs == ("job2", "job3")


def test_many_numbers_are_refused() -> None:
    found = simulate(Workload.from_frames(TASKS, SERVERS))
    with pytest.raises(DataError, match="too many numbers"):
        found.shares_at(np.zeros(10**8))
    with pytest.raises(DataError, match="there is no user 'z'"):
        found.shares_at([0], ["z"])


def test_a_schedule_in_which_nothing_starts_has_all_frames() -> None:
    tasks = pd.DataFrame({"user": ["a"], "duration": [5.0], "cpu": [3.0]})
    found = simulate(Workload.from_frames(tasks, pd.DataFrame({"cpu": [1.0]})), "fifo", until=9, impossible="report")
    assert found.users.loc["a", ["tasks", "tasks_done", "mean_dominant_share"]].tolist() == [1, 0, 0]
    assert found.jobs["tasks_done"].tolist() == [0]
    assert found.tasks["state"].tolist() == ["impossible"]
    assert (found.timeline["running"] == 0).all()
    assert found.utilization.tolist() == [0]
    assert found.summary()["tasks impossible"] == 1
    assert "1 impossible" in repr(found)


def test_first_fit_does_not_tend_to_drfh_on_several_servers() -> None:
    """DRFH figure 1 with tasks of 1/1000: First-Fit 3.34 each, Best-Fit 8.67, DRFH 10."""
    tasks = pd.DataFrame({"user": ["1", "2"], "duration": 1.0, "tasks": 20_000, "cpu": [2e-4, 1e-3],
                          "memory": [1e-3, 2e-4]})  # fmt: skip
    w = Workload.from_frames(tasks, pd.DataFrame({"cpu": [2, 12], "memory": [12, 2]}))
    for name, each in (("first-fit-drfh", 3.34), ("best-fit-drfh", 8.67)):
        started = np.bincount(w.user[w.group_of_task[simulate(w, name, until=0).runs.task]]) / 1000
        np.testing.assert_allclose(started, each, atol=0.01)
    assert get("drfh").solve(Cluster([[2, 12], [12, 2]], [[0.2, 1], [1, 0.2]])).arrays.user_tasks == pytest.approx(
        [10, 10]
    )
