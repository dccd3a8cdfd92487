"""To look at a cluster and tweak it: the logic of a view, and its three hosts, a notebook, a local page, a file."""

from __future__ import annotations

from .edits import Edited, Start
from .session import Session
from .state import State

__all__ = ["Edited", "Session", "Start", "State"]
