"""`tools/check.py` as a program: exit codes, what it prints, and the examples of docs/allocation-file.md."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from allocation_files import checker, document
from test_checker import ROOT, TOOL

import fairopt as fo


def test_as_a_program(tmp_path: Path) -> None:
    content = document(tmp_path)
    command = [sys.executable, str(TOOL), str(tmp_path / "good.json")]
    passed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert re.fullmatch(r"feasibility \d.*\nerror +\d.*\npass at 1e-06\n", passed.stdout + passed.stderr)
    content["tasks"][0][0] *= 0.99
    (tmp_path / "moved.json").write_text(json.dumps(content))
    status, said = checker(tmp_path / "moved.json")
    assert status == 1
    assert "FAIL at 1e-06" in said
    content["tol"] = 0.5
    (tmp_path / "moved.json").write_text(json.dumps(content))
    assert checker(tmp_path / "moved.json")[0] == 0
    (tmp_path / "bad.json").write_text("{")
    for path in (tmp_path / "bad.json", tmp_path / "none.json"):
        status, said = checker(path)
        assert status == 2
        assert path.name in said


def test_huge_numbers_are_judged(tmp_path: Path) -> None:
    for value in (1e308, -1e308):
        content = document(tmp_path)
        content["tasks"][0][0], content["tasks"][1][0] = value, 1e308
        (tmp_path / "huge.json").write_text(json.dumps(content))
        assert checker(tmp_path / "huge.json")[0] == 1


def test_the_example_of_cvxpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What docs/allocation-file.md shows runs, and passes; with a task less it does not."""
    text = (ROOT / "docs" / "allocation-file.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "docs/allocation-file.md", "exec"), {})
    assert checker(Path("answer.json"))[0] == 0
    assert not fo.Allocation.load("answer.json").flagged
    content = json.loads(Path("answer.json").read_text())
    content["tasks"][0][0] *= 0.99
    Path("answer.json").write_text(json.dumps(content))
    assert checker(Path("answer.json"))[0] == 1


def test_the_file_shown_passes(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "allocation-file.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    (tmp_path / "shown.json").write_text(shown)
    assert checker(tmp_path / "shown.json")[0] == 0
    assert fo.Allocation.load(tmp_path / "shown.json").certificate.passes(1e-9)
