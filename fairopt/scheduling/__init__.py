"""Schedulers of tasks that cannot be divided, one policy per file."""

from __future__ import annotations

from .discrete_drf import discrete_drf, tasks_of

__all__ = ["discrete_drf", "tasks_of"]
