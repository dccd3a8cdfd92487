"""Jobs that come when others are done: `after`."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import fairopt as fo
from fairopt.errors import DataError
from fairopt.scheduling import dedicated, simulate
from fairopt.scheduling.fluid import fluid
from fairopt.scheduling.workload import Workload

SERVERS = pd.DataFrame({"cpu": [2.0]})


def chain(servers: int = 1, **columns: object) -> Workload:
    """Jobs a, b and c of one user, each after the one before, of two tasks each; c may not come before 100 s."""
    tasks = pd.DataFrame(
        {
            "user": "u",
            "job": ["a", "a", "b", "b", "c", "c"],
            "after": ["", "", "a", "a", "b", "b"],
            "arrival": [5.0, 5.0, 0.0, 0.0, 100.0, 100.0],
            "duration": [1.0, 3.0, 2.0, 4.0, 1.0, 1.0],
            "cpu": 1.0,
        }
    )
    return Workload.from_frames(tasks.assign(**columns), pd.concat([SERVERS] * servers))


def test_a_job_comes_when_the_last_task_of_the_one_before_ends() -> None:
    found = simulate(chain())
    assert found.jobs[["arrival", "start", "end", "response"]].to_numpy().tolist() == [
        [5, 5, 8, 3],
        [8, 8, 12, 4],
        [100, 100, 101, 1],
    ]
    assert found.users["mean_wait"].tolist() == [0]
    assert simulate(chain(), until=6).jobs["arrival"].isna().tolist() == [False, True, True]
    stuck = simulate(chain(cpu=[1, 3, 1, 1, 1, 1]), impossible="report")
    assert stuck.jobs["tasks_done"].tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("after", "message"),
    [
        (["", "", "z", "z", "", ""], "row 2 of tasks .*comes after 'z', which is no job"),
        (["", "", "a", "", "", ""], "comes after another job than other tasks of its job"),
        (["c", "c", "a", "a", "b", "b"], "row 0 of tasks .*comes after 'c', and so after itself"),
        (["", "", "b", "b", "b", "b"], "row 2 of tasks .*and so after itself"),
    ],
)
def test_what_cannot_be_is_refused(after: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        chain(after=after)


def test_users_alone_keep_their_loops_and_need_nobody_elses() -> None:
    two = chain(2, user=["u", "u", "u", "u", "v", "v"])
    with pytest.raises(DataError, match="comes after a job of another user"):
        dedicated(two)
    alone = dedicated(chain(after=["", "", "a", "a", "", ""]))
    assert alone["u"].jobs["arrival"].tolist() == [5, 8, 100]
    with pytest.raises(DataError, match="come after others"):
        fluid(two, "drfh")


def test_drf_7_2_has_a_job_of_a_user_at_a_time() -> None:
    w = fo.open_workload("drf-policies?loop=true&jobs=3&seconds=4")
    jobs = simulate(w, "first-fit-drfh").jobs
    by_user = jobs.groupby("user", observed=True)
    assert np.allclose(by_user["arrival"].shift(-1).dropna(), jobs["end"][by_user.cumcount() < 2])
    assert (jobs["tasks_done"] == 80).all()
