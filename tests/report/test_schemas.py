"""JSON Schemas of files: they take what the readers take, and know their keys."""

from __future__ import annotations

import json
import tomllib
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from processes import ROOT

from fairopt import Cluster, papers
from fairopt.app.cli import main
from fairopt.base.typed import typed
from fairopt.errors import DataError
from fairopt.harness import load
from fairopt.harness.experiment import MECHANISMS
from fairopt.harness.report.schemas import SCHEMAS, experiments
from fairopt.model import cluster_file

EXPERIMENTS = sorted((ROOT / "experiments").glob("*.toml"))


def valid(document: Any, schema: dict[str, Any]) -> bool:
    return bool(jsonschema.Draft202012Validator(schema).is_valid(document))


@pytest.mark.parametrize("name", SCHEMAS)
def test_it_is_a_schema(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name]())
    assert main(["schema", name]) == 0
    assert json.loads(capsys.readouterr().out) == SCHEMAS[name]()


def test_the_reader_and_the_schema_of_clusters_know_the_same_keys() -> None:
    entries = SCHEMAS["cluster"]()["properties"]
    for name, keys in (("servers", cluster_file.SERVER_KEYS), ("users", cluster_file.USER_KEYS)):
        assert entries[name]["items"]["properties"].keys() == keys


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_experiments_that_are_read_are_accepted(path: Path) -> None:
    load(path)
    assert valid(tomllib.loads(path.read_text(encoding="utf-8")), experiments())


VALUES: list[tuple[str, Any, bool]] = [
    ("alphas", [1, 2.5], True),
    ("alphas", -1, False),
    ("orders", "over-relaxed", True),
    ("orders", ["up"], False),
    ("dampings", ["default", 0.5], True),
    ("dampings", 2, False),
    ("max_rounds", [7], True),
    ("max_rounds", [7, 8], False),
    ("tols", 0, False),
    ("residuals", [], False),
    ("clusters", 3, False),
    ("colour", "red", False),
]


@pytest.mark.parametrize("place", ["grid", "smoke"])
@pytest.mark.parametrize(("key", "value", "good"), VALUES)
def test_readers_and_editors_agree(place: str, key: str, value: Any, good: bool) -> None:
    document: dict[str, Any] = {"title": "x", "clusters": {"a": "paper:drf-4.1"}, "grid": {"mechanisms": "drf"}}
    document.setdefault(place, {})[key] = value
    assert valid(document, experiments()) == good
    with nullcontext() if good else pytest.raises(DataError, match=r"it must be|unknown key; known: alphas"):
        typed(document, MECHANISMS.file)


@pytest.mark.parametrize(
    ("grid", "source", "good"),
    [
        ({}, "paper:drf-4.1", False),
        ({"mechanisms": 3}, "paper:drf-4.1", False),
        ({"mechanisms": "drf"}, "paper:drf-4.1", True),
        ({"mechanisms": "drf"}, {"source": "lognormal", "users": 3}, True),
        ({"mechanisms": "drf"}, {"users": 3}, False),
        ({"mechanisms": "drf"}, 3, False),
    ],
)
def test_an_experiment_without_runs_or_source_is_refused(grid: dict[str, Any], source: Any, good: bool) -> None:
    assert valid({"title": "x", "clusters": {"a": source}, "grid": [grid]}, experiments()) == good


@pytest.mark.parametrize("name", ["pf-fig1-variant", "drfh-fig1", "pf-weights"])
def test_clusters_that_are_saved_are_accepted(name: str, tmp_path: Path) -> None:
    papers.instance(name).save(tmp_path / "cluster.json")
    assert valid(json.loads((tmp_path / "cluster.json").read_text(encoding="utf-8")), SCHEMAS["cluster"]())


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
    assert not valid(wrong, SCHEMAS["cluster"]())
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(wrong), encoding="utf-8")
    with pytest.raises(DataError):
        Cluster.load(path)
