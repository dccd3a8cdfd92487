"""Google 2011 on a tiny trace with every quirk."""

from __future__ import annotations

import numpy as np
import pytest

from fairopt.errors import DataError
from fairopt.workloads import google2011

from .conftest import MACHINES, TASKS


def rows(frame):
    return {int(machine): tuple(row) for machine, row in zip(frame.index, frame.to_numpy(), strict=True)}


def test_updates_and_removals_are_replayed(google):
    folder = google()
    there = {1: (0.5, 0.2493), 2: (0.5, 0.4995), 4: (1, 1)}
    for at in (0, 699.999999):
        assert rows(google2011.machines(folder, at=at)) == there
    there[1] = 0.5, 0.749
    assert rows(google2011.machines(folder, at=700)) == there
    back = there | {5: (0.25, 0.2498)}
    assert rows(google2011.machines(folder, at=900)) == rows(google2011.machines(folder, at=None)) == back
    del there[2]
    assert rows(google2011.machines(folder, at=800)) == there
    gone = google([*MACHINES, "950000000,5,1,HofLGzk1Or/8=,0.25,0.2498"])
    assert rows(google2011.machines(gone, at=None)) == back  # ever seen


def test_a_user_asks_for_the_mean_of_its_tasks_each_once(google):
    snapshot = google2011.cluster(google(), at=0)
    cluster = snapshot.cluster
    assert cluster.users == ("alice+/a", "bob+++++")
    assert cluster.resources == ("cpu", "memory")
    # alice's other task has no request; the SCHEDULE row does not count again
    np.testing.assert_array_equal(cluster.demand, [[0.02, 0.04], [7.5e-05, 0]])
    assert cluster.servers == ("machine1", "machine2", "machine4")
    assert np.isinf(cluster.max_tasks).all()


def test_users_that_ask_for_nothing_are_left_out_and_listed(google):
    snapshot = google2011.cluster(google(), at=0)
    assert snapshot.left_out == {
        "carol+++cccccccc=": "its tasks request nothing",
        "dave++++dddddddd=": "no request of its tasks is known",
    }
    assert {
        "users found": 4,
        "users left out": 2,
        "machines found": 4,
        "machines left out, capacity unknown": 1,
        "task_events rows read": len(TASKS),
        "tasks found": 5,
    }.items() <= snapshot.report.items()


def test_tasks_come_and_go(google):
    folder = google()

    def names(**when):
        return google2011.cluster(folder, **when).cluster.users

    assert names(at=600.03) == ("alice+/a", "bob+++++")  # evicted and submitted again in the same microsecond
    assert names(at=700) == ("alice+/a",)  # bob has finished
    assert names(at=600, window=100) == ("alice+/a", "bob+++++")  # bob was there at the beginning
    assert names(at=700, window=100) == ("alice+/a", "erin++++")
    assert google2011.tasks(folder, at=700).shape == (5, 5)


def test_a_task_that_is_submitted_twice_counts_once(google):
    cluster = google2011.cluster(google(), at=700, max_tasks=True).cluster
    np.testing.assert_allclose(cluster.demand, [[0.04, 0.06]])  # the mean of (0.02, 0.04) and (0.06, 0.08)
    assert cluster.max_tasks.tolist() == [3]  # with the one of unknown request


def test_an_evicted_task_is_gone_until_it_is_submitted_again(google):
    folder = google(tasks=[line for line in TASKS if not line.startswith("600030000,,10,1,,0")])
    before, after = (google2011.tasks(folder, at=at).set_index(["job", "task"]).index for at in (600, 601))
    assert before.difference(after).tolist() == [(10, 1)]


def test_a_task_that_ends_once_more_is_not_there(google):
    tasks = [*TASKS, "750000000,,11,0,,5,bob+++++bbbbbbbb=,2,0,7.5e-05,0,0.1,0"]  # finished before, killed now
    assert "bob+++++" not in google2011.cluster(google(tasks=tasks), at=720, window=60).cluster.users


def test_tasks_without_a_submission_are_counted(google):
    snapshot = google2011.cluster(google(tasks=[*TASKS, "900000000,,15,0,9,1,zoe,2,0,1,1,1,0"]), at=900)
    assert snapshot.report["tasks left out, never submitted"] == 1


def test_several_parts_are_read_until_the_window_ends(google, write):
    folder = google()
    later = folder / "task_events" / "part-00002-of-00500.csv.gz"
    frank = "1000000000,,16,0,,0,frank+++ffffffff=,2,0,0.1,0.1,0,0"
    write(folder / "task_events" / "part-00001-of-00500.csv.gz", [frank])
    write(later, ["rubbish"])
    before = google2011.cluster(folder, at=999)
    assert "frank+++" not in before.cluster.users
    assert before.report["task_events rows read"] == len(TASKS) + 1
    with pytest.raises(DataError, match=r"part-00002-of-00500\.csv\.gz, line 1"):
        google2011.cluster(folder, at=1000)
    write(later, [frank.replace("1000000000,,16", "2000000000,,17")])
    at_last = google2011.cluster(folder, at=1000, max_tasks=True).cluster
    assert at_last.max_tasks[at_last.users.index("frank+++")] == 1


@pytest.mark.parametrize(
    ("wanted", "what"),
    [(3, "only 2"), (0, "at least 1"), (1.5, "at most 1"), (0.0, "above 0"), (True, "whole number")],
)
def test_numbers_of_users_that_make_no_sense(google, rng, wanted, what):
    with pytest.raises(DataError, match=what):
        google2011.cluster(google(), users=wanted, rng=rng)


def test_long_names_where_short_ones_collide(google):
    tasks = [f"0,,{k},0,,0,sameprefix{k},2,0,1,1,1,0" for k in (1, 2)]
    assert google2011.cluster(google(tasks=tasks)).cluster.users == ("sameprefix1", "sameprefix2")


def test_an_instant_with_nobody(google):
    for at, window, what in ((-1, 0, "0 users"), (1e9, 0, "has events from 0 to"), (0, -1, "window is -1; it must be")):
        with pytest.raises(DataError, match=what):
            google2011.cluster(google(), at, window)


def test_rows_out_of_order_are_replayed_in_order(google):
    """Those of one time in their own, however many."""
    shuffled = [MACHINES[k] for k in (5, 4, 0, 1, 2, 3, 6, 7)]
    many = [f"850000000,{machine},2,p,0.5,{k / 1000}" for k in range(200) for machine in (1, 4)]
    folder = google([*shuffled, *many])
    assert rows(google2011.machines(folder, at=800)) == {1: (0.5, 0.749), 4: (1, 1)}
    assert rows(google2011.machines(folder, at=850)) == {1: (0.5, 0.199), 4: (0.5, 0.199)}
