"""Allocation files to spoil: a good one, places in it, and what may stand there instead."""

from __future__ import annotations

import io
import json
import runpy
import sys
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import check as tool
import numpy as np
import pytest
from families import STYLES, draw
from laws.registry import refuses

import fairopt as fo
from fairopt.mechanisms import Mechanism


def document(tmp_path: Path, mechanism: Mechanism | None = None) -> dict[str, Any]:
    """A valid file's content, with everything optional in it."""
    _solved(mechanism or fo.AlphaFair(2, scope="servers")).save(tmp_path / "good.json")
    content = dict(json.loads((tmp_path / "good.json").read_text()))
    content["criterion"].setdefault("weight", content["cluster"]["weight"])
    return content


@cache
def _solved(mechanism: Mechanism) -> fo.Allocation:
    cluster = fo.Cluster([[9, 18], [4, 4]], [[1, 4], [3, 1]], [1, 2], [[1, 1], [1, 0]], [np.inf, 2], users=["A", "B"])
    return mechanism.solve(cluster)


def answers(mechanism: Mechanism, seeds: Iterable[int]) -> Iterator[tuple[int, fo.Allocation]]:
    """On clusters of three styles, of all that the mechanism is defined on, with the seed."""
    for seed, style in product(seeds, STYLES):
        cluster = draw(style, seed)
        if isinstance(mechanism, fo.FDS) and not cluster.pool().runnable.all():
            continue  # refused, with warnings
        if not refuses(mechanism, cluster):
            yield seed, mechanism.solve(cluster, throw=False)


def put(content: Any, where: str, value: Any) -> None:
    """A value at a place of the content, such as `cluster.demand.1.0`; `KeyError` takes away what is there."""
    *above, last = (int(key) if key.isdigit() else key for key in where.split("."))
    for key in above:
        content = content[key]
    if value is KeyError:
        del content[last]
    else:
        content[last] = value


def checker(path: Path) -> tuple[int, str]:
    """The exit status of `tools/check.py` as a program, and what it prints; warnings are errors here."""
    out = io.StringIO()
    with redirect_stdout(out), patch.object(sys, "argv", ["check.py", str(path)]), pytest.raises(SystemExit) as ended:
        runpy.run_path(tool.__file__, run_name="__main__")
    return int(str(ended.value.code)), out.getvalue()


def nested(depth: int) -> list[Any]:
    """Lists in lists."""
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


#: Where, what instead, and what the message names.
DAMAGE: list[tuple[str, Any, str]] = [
    ("fairopt_allocation", 2, "fairopt_allocation"),
    ("cluster", KeyError, "cluster"),
    ("cluster.servers", KeyError, "servers"),
    ("cluster.servers", "one", "servers"),
    ("cluster.servers", ["s", 2], "servers"),
    ("cluster.users", ["A", "A"], "users are called 'A'|distinct"),
    ("cluster.users", ["A"], r"demand"),
    ("cluster.capacity.0", [1], r"capacity\[0\]"),
    ("cluster.capacity.0.1", -1, "capacity"),
    ("cluster.demand.1.0", "1", r"demand\[1\]\[0\]"),
    ("cluster.demand.1.0", float("nan"), r"demand\[1\]\[0\]"),
    ("cluster.demand.1", [0, 0], r"'B'.* demands nothing|demand\[1\] is nothing"),
    ("cluster.weight", [0, 1], "weight"),
    ("cluster.weight", None, "weight"),
    ("cluster.max_tasks", [-1, None], "max_tasks"),
    ("cluster.eligible.1", [1, 2], "eligible"),
    ("cluster.eligible.1", ["yes", "no"], r"eligible\[1\]\[0\]"),
    *(("cluster.rate", [[1, 2], row], "rate") for row in ([1], [1, -1], [1, float("nan")], ["2", 1], [1, 1e99])),
    ("cluster.rate", "fast", "rate"),
    ("criterion", KeyError, "criterion"),
    ("criterion.alpha", KeyError, r"criterion\.alpha"),
    ("criterion.alpha", -1, "alpha"),
    ("criterion.scope", "everywhere", "scope"),
    ("criterion.scope", ["pool"], "scope"),
    ("criterion.scope", "per_server", "alpha"),
    ("criterion.scope", "game", r"criterion\.share"),
    ("criterion.share", KeyError, r"criterion\.share"),
    ("criterion.share", [1.0], r"criterion\.share"),
    ("criterion.share", [0.0, 1.0], "share"),
    ("criterion.weight", [1.0, -1.0], r"criterion\.weight\[1\]"),
    ("criterion.cap", [1.0, -1.0], r"criterion\.cap\[1\]"),
    ("criterion.floor", [1.0], r"criterion\.floor"),
    ("criterion.fair", 1.0, r"criterion\.efficient"),
    ("tasks", KeyError, "tasks"),
    ("tasks", [[1.0, 2.0]], "tasks"),
    ("tasks.1", [1.0], r"tasks\[1\]"),
    ("tasks.1.0", None, r"tasks\[1\]\[0\]"),
    ("tasks.1.0", float("nan"), r"tasks\[1\]\[0\]|NaN"),
    ("tasks.1.0", 10**400, r"tasks\[1\]\[0\]"),
    ("log_prices", [1.0], "log_prices"),
    ("log_prices", [[[0.0, 0.0], [0.0, 0.0]]], "log_prices"),
    ("log_prices.1.1", "dear", r"log_prices\[1\]\[1\]"),
    ("tol", 0, "tol"),
    ("colour", "red", "colour"),
    ("criterion.beta", 2, "beta"),
    ("tasks", nested(900), "tasks"),
    ("cluster.servers.0", {"a": 1}, "servers"),
]


TEXTS = [
    *("", "[]", "3", "{", "null", '"text"', "[" * 100_000, "1" * 5000, '{"fairopt_allocation": 1e999}', "\x00"),
    *("[" * 5000 + "]" * 5000, '{"tol":' * 900 + "1" + "}" * 900),
]
