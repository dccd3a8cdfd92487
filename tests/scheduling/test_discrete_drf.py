"""DRF for whole tasks: table 1 of the paper, its rules one by one, and the policy of the same name."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from fairopt.errors import DataError
from fairopt.model.cluster import Cluster
from fairopt.scheduling import Workload, discrete_drf, simulate, tasks_of

from .draw import pools

#: On two servers, which are pooled.
EXAMPLE = Cluster([[4, 10], [5, 8]], [[1, 4], [3, 1]], resources=["CPU", "RAM"], users=["A", "B"])


@pytest.mark.parametrize(("ties", "picks"), [(("B", "A"), "BAABA"), (None, "ABABA")])
def test_table_1_of_the_paper(ties: tuple[str, ...] | None, picks: str) -> None:
    frame = discrete_drf(EXAMPLE, ties=ties)
    assert "".join(frame["picked"]) == picks
    assert list(frame.index) == [1, 2, 3, 4, 5]
    assert list(frame)[1:] == ["A CPU", "A RAM", "A dominant", "B CPU", "B RAM", "B dominant", "total CPU", "total RAM"]
    last = [3 / 9, 12 / 18, 2 / 3, 6 / 9, 2 / 18, 2 / 3, 1, 14 / 18]
    assert frame.iloc[-1, 1:].tolist() == pytest.approx(last)
    assert tasks_of(frame).to_dict() == {"A": 3, "B": 2}


@pytest.mark.parametrize("ties", [("A",), ("A", "A"), ("A", "B", "C"), ("A", 1), 1])
def test_ties_must_name_everyone_once(ties: tuple[str, ...]) -> None:
    with pytest.raises(DataError, match="ties must name every user once, in any order: A, B"):
        discrete_drf(EXAMPLE, ties=ties)


def test_rounding_does_not_break_ties() -> None:
    """3 * (0.1/3) is a rounding error above 0.3/3, yet three tasks of 0.1 and one of 0.3 have the same share."""
    cluster = Cluster([[3, 3]], [[0.1, 0.01], [0.3, 0.03]], users=["m", "f"])
    assert "".join(discrete_drf(cluster)["picked"])[:9] == "mfmmmfmmm"


UNEVEN = Cluster([[4, 10]], [[3, 0], [0, 1]])


@pytest.mark.parametrize(
    ("cluster", "skip", "tasks"),
    [
        (UNEVEN, False, [1, 8]),  # the first task that does not fit stops everyone
        (UNEVEN, True, [1, 10]),
        (Cluster([[0.3]], [[0.1]]), False, [3]),  # but for rounding
        (Cluster([[10]], [[1], [1], [1]], max_tasks=[2, 3.5, np.inf]), False, [2, 3, 5]),
        (Cluster([[4, 0]], [[1, 0], [1, 1], [1, 0], [5, 0]], eligible=[[1], [1], [0], [1]]), True, [4, 0, 0, 0]),
        (Cluster([[1]], [[2]]), False, [0]),
    ],
)
def test_tasks_by_hand(cluster: Cluster, skip: bool, tasks: list[int]) -> None:
    frame = discrete_drf(cluster, skip=skip)
    assert tasks_of(frame).to_list() == tasks
    assert not frame.isna().to_numpy().any()


@given(pools())
@settings(max_examples=40, deadline=None)
def test_discrete_drf_and_the_policy_decide_alike(cluster: Cluster) -> None:
    """Algorithm 1 on one pool, as `discrete_drf` and as a policy, which `test_plain.py` compares with a reference."""
    names = list(cluster.resources)
    tasks = pd.DataFrame(cluster.demand, columns=names).assign(user=list(cluster.users), duration=1.0, tasks=3000)
    users = pd.DataFrame({"user": list(cluster.users), "weight": cluster.weight})
    w = Workload.from_frames(tasks, pd.DataFrame(cluster.capacity, columns=names), users)
    for strict in (True, False):
        found = simulate(w, f"discrete-drf(strict={strict})", until=0)
        picks = [w.users[k] for k in w.user[w.group_of_task[found.runs.task]]]
        assert picks == discrete_drf(cluster, skip=not strict)["picked"].tolist()
