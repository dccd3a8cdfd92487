"""The plain loop makes the decisions of the reference, task by task, by rules and by methods of arrays."""

from __future__ import annotations

import re
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import ROOT

from fairopt.base.errors import DataError
from fairopt.scheduling import Thrashing, engine, policies, simulate
from fairopt.scheduling.policies.best_fit_drfh import BestFitDRFH
from fairopt.scheduling.setup import Setup
from fairopt.scheduling.workload import NEVER, SECOND, Workload

from .draw import with_methods, workload
from .reference import Reference

SEEDS = st.integers(0, 2**32)
#: What the reference knows, with parameters.
KNOWN: dict[str, dict[str, Any]] = {
    "first-fit-drfh": {}, "best-fit-drfh": {}, "discrete-drf": {"strict": False}, "choosy": {}, "tsf": {},
    "sequential-min-max": {}, "ps-dsf": {}, "rps-dsf": {}, "per-server-drf": {}, "tetris": {"fairness": 0.25},
    "fifo": {"strict": False}, "mqdrf": {"shares": (0.6, 0.5, 0.3), "sizes": (1, 1, 1)},
}  # fmt: skip
STRICT = ("first-fit-drfh", "best-fit-drfh", "choosy", "tsf", "sequential-min-max", "fifo", "discrete-drf", "mqdrf")
CASES = [
    *KNOWN.items(), *((name, KNOWN[name] | {"strict": True}) for name in STRICT), ("tetris", {"fairness": 0}),
    ("tetris", {"fairness": 1}), ("mqdrf", {"shares": (0.5, 0.4), "sizes": (2, 3)}),
]  # fmt: skip


def test_every_policy_has_a_reference_and_a_row() -> None:
    known = {*KNOWN, "slots", "cpu-fair", "round-robin", "easy"}
    assert known == {*policies.REGISTRY}, "add new policies to KNOWN and to reference.py (CONTRIBUTING.md)"
    page = (ROOT / "docs" / "scheduling.md").read_text(encoding="utf-8").partition("\n## Policies\n")[2]
    rows = re.findall(r"^\| `([\w-]+)[`(]", page.partition("\n## ")[0], re.MULTILINE)
    assert {*rows} == {*policies.REGISTRY}, "add new policies to the table of docs/scheduling.md"


@pytest.mark.parametrize(("name", "given_"), CASES, ids=lambda one: str(one))
@given(seed=SEEDS, resources=st.integers(1, 3), until=st.sampled_from([NEVER, 7 * SECOND]), loops=st.booleans())
@settings(max_examples=6, deadline=None)
def test_the_loop_decides_as_the_reference(
    name: str, given_: dict[str, Any], seed: int, resources: int, until: int, loops: bool
) -> None:
    w = workload(seed, resources=resources, loops=loops)
    compare(w, name, given_, until)


@pytest.mark.parametrize(
    ("name", "given_"), [("slots", {"n": 3, "whole": False}), ("cpu-fair", {}), ("best-fit-drfh", {})]
)
@given(
    seed=SEEDS, resources=st.integers(1, 3), until=st.sampled_from([NEVER, 7 * SECOND]),
    factor=st.sampled_from([1, 1.7, 5]), slows=st.sampled_from(["short", "all"]), loops=st.booleans(),
)  # fmt: skip
@settings(max_examples=12, deadline=None)
def test_where_servers_are_over_committed(
    name: str, given_: dict[str, Any], seed: int, resources: int, until: int, factor: float, slows: Any, loops: bool
) -> None:
    w = workload(seed, resources=resources, loops=loops, whole=seed % 3 == 0)  # else levels between demands
    compare(w, name, given_, until, Thrashing(factor, slows))


def compare(w: Workload, name: str, given_: dict[str, Any], until: int, thrashing: Thrashing | None = None) -> None:
    policy = policies.REGISTRY.made(name, given_)
    methods = with_methods(policy)
    assert engine.knows(policy)
    assert not engine.knows(methods)
    setup = Setup(w, policy)
    assert setup.possible.all()
    expected = Reference(w, name, thrashing=thrashing, **given_).run(until)
    for made, near in ((setup, 0), (setup, 48), (Setup(w, methods), 48)):  # by an index of servers, by scans
        found = engine.run(made, until, thrashing=thrashing, compiled=False, near=near)
        rows = list(zip(found.task, found.server, found.start, found.end, found.how, strict=True))
        assert [list(map(int, row)) for row in rows] == expected


@pytest.mark.parametrize("pool", [(7, 11), (30, 49)])
def test_best_fit_s_scores_tie_where_they_are_equal(pool: tuple[int, int]) -> None:
    """Of two resources, whatever they are divided by; and otherwise they are in order."""
    free = np.array([(a, b) for a in range(6, 15) for b in range(6, 15)])
    for need in [(a, b) for a in range(1, 7) for b in range(1, 7)]:
        state: Any = SimpleNamespace(demand=np.array([need]), free=free, pool=np.array(pool), queue=[0])
        score = BestFitDRFH().score(state, 0, np.arange(len(free)))
        exact = np.array([abs(Fraction(need[1], need[0]) - Fraction(int(b), int(a))) for a, b in free])
        ranks, wanted = (np.unique(values, return_inverse=True)[1] for values in (score, exact))
        assert (ranks == wanted).all()


@pytest.mark.parametrize("by", ["tsf", "ps-dsf", "rps-dsf"])
def test_servers_take_turns_in_random_order_at_every_instant(by: str) -> None:
    """Where all tasks of a user are alike, who is behind in turns has no room for what starts later."""
    rng, orders = np.random.default_rng(3), set()
    tasks = pd.DataFrame(rng.integers(1, 9, (4, 2)), columns=["cpu", "memory"])
    tasks = tasks.assign(user=list("abcd"), tasks=20, duration=rng.integers(1, 4, 4))
    w = Workload.from_frames(tasks, pd.DataFrame(rng.integers(10, 40, (5, 2)), columns=["cpu", "memory"]))
    for seed in range(3):
        runs = simulate(w, f"round-robin(by='{by}', seed={seed})").runs
        for time in np.unique(runs.start):
            here, count = runs.server[runs.start == time], np.zeros(5, dtype=int)
            for k, server in enumerate(here):
                assert (count[here[k:]] >= count[server]).all()
                count[server] += 1
        orders.add(tuple(runs.server[:5]))
    assert len(orders) > 1


def test_round_robin_names_a_policy_without_limits() -> None:
    with pytest.raises(DataError, match="which must have no limits"):
        policies.one("round-robin(by='mqdrf')")
