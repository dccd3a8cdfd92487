"""Tasks start when programs of others start them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairopt.scheduling import engine, policies
from fairopt.scheduling.setup import Setup
from fairopt.scheduling.workload import SECOND, Workload


@pytest.mark.parametrize("name", ["accasim-fifo", "sdrf-load3", "sdrf-load8"])
def test_starts_are_those_of_other_programs(name: str) -> None:
    stored = json.loads((Path(__file__).parent / "independent" / f"{name}.json").read_text())
    tasks, weights = pd.DataFrame({"user": 0} | stored["tasks"]), stored.get("users", [1.0])
    users = pd.DataFrame({"user": range(len(weights)), "weight": weights}).astype({"user": str})
    given = tasks.assign(job=tasks.index).astype({"user": str, "job": str})
    w = Workload.from_frames(given, pd.DataFrame(stored["servers"]), users)
    setup = Setup(w, policies.one("fifo" if "users" not in stored else "discrete-drf"))
    runs = engine.run(setup, compiled=False)
    job = [w.jobs[k] for k in w.job[w.group_of_task[runs.task]]]
    found = pd.DataFrame({"start": runs.start // SECOND, "server": runs.server}, index=np.array(job, dtype=int))
    assert found["start"].sort_index().to_dict() == dict(enumerate(stored["start"]))
    assert found["server"].sort_index().tolist() == stored.get("server", [0] * len(tasks))
    assert (np.array(stored["start"]) > tasks["arrival"]).mean() > 0.5, "the run is not crowded"
