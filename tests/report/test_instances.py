"""The library of instances: data do not change, the verifier proves all answers, and refuses falsified ones."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import check as tool
import jsonschema
import numpy as np
import pytest
from falsified_instances import PARTS, falsification, refused
from processes import ROOT

from fairopt.app.cli import main
from fairopt.errors import DataError, FairoptError
from fairopt.harness.report import instances
from fairopt.harness.report.schemas import SCHEMAS

CHOSEN = (
    "paper-drf-4.1", "paper-pf-fig1-variant", "witness-tsf--sharing-incentive", "drf-nothing-wanted",
    "queues-three-levels-vector", "queues-weights-in-decades", "limits-4x2-2", "own-time-3x2-1", "groups-6x3-3",
)  # fmt: skip


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of some instances, built by the command."""
    folder = tmp_path_factory.mktemp("library") / "set"
    assert main(["bench", "export", *CHOSEN, "--out", str(folder)]) == 0
    return folder.with_name("set.zip")


@pytest.fixture(scope="module")
def files(library: Path) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in tool.archive(library)}


def test_the_set_is_frozen() -> None:
    """All data, but for the largest, have their checksums, which the package ships: a set never changes."""
    lines = (ROOT / "fairopt/harness/report/data/instances.sha256").read_text(encoding="utf-8").splitlines()
    digests = {name: digest for digest, _, name in map(str.split, lines)}
    assert (instances.SET, len(lines)) == ("fairopt-instances-2", 397)
    assert [*digests] == [*instances.known()]
    for name in [*digests][::3]:
        assert instances.data(name)[0]["digest"] == digests[name], name


def test_a_third_of_the_kinds_is_of_difficulties() -> None:
    kinds = Counter(one["kind"] for one in instances.known().values())
    assert min(kinds["paper"], kinds["witness"], kinds["queues"]) >= 40
    assert {"ties", "limits", "decades", "zeros", "placement", "work", "own-time", "few-users"} <= {*kinds}


def test_answers_known_by_hand(files: dict[str, dict[str, Any]]) -> None:
    def tasks(name: str, mechanism: str) -> list[Any]:
        (found,) = (one for one in files[name]["answers"] if one["mechanism"] == mechanism)
        totals: list[Any] = [0] * len(files[name]["cluster"]["users"])
        for n, _, some in found["tasks"]:
            totals[n] += tool.value(some)
        return totals

    assert tasks("paper-drf-4.1", "drf") == tasks("paper-drf-4.1", "drfh") == [3, 2]
    assert tasks("paper-drf-4.1", "asset-fairness") == [Fraction(63, 25), Fraction(54, 25)]
    assert tasks("paper-drf-4.1", "ps-dsf") == [3, 2]
    assert tasks("paper-pf-fig1-variant", "ps-dsf") == pytest.approx([2, 6, 32 / 3, 16 / 3], rel=1e-8)  # of decimals


def test_files_keep_to_the_schema(files: dict[str, dict[str, Any]]) -> None:
    schema = jsonschema.Draft202012Validator(SCHEMAS["instance"]())
    for one in files.values():
        schema.validate(one)
    with pytest.raises(jsonschema.ValidationError):
        schema.validate(files["paper-drf-4.1"] | {"answers": [{"mechanism": "drf", "tasks": [[0, 0, "3/0"]]}]})


def test_the_verifier_alone_accepts_all(library: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(library) as bundle:
        bundle.extractall(tmp_path)
    command = [sys.executable, "-I", "-S", str(tmp_path / "check.py")]
    for path in (library, tmp_path / "instances" / f"{CHOSEN[0]}.json"):
        found = subprocess.run([*command, str(path)], capture_output=True, text=True)
        assert (found.returncode, found.stderr) == (0, ""), found.stdout
    wrong = tmp_path / "instances" / f"{CHOSEN[0]}.json"
    wrong.write_text(
        wrong.read_text(encoding="utf-8").replace('"tasks":[[0,0,"3"]', '"tasks":[[0,0,"4"]'), encoding="utf-8"
    )
    found = subprocess.run([*command, str(wrong)], capture_output=True, text=True)
    assert (found.returncode, "paper-drf-4.1, drf: " in found.stdout) == (1, True)


def test_an_archive_that_is_changed_is_refused(library: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(library) as old, zipfile.ZipFile(tmp_path / "new.zip", "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name) + b" " * (name == f"instances/{CHOSEN[1]}.json"))
    with pytest.raises(ValueError, match=f"{CHOSEN[1]}.json is not the file of index"):
        tool.archive(tmp_path / "new.zip")
    (tmp_path / "new.zip").write_bytes(library.read_bytes())
    with zipfile.ZipFile(tmp_path / "new.zip", "a") as more:
        more.writestr("instances/one-more.json", "{}")
    with pytest.raises(ValueError, match="files that index"):
        tool.archive(tmp_path / "new.zip")


def test_no_falsification_passes(files: dict[str, dict[str, Any]]) -> None:
    """A small share of the 1,000 of `falsified_instances.py`, of every part."""
    rng, drawn = np.random.default_rng(5), Counter[str]()
    for _ in range(50):
        part, f, answer = falsification([*files.values()], rng)
        assert refused(f, answer), (part, f["name"], json.dumps(answer))
        drawn[part] += 1
    assert {*drawn} == {*PARTS}


def test_prices_that_prove_nothing_are_refused(files: dict[str, dict[str, Any]]) -> None:
    """Of CPU, which is exhausted, they prove that nobody can rise; of memory, of which 4 GB are idle, nothing."""
    f = files["paper-drf-4.1"]
    (answer,) = (one for one in f["answers"] if one["mechanism"] == "drf")
    assert answer["prices"] == [[[0, 0, "1/9"]]]
    assert not refused(f, answer)
    assert refused(f, answer | {"prices": [*answer["prices"], [[0, 1, "1/18"]]]})


@pytest.mark.parametrize(
    ("name", "mechanism", "more"),
    [
        ("paper-drf-4.1", "ps-dsf", {"levels": [7.0, 7.0]}),  # which the game does not have
        ("paper-drf-4.1", "ps-dsf", {"prices": [[[0, 1, 1 / 18]]]}),
        ("paper-drf-4.1", "drf", {"levels": ["2/3", "2/3", "1"]}),
        ("queues-three-levels-vector", "tree", {"prices": [[[0, 0, "1/90"]], [[0, 1, "1/180"]]]}),
        ("queues-three-levels-vector", "tree", {"prices": [[[0, 0, "1/0"]]]}),
    ],
)
def test_what_is_added_to_an_answer_is_judged(
    name: str, mechanism: str, more: dict[str, Any], files: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    f = files[name]
    (answer,) = (one for one in f["answers"] if one["mechanism"] == mechanism)
    (tmp_path / "x.json").write_text(json.dumps(f | {"answers": [answer | more]}), encoding="utf-8")
    command = [sys.executable, "-I", "-S", str(ROOT / "tools/check.py"), str(tmp_path / "x.json")]
    found = subprocess.run(command, capture_output=True, text=True)
    assert (found.returncode > 0, found.stderr) == (True, ""), found.stdout


def test_a_build_goes_on_and_says_what_is_another_set(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, first = library.with_suffix(""), library.read_bytes()
    monkeypatch.setattr(instances, "content", lambda name: pytest.fail(f"{name} is built again"))
    assert main(["bench", "export", *CHOSEN, "--out", str(folder)]) == 0
    assert library.read_bytes() == first
    assert f"{len(CHOSEN)} instances" in capsys.readouterr().out
    one = json.loads((folder / f"{CHOSEN[0]}.json").read_text(encoding="utf-8"))
    (tmp_path / f"{CHOSEN[0]}.json").write_text(json.dumps(one | {"digest": "0"}), encoding="utf-8")
    assert main(["bench", "export", CHOSEN[0], "--out", str(tmp_path)]) != 0
    assert "not of fairopt-instances-2" in capsys.readouterr().err
    one["answers"][0]["tasks"][0][2] = "7/2"
    for kept in ("nonsense", "{}", json.dumps(one)):
        (tmp_path / f"{CHOSEN[0]}.json").write_text(kept, encoding="utf-8")
        with pytest.raises(FairoptError, match="delete it"):
            list(instances.export(tmp_path, [CHOSEN[0]]))
    with pytest.raises(DataError, match="there is no instance 'none'"):
        list(instances.export(tmp_path, ["none"]))
    assert main(["bench", "list"]) == 0
    assert capsys.readouterr().out.count("\n") == 397
