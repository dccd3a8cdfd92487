"""`tools/check.py` as a program: exit codes, what it prints, and the examples of docs/allocation-file.md."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from allocation_files import document
from test_checker import ROOT, TOOL

import fairopt as fo


def run(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(TOOL), str(path)], capture_output=True, text=True, check=False)


def test_as_a_program(tmp_path: Path) -> None:
    content = document(tmp_path)
    passed = run(tmp_path / "good.json")
    assert (passed.returncode, passed.stderr) == (0, "")
    assert re.search(r"feasibility \d.*\nerror +\d.*\npass at 1e-06\n", passed.stdout)
    content["tasks"][0][0] *= 0.99
    (tmp_path / "moved.json").write_text(json.dumps(content))
    failed = run(tmp_path / "moved.json")
    assert (failed.returncode, failed.stderr) == (1, "")
    assert "FAIL at 1e-06" in failed.stdout
    content["tol"] = 0.5
    (tmp_path / "moved.json").write_text(json.dumps(content))
    assert run(tmp_path / "moved.json").returncode == 0
    (tmp_path / "bad.json").write_text("{")
    for path in (tmp_path / "bad.json", tmp_path / "none.json"):
        wrong = run(path)
        assert (wrong.returncode, wrong.stderr) == (2, "")
        assert path.name in wrong.stdout


def test_huge_numbers_are_judged(tmp_path: Path) -> None:
    for value in (1e308, -1e308):
        content = document(tmp_path)
        content["tasks"][0][0], content["tasks"][1][0] = value, 1e308
        (tmp_path / "huge.json").write_text(json.dumps(content))
        found = run(tmp_path / "huge.json")
        assert (found.returncode, found.stderr) == (1, "")


def test_the_example_of_cvxpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What docs/allocation-file.md shows runs, and passes; with a task less it does not."""
    text = (ROOT / "docs" / "allocation-file.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "docs/allocation-file.md", "exec"), {})
    found = run(Path("answer.json"))
    assert found.returncode == 0, found.stdout
    assert not fo.Allocation.load("answer.json").flagged
    content = json.loads(Path("answer.json").read_text())
    content["tasks"][0][0] *= 0.99
    Path("answer.json").write_text(json.dumps(content))
    assert run(Path("answer.json")).returncode == 1


def test_the_file_shown_passes(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "allocation-file.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    (tmp_path / "shown.json").write_text(shown)
    assert run(tmp_path / "shown.json").returncode == 0
    assert fo.Allocation.load(tmp_path / "shown.json").certificate.passes(1e-9)
