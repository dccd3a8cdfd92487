from __future__ import annotations

import matplotlib as mpl
import pytest

from fairopt import sweeps
from fairopt.report import Results
from fairopt.report.figures import known, module

mpl.use("Agg")


@pytest.fixture(scope="session")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The tiny version of every experiment that a figure needs, computed once."""
    store = tmp_path_factory.mktemp("figures") / "store"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("FAIROPT_TRACES", raising=False)
        for need in sorted({need for name in known() for need in module(name).NEEDS}):
            sweeps.sweep(need, store=store, smoke=True, progress=False)
    return Results(store, smoke=True)


@pytest.fixture(autouse=True)
def no_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stored were cells of generators."""
    monkeypatch.delenv("FAIROPT_TRACES", raising=False)
