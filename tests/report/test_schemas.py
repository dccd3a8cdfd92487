"""JSON Schemas of files: they take what the readers take, and know their keys."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from processes import ROOT

from fairopt import Cluster, papers
from fairopt.app.cli import main
from fairopt.errors import DataError
from fairopt.harness import load
from fairopt.harness.experiment import MECHANISMS, POLICIES
from fairopt.harness.report.schemas import SCHEMAS, cluster, experiments

EXPERIMENTS = sorted((ROOT / "experiments").glob("*.toml"))


def valid(document: Any, schema: dict[str, Any]) -> bool:
    return bool(jsonschema.Draft202012Validator(schema).is_valid(document))


@pytest.mark.parametrize("name", SCHEMAS)
def test_it_is_a_schema(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name]())
    assert main(["schema", name]) == 0
    assert json.loads(capsys.readouterr().out) == SCHEMAS[name]()


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_experiments_that_are_read_are_accepted(path: Path) -> None:
    load(path)
    assert valid(tomllib.loads(path.read_text(encoding="utf-8")), experiments())


def test_keys_are_those_of_the_readers() -> None:
    first, second = (one["properties"]["grid"]["items"]["properties"] for one in experiments()["oneOf"])
    assert (set(first), set(second)) == (set(MECHANISMS.grid), set(POLICIES.grid))
    assert "over-relaxed" in first["orders"]["oneOf"][0]["enum"]
    assert "number" in first["alphas"]["oneOf"][0]["type"]


@pytest.mark.parametrize(("grid", "good"), [({}, False), ({"mechanisms": 3}, False), ({"mechanisms": "drf"}, True)])
def test_an_experiment_without_runs_is_refused(grid: dict[str, Any], good: bool) -> None:
    assert valid({"title": "x", "clusters": {"a": "paper:drf-4.1"}, "grid": [grid]}, experiments()) == good


@pytest.mark.parametrize("name", ["pf-fig1-variant", "drfh-fig1", "pf-weights"])
def test_clusters_that_are_saved_are_accepted(name: str, tmp_path: Path) -> None:
    papers.instance(name).save(tmp_path / "cluster.json")
    assert valid(json.loads((tmp_path / "cluster.json").read_text(encoding="utf-8")), cluster())


@pytest.mark.parametrize(
    ("server", "user"),
    [
        ({}, None),
        ({}, {"demand": [-1]}),
        ({"counts": 3}, {}),
        ({"count": 0}, {}),
        ({}, {"weight": 0}),
    ],
)
def test_what_the_reader_refuses_is_refused(server: Any, user: Any, tmp_path: Path) -> None:
    users = [] if user is None else [{"demand": [1]} | user]
    wrong = {"servers": [{"capacity": [1]} | server], "users": users}
    assert not valid(wrong, cluster())
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(wrong), encoding="utf-8")
    with pytest.raises(DataError):
        Cluster.load(path)
