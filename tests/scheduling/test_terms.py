"""What servers have and tasks take in the terms of slots, by hand."""

from __future__ import annotations

import pandas as pd

from fairopt.scheduling import policies
from fairopt.scheduling.workload import Workload


def test_a_task_takes_as_many_slots_as_cover_it() -> None:
    tasks = pd.DataFrame({"user": "u", "duration": 1.0, "cpu": [1.0, 3.0, 4.0]})
    w = Workload.from_frames(tasks, pd.DataFrame({"cpu": [6.0, 5.0]}))
    has, takes = policies.one("slots(n=2)").room(w)
    assert (has.tolist(), takes.tolist()) == ([[2], [1]], [[1], [1], [2]])
