"""Presentation: tables as text, CSV, Markdown and LaTeX. It reads results and never solves."""

from __future__ import annotations

from .tables import comparison, for_people, latex, write

__all__ = ["comparison", "for_people", "latex", "write"]
