from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pytest

from fairopt import harness
from fairopt.harness.report.figures import known, module
from fairopt.report import Results

mpl.use("Agg")


@pytest.fixture(scope="session")
def smoke(swept: Path) -> Results:
    """The tiny version of every experiment that a figure needs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("FAIROPT_TRACES", raising=False)
        for need in sorted({need for name in known() for need in module(name).NEEDS}):
            harness.sweep(need, store=swept, smoke=True, progress=False)
    return Results(swept, smoke=True)


@pytest.fixture(autouse=True)
def no_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stored were cells of generators."""
    monkeypatch.delenv("FAIROPT_TRACES", raising=False)
