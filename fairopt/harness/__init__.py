"""Running mechanisms over clusters: comparisons, and sweeps of experiments into a store."""

from __future__ import annotations

from ._ends import Elsewhere, Interrupted, Stopped
from .cells import Cell, cells
from .compare import compare
from .experiment import Experiment, load
from .kinds import cells_of
from .matching import by_this_code, match
from .store import Contents, Store
from .sweep import SMOKE_STORE, STORE, Plan, plan, store_of, sweep

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
    "cells",
    "cells_of",
    "compare",
    "load",
    "match",
    "plan",
    "store_of",
    "sweep",
]
