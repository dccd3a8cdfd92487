"""Numbers that engines cannot hold are refused at the door; of all others there is an answer or an error of ours."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.app import cli
from fairopt.errors import DataError, FairoptError
from fairopt.mechanisms import Mechanism
from fairopt.model._validate import LEAST, MOST

from .registry import VARIANTS, identify

BEYOND = [5e-324, LEAST / 2, MOST * 2, 1e308]
GOOD: dict[str, Any] = {
    "capacity": [[9.0, 18.0], [4.0, 4.0]],
    "demand": [[1.0, 4.0], [3.0, 1.0]],
    "weight": [1.0, 2.0],
    "max_tasks": [3.0, np.inf],
}


def changed(name: str, number: float, everywhere: bool = False) -> dict[str, Any]:
    values = np.array(GOOD[name])
    values.flat[slice(None) if everywhere else 0] = number
    return GOOD | {name: values}


@pytest.mark.exact
@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("number", BEYOND)
def test_the_range_is_stated_at_the_door(name: str, number: float, tmp_path: Path, capsys: Any) -> None:
    given, message = changed(name, number), "here from 1e-50 to 1e+50: choose other units"
    with pytest.raises(DataError, match=re.escape(f"has {name} {number:g}") + ".*" + re.escape(message)):
        fo.Cluster(**given)
    stacked = {argument: np.array([GOOD[argument], values]) for argument, values in given.items()}
    answers = fo.solve_many("drf" if name != "max_tasks" else "alpha-fair", **stacked)
    assert [failure.problem for failure in answers.failed] == [1]
    file = tmp_path / "cluster.json"
    fo.Cluster(**GOOD).save(file)
    key = {"capacity": "9.0", "demand": "1.0", "weight": "2.0", "max_tasks": "3.0"}[name]
    file.write_text(file.read_text().replace(key, repr(number), 1))
    assert cli.main(["compare", str(file)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("mechanism", VARIANTS, ids=identify)
@pytest.mark.parametrize("name", GOOD)
def test_inside_the_range_nothing_but_our_errors(mechanism: Mechanism, name: str) -> None:
    """Warnings are errors here."""
    for number in (LEAST, MOST):
        with suppress(FairoptError):
            mechanism.solve(fo.Cluster(**changed(name, number)))


@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.long)])
def test_all_numbers_at_the_ends_of_the_range(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ends = {name: rng.choice([LEAST, 1.0, MOST], size=np.shape(values)) for name, values in GOOD.items()}
    cluster = fo.Cluster(**ends)
    with suppress(FairoptError):
        fo.compare(cluster)
    for family in (fo.AlphaFair, fo.AlphaPFVDS):
        with suppress(FairoptError):
            fo.alpha_path(cluster, [0.5, 1, 3], mechanism=family)
