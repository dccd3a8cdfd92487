"""What servers have and tasks take in the terms of slots and of task shares, by hand."""

from __future__ import annotations

import pandas as pd

from fairopt.scheduling import policies
from fairopt.scheduling.workload import Workload


def test_a_task_takes_as_many_slots_as_cover_it() -> None:
    tasks = pd.DataFrame({"user": "u", "duration": 1.0, "cpu": [1.0, 3.0, 4.0]})
    w = Workload.from_frames(tasks, pd.DataFrame({"cpu": [6.0, 5.0]}))
    has, takes = policies.one("slots(n=2)").room(w)
    assert (has.tolist(), takes.tolist()) == ([[2], [1]], [[1], [1], [2]])


def test_a_task_share_counts_all_servers_that_are_alike() -> None:
    tasks = pd.DataFrame({"user": "u", "duration": 1.0, "cpu": [2.0, 3.0]})
    w = Workload.from_frames(tasks, pd.DataFrame({"cpu": [6.0, 6.0, 3.0]}))
    cost, total = policies.one("tsf").cost(w)  # 3 + 3 + 1 = 7 and 2 + 2 + 1 = 5 tasks alone
    assert (total[0] // cost[:, 0]).tolist() == [7, 5]
