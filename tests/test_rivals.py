"""Other solvers on benchmark instances: what is asked is what is certified, and a wrong answer is called so."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairopt.report import instances

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))

from benchmarks import rivals  # noqa: E402
from benchmarks.rival_programs import Instance  # noqa: E402

NAMES = ["pf-variant-drfh", "pf-variant-game3"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("instances")
    list(instances.export(made, NAMES))
    return made


def test_solvers_answer_and_what_is_missing_is_skipped(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(rivals.RIVALS, "GLOP", ("nobody-has-this", {}))
    out, page = tmp_path / "rivals.csv", tmp_path / "page.md"
    page.write_text("# A\n\n<!-- rivals -->\nold\n<!-- /rivals -->\nend\n")
    asked = [str(folder), "--rivals", "fairopt", "CLARABEL", "HIGHS", "linprog", "GLOP"]
    assert rivals.main([*asked, "--out", str(out), "--page", str(page)]) == 0
    assert "GLOP: not installed, skipped" in capsys.readouterr().err
    rows = pd.read_csv(out)
    assert set(rows["ended"]) == {"answer"}
    assert rows[rows["tight"] | (rows["rival"] == "fairopt")]["error"].max() < 1e-6
    assert set(rows[rows["instance"] == NAMES[1]]["rival"]) == {"fairopt", "CLARABEL"}  # which HiGHS cannot state
    assert np.allclose(rows["total"], rows[["build", "compile", "solve"]].sum(axis=1), rtol=0.9, atol=0.5)
    made = page.read_text()
    assert "old" not in made
    assert made.endswith("<!-- /rivals -->\nend\n")
    assert "| CLARABEL, tight | 1 of 1" in made
    # It goes on where it stopped.
    assert rivals.main([*asked, "--out", str(out)]) == 0
    assert len(pd.read_csv(out)) == len(rows)


def test_a_wrong_answer_and_one_that_is_late_are_called_so(folder: Path) -> None:
    right = Instance.read(folder, {"name": NAMES[0], "alpha": "inf", "scope": "servers"})
    other = dataclasses.replace(right, tasks=right.tasks * [1.01, 1.0, 1.0, 1.0])
    assert rivals.run("linprog", right, folder, 60, False)["ended"] == "answer"
    assert rivals.run("linprog", other, folder, 60, False)["ended"] == "wrong"
    assert rivals.guarded("CLARABEL", right, folder, 0.0, False)["ended"] == "not in 0 s"
