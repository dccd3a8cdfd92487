"""These tests are of engines for problems of any size: kernels for small ones would answer before them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kernels import without_kernels


@pytest.fixture(autouse=True)
def _large_engines(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.node.get_closest_marker("kernels"):
        yield
        return
    with without_kernels():
        yield
