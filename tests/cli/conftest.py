from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells are those of generators, whatever lies on this machine."""
    monkeypatch.delenv("FAIROPT_TRACES", raising=False)
