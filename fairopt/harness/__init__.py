"""The earlier home of `fairopt.study` and `fairopt.sweeps`: their names, with a warning."""

from __future__ import annotations

import warnings
from typing import Any


def __getattr__(name: str) -> Any:
    from .. import sweeps
    from ..study.compare import compare

    known = {**vars(sweeps), "compare": compare, "cells": sweeps.cells_of}
    if name not in (*sweeps.__all__, "compare", "cells"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn("fairopt.harness is fairopt.study and fairopt.sweeps now", DeprecationWarning, stacklevel=2)
    return known[name]
