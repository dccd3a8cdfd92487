"""Running mechanisms over clusters: comparisons, and the tables made of them."""

from __future__ import annotations

from .compare import compare
from .tables import SPECS, Spec, Table, compute, tables

__all__ = ["SPECS", "Spec", "Table", "compare", "compute", "tables"]
