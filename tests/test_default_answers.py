"""`tools/default_answers.py`: a default answer that is another equilibrium than the engine's is counted."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest

import fairopt as fo

sys.path.append(str(Path(__file__).resolve().parent.parent / "tools"))

import default_answers

#: Three equilibria at alpha = 3 (docs/equilibria.md).
FOLD = fo.Cluster([[20, 11, 2], [3, 9, 4]], [[1, 9, 8], [3, 8, 1], [16, 8, 1]], weight=[2, 1, 2])


def test_what_changed_is_counted() -> None:
    asked = [("here", "fold", 0, 3.0, FOLD), ("here", "fig1", 0, 3.0, fo.papers.instance("pf-fig1"))]
    rows = pd.DataFrame([default_answers.row(each) for each in asked], columns=default_answers.FIELDS)
    changed = rows["off"] > rows["expected"]
    assert changed.tolist() == [True, False]
    assert rows["index"].tolist() == [1, 1]
    line = default_answers.table(rows).splitlines()[-1].split("|")
    assert [int(cell) for cell in line[2:6]] == [2, 2, 0, 1]


def test_what_is_asked() -> None:
    """Every instance of a paper at every alpha; a cluster of experiments once for each of its alphas."""
    every = list(default_answers.of_papers())
    assert len(every) == len(fo.papers.instances()) * len(default_answers.ALPHAS)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("FAIROPT_TRACES", raising=False)
        drawn = list(default_answers.of_experiments(1, 30, None))
    assert {"alpha_convergence", "hysteresis"} <= {each[0] for each in drawn}
    assert len({each[:4] for each in drawn}) == len(drawn)
    assert all(len(each[4].users) <= 30 and 0 < each[3] < float("inf") for each in drawn)
