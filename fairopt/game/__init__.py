"""The per-server game: best responses in any order, and equilibria for every alpha."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..result.trace import Trace
    from .dynamics.distributed import best_response
    from .dynamics.network import Network
    from .dynamics.uniqueness import multi_start

_HOME = {
    "best_response": "fairopt.game.dynamics.distributed",
    "multi_start": "fairopt.game.dynamics.uniqueness",
    "Network": "fairopt.game.dynamics.network",
    "Trace": "fairopt.result.trace",
}
__all__ = ["Network", "Trace", "best_response", "multi_start"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
