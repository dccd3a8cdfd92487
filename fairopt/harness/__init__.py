"""Experiments: files that define cells, parallel computation into a store, the papers' claims, and reports."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cell import Cell
    from .ends import Elsewhere, Interrupted, Stopped
    from .experiment import Experiment, cells_of, load
    from .store import Contents, Store
    from .sweeps import SMOKE_STORE, STORE, Plan, by_this_code, match, plan, store_of, sweep

_HOME = {
    **dict.fromkeys(("Cell",), "cell"),
    **dict.fromkeys(("Elsewhere", "Interrupted", "Stopped"), "ends"),
    **dict.fromkeys(("Experiment", "cells_of", "load"), "experiment"),
    **dict.fromkeys(("Contents", "Store"), "store"),
}
__all__ = [
    "SMOKE_STORE",
    "STORE",
    "Cell",
    "Contents",
    "Elsewhere",
    "Experiment",
    "Interrupted",
    "Plan",
    "Stopped",
    "Store",
    "by_this_code",
    "cells_of",
    "load",
    "match",
    "plan",
    "store_of",
    "sweep",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module(f".{_HOME.get(name, 'sweeps')}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
