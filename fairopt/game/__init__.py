"""The per-server game: best responses in any order, and equilibria for every alpha."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .dynamics import best_response
    from .network import Network
    from .trace import Trace
    from .uniqueness import multi_start

_HOME = {"best_response": "dynamics", "multi_start": "uniqueness", "Network": "network", "Trace": "trace"}
__all__ = ["Network", "Trace", "best_response", "multi_start"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
