"""The fluid model: work is conserved, capacities are kept, and a plain loop comes to the same times."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairopt.errors import DataError, FairoptError
from fairopt.mechanisms import get
from fairopt.mechanisms.drf import DRF
from fairopt.model.cluster import Cluster
from fairopt.scheduling.fluid import FluidRun, fluid
from fairopt.scheduling.workload import NEVER, SECOND, Workload

from .draw import workload

SERVERS = pd.DataFrame({"cpu": [9.0], "memory": [18.0]})
TWO = pd.DataFrame(
    {"user": ["a", "b"], "duration": [300.0, 300.0], "tasks": [10, 10], "cpu": [1.0, 3.0], "memory": [4.0, 1.0]}
)


SEEDS = st.integers(0, 2**32)


def drawn(seed: int) -> Workload:
    return workload(seed, rows=1 + seed % 9, servers=1 + seed % 3, changes=seed % 4 > 0, whole=False)


def test_drf_of_its_paper_by_hand() -> None:
    """3 tasks of A and 2 of B: A's 3000 task seconds take 1000 s; B has 600 left at 1200, and 3 tasks run then."""
    w = Workload.from_frames(TWO, SERVERS)
    found = fluid(w, "drf", idle=True)
    assert found.jobs["end"].tolist() == pytest.approx([1000, 1400])
    assert found.users["mean_response"].tolist() == pytest.approx([1000, 1400])
    assert found.users["mean_dominant_share"].tolist() == pytest.approx([3000 * 4 / 18 / 1400, 3000 * 3 / 9 / 1400])
    assert found.shares["player"].tolist() == ["job1", "job2", "job2"]
    assert found.shares["share"].tolist() == pytest.approx([2 / 3, 2 / 3, 1])
    assert found.utilization.to_dict() == pytest.approx({"cpu": (3000 * 4) / 9 / 1400, "memory": 15000 / 18 / 1400})
    assert found.summary()["jobs done"] == 2
    assert len(found.plot().axes) == 3
    for options in ({}, {"events": True}):  # B has 1000 left at 1000, and 3 tasks run from then on
        assert fluid(w, "drf", **options).jobs["end"].tolist() == pytest.approx([1000, 1000 + 1000 / 3])
    assert fluid(w, "drf", until=0).jobs["state"].tolist() == ["to come"] * 2


def test_what_is_released_goes_to_those_who_remain_and_not_to_those_who_wait() -> None:
    """C comes at 950, when A and B share; A ends at 1000 and B has all until 1200, when C takes part."""
    three = pd.concat([TWO, TWO.iloc[:1].assign(user="c", arrival=950.0)]).fillna({"arrival": 0.0})
    found = fluid(Workload.from_frames(three, SERVERS), "drf")
    assert found.shares["time"].unique()[:3] == pytest.approx([0, 1000, 1200])
    assert found.shares["tasks"][:5].tolist() == pytest.approx([3, 2, 3, 2, 3])
    assert found.jobs["start"].tolist() == pytest.approx([0, 0, 1200])


@pytest.mark.parametrize("mechanism", ["drfh", "ps-dsf", "alphapf-vds(alpha=1)"])
@settings(max_examples=6)
@given(
    seed=SEEDS,
    by=st.sampled_from(["job", "user"]),
    events=st.booleans(),
    limits=st.booleans(),
    idle=st.booleans(),
)
def test_work_is_conserved_and_capacities_are_kept(
    mechanism: str, seed: int, by: str, events: bool, limits: bool, idle: bool
) -> None:
    w = drawn(seed)
    found = fluid(w, mechanism, every=0.3, by=by, events=events, limits=limits, idle=idle, until=15)
    run, jobs, timeline = found.run, found.jobs, found.timeline
    assert (run.left >= 0).all()
    spent = np.sum([used for used, _ in run.use], axis=0)
    np.testing.assert_allclose(spent, (run.work - run.left) @ (w.demand * w.unit), rtol=1e-9, atol=1e-9)
    use = timeline[list(w.resources)].to_numpy()
    assert np.nanmax(use, initial=0.0) <= 1 + 1e-5
    assert ((jobs["state"] == "done") == jobs["end"].notna()).all()
    assert (jobs["left"][jobs["state"] == "done"] == 0).all()
    gone = w.leaves[w.job_user] <= found.end * SECOND
    assert (jobs["state"][gone].isin(["gone", "done"])).all()
    np.testing.assert_allclose(timeline.index[1:], (timeline.index + timeline["span"])[:-1])
    if limits:  # nobody runs faster than on its own
        assert np.nanmin(run.ended - run.arrival - run.work / np.diff(w.first), initial=0.0) >= -1e-3


def plain(w: Workload, by: str, limits: bool) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """When groups end, and what is left of them, with DRFH for jobs or users, solved at every event."""
    player, weight = (w.job, w.weight[w.job_user]) if by == "job" else (w.user, w.weight)
    size = np.diff(w.first)
    arrival, leaves, changes = (times / SECOND for times in (w.arrival, w.leaves[w.user], w.change_time))
    left = np.add.reduceat(w.duration, w.first[:-1]) / SECOND
    ends, now = np.full(w.groups, np.nan), 0.0
    up = np.ones(len(w.servers), dtype=bool)
    up[w.change_server[::-1]] = ~w.change_up[::-1]  # before its first change
    while True:
        past = changes <= now
        up[w.change_server[past]] = w.change_up[past]
        here = (arrival <= now) & (leaves > now) & np.isnan(ends)
        speed, those = np.zeros(w.groups), np.unique(player[here])
        if len(those) and up.any():
            of = here & (player == those[:, None])
            part = of * size / (of @ size)[:, None]
            eligible = [w.eligible[w.placement[mine]].any(axis=0)[up] for mine in of]
            demand, count = part @ (w.demand * w.unit), of @ size if limits else np.inf
            cluster = Cluster(w.capacity[up] * w.unit, demand, weight[those], eligible, max_tasks=count)
            speed = get("drfh").solve(cluster).arrays.user_tasks @ part
        spans = np.divide(left, speed, out=np.full(w.groups, np.inf), where=speed > 0)
        events = np.concatenate([arrival, leaves[leaves < NEVER / SECOND], changes])
        span = min(spans.min(), (events[events > now] - now).min(initial=np.inf))
        if span == np.inf:
            return ends, left
        now, left = now + span, left - speed * span
        ends[spans <= span + 1e-9] = now


@settings(max_examples=15)
@given(seed=SEEDS, by=st.sampled_from(["job", "user"]), limits=st.booleans())
def test_a_plain_loop_comes_to_the_same_ends(seed: int, by: str, limits: bool) -> None:
    """For players with the mean of what their tasks ask for, wherever one of them may run."""
    w = drawn(seed)
    run = fluid(w, "drfh", events=True, warm=False, by=by, limits=limits).run
    ends, left = plain(w, by, limits)
    np.testing.assert_allclose(run.ended, ends, rtol=1e-5)
    np.testing.assert_allclose(run.left, left, rtol=1e-5, atol=1e-6)


@settings(max_examples=12)
@given(seed=SEEDS, at=st.floats(0, 5))
def test_an_interrupted_run_goes_on_where_it_was(seed: int, at: float) -> None:
    w = drawn(seed)
    whole = FluidRun(w, get("drfh"), 0.3).run(15)
    parts = FluidRun(w, get("drfh"), 0.3).run(at).run(15)
    np.testing.assert_allclose(parts.left, whole.left, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(parts.ended, whole.ended, rtol=1e-6)


def test_ps_dsf_starts_from_the_solve_before_unless_told_not_to() -> None:
    tasks = pd.DataFrame(
        {
            "user": [f"u{k}" for k in range(6)], "arrival": [0, 0, 0, 300, 600, 900], "duration": 4000.0, "tasks": 20,
            "cpu": [1, 2, 0, 1, 3, 0], "memory": [2, 0, 1, 1, 0, 2.0],
        }
    )  # fmt: skip
    w = Workload.from_frames(tasks, pd.DataFrame({"cpu": [10, 0, 6.0], "memory": [8, 12, 0.0]}))
    warm, cold = (fluid(w, "ps-dsf", until=1500, warm=started) for started in (True, False))
    assert warm.timeline["warm"].tolist() == [False, True, True, True]
    assert not cold.timeline["warm"].any()
    assert np.allclose(warm.jobs["left"], cold.jobs["left"], rtol=1e-6)


def test_ctrl_c_ends_a_run_with_what_has_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    w, solve, asked = Workload.from_frames(TWO, SERVERS), DRF.solve, []

    def interrupted(self: DRF, *arguments: Any, **more: Any) -> Any:
        asked.append(1)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return solve(self, *arguments, **more)

    monkeypatch.setattr(DRF, "solve", interrupted)
    found = fluid(w, "drf")
    assert (found.interrupted, found.end) == (True, pytest.approx(1000))
    assert "interrupted" in repr(found)
    assert found.jobs["state"].tolist() == ["done", "running"]
    assert not found.run.run().interrupted


def test_what_misses_its_tolerance_raises_or_is_flagged(out_of_reach: float) -> None:
    w = Workload.from_frames(TWO, SERVERS)
    with pytest.raises(FairoptError, match="misses tol"):
        fluid(w, "drf", tol=out_of_reach, until=1)
    assert fluid(w, "drf", tol=out_of_reach, throw=False, until=1).timeline["flagged"].any()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"every": 0}, "every is 0"),
        ({"every": math.inf}, "every is inf"),
        ({"by": "task"}, "by is 'task'"),
        ({"until": math.nan}, "until is nan"),
        ({"mechanism": "nobody"}, "no mechanism"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        fluid(Workload.from_frames(TWO, SERVERS), **({"mechanism": "drf"} | options))


@pytest.mark.parametrize("by", ["job", "user"])
def test_memory_of_use_reduces_weights(by: str) -> None:
    """After a half-life alone, a user counts a quarter of one who comes then: 2 ** -(1 / (1 / 2))."""
    rows = pd.DataFrame({"user": ["a", "b"], "duration": 1e4, "cpu": 1.0, "tasks": 2, "arrival": [0.0, 600.0]})
    w = Workload.from_frames(rows, pd.DataFrame({"cpu": [2.0]}))
    found = fluid(w, "drfh", every=100.0, by=by, half_life="10m", until=1300.0)
    shares = found.run.shares
    at = {time: one["share"].tolist() for time, one in ((one["time"].iloc[0], one) for one in shares)}
    assert at[0.0] == [1.0]
    assert at[600.0] == pytest.approx([0.2, 0.8])
    kept = 2 ** (-100 / 600)
    usage = np.array([0.5 * kept + 0.2 * (1 - kept), 0.8 * (1 - kept)])
    weight = 2 ** (-2 * usage / usage.sum())
    assert at[700.0] == pytest.approx(weight / weight.sum())
    assert [len(one) for one in shares] == [1] * 6 + [2] * 7
    with pytest.raises(DataError, match="a half-life is 'soon'"):
        fluid(w, "drfh", half_life="soon")
