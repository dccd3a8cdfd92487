"""The per-server game: best responses in several orders, all equilibria, and the curve of equilibria in alpha."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..mechanisms.reference.server_programs import Game
    from ..result.allocation import Trace
    from .all_equilibria import Equilibria, equilibria
    from .best_responses import best_response, multi_start
    from .orders import Network
    from .two_sided import EquilibriumCurve, equilibrium_curve

_HOME = {
    "Equilibria": "fairopt.game.all_equilibria",
    "EquilibriumCurve": "fairopt.game.two_sided",
    "equilibrium_curve": "fairopt.game.two_sided",
    "Game": "fairopt.mechanisms.reference.server_programs",
    "best_response": "fairopt.game.best_responses",
    "equilibria": "fairopt.game.all_equilibria",
    "multi_start": "fairopt.game.best_responses",
    "Network": "fairopt.game.orders",
    "Trace": "fairopt.result.allocation",
}
__all__ = [
    "Equilibria",
    "EquilibriumCurve",
    "Game",
    "Network",
    "Trace",
    "best_response",
    "equilibria",
    "equilibrium_curve",
    "multi_start",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
