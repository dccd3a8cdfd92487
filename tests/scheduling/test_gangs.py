"""Gangs by arrival and with EASY backfilling, beside an independent simulator of processors."""

from __future__ import annotations

import heapq
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairopt.errors import DataError
from fairopt.scheduling import Workload, simulate
from fairopt.workloads import load_workload


def independent(jobs: pd.DataFrame, total: int, backfill: bool) -> list[float]:
    """Starts of rigid jobs on identical processors: at an instant jobs end, then arrive, then one round decides."""
    submitted, run, size, asked = (jobs[name].tolist() for name in ("arrival", "duration", "tasks", "walltime"))
    start, free, queue, running = [-1.0] * len(jobs), total, list[int](), list[tuple[float, int]]()
    todo = sorted(range(len(jobs)), key=lambda j: (submitted[j], j))
    while todo or running:
        now = min([*(end for end, _ in running[:1]), *(submitted[j] for j in todo[:1])])
        while running and running[0][0] == now:
            free += size[heapq.heappop(running)[1]]
        while todo and submitted[todo[0]] == now:
            queue.append(todo.pop(0))
        shadow, spare = float("inf"), 0
        for j in [*queue]:
            if j != queue[0]:  # the first one waits: has it a reservation that this one would delay?
                if not backfill:
                    break
                if shadow == float("inf"):
                    ends = sorted((max(now, start[k] + asked[k]), size[k]) for _, k in running)
                    shadow = next(
                        end for end, _ in ends if free + sum(n for e, n in ends if e <= end) >= size[queue[0]]
                    )
                    spare = free + sum(n for end, n in ends if end <= shadow) - size[queue[0]]
                if size[j] > free or (now + asked[j] > shadow and size[j] > spare):
                    continue
                spare -= size[j] * (now + asked[j] > shadow)
            elif size[j] > free:
                continue
            queue.remove(j)
            start[j], free = now, free - size[j]
            heapq.heappush(running, (now + run[j], j))
    return start


def drawn(seed: int, rows: int = 60, total: int = 12) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    lasts = rng.integers(1, 12, rows)
    return pd.DataFrame({
        "user": "u", "job": [f"j{k}" for k in range(rows)], "arrival": np.sort(rng.integers(0, 80, rows)).astype(float),
        "duration": lasts, "walltime": lasts + rng.integers(0, 9, rows) * rng.integers(0, 2, rows),
        "tasks": rng.integers(1, total + 1, rows), "cpu": 1,
    })  # fmt: skip


@pytest.mark.parametrize("policy", ["easy", "fifo(gang=True)"])
@pytest.mark.parametrize("seed", range(6))
def test_starts_are_those_of_an_independent_simulator(policy: str, seed: int) -> None:
    """On a server, on one each, and on servers of several processors."""
    jobs = drawn(seed)
    expected = independent(jobs, 12, policy == "easy")
    for servers in ([12], [1] * 12, [5, 4, 3]):
        found = simulate(Workload.from_frames(jobs, pd.DataFrame({"cpu": servers})), policy).jobs
        assert found.loc[jobs["job"], "start"].tolist() == expected


def test_backfilling_shortens_waits_and_delays_nobody_in_front() -> None:
    waits = []
    for policy in ("fifo(gang=True)", "easy"):
        found = simulate(Workload.from_frames(drawn(7), pd.DataFrame({"cpu": [12]})), policy).jobs
        waits.append(float((found["start"] - found["arrival"]).mean()))
    assert waits[1] < 0.8 * waits[0]


def test_a_later_job_of_other_resources_may_pass_only_beside_the_reservation() -> None:
    """The second job waits for memory until 10 s; the third would take that memory beyond, the fourth would not."""
    tasks = pd.DataFrame({
        "user": list("abcd"), "duration": [10.0, 5.0, 20.0, 20.0], "tasks": [1, 2, 1, 1],
        "cpu": [1, 1, 1, 1], "memory": [2, 2, 1, 0],
    })  # fmt: skip
    servers = pd.DataFrame({"cpu": [2, 2], "memory": [2, 2]})
    assert simulate(Workload.from_frames(tasks, servers), "easy").jobs["start"].tolist() == [0, 10, 15, 0]


def test_all_tasks_start_at_once_and_a_gang_larger_than_all_servers_is_refused() -> None:
    tasks = pd.DataFrame({"user": ["a", "b"], "tasks": [2, 3], "duration": [4.0, 1.0], "cpu": 1})
    servers = pd.DataFrame({"cpu": [1, 1, 1]})
    found = simulate(Workload.from_frames(tasks, servers), "fifo(gang=True)")
    assert found.tasks.groupby("user")["start"].agg(list).tolist() == [[0, 0], [4, 4, 4]]
    assert simulate(Workload.from_frames(tasks, servers), "fifo").tasks["start"].tolist() == [0, 0, 0, 1, 2]
    with pytest.raises(DataError, match="room for 3 of them at once"):
        simulate(Workload.from_frames(tasks, servers[:2]), "easy")
    with pytest.raises(DataError, match="is strict"):
        simulate(Workload.from_frames(tasks, servers), "fifo(gang=True, strict=False)")


def test_swf_states_how_long_jobs_may_last_and_tables_keep_it(tmp_path: Path) -> None:
    file = tmp_path / "log.swf"
    file.write_text("; MaxProcs: 4\n1 0 -1 10 2 -1 -1 2 60 -1 1 1 1 -1 -1 -1 -1 -1\n"
                    "2 5 -1 10 2 -1 -1 2 -1 -1 1 1 1 -1 -1 -1 -1 -1\n")  # fmt: skip
    w = load_workload(file)
    assert (w.lasts / 1e6).tolist() == [60, 10]
    assert (Workload.from_frames(**w.to_frames()).lasts == w.lasts).all()


KTH = Path(os.environ.get("FAIROPT_TRACES", "/none")) / "kth-sp2" / "log.swf"


@pytest.mark.long
@pytest.mark.skipif(not KTH.is_file(), reason="the log of KTH's SP2 is not there")
def test_easy_on_the_log_of_kth() -> None:
    """The mean of run and wait that pyss publishes for EASY is 15,696.80 s (docs/scheduling.md)."""
    rows = np.array([line.split() for line in KTH.read_text().splitlines() if not line.startswith(";")], dtype=float)
    rows = rows[(rows[:, 3] > 0) & (rows[:, 8] > 0)]
    jobs = pd.DataFrame({
        "user": "u", "job": rows[:, 0].astype(int).astype(str), "arrival": rows[:, 1], "walltime": rows[:, 8],
        "duration": np.minimum(rows[:, 3], rows[:, 8]), "tasks": np.where(rows[:, 7] > 0, rows[:, 7], rows[:, 4]),
        "cpu": 1,
    })  # fmt: skip
    found = simulate(Workload.from_frames(jobs, pd.DataFrame({"count": [100], "cpu": [1]})), "easy").jobs["response"]
    assert len(found) == 28_481
    assert found.mean() == pytest.approx(15_696.798, rel=2e-4)
    assert found.max() == 309_231
