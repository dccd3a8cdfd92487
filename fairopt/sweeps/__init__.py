"""Experiments as files, their cells computed by whoever there is, and a store of rows."""

from __future__ import annotations

from .cell import Cell
from .ends import Elsewhere, Interrupted, Stopped
from .experiment import Experiment, cells_of, load
from .store import Contents, Store
from .sweep import SMOKE_STORE, STORE, Plan, by_this_code, match, plan, store_of, sweep

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
