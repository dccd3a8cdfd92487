"""Presentation of results: tables as text, CSV, Markdown and LaTeX, and figures; nothing is solved here."""

from __future__ import annotations

from .export import comparison, export, exportable, for_people, write
from .published import mechanism_table, tables_of
from .stored import MissingCells, Results, StoredCells, interval, means, median_interval, reached
from .table import Table
from .typeset import latex

__all__ = [
    "MissingCells",
    "Results",
    "StoredCells",
    "Table",
    "comparison",
    "export",
    "exportable",
    "for_people",
    "interval",
    "latex",
    "means",
    "mechanism_table",
    "median_interval",
    "reached",
    "tables_of",
    "write",
]
