"""Interactive exploration of a cluster, in a notebook, on a local server, or as a file."""

from __future__ import annotations

from .edits import Edited, Start, State
from .session import Session

__all__ = ["Edited", "Session", "Start", "State"]
