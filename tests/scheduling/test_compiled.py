"""The compiled engine makes the plain one's decisions, event by event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairopt.errors import DataError
from fairopt.scheduling import Thrashing, compiled, plain, policies, simulate
from fairopt.scheduling.policies import Policy
from fairopt.scheduling.policies.best_fit_drfh import BestFitDRFH
from fairopt.scheduling.setup import Setup
from fairopt.scheduling.state import State
from fairopt.scheduling.workload import NEVER, SECOND, Workload

from .draw import workload

TEXTS = [
    *policies.names(),
    *(f"{name}(strict={not policies.get(name).strict})" for name in policies.names() if not policies.get(name).pairs),
    "mqdrf(shares=[0.6, 0.5, 0.3], sizes=[1, 1, 1])", "mqdrf(shares=[0.5, 0.4], sizes=[2, 3], strict=True)",
    "tetris(fairness=0)", "tetris(fairness=1)", "slots(n=3, whole=False)", "slots(n=5)",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
@given(seed=st.integers(0, 2**32), resources=st.integers(1, 4), until=st.sampled_from([NEVER, 7 * SECOND]))
@settings(max_examples=30, deadline=None)
def test_compiled_is_plain(text: str, seed: int, resources: int, until: int) -> None:
    rng = np.random.default_rng(seed)
    w = workload(
        seed, rows=int(rng.integers(1, 25)), servers=int(rng.integers(1, 12)), users=int(rng.integers(1, 6)),
        resources=resources, constrained=bool(rng.random() < 0.5), changes=bool(rng.random() < 0.7),
        loops=bool(rng.random() < 0.4),
    )  # fmt: skip
    setup = Setup.of(w, policies.one(text))
    expected = plain.run(setup, until)
    for index in (False, True):
        assert compiled.run(setup, until, index=index).same(expected)


@pytest.mark.parametrize("text", ["slots(n=3, whole=False)", "slots(n=6, whole=False)", "cpu-fair", "best-fit-drfh"])
@given(
    seed=st.integers(0, 2**32), resources=st.integers(1, 4), until=st.sampled_from([NEVER, 7 * SECOND]),
    factor=st.sampled_from([1, 1.7, 5]), slows=st.sampled_from(["short", "all"]),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_compiled_is_plain_where_servers_are_over_committed(
    text: str, seed: int, resources: int, until: int, factor: float, slows: Literal["short", "all"]
) -> None:
    rng = np.random.default_rng(seed)
    w = workload(
        seed, rows=int(rng.integers(1, 25)), servers=int(rng.integers(1, 6)), users=int(rng.integers(1, 6)),
        resources=resources, constrained=bool(rng.random() < 0.5), changes=bool(rng.random() < 0.7),
        loops=bool(rng.random() < 0.4),
    )  # fmt: skip
    if rng.random() < 0.7:  # levels between demands
        tasks, servers, users, *changes = w.to_frames().values()
        tasks[list(w.resources)] *= rng.uniform(0.3, 1, (len(tasks), len(w.resources)))
        w = Workload.from_frames(tasks, servers, users, *changes)
    setup, thrashing = Setup.of(w, policies.one(text)), Thrashing(factor, slows)
    assert compiled.run(setup, until, thrashing=thrashing).same(plain.run(setup, until, thrashing=thrashing))


@pytest.mark.parametrize("text", ["best-fit-drfh", "first-fit-drfh", "ps-dsf", "tetris", "fifo(strict=False)"])
@pytest.mark.parametrize("resources", [2, 3])
def test_many_servers_that_crowd_the_blocks_of_the_index(
    text: str, resources: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "OPTIONS", compiled.CompiledOptions(block=8))  # so that blocks are split
    w = workload(3, rows=900, servers=400, users=20, resources=resources)
    setup = Setup.of(w, policies.one(text))
    assert compiled.run(setup, index=True).same(plain.run(setup))


@pytest.mark.parametrize("text", ["ps-dsf", "first-fit-drfh", "best-fit-drfh", "sequential-min-max", "tetris"])
@pytest.mark.parametrize("cursors", [1, 2**14])
def test_many_users_who_wait_in_turn(text: str, cursors: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queues that take and leave seats, and rounds that remember how far few groups, or many, were looked for."""
    monkeypatch.setattr(compiled, "OPTIONS", compiled.CompiledOptions(cursors=cursors))
    for seed in range(4):
        w = workload(seed, rows=150, servers=9, users=40, resources=2 + seed % 2, changes=seed % 3 > 0)
        tasks, servers, users, *changes = w.to_frames().values()
        tasks["arrival"] += np.random.default_rng(seed).integers(0, 40, len(tasks)) / 4
        setup = Setup.of(Workload.from_frames(tasks, servers, users, *changes), policies.one(text))
        expected = plain.run(setup)
        assert all(compiled.run(setup, index=index).same(expected) for index in (False, True))


@dataclass(frozen=True)
class _Last(BestFitDRFH):
    """A policy of a researcher: no name, one part of its own."""

    def score(self, state: State, group: int, servers: np.ndarray) -> np.ndarray:  # type: ignore[override]
        return -np.asarray(servers, dtype=float)


@dataclass(frozen=True)
class _Strict(Policy):
    """Parts of the package, put together anew."""

    strict: bool = True
    score = BestFitDRFH.score


def test_parts_of_others_run_plain() -> None:
    w = workload(1, constrained=False, changes=False)
    found = simulate(w, _Last())
    assert (found.engine, simulate(w, _Strict()).engine) == ("plain", "compiled")
    assert found.runs.server[0] == 2
    with pytest.raises(DataError, match="has parts that the compiled engine does not know"):
        simulate(w, _Last(), engine="compiled")


def test_evictions_need_more_room_than_there_are_tasks() -> None:
    """Tasks that are put back again and again: more runs than tasks, and stale ends in the heap."""
    tasks = pd.DataFrame({"user": ["a", "b"], "duration": [50.0, 1.0], "cpu": 1.0, "tasks": [8, 40]})
    time = np.arange(1, 41)
    changes = pd.DataFrame({"time": time, "server": "server1", "up": time % 2 == 0})
    setup = Setup.of(Workload.from_frames(tasks, pd.DataFrame({"cpu": [8.0]}), changes=changes), policies.one("fifo"))
    found = compiled.run(setup)
    assert len(found.task) > 3 * 48
    assert found.same(plain.run(setup))
