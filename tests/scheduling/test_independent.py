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

STORED = sorted((Path(__file__).parent / "independent").glob("*.json"))


def test_both_programs_are_there() -> None:
    assert {path.stem.partition("-")[0] for path in STORED} == {"accasim", "sdrf"}


@pytest.mark.parametrize("path", STORED, ids=lambda path: str(path.stem))
def test_starts_are_those_of_other_programs(path: Path) -> None:
    stored = json.loads(path.read_text())
    tasks = pd.DataFrame(stored["tasks"])
    count = len(tasks)
    users = None
    if "users" in stored:
        tasks["user"] = [f"u{n}" for n in tasks["user"]]
        users = pd.DataFrame({"user": [f"u{n}" for n in range(len(stored["users"]))], "weight": stored["users"]})
    else:
        tasks["user"] = "all"
    tasks["job"] = [str(k) for k in range(count)]
    w = Workload.from_frames(tasks, pd.DataFrame(stored["servers"]), users)
    setup = Setup.of(w, policies.one("fifo" if users is None else "discrete-drf"))
    runs = engine.run(setup, compiled=False)
    job = np.array([int(w.jobs[k]) for k in w.job[w.group_of_task[runs.task]]])
    start, server = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    start[job], server[job] = runs.start, runs.server
    assert sorted(job.tolist()) == list(range(count))
    assert (start // SECOND).tolist() == stored["start"]
    assert server.tolist() == stored.get("server", [0] * count)
    waited = np.array(stored["start"]) > np.array(stored["tasks"]["arrival"])
    assert waited.mean() > 0.5, "the run is not crowded"
