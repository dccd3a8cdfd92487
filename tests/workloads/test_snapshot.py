"""What is held, wanted, waiting, capped and leaving, as readers hand it to `of_shapes`."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import fairopt as fo
from fairopt.workloads import Snapshot
from fairopt.workloads._snapshot import Shape, of_shapes


def made(*shapes: Shape, limited: bool = True) -> Snapshot:
    has = [{"cpu": 8.0}, {"cpu": 4.0}]
    return of_shapes([*shapes], ["big", "small"], has, limited, "{} users", {}, ": ", "nowhere", "nobody")


def shape(owner: str, cpu: float = 1.0, weight: float = 1.0, eligible: Any = (True, True), **more: Any) -> Shape:
    return Shape(owner, {"cpu": cpu}, eligible, weight, **{key: Counter(v) if key != "leaving" else v
                                                          for key, v in more.items()})  # fmt: skip


def test_held_wanted_and_leaving() -> None:
    """Two and a half tasks are held, one by what is being deleted; three wait, for two reasons."""
    found = made(shape("a", held={"big": 2.5, "gone": 1}, leaving=1.0, waiting={"Resources": 2, "": 1}))
    assert found.placement is not None
    assert found.placement.tolist() == [[2.5, 0]]
    assert found.cluster.max_tasks.tolist() == [2.5 + 1 - 1 + 3]
    assert (found.waiting, found.leaving, found.capped) == ({"a": {"Resources": 2, "": 1}}, {"a": 1.0}, {})
    away = "1 running on nodes that are left out (drained, not ready) or not named, counted as waiting: a 1."
    assert found.notes == (away,)


@pytest.mark.parametrize(
    ("shapes", "tasks"),
    [
        ([shape("a", waiting={"": 20}), shape("b", 9, waiting={"": 2})], [12, 0]),  # larger than every node
        ([shape("a", waiting={"": 20}), shape("b", 8, waiting={"": 2})], [6, 0.75]),
        ([shape("a", waiting={"": 20}), shape("b", 8, eligible=(False, True), waiting={"": 2})], [12, 0]),
        ([shape("a", waiting={"": 20}), shape("b", 9, held={"big": 1}, waiting={"": 2})], [6, 6 / 9]),  # it runs
        ([shape("a", weight=0, waiting={"": 20}), shape("b", waiting={"": 5})], [7, 5]),
        ([shape("a", weight=0, waiting={"": 20}), shape("b", waiting={"": 20})], [0, 12]),
        ([shape("a", weight=0, waiting={"": 20}), shape("b", weight=0, waiting={"": 20})], [6, 6]),
        ([shape("a", waiting={"": 20}), shape("b", capped={"gate": 20})], [12, 0]),
        ([shape("a", waiting={"": 20}), shape("b", held={"big": 4}, leaving=4)], [12, 0]),
    ],
)
def test_what_cannot_run_and_what_goes_is_not_shared(shapes: list[Shape], tasks: list[float]) -> None:
    found = made(*shapes)
    assert fo.DRFH().solve(found.cluster).user_tasks.tolist() == pytest.approx(tasks, abs=1e-4)
    for user, capped in found.capped.items():
        assert all(any(f"{reason}: {user} {count:g}." in note for note in found.notes)
                   for reason, count in capped.items())  # fmt: skip


def test_reasons_and_limits() -> None:
    large = shape("a", 9, waiting={"Priority": 2, "Resources": 1})
    found = made(large, shape("b", waiting={"": 3}), limited=False)
    assert found.capped == {"a": {"a task is larger than every node that may run it (cpu 9 of at most 8)": 3}}
    assert found.cluster.max_tasks.tolist() == [0, float("inf")]
    some = shape("a", held={"big": 2}, waiting={"x": 3, "y": 1})
    some.cap(3, "throttle")
    assert (some.wanted, some.waiting.total(), some.capped) == (3, 1, {"throttle": 3})
    some.cap(0, "nowhere")
    assert (some.wanted, some.held, some.capped.total()) == (2, {"big": 2}, 4)


def test_who_is_left_out_and_why() -> None:
    found = made(shape("a", 0), shape("b", eligible=(False, False)), shape("c"))
    assert found.left_out == {"a": "they ask for nothing", "b": "nowhere"}
    assert found.notes == ("Left out, as they ask for nothing: a.", "Left out, as nowhere: b.")
