"""Surveys: what is searched, stored, gone on with, and refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairopt.errors import DataError
from fairopt.properties import _survey as room
from fairopt.properties._survey import Cell, Outcome, _elsewhere, cells, frame, outcome, read, survey

MONOTONE = "population-monotonicity"


def same(one: Outcome, other: Outcome) -> bool:
    """But for seconds."""
    rest = [replace(each, seconds=0.0, witness=None) for each in (one, other)]
    return rest[0] == rest[1] and repr(one.witness) == repr(other.witness)


def test_what_is_searched() -> None:
    """All clusters first, then those with fewer conditions: what is found among them answers for the others."""
    asked = cells(["drfh"], [MONOTONE])
    both = ("positive demands", "no placement constraints")
    assert [one.conditions for one in asked] == [(), both[:1], both]
    assert asked[2].name == "drfh--population-monotonicity--positive-demands--no-placement-constraints"


def test_others_answer() -> None:
    """No counterexample among all clusters, or one that has positive demands: no search for another."""
    some = survey(["drf", "task-maxmin"], [MONOTONE, "sharing-incentive"], trials=400, seed=3)
    found = {(one.cell.mechanism, one.cell.property, one.cell.conditions): one.witness is not None for one in some}
    positive = ("positive demands",)
    assert [found["drf", MONOTONE, conditions] for conditions in ((), positive)] == [True, False]
    for mechanism, violated in (("drf", False), ("task-maxmin", True)):
        assert found[mechanism, "sharing-incentive", ()] == violated
        assert (mechanism, "sharing-incentive", positive) not in found


def test_killed_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same as in one go, whenever it was interrupted; what is stored is not computed again."""
    monkeypatch.setattr(room, "BLOCK", 100)

    def envied(store: Path | None = tmp_path) -> Outcome:
        (found,) = survey(["drf"], ["envy-freeness"], trials=350, seed=5, store=store)
        return found

    whole, right, calls = envied(None), room.hunt, list[int]()

    def dying(*arguments: Any, **more: Any) -> object:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return right(*arguments, **more)

    monkeypatch.setattr(room, "hunt", dying)
    with pytest.raises(KeyboardInterrupt):
        envied()
    (left,) = read(tmp_path)
    assert (left.trials, left.blocks) == (200, 2)
    assert same(envied(), whole)
    assert same(envied(), whole)
    assert len(calls) == 5  # two before, the one that died, and two
    assert read(tmp_path)[0].trials == 350
    short = survey(["tsf"], ["envy-freeness"], trials=10_000, seconds=1e-9, seed=5)
    assert short[0].trials == 100  # a block is begun, and no other


def test_processes_change_nothing(tmp_path: Path) -> None:
    asked = (["drf", "tsf"], ["sharing-incentive", MONOTONE])
    alone = survey(*asked, trials=60, seed=2)
    together = survey(*asked, trials=60, seed=2, jobs=2, store=tmp_path)
    assert all(same(one, other) for one, other in zip(alone, together, strict=True))
    table = frame(read(tmp_path))
    assert set(table["answer"]) == {"none", "counterexample"}
    assert (table.loc[table["answer"] == "none", "trials"] == 60).all()
    assert (table["seed"] == 2).all()
    assert table["numpy"].iloc[0]
    for one in read(tmp_path):
        if one.witness is not None:
            one.witness.replay()


def test_what_nothing_is_said_about() -> None:
    (one, *_) = survey(["drf"], ["dynamic-sharing-incentive"], trials=100)
    assert one.trials == 0
    assert "queues with levels" in one.note
    assert not one.answers(Cell("drf", "dynamic-sharing-incentive", ("positive demands",)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fairopt_cell": 2}, "no stored cell of version 1"),
        ({"trials": "many"}, "damaged"),
        ({"seed": 4}, "with seed 4; use another folder"),
        ({"property": "envy-freeness"}, "is of drf--envy-freeness"),
        ({"witness": {"fairopt_witness": 1}}, "missing"),
    ],
)
def test_damaged_stores_are_refused(change: dict[str, object], message: str, tmp_path: Path) -> None:
    survey(["drf"], ["sharing-incentive"], trials=100, store=tmp_path)
    (path,) = tmp_path.glob("*.json")
    stored = json.loads(path.read_text())
    assert outcome(stored).trials == 100
    path.write_text(json.dumps(stored | change))
    with pytest.raises(DataError, match=message):
        survey(["drf"], ["sharing-incentive"], trials=200, store=tmp_path)


def test_seeds_differ() -> None:
    both = [Cell(mechanism, "envy-freeness") for mechanism in ("drf", "tsf")]
    assert len({tuple(one.seeds(seed, block)) for one in both for seed in (0, 1) for block in (0, 1)}) == 8


@pytest.mark.parametrize("given", [{"trials": 0}, {"jobs": 0}, {"trials": True}])
def test_nothing_to_do_is_refused(given: dict[str, int]) -> None:
    with pytest.raises(DataError, match=r"is (0|True); it must be a whole number, at least 1"):
        survey(["drf"], ["sharing-incentive"], **given)  # type: ignore[arg-type]


def test_what_another_process_does_not_know_is_no_answer() -> None:
    with pytest.raises(DataError, match=r"another process: there is no property 'kindness'.*with jobs=1"):
        _elsewhere([Cell("drf", "kindness", ())], [], 100, 1.0, None, 1)
