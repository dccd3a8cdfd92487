"""Hypothesis profiles, chosen by HYPOTHESIS_PROFILE.

`fixed` (default) draws the same examples every time, `explore` new ones and more, and `first` reports the first failure
without making it smaller, which is quicker.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, settings

from fairopt import papers
from fairopt.app.cli import main
from fairopt.app.explorer import session
from fairopt.base import dispatchers
from fairopt.certificates import Certificate
from fairopt.model._arrays import Array, read_only
from fairopt.model.cluster import Cluster
from fairopt.scheduling import simulator

# A tenth of the time goes by looking for garbage among what libraries have made, which stays; of collecting a seventh.
gc.set_threshold(10_000, 10, 10)
gc.disable()
# What commands print is compared, whether loops had been compiled before or not.
dispatchers.MESSAGE_AFTER = 1e6  # seconds
# The compiled loop decides alike (`scheduling/test_compiled.py`), and takes seconds for each policy.
simulator.PLAINLY = 10**7


# No explain phase: it traces every line of the solvers.
_SEARCH = (Phase.explicit, Phase.reuse, Phase.generate)
_COMMON: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.large_base_example],
    "print_blob": True,
}
#: Of tests that do not say how many examples they need.
_FEW = _COMMON | {"max_examples": 25}
settings.register_profile("fixed", derandomize=True, database=None, phases=(*_SEARCH, Phase.shrink), **_FEW)
settings.register_profile("explore", derandomize=False, phases=(*_SEARCH, Phase.shrink), **_COMMON)
settings.register_profile("first", derandomize=True, database=None, phases=_SEARCH, **_FEW)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


def pytest_addoption(parser: pytest.Parser) -> None:
    about = "clusters that tests build are off by up to 4 units in the last place; tests of exact data are left out"
    parser.addoption("--jitter", type=int, metavar="SEED", help=about)


def pytest_configure(config: pytest.Config) -> None:
    """Change the data of clusters for `--jitter`: what is built, by whomever, outside the package."""
    seed, exactly = config.getoption("jitter"), Cluster.__init__
    if seed is None:
        return

    def built(self: Cluster, *arguments: Any, **more: Any) -> None:
        exactly(self, *arguments, **more)
        if not str(sys._getframe(1).f_globals["__name__"]).startswith("fairopt."):
            names = "capacity", "demand", "weight"
            self.__dict__.update({name: read_only(_jittered(getattr(self, name), seed)) for name in names})

    Cluster.__init__ = built  # type: ignore[method-assign]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("jitter") is not None:
        items[:] = [item for item in items if item.get_closest_marker("exact") is None]


def _jittered(values: Array, seed: int) -> Array:
    """Numbers off by -4 to 4 units in the last place, which follow from mantissa and seed: copies stay copies."""
    bits = np.array(values).view(np.int64)
    mixed = (bits & (2**52 - 1)) * 0x5DEECE66D + seed * 0x9E3779B97F4A7C
    return np.where(values > 0, (bits + (mixed >> 33) % 9 - 4).view(float), values)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture
def out_of_reach(monkeypatch: pytest.MonkeyPatch) -> float:
    """A tolerance that nothing meets, whatever rounding does: a residual may be exactly 0."""
    residual = Certificate.residual.fget
    monkeypatch.setattr(Certificate, "residual", property(lambda self: max(residual(self), 1e-16)))
    return 1e-20


@pytest.fixture
def few_alphas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a page of the explorer: that it has all is tested with it."""
    monkeypatch.setattr(session, "ALPHAS", session.ALPHAS[::10])


@pytest.fixture
def answer(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """What a command prints as JSON; strict, without NaN and Infinity."""

    def run(*words: str) -> Any:
        assert main([*words, "--json"]) == 0
        return json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))

    return run


@pytest.fixture(scope="session")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of the tiny experiments: what one process of the run has computed the others read."""
    own = tmp_path_factory.getbasetemp()
    return (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "swept"


@pytest.fixture(scope="session")
def checked(swept: Path) -> pd.DataFrame:
    """The verdicts on all claims of the papers, of the first process of the run that asks."""
    kept = swept.with_name("claims.pkl")
    if not kept.exists():
        own = kept.with_suffix(f".{os.getpid()}")
        papers.check().to_pickle(own)
        own.replace(kept)
    return pd.read_pickle(kept)
