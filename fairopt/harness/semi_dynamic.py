"""The earlier home of `fairopt.study.semi_dynamic`: its names, with a warning."""

from __future__ import annotations

import warnings
from typing import Any

from ..study import semi_dynamic


def __getattr__(name: str) -> Any:
    found = getattr(semi_dynamic, name)
    warnings.warn("fairopt.harness.semi_dynamic is fairopt.study.semi_dynamic now", DeprecationWarning, stacklevel=2)
    return found
