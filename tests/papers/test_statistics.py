"""Statistics of stored allocations, on numbers that are easy to check."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairopt import papers
from fairopt.harness.papers import statistics

#: Use of CPU, memory and disk by mechanism, in two draws of two set-ups; disk is hardly used.
USE = {
    ("near", 0): {"a": (0.6, 0.5, 0.02), "b": (0.5, 0.5, 0.01), "c": (0.4, 0.55, 0.01)},
    ("near", 1): {"a": (0.8, 0.5, 0.02), "b": (0.7, 0.5, 0.01), "c": (0.4, 0.45, 0.01)},
    ("far", 0): {"a": (0.3, 0.6, 0.02), "b": (0.6, 0.6, 0.01), "c": (0.6, 0.6, 0.01)},
    ("far", 1): {"a": (0.3, 0.6, 0.02), "b": (0.6, 0.6, 0.01), "c": (0.6, 0.6, 0.01)},
}


def found(use: list[dict[str, Any]], cells: pd.DataFrame | None = None, **long: pd.DataFrame) -> Any:
    tables = {"use": pd.DataFrame(use)} | long
    return SimpleNamespace(cells=cells, long=tables.__getitem__)


def rows(column: str = "name", names: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    return [
        {"where": where, "repetition": k, column: (names or {}).get(name, name), "class": "all", "resource": resource,
         "utilization": value}
        for (where, k), of in USE.items() for name, values in of.items()
        for resource, value in zip(("cpu", "memory", "disk"), values, strict=True)
    ]  # fmt: skip


def use_of(cells: Any, across: str = "name", **how: Any) -> pd.DataFrame:
    return statistics.compared(cells, ["where"], of="use", value="utilization", by=["resource"], across=across, **how)


def means(frame: pd.DataFrame, *by: str) -> dict[Any, float]:
    return {key: pytest.approx(value) for key, value in frame.groupby([*by])["value"].mean().items()}


def test_gains_over_the_better_of_two() -> None:
    cells = found(rows())
    # (60 - 50) and (50 - 55); (80 - 70) and (50 - 50); means over CPU and memory, then over draws.
    more = use_of(cells, better="a", than=["b", "c"], contrast="more")
    assert means(more, "where") == {"near": 3.75, "far": -15}
    largest = use_of(cells, better="a", over="largest")
    assert means(largest, "where") == {"near": 75, "far": 0}  # of CPU over c: 50% and 100%; of memory
    apart = use_of(cells, better="a", than="b", contrast="more", over="largest size")
    assert means(apart, "where") == {"near": 10, "far": -30}


def test_use_by_alpha() -> None:
    cells = found(rows("alpha", {"a": 1.0, "b": 3.0, "c": np.inf}))
    falls = use_of(cells, "alpha", contrast="fall")
    assert means(falls, "where", "range") == {
        ("near", "1 to 3"): 5, ("near", "3 to inf"): 10, ("far", "1 to 3"): -15, ("far", "3 to inf"): 0,
    }  # fmt: skip
    largest = use_of(cells, "alpha", better=np.inf, than=1.0, contrast="fall", over="largest")
    assert means(largest, "where") == {"near": 30, "far": 0}
    # Of CPU 10 and 30, of memory -5 and 5; the least of both alphas.
    least = use_of(cells, "alpha", better=np.inf, contrast="fall")
    assert means(least, "where") == {"near": 10, "far": -15}


def test_gains_on_skewed_classes() -> None:
    capacity = {"even": (5, 5), "also": (4, 4), "cpu": (3, 1), "memory": (1, 3), "tiny": (0.1, 0.9)}
    gains = {"even": 0.0, "also": 0.01, "cpu": 0.1, "memory": 0.04, "tiny": 0.5}
    of_classes = [
        {"repetition": k, "name": name, "class": kind, "resource": resource, "capacity": size,
         "utilization": 0.5 + gain * (name == "a")}
        for k in range(2) for name in ("a", "b") for kind, gain in (gains | {"all": 0.0}).items()
        for resource, size in zip(("cpu", "memory"), capacity.get(kind, (13, 13)), strict=True)
    ]  # fmt: skip
    value = statistics.skewed_classes_gain(found(of_classes), [], "a", "b")["value"]
    assert value.tolist() == [pytest.approx(7 - 0.5)] * 2


def test_times() -> None:
    games = pd.DataFrame({"cluster": "many", "servers": 10, "repetition": [0, 0, 1, 1], "alpha": [1, 3, 1, 3],
                          "level": 1e-2, "seconds": [1.0, 2.0, 3.0, np.nan]})  # fmt: skip
    needed = statistics.seconds_needed(found([], reached=games), [], "many")
    needed = needed.set_index(["servers", "repetition"])["value"]
    assert needed.to_dict() == {("in turn", 0): 2, ("in turn", 1): np.inf, ("at once", 0): 0.2, ("at once", 1): np.inf}
    cells = pd.DataFrame({"engine": "game", "cluster": ["one"] * 3 + ["two"] * 3, "alpha": [1, 3, np.inf] * 2,
                          "repetition": 0, "seconds": [2, 4, 6, 8, 9, 24], "rounds": [1, 2, np.nan] * 2})  # fmt: skip
    both: dict[str, Any] = {"of": "cells", "value": ["seconds", "rounds"], "over": ""}
    times = statistics.several(found([], cells), ["engine"], **both, by=["cluster"], across="alpha", better=np.inf,
                                contrast="ratio", others="max")  # fmt: skip
    assert times.groupby(["cluster", "measure"])["value"].first().to_dict() == {
        ("one", "seconds"): 300,
        ("two", "seconds"): 300,
    }
    doubled = statistics.several(found([], cells), ["engine"], **both, where={"alpha": np.inf}, across="cluster",
                                  better="two", than="one", contrast="times")  # fmt: skip
    assert doubled[["measure", "value"]].to_numpy().tolist() == [["seconds", 4]]


def test_placement_decides_the_comparisons_of_pf() -> None:
    """By the shipped intervals: PS-DSF uses more with placement by kind of server, and less without on Google's."""
    rows = {one.states: one.agreed for one in papers.claims("PF") if one.states in {(231,), (232,), (233,)}}
    assert all(verdict.startswith("reproduced under") and "placement" in verdict for verdict in rows.values()), rows
