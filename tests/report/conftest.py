"""The tiny versions of what `fairopt sweep --for tables` computes."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairopt.cli import main


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables") / "store"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("FAIROPT_TRACES", raising=False)
        assert main(["sweep", "--for", "tables", "--smoke", "--store", str(folder)]) == 0
    return folder
