"""`tools/mutate.py`: every mutation can be applied and is in the table of the docs; two are run, in seconds."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parent.parent / "tools"))

import mutate
from mutations import MUTATIONS

from fairopt.errors import SolverError
from fairopt.mechanisms import Mechanism, get
from fairopt.model.cluster import Cluster

EXAMPLE = Cluster([[9, 18], [4, 2]], [[1, 4], [3, 1]], weight=[1, 2])


@pytest.mark.parametrize("name", MUTATIONS)
def test_it_is_applied_and_undone(name: str) -> None:
    """What it patches is there, under that name."""
    solve, before = Mechanism.solve, get("ceei").solve(EXAMPLE).arrays.user_tasks
    with pytest.MonkeyPatch.context() as patch:
        MUTATIONS[name].apply(patch)
    assert Mechanism.solve is solve
    assert get("ceei").solve(EXAMPLE).arrays.user_tasks == pytest.approx(before, rel=1e-12)


def test_a_mutation_changes_something() -> None:
    with pytest.MonkeyPatch.context() as patch:
        MUTATIONS["solve always gives up"].apply(patch)
        with pytest.raises(SolverError):
            get("ceei").solve(EXAMPLE)
    with pytest.MonkeyPatch.context() as patch:
        right = get("drf").solve(EXAMPLE).arrays.user_tasks
        MUTATIONS["weights ignored"].apply(patch)
        assert get("drf").solve(EXAMPLE).arrays.user_tasks != pytest.approx(right, rel=0.1)


@pytest.mark.parametrize("mechanism", [get("tsf"), get("ceei", scope="servers")], ids=str)
def test_all_mechanisms_forget_placement(mechanism: Mechanism) -> None:
    """Those that inherit how they see a cluster, and those that have a way of their own."""
    assert ("prepare" in vars(type(mechanism))) == (mechanism.name == "ceei")
    placed = EXAMPLE.replace(eligible=[[1, 1], [0, 1]])
    right = mechanism.solve(placed).arrays.user_tasks
    with pytest.MonkeyPatch.context() as patch:
        MUTATIONS["placement ignored"].apply(patch)
        assert mechanism.solve(placed).arrays.user_tasks != pytest.approx(right, rel=0.1)
    assert mechanism.solve(placed).arrays.user_tasks == pytest.approx(right, rel=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("name", ["solve always gives up", "the certificate always passes"])
def test_it_is_noticed(name: str) -> None:
    """By the tests that should notice it, before the wider ones."""
    tests = MUTATIONS[name].tests
    assert mutate.run(name, tests)[0].startswith(tests[0])
