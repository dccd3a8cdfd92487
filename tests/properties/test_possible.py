"""Bounds on what any mechanism reaches: known values, rows that are the properties, and proofs that replay."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction as F
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.app.cli import main
from fairopt.errors import DataError
from fairopt.properties import Case, Possible, get, possible

SKEWED = [[3, 1], [1, 3]]


def on(users: int, capacity: Any = SKEWED, **more: Any) -> fo.Cluster:
    return fo.Cluster(capacity, np.ones((users, len(capacity[0]))), **more)


@pytest.fixture(scope="module")
def bound() -> Possible:
    return possible(on(2))


def test_first_experiment(bound: Possible) -> None:
    assert bound.bound == F(42, 43)
    reached = [bound.reached(name) for name in ("per-server-drf", "drfh", "ps-dsf")]
    assert reached == pytest.approx([5 / 7, 0.9, 27 / 32], abs=1e-6)


@pytest.mark.parametrize(
    ("cluster", "types", "value"),
    [
        (on(3), 5, 0.9950432),
        (on(2), [[1, 8], [2, 1], [8, 1], [16, 2]], 1),
        (on(2, weight=[1, 2]), 5, 0.9902355),
        (on(2, eligible=[[1, 1], [1, 0]]), 5, 0.9701797),
        (on(2, [[3e11, 1, 2], [1e11, 3, 1]]), 3, 45 / 47),
    ],
)
def test_bound_is_the_optimum_and_anonymity_is_free(cluster: fo.Cluster, types: Any, value: float) -> None:
    found = possible(cluster, types=types)
    assert found.value - 1e-12 <= found.bound <= found.value + 1e-9
    assert found.value == pytest.approx(value, abs=1e-7)
    if len(cluster.users) == 2 and types != 3:
        assert possible(cluster, types=types, anonymous=False).bound == pytest.approx(found.bound, abs=1e-9)


@pytest.mark.parametrize("more", [{}, {"weight": [1, 3]}, {"eligible": [[1, 1], [0, 1]]}])
def test_rows_are_the_properties(more: dict[str, Any]) -> None:
    """The optimal rule has them by the package's own checks, and a mechanism that has them keeps all rows."""
    found = possible(on(2, **more), types=4)
    grid, drf = found.grid, dict[Any, float]()
    for profile, (_, rows) in zip(grid.profiles, found.table.groupby("profile"), strict=True):
        cluster = grid.cluster.replace(demand=grid.types[list(profile)].astype(float))
        case = Case(cluster, np.nan_to_num(rows[list(cluster.servers)].to_numpy()))
        assert max(get(name).find(case).violation for name in grid.properties[:2]) < 1e-9
        tasks = fo.PerServerDRF().solve(cluster).tasks
        drf |= {one: tasks[one[1], one[2]] for n in range(2) for one in grid.on(profile, n)}
    rows = [(row.name, sum(float(by) * drf[one] for one, by in row.form.items()) - row.most) for row in grid.rows({})]
    assert max(over for _, over in rows) < 1e-6
    assert {name[0] for name, _ in rows} == {"capacity", *grid.properties}


def test_a_rule_that_is_told_the_truth_reaches_the_whole() -> None:
    assert possible(on(2), "SI, EF", types=3).bound == 1


def test_forged_proofs(bound: Possible, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "possible.json"
    bound.save(path)
    assert main(["properties", "--replay", str(path)]) == 0
    assert "at most 42/43 = 0.976744" in capsys.readouterr().out
    sound = json.loads(path.read_text(encoding="utf-8"))

    def refused(change: Callable[[dict[str, Any]], object]) -> str:
        document = json.loads(path.read_text(encoding="utf-8"))
        change(document)
        with pytest.raises(DataError) as error:
            Possible.of(document).replay()
        return str(error.value)

    assert "the multipliers prove 42/43, not 41/43" in refused(lambda file: file.update(bound="41/43"))
    assert "must be >= 0" in refused(lambda file: file["multipliers"][0].__setitem__(4, "-1"))
    assert "of inequalities" in refused(lambda file: file["multipliers"][0].__setitem__(0, "kindness"))
    assert "no fraction" in refused(lambda file: file["multipliers"][0].__setitem__(4, "1/0"))
    assert "some of ratios" in refused(lambda file: file.update(multipliers=[]))
    for k in range(len(sound["multipliers"])):
        refused(lambda file, k=k: file["multipliers"].pop(k))


@pytest.mark.parametrize(
    ("cluster", "options", "message"),
    [
        (on(2), {"properties": "SI, PO"}, "pareto-optimality is not linear"),
        (on(2), {"types": 0}, "types is 0"),
        (on(2), {"types": [[1, 0]]}, "positive demands"),
        (on(2), {"types": [[1, 2, 3]]}, "positive demands"),
        (on(2, max_tasks=[1, 2]), {}, "task limits"),
        (on(2, [[1, 0], [0, 1]]), {}, "can run no task"),
        (on(9), {}, "constraints, more than"),
        (on(2, [[k, 300 - k] for k in range(1, 200)]), {"types": 3}, "rational arithmetic"),
    ],
)
def test_refusals(cluster: fo.Cluster, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        possible(cluster, **options)


def test_command(answer: Callable[..., Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["properties", "paper:two-skewed-servers", "--possible", "SI,EF,SP", "--types", "3"]
    found = answer(*words, "-m", "drfh", "--save", str(tmp_path))
    assert found["reached"]["DRFH"] < found["bound"] == float(Possible.load(tmp_path / "possible.json").replay())
    assert len(found["table"]) == 12
    assert main(["properties", "--possible", "SI"]) == 2
    assert "name its FILE" in capsys.readouterr().err
