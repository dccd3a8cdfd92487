"""Without kernels for small problems: engines for problems of any size answer, as tests of them ask for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from fairopt.engines.small import kinds


@contextmanager
def without_kernels() -> Iterator[None]:
    with patch.dict(kinds.LARGEST, dict.fromkeys(kinds.LARGEST, 0)):
        yield
