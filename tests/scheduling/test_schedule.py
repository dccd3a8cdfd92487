"""Schedules as frames, thrashing, dedicated servers, and what `simulate` refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairopt.errors import DataError
from fairopt.scheduling import Thrashing, Workload, dedicated, policies, simulate
from fairopt.scheduling.loop.tables import DONE, EVICTED, GONE, RUNNING
from fairopt.scheduling.policies import Policy
from fairopt.scheduling.schedule import STATES
from fairopt.scheduling.setup import Setup
from fairopt.scheduling.workload import SECOND

from .draw import workload
from .reference import Reference

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
    assert found.tasks["start"].tolist() == [1, 1, 5, 1, 3, 9]
    assert found.tasks["end"].tolist() == [5, 5, 9, 3, 5, 11]
    assert found.jobs["response"].tolist() == [8, 4, 8]
    assert found.summary()["mean response"] == pytest.approx(20 / 3)
    assert found.users["mean_wait"].tolist() == pytest.approx([4 / 3, 8 / 3])
    assert found.users["mean_dominant_share"].tolist() == pytest.approx([0.3, 0.4])
    assert found.at([0, 1, 3, 5, 9, 11])["cpu"].tolist() == [0, 1, 1, 0.25, 0.25, 0]
    assert found.shares_at([1, 9])["b"].tolist() == [0.5, 1]
    assert found.utilization["cpu"] == pytest.approx((3 * 4 + 2 * 2 * 2 + 2) / 4 / 10)
    assert len(found.plot().axes) == 3
    with pytest.raises(DataError, match="too many numbers"):
        found.shares_at(np.zeros(10**4), ["a", "b"] * 5001)
    assert found.at(9).equals(found.at([9]))
    with pytest.raises(DataError, match="finite seconds"):
        found.at([0, np.inf])
    with pytest.raises(DataError, match="there is no user 'z'"):
        found.shares_at([0], ["z"])


@pytest.mark.parametrize("loops", [False, True])
def test_frames_say_at_every_instant_what_the_reference_does(loops: bool) -> None:
    for seed in range(12):
        w, until = workload(seed, loops=loops), 9 if seed % 2 else None
        found, plain = simulate(w, "best-fit-drfh", until=until, timeline="events"), Reference(w, "best-fit-drfh")
        assert loops or len(found.instants) == found.runs.instants, "changes of idle servers among them"
        for time in found.instants:
            plain.run(int(time * SECOND))
            row = found.timeline.loc[time]
            assert (row["running"], row["waiting"]) == (len(plain.active()), len(plain.waiting))
            assert row["servers"] == sum(plain.up)
            share = [max(plain.held(user) / plain.total) for user in range(len(w.users))]
            np.testing.assert_allclose(found.shares.loc[time].tolist(), share)
        ended = {run[0]: run[4] for run in plain.runs}
        for task, state in enumerate(found.tasks["state"]):
            way = ended.get(task, EVICTED)
            assert state == {RUNNING: "running", DONE: "done"}.get(way) or way in (EVICTED, GONE)
            assert (state == "waiting") == (task in plain.waiting)
            assert (state == "gone") == (way != DONE and task in plain.come and plain.user[task] in plain.left)
        evicted = np.bincount([run[0] for run in plain.runs if run[4] == EVICTED], minlength=w.tasks)
        assert found.tasks["restarts"].tolist() == evicted.tolist()
        assert found.jobs["tasks"].sum() == sum(found.summary()[f"tasks {state}"] for state in STATES) == w.tasks


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
        ({"policy": "slots(whole=no)"}, "whole is 'no'; it must be True or False"),
        ({"policy": "mqdrf(sizes=[1.5, 1, 1])"}, "a size is 1.5; it must be a whole number"),
        ({"thrashing": 3}, "thrashing is 3; give"),
        ({"policy": "slots(n=0)"}, "n is 0; it must be a whole number"),
        ({"policy": "tetris(fairness=2)"}, "from 0 to 1"),
        ({"policy": "ps-dsf(strict=True)"}, "compares pairs"),
        ({"policy": "cpu-fair(resource=gpu)"}, "there is no resource 'gpu'"),
        ({"policy": Policy}, "is a class"),
        ({"policy": 3}, "3 is no policy"),
        ({"until": -1}, "until is -1"),
        ({"engine": "fast"}, "engine is 'fast'"),
        ({"timeline": 0}, "timeline is 0"),
        ({"timeline": np.inf}, "timeline is inf"),
    ],
)
def test_what_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        simulate(Workload.from_frames(TASKS, SERVERS), **options)  # type: ignore[arg-type]


def test_thrashing_slows_who_is_short() -> None:
    """Two tasks of 2 and 3 GB on 4 GB: the level is 2, so that the large one is short until the small one ends."""
    tasks = pd.DataFrame({"user": ["a", "b"], "duration": [10.0, 10.0], "cpu": 1.0, "memory": [2.0, 3.0]})
    w = Workload.from_frames(tasks, pd.DataFrame({"cpu": [2.0], "memory": [4.0]}))
    # By 10 s it has done 2 s of work at a fifth of the speed; 8 are left.
    assert simulate(w, "cpu-fair", thrashing=Thrashing(5)).tasks["end"].tolist() == [10, 18]
    assert simulate(w, "cpu-fair", thrashing=Thrashing(5, "all")).tasks["end"].tolist() == [50, 50]
    with pytest.raises(DataError, match=r"factor is 0\.5"):
        Thrashing(0.5)
    assert simulate(w, "cpu-fair", thrashing=Thrashing(1e300, "all")).end > 1e11, "longer than can be counted"


def test_dedicated_servers_are_given_out_once() -> None:
    users = pd.DataFrame({"user": ["a", "b"], "weight": [1, 2]})
    servers = pd.DataFrame({"type": ["x", "y"], "cpu": [1.0, 2.0], "count": [6, 5]})
    w = Workload.from_frames(TASKS.drop(columns="memory"), servers, users)
    found = dedicated(w, "first-fit-drfh")
    assert {name: len(one.workload.servers) for name, one in found.items()} == {"a": 2 + 2, "b": 4 + 3}
    assert sorted(name for one in found.values() for name in one.workload.servers) == sorted(w.servers)
    assert {name: one.workload.jobs for name, one in found.items()} == {"a": ("j",), "b": ("k", "l")}
    assert found["b"].workload.row.tolist() == [1, 2]
    assert found["b"].end == 5


def test_of_ten_users_the_three_furthest_behind_compete() -> None:
    """`(1 - .7) 10` is 3, and more in doubles: the fourth user, whose task fits best, does not."""
    tasks = pd.DataFrame({"user": [f"u{k}" for k in range(10)], "duration": 1.0, "cpu": [1.0] * 3 + [2.0] * 7})
    w = Workload.from_frames(tasks, pd.DataFrame({"cpu": [3.0]}))
    assert simulate(w, "tetris(fairness=0.7)", until=0).runs.task[0] == 0


def test_of_an_empty_workload() -> None:
    w = Workload.from_frames(TASKS.iloc[:0], SERVERS)
    assert (dedicated(w), w.load(1), w.work(1).sum(), simulate(w).end) == ({}, 0, 0, 0)


def test_a_plain_run_may_be_interrupted_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the midst of a start as well, whose time is not known yet: it is not in the schedule."""

    class Interrupts(np.ndarray):
        def __getitem__(self, key: object) -> object:
            raise KeyboardInterrupt

    def tables(*given: Any) -> Any:
        made = whole(*given)
        return made._replace(duration=made.duration.view(Interrupts))

    whole = Setup.tables
    monkeypatch.setattr(Setup, "tables", tables)
    found = simulate(Workload.from_frames(TASKS, SERVERS), "first-fit-drfh", engine="plain")
    assert (found.interrupted, len(found.runs.task)) == (True, 0)


def test_a_schedule_in_which_nothing_starts_has_all_frames() -> None:
    tasks = pd.DataFrame({"user": ["a"], "duration": [5.0], "cpu": [3.0]})
    found = simulate(Workload.from_frames(tasks, pd.DataFrame({"cpu": [1.0]})), "fifo", until=9, impossible="report")
    assert found.users.loc["a", ["tasks", "tasks_done", "mean_dominant_share"]].tolist() == [1, 0, 0]
    assert found.tasks["state"].tolist() == ["impossible"]
    assert (found.jobs["tasks_done"].sum(), found.timeline["running"].sum(), found.utilization.sum()) == (0, 0, 0)
    assert "1 impossible" in repr(found)


def test_a_task_takes_as_many_slots_as_cover_it() -> None:
    tasks = pd.DataFrame({"user": "u", "duration": 1.0, "cpu": [1.0, 3.0, 4.0]})
    w = Workload.from_frames(tasks, pd.DataFrame({"cpu": [6.0, 5.0]}))
    has, takes = policies.one("slots(n=2)").room(w)
    assert (has.tolist(), takes.tolist()) == ([[2], [1]], [[1], [1], [2]])


def test_first_fit_does_not_tend_to_drfh_on_several_servers() -> None:
    """DRFH figure 1 with tasks of 1/1000: First-Fit 3.34 each, Best-Fit 8.67, DRFH 10 (`fairopt.papers`)."""
    tasks = pd.DataFrame({"user": ["1", "2"], "duration": 1.0, "tasks": 20_000, "cpu": [2e-4, 1e-3],
                          "memory": [1e-3, 2e-4]})  # fmt: skip
    w = Workload.from_frames(tasks, pd.DataFrame({"cpu": [2, 12], "memory": [12, 2]}))
    for name, each in (("first-fit-drfh", 3.34), ("best-fit-drfh", 8.67)):
        started = np.bincount(w.user[w.group_of_task[simulate(w, name, until=0).runs.task]]) / 1000
        np.testing.assert_allclose(started, each, atol=0.01)
