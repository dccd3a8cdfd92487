"""Running mechanisms over clusters: comparisons, and sweeps of experiments into a store."""

from __future__ import annotations

from .cells import Cell, cells
from .compare import compare
from .experiment import Experiment, load
from .store import Store
from .sweep import STORE, Interrupted, Plan, plan, sweep

__all__ = [
    "STORE",
    "Cell",
    "Experiment",
    "Interrupted",
    "Plan",
    "Store",
    "cells",
    "compare",
    "load",
    "plan",
    "sweep",
]
