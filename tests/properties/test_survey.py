"""The survey of research/survey.py: what is searched, stored and resumed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairopt.errors import DataError
from research import survey as room
from research.survey import Cell, cells, frame, stored, survey

MONOTONE = "population-monotonicity"


def same(one: Cell, other: Cell) -> bool:
    """But for seconds."""
    rest = [replace(each, seconds=0.0, witness=None) for each in (one, other)]
    return rest[0] == rest[1] and repr(one.witness) == repr(other.witness)


def test_what_is_searched() -> None:
    """All clusters first, then those with fewer conditions: what is found among them answers for the others."""
    asked = cells(["drfh"], [MONOTONE])
    both = ("positive demands", "no placement constraints")
    assert [one.conditions for one in asked] == [(), both[:1], both]
    assert asked[2].name == "drfh--population-monotonicity--positive-demands--no-placement-constraints"


def test_others_answer(tmp_path: Path) -> None:
    """No counterexample among all clusters, or one that has positive demands: no search for another."""
    some = survey(cells(["drf", "task-maxmin"], [MONOTONE, "sharing-incentive"], 3), tmp_path, 200)
    found = {(one.mechanism, one.property, one.conditions): one.witness is not None for one in some}
    positive = ("positive demands",)
    assert [found["drf", MONOTONE, conditions] for conditions in ((), positive)] == [True, False]
    for mechanism, violated in (("drf", False), ("task-maxmin", True)):
        assert found[mechanism, "sharing-incentive", ()] == violated
        assert (mechanism, "sharing-incentive", positive) not in found


def test_killed_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same as in one go, whenever it was interrupted; what is stored is not computed again."""
    monkeypatch.setattr(room, "BLOCK", 100)

    def envied(store: Path = tmp_path / "store") -> Cell:
        (found,) = survey(cells(["drf"], ["envy-freeness"], 5), store, 350)
        return found

    whole, right, calls = envied(tmp_path / "whole"), room.hunt, list[int]()

    def dying(*arguments: Any, **more: Any) -> object:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return right(*arguments, **more)

    monkeypatch.setattr(room, "hunt", dying)
    with pytest.raises(KeyboardInterrupt):
        envied()
    path = tmp_path / "store" / f"{whole.name}.json"
    assert (stored(path).trials, stored(path).blocks) == (200, 2)
    assert same(envied(), whole)
    assert same(envied(), whole)
    assert len(calls) == 5  # two before, the one that died, and two
    assert stored(path).trials == 350
    short = survey(cells(["tsf"], ["envy-freeness"], 5), tmp_path, 10_000, 1e-9)
    assert short[0].trials == 100  # a block is begun, and no other
    with pytest.raises(DataError, match="with seed 5; use another folder"):
        survey(cells(["drf"], ["envy-freeness"], 4), tmp_path / "store", 400)


def test_processes_change_nothing(tmp_path: Path) -> None:
    asked = cells(["drf", "tsf"], ["sharing-incentive", MONOTONE], 2)
    alone = survey(asked, tmp_path / "alone", 60)
    together = survey(asked, tmp_path / "together", 60, jobs=2)
    assert all(same(one, other) for one, other in zip(alone, together, strict=True))
    kept = [stored(path) for path in (tmp_path / "together").iterdir()]
    assert all(any(same(one, other) for other in together) for one in kept)
    table = frame(kept)
    assert set(table["answer"]) == {"none", "counterexample"}
    assert (table.loc[table["answer"] == "none", "trials"] == 60).all()
    assert (table["seed"] == 2).all()
    assert table["numpy"].iloc[0]
    for one in kept:
        if one.witness is not None:
            one.witness.replay()


def test_what_nothing_is_said_about(tmp_path: Path) -> None:
    (one, *_) = survey(cells(["drf"], ["dynamic-sharing-incentive"]), tmp_path, 100)
    assert one.trials == 0
    assert "queues with levels" in one.note
    assert not one.answers(Cell("drf", "dynamic-sharing-incentive", ("positive demands",)))


def test_seeds_differ() -> None:
    some = [Cell(mechanism, "envy-freeness", (), seed, block)
            for mechanism in ("drf", "tsf") for seed in (0, 1) for block in (0, 1)]  # fmt: skip
    assert len({one.rng.integers(2**62) for one in some}) == 8
