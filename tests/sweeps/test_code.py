"""What computes an answer is part of its key: other bytes of modules that compute, other cells."""

from __future__ import annotations

import importlib
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

import fairopt as fo
from fairopt import harness, report
from fairopt.app.cli import main
from fairopt.harness import code
from fairopt.mechanisms import REGISTRY, Mechanism

from .small import cells_of, sweep

OWN = '''
"""A mechanism of somebody."""
from dataclasses import dataclass
import fairopt as fo
from helping import factor

POWER = 2.0
def weigh(value):
    """How much."""
    return value * POWER  # in parts

@dataclass(frozen=True)
class Mine(fo.AlphaFair):
    """As it says."""
    name = "mine"

    def criterion(self, cluster):
        return fo.AlphaFair(weigh(factor())).criterion(cluster)
'''
HELPING = "def factor():\n    return 1.0\n"


def mechanism(folder: Path, own: str = OWN, helping: str = HELPING) -> type[Mechanism]:
    """The mechanism of a module in `folder` that imports another; as a new process would see it."""
    (folder / "mine.py").write_text(own)
    (folder / "helping.py").write_text(helping)
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    for name in ("mine", "helping"):
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    kind: type[Mechanism] = importlib.import_module("mine").Mine
    return kind


def test_a_mechanism_outside_fairopt_and_what_it_imports_from_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setitem(REGISTRY, "mine", fo.AlphaFair)
    for name in ("mine", "helping"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    before = code.of(mechanism(tmp_path))
    code.of.cache_clear()
    assert code.of(mechanism(tmp_path)) == before
    assert code.of(mechanism(tmp_path, OWN.replace("value * POWER", "value + POWER"))) != before
    assert code.of(mechanism(tmp_path, helping=HELPING.replace("1.0", "2.0"))) != before


def test_packages_of_another_environment_are_installed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A digest may not depend on which of their modules happen to be loaded."""
    lent = ModuleType("lent")
    lent.__file__ = "/apps/python/lib/python3.11/site-packages/lent/__init__.py"
    monkeypatch.setitem(sys.modules, "lent", lent)
    assert code._installed("lent")


def test_a_mechanism_that_is_written_nowhere() -> None:
    """Typed at a prompt: what it compiles to counts."""

    def typed(rule: str) -> str:
        space: dict[str, Any] = {"fo": fo, "__name__": "typed"}
        exec(
            f"class Typed(fo.CEEI):\n    def criterion(self, cluster):\n        return {rule}.criterion(cluster)", space
        )
        return code.of(space["Typed"])

    assert typed("fo.DRFH()") == typed("fo.DRFH()") != typed("fo.TSF()")


def digests() -> dict[str, str]:
    code.of_fairopt.cache_clear()
    code.of.cache_clear()
    return {name: code.of(REGISTRY[name], *code.solving()) for name in ("drfh", "tsf")}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("copy") / "fairopt"
    return Path(shutil.copytree(code.PACKAGE, target, ignore=shutil.ignore_patterns("__pycache__")))


@pytest.fixture
def copied(copy: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of fairopt whose files count."""
    with monkeypatch.context() as patch:
        patch.setattr(code, "PACKAGE", copy)
        yield copy
    digests()


def test_every_place_that_is_named_is_there() -> None:
    """What has moved would count no longer, and nobody would notice."""
    named = (*code.SIMULATING, *code.ASIDE, *code.VIOLATIONS, *code._SHOWING, *code._ALWAYS)
    assert [name for name in named if not (code.PACKAGE / name).exists()] == []


def test_what_solves_many_counts_where_violations_are_measured(copied: Path) -> None:
    plain = digests()
    before = code.of(REGISTRY["drfh"], *code.VIOLATIONS)
    with open(copied / "study" / "solve_many.py", "ab") as more:
        more.write(b"\n")
    assert digests() == plain
    assert code.of(REGISTRY["drfh"], *code.VIOLATIONS) != before


@pytest.mark.parametrize(
    ("file", "kinds"),
    [
        ("core/solve.py", {"drfh", "tsf"}),
        ("study/entitlement.py", {"drfh", "tsf"}),
        ("certificates/leximin.py", {"drfh", "tsf"}),
        ("workloads/generators.py", {"drfh", "tsf"}),
        ("workloads/data/*", {"drfh", "tsf"}),
        ("harness/solve.py", {"drfh", "tsf"}),
        ("mechanisms/drfh.py", {"drfh"}),
        ("mechanisms/_base.py", {"drfh", "tsf"}),
        ("harness/report/export.py", set()),
        ("app/cli/sweeps.py", set()),
        ("harness/papers/pf.py", set()),
        ("harness/store.py", set()),
        ("study/compare.py", set()),
        ("scheduling/schedule.py", set()),
        ("mechanisms/ceei.py", set()),
        ("core/__pycache__/loop.nbc", set()),
    ],
)
def test_what_computes_in_fairopt_counts_and_nothing_else(copied: Path, file: str, kinds: set[str]) -> None:
    before = digests()
    changed = next((path for path in sorted(copied.glob(file)) if path.is_file()), copied / file)
    changed.parent.mkdir(exist_ok=True)
    with open(changed, "ab") as more:
        more.write(b"\n")
    after = digests()
    assert {name for name in before if before[name] != after[name]} == kinds


EXPERIMENT = """
title = "Of older code"
[clusters]
paper = "paper:pf-fig1-variant"
[[grid]]
mechanisms = ["drfh", "tsf", "ps-dsf"]
"""


def test_answers_of_other_code_are_named_and_taken_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, store, old = tmp_path / "old.toml", tmp_path / "store", "0" * 24
    file.write_text(EXPERIMENT)
    with monkeypatch.context() as then:
        real = code.of
        then.setattr(code, "of", lambda kind, *more: old if kind is not fo.TSF else real(kind, *more))
        first = sweep(file, store)
    assert first["code"].tolist() == [old, real(fo.TSF, *code.solving()), old]
    other = "2 of 3 cells were computed by other code"

    def told(command: str, *words: str) -> str:
        assert main([command, str(file), *words, "--store", str(store)]) == 0
        return "".join(capsys.readouterr())

    out = told("sweep", "--dry-run")
    assert "3 cells, 1 stored (0 failed), 2 to compute" in out
    assert f"{other} (--accept-older takes them)" in out
    out = told("results", "--columns", "name", "this_code")
    assert re.findall(r"^ *(\S+) +(yes|no)$", out, re.M) == [
        ("drfh", "no"), ("tsf", "yes"), ("ps-dsf", "no"),
    ]  # fmt: skip
    assert other in out

    with pytest.raises(report.MissingCells, match=other):
        report.Results(store).of(file)
    taken = report.Results(store, accept_older=True).of(file)
    assert taken.cells["key"].tolist() == first["key"].tolist()
    assert taken.notes[0] == f"{other}, and are taken all the same"
    assert f"{other}, and are taken all the same" in told("sweep", "--accept-older")
    assert len(harness.Store(store).read().frame()) == 3

    assert f"{other} (--accept-older takes them)" in told("sweep")
    assert len(harness.Store(store).read().frame()) == 5
    again = sweep(file, store)
    assert old not in set(again["code"])
    pd.testing.assert_series_equal(again["jain"], first["jain"])


def test_an_error_of_other_code_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "old.toml"
    file.write_text(EXPERIMENT)

    def fail(*_: object, **__: object) -> None:
        raise fo.SolverError("no")

    with monkeypatch.context() as then:
        then.setattr(code, "of", lambda *_: "0" * 24)
        then.setattr(fo.TSF, "solve", fail)
        sweep(file, tmp_path / "store")
    plan = harness.plan(file, store=tmp_path / "store", accept_older=True)
    assert [cell.job.what.text for cell in plan.missing] == ["tsf"]
    assert plan.failed == ()


def test_chance_does_not_depend_on_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same question is asked with the same random numbers, so that answers of old and new code compare."""
    file = tmp_path / "old.toml"
    file.write_text(EXPERIMENT)
    now = cells_of(file)
    monkeypatch.setattr(code, "of", lambda *_: "0" * 24)
    then = cells_of(file)
    assert {one.key for one in now}.isdisjoint(one.key for one in then)
    assert [(one.question, one.rng().random()) for one in now] == [(one.question, one.rng().random()) for one in then]
