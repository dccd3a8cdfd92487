"""`fairopt new`: copies that work where they are put."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairopt import harness
from fairopt.app.cli import main


def test_a_copied_experiment_has_its_clusters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "experiment", "mine", "--from", "hysteresis"]) == 0
    made = sorted(path.name for path in Path("experiments").iterdir())
    assert made == ["four_users.json", "mine.toml", "three_users.json"]
    assert "-> experiments/three_users.json" in capsys.readouterr().out
    ours, copied = (harness.cells_of(harness.load(name)) for name in ("hysteresis", Path("experiments/mine.toml")))
    assert [cell.key for cell in ours] == [cell.key for cell in copied]
    Path("experiments/four_users.json").write_text("mine")
    assert main(["new", "experiment", "other", "--from", "hysteresis"]) == 0
    assert Path("experiments/four_users.json").read_text() == "mine"


def test_an_experiment_of_workloads_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "experiment", "drfh_day"]) == 0
    assert [path.name for path in Path("experiments").iterdir()] == ["drfh_day.toml"]
