"""The plain engine makes the decisions of the reference, task by task."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairopt.scheduling import plain, policies
from fairopt.scheduling.setup import Setup
from fairopt.scheduling.workload import NEVER, SECOND

from .draw import workload
from .reference import Reference

SEEDS = st.integers(0, 2**32)
#: What the reference knows, with parameters.
KNOWN: dict[str, dict[str, Any]] = {
    "first-fit-drfh": {}, "best-fit-drfh": {}, "discrete-drf": {"strict": False}, "choosy": {}, "tsf": {},
    "sequential-min-max": {}, "ps-dsf": {}, "per-server-drf": {}, "tetris": {"fairness": 0.25},
    "fifo": {"strict": False}, "mqdrf": {"shares": (0.6, 0.5, 0.3), "sizes": (1, 1, 1)},
}  # fmt: skip
STRICT = ("first-fit-drfh", "best-fit-drfh", "choosy", "tsf", "sequential-min-max", "fifo", "discrete-drf", "mqdrf")
CASES = [*KNOWN.items(), *((name, KNOWN[name] | {"strict": True}) for name in STRICT)]


@pytest.mark.parametrize(("name", "given_"), CASES, ids=lambda one: str(one))
@given(seed=SEEDS, resources=st.integers(1, 3), until=st.sampled_from([NEVER, 7 * SECOND]), loops=st.booleans())
@settings(max_examples=25, deadline=None)
def test_plain_decides_as_the_reference(
    name: str, given_: dict[str, Any], seed: int, resources: int, until: int, loops: bool
) -> None:
    w = workload(seed, resources=resources, loops=loops)
    setup = Setup.of(w, policies.get(name, **given_))
    assert setup.possible.all()
    found = plain.run(setup, until)
    expected = Reference(w, name, **given_).run(until)
    rows = list(zip(found.task, found.server, found.start, found.end, found.how, strict=True))
    assert [list(map(int, row)) for row in rows] == expected
