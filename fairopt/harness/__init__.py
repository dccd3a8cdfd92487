"""Running mechanisms over clusters: comparisons, the tables made of them, and sweeps of experiments into a store."""

from __future__ import annotations

from .cells import Cell, cells
from .compare import compare
from .experiment import Experiment, load
from .store import Store
from .sweep import STORE, Interrupted, Plan, plan, sweep
from .tables import SPECS, Spec, Table, compute, tables

__all__ = [
    "SPECS",
    "STORE",
    "Cell",
    "Experiment",
    "Interrupted",
    "Plan",
    "Spec",
    "Store",
    "Table",
    "cells",
    "compare",
    "compute",
    "load",
    "plan",
    "sweep",
    "tables",
]
