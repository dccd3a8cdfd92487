"""What is compiled, and what policies of researchers do, is what the plain loop does, event by event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairopt.base.loops import Loop
from fairopt.errors import DataError
from fairopt.scheduling import Thrashing, engine, policies, setup, simulate
from fairopt.scheduling.engine import State
from fairopt.scheduling.loop import handed
from fairopt.scheduling.policies import Policy, rule
from fairopt.scheduling.policies.slots import Slots
from fairopt.scheduling.setup import Setup
from fairopt.scheduling.workload import NEVER, SECOND, Whole, Workload

from .draw import tables, with_methods, workload


@dataclass(frozen=True)
class _Last(Slots):
    """A policy of a researcher: no name, a method of its own."""

    def score(self, state: State, group: int, servers: np.ndarray) -> np.ndarray:  # type: ignore[override]
        return -np.asarray(servers, dtype=float)


@dataclass(frozen=True)
class _LastRule(Slots):
    """The same as a rule."""

    @rule
    def score(state: Any, group: int, queue: int, server: int) -> float:
        return -server


#: Every rule, index and option. What is compiled takes most of a minute of each: in `make test-long`.
QUICK = ["best-fit-drfh", "best-fit-drfh(strict=True)", "fifo"]
OTHERS = ["slots(n=3, whole=False)", "ps-dsf", "rps-dsf", "tetris", "per-server-drf", "sequential-min-max",
          "mqdrf(shares=[0.5, 0.4], sizes=[2, 3])", "mqdrf(shares=[0.6, 0.5, 0.3], strict=True)", "easy",
          "fifo(gang=True)"]  # fmt: skip
SEEDS = st.integers(0, 2**32)


def drawn(seed: int, resources: int) -> tuple[Workload, int, Thrashing | None]:
    rng = np.random.default_rng(seed)
    w = workload(
        seed, rows=int(rng.integers(1, 25)), servers=int(rng.integers(1, 12)), users=int(rng.integers(1, 6)),
        resources=resources, constrained=bool(rng.random() < 0.5), changes=bool(rng.random() < 0.7),
        loops=bool(rng.random() < 0.4),
    )  # fmt: skip
    slower = Thrashing(rng.choice([1.0, 1.7, 5.0]), rng.choice(["short", "all"])) if rng.random() < 0.4 else None
    return w, int(rng.choice([NEVER, 7 * SECOND])), slower


@pytest.mark.long
@pytest.mark.parametrize("policy", [*QUICK, _LastRule(n=3, whole=False), *OTHERS], ids=str)
@given(seed=SEEDS, resources=st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_compiled_is_plain(policy: str | Policy, seed: int, resources: int) -> None:
    w, until, thrashing = drawn(seed, resources)
    made = Setup(w, policies.one(policy))
    expected = engine.run(made, until, thrashing=thrashing, compiled=False)
    for near in (0, 48):
        assert engine.run(made, until, thrashing=thrashing, near=near).same(expected)


@pytest.mark.parametrize("text", ["ps-dsf", "first-fit-drfh", "best-fit-drfh", "sequential-min-max", "tetris"])
@pytest.mark.parametrize(("rows", "servers", "compiled"), [
    (60, 9, False), (50, 40, False), pytest.param(120, 100, True, marks=pytest.mark.long),
])  # fmt: skip
def test_many_who_wait_in_turn_and_servers_that_crowd_the_blocks_of_the_index(
    text: str, rows: int, servers: int, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "BLOCK", 8)  # so that blocks are split
    policy = policies.one(text)
    for resources in (2, 3):
        made = tables(resources, rows=rows, servers=servers, users=30, resources=resources)
        made["tasks"]["arrival"] += np.arange(rows) % 40 / 4
        w = Workload.from_frames(**made)
        expected = engine.run(Setup(w, with_methods(policy)), compiled=False)
        assert all(engine.run(Setup(w, policy), compiled=compiled, near=near).same(expected) for near in (0, 100))


def test_index_and_scan_agree_where_products_of_amounts_are_no_longer_exact() -> None:
    """Servers of one ratio have scores that differ by rounding: the index may not take the first of them."""
    rng = np.random.default_rng(0)
    kinds = np.outer(rng.integers(1, 8, 12), rng.integers(2**35, 2**37, 2))
    asks = rng.integers(2**33, 2**35, (20, 2))
    tasks = pd.DataFrame(asks, columns=["cpu", "memory"]).assign(user="a", duration=1.0)
    w = Workload.from_frames(tasks, pd.DataFrame(kinds, columns=["cpu", "memory"]))
    made = Setup(w, policies.one("best-fit-drfh"))
    scanned, indexed = (engine.run(made, compiled=False, near=near) for near in (12, 0))
    assert indexed.same(scanned)


def test_rules_and_methods_of_others_run_plain() -> None:
    w = workload(1, constrained=False, changes=False)
    for policy in (_Last(), _LastRule()):
        assert simulate(w, policy).runs.server[0] == 2
    with pytest.raises(DataError, match="has methods that the compiled engine does not support"):
        simulate(w, _Last(), engine="compiled")


def test_a_rule_that_reads_what_methods_read_is_told_what_rules_read() -> None:
    @dataclass(frozen=True)
    class Fewest(Policy):
        @rule
        def share(state: Any, queue: int) -> float:
            return float(state.running[queue])

    with pytest.raises(DataError, match=r"reads state\.running; rules read capacity, .*def share\("):
        simulate(workload(1), Fewest())
    with pytest.raises(DataError, match=r"reads state\.duration; rules read .* as part of the `cost`"):

        @rule
        def value(state: Any, group: int, queue: int, server: int) -> float:  # of tasks, not of groups
            return float(state.duration[group])


def test_costs_beyond_whole_numbers_are_refused() -> None:
    @dataclass(frozen=True)
    class Long(Policy):
        def cost(self, workload: Workload) -> tuple[Whole, Whole]:
            return np.full_like(workload.demand, 2**62) * 2, workload.capacity.sum(axis=0)

    with pytest.raises(
        DataError, match=r"cost\(workload\) has -9223372036854775808; .* overflow: divide amounts or durations"
    ):
        simulate(workload(1), Long())


def test_the_state_says_what_waits_without_an_index_that_wraps() -> None:
    @dataclass(frozen=True)
    class Old(Policy):
        """SequentialMinMax by `State.next_cost`."""

        def share(self, state: State) -> np.ndarray:  # type: ignore[override]
            assert (state.next_cost.any(axis=1) == (state.waiting > 0)).all()
            after = state.allocated + state.next_cost
            return np.asarray((after / (state.total * state.weight[:, None])).max(axis=1))

    for seed in range(3):
        w = workload(seed, users=5)
        assert simulate(w, Old()).runs.same(simulate(w, "sequential-min-max").runs)


@pytest.mark.long
def test_few_tasks_are_simulated_plainly_and_many_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted by rules, and by what has started; what a run begins plainly the compiled loop ends alike."""
    monkeypatch.setattr("fairopt.scheduling.loop._HANDED", {})  # of tests before
    w, other = workload(1), "fifo"
    plain = simulate(w, engine="plain")
    monkeypatch.setattr(Loop, "kept", False)
    monkeypatch.setattr("fairopt.scheduling.simulator.PLAINLY", len(plain.runs.task))
    assert [simulate(w).engine for _ in range(2)] == ["plain", "compiled"]
    begun = simulate(w, other)
    assert begun.engine == "plain"
    monkeypatch.setattr(Loop, "kept", True)
    monkeypatch.setattr("fairopt.scheduling.simulator.PLAINLY", w.tasks + len(begun.runs.task) - 1)
    assert simulate(w, other).engine == "compiled", "what is kept is loaded, where it is worth it"


def test_what_begins_plainly_ends_compiled_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = pd.DataFrame({"user": ["a", "b", "c"] * 300, "arrival": np.arange(900.0), "duration": 7.0,
                          "cpu": [1.0, 2.0, 3.0] * 300})  # fmt: skip
    made = Setup(Workload.from_frames(tasks, pd.DataFrame({"cpu": [8.0, 3.0]})), policies.one("best-fit-drfh"))
    plain, both = engine.run(made, compiled=False), engine.run(made, plainly=10)
    assert engine.compiled_by(made).signatures
    assert plain.instants > 512, "some of it runs either way"
    assert both.same(plain)
    kinds: list[bool] = []
    monkeypatch.setattr(engine, "handed", lambda *given: kinds.append(given[2]) or handed(*given))
    monkeypatch.setattr(engine, "PATIENCE", 0.0)
    assert engine.run(made, plainly=10**6).same(plain)
    assert kinds == [False, True], "what takes long is compiled, however few have started"


@pytest.mark.long
def test_evictions_need_more_room_than_there_are_tasks() -> None:
    """Tasks that are put back again and again: more runs than tasks, and stale ends in the heap."""
    tasks = pd.DataFrame({"user": ["a", "b"], "duration": [50.0, 1.0], "cpu": 1.0, "tasks": [8, 40]})
    time = np.arange(1, 41)
    changes = pd.DataFrame({"time": time, "server": "server1", "up": time % 2 == 0})
    made = Setup(Workload.from_frames(tasks, pd.DataFrame({"cpu": [8.0]}), changes=changes), policies.one("fifo"))
    found = engine.run(made)
    assert len(found.task) > 3 * 48
    assert found.same(engine.run(made, compiled=False))


def test_policies_share_the_loops_that_do_not_depend_on_what_they_differ_in() -> None:
    """Where tasks go is compiled for each rule; how they wait, start and end once for the same share."""
    first, best = (
        {
            name.rpartition(".")[0]: loop
            for name, loop in engine.compiled_by(Setup(workload(1), policies.one(name))).calls.items()
        }
        for name in ("first-fit-drfh", "best-fit-drfh")
    )
    module = "fairopt.scheduling.loop"
    for shared in ("events.start", "events.end", "events.wait"):
        assert first[f"{module}.{shared}"] is best[f"{module}.{shared}"]
    assert first[f"{module}.places.find"] is not best[f"{module}.places.find"]
