"""Without kernels for small problems: engines for problems of any size answer, as tests of them ask for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest

from fairopt.core.engines import small


@contextmanager
def without_kernels() -> Iterator[None]:
    with patch.dict(small.LARGEST, dict.fromkeys(small.LARGEST, 0)):
        yield


@pytest.fixture(autouse=True)
def large_engines(request: pytest.FixtureRequest) -> Iterator[None]:
    """For the folders whose conftest imports it; tests with the marker `kernels` are left alone."""
    if request.node.get_closest_marker("kernels"):
        yield
        return
    with without_kernels():
        yield
