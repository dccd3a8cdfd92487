"""JSON Schemas of files: they take what the readers take, and know their keys."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from fairopt import Cluster, papers
from fairopt.cli import main
from fairopt.errors import DataError
from fairopt.report.schemas import SCHEMAS, cluster, experiments
from fairopt.sweeps import load
from fairopt.sweeps.experiment import MECHANISMS, POLICIES

ROOT = Path(__file__).resolve().parent.parent.parent
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
    first, second = experiments()["oneOf"]
    assert set(first["properties"]["grid"]["items"]["properties"]) == set(MECHANISMS.grid)
    assert set(second["properties"]["grid"]["items"]["properties"]) == set(POLICIES.grid)
    orders = first["properties"]["grid"]["items"]["properties"]["orders"]
    assert "over-relaxed" in orders["oneOf"][0]["enum"]
    assert "number" in first["properties"]["grid"]["items"]["properties"]["alphas"]["oneOf"][0]["type"]


@pytest.mark.parametrize("name", ["pf-fig1-variant", "drfh-fig1", "pf-weights"])
def test_clusters_that_are_saved_are_accepted(name: str, tmp_path: Path) -> None:
    papers.instance(name).save(tmp_path / "cluster.json")
    assert valid(json.loads((tmp_path / "cluster.json").read_text(encoding="utf-8")), cluster())


@pytest.mark.parametrize(
    "wrong",
    [
        {"servers": [{"capacity": [1]}], "users": []},
        {"servers": [{"capacity": [1]}], "users": [{"demand": [-1]}]},
        {"servers": [{"capacity": [1], "counts": 3}], "users": [{"demand": [1]}]},
        {"servers": [{"capacity": [1]}], "users": [{"demand": [1], "weight": 0}]},
        {"servers": [{"capacity": [1], "count": 0}], "users": [{"demand": [1]}]},
    ],
)
def test_what_the_reader_refuses_is_refused(wrong: dict[str, Any], tmp_path: Path) -> None:
    assert not valid(wrong, cluster())
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(wrong), encoding="utf-8")
    with pytest.raises(DataError):
        Cluster.load(path)


def test_an_experiment_without_runs_is_refused() -> None:
    assert not valid({"title": "x", "clusters": {"a": "paper:drf-4.1"}, "grid": [{}]}, experiments())
    assert not valid({"title": "x", "clusters": {"a": "paper:drf-4.1"}, "grid": [{"mechanisms": 3}]}, experiments())
    assert valid({"title": "x", "clusters": {"a": "paper:drf-4.1"}, "grid": [{"mechanisms": "drf"}]}, experiments())
