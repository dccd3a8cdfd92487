"""To look at a cluster and tweak it: the logic of a view, and its three hosts, a notebook, a local page, a file."""

from __future__ import annotations

from .edits import Edited, Start, State
from .session import Session

__all__ = ["Edited", "Session", "Start", "State"]
