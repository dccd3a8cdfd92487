from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairopt import harness
from fairopt.base import plugins

from .small import EXPERIMENT, sweep


@pytest.fixture(scope="session")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("experiment") / "small.toml"
    path.write_text(EXPERIMENT)
    return path


@pytest.fixture(scope="session", autouse=True)
def _no_plugins() -> Iterator[None]:
    """What other tests of this process have loaded is in no row."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plugins, "_LOADED", {})
        yield


@pytest.fixture(scope="session")
def serial(file: Path, swept: Path) -> harness.Store:
    """The experiment computed here, cell after cell: what every other way to compute it must give."""
    store = harness.Store(swept.with_name("serial"))
    sweep(file, store)
    return store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a test writes an experiment of its own."""
    return tmp_path / "e.toml"
