"""The per-server game: best responses in any order, and equilibria for every alpha."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..result.allocation import Trace
    from .curve.two_sided import EquilibriumCurve, equilibrium_curve
    from .dynamics.distributed import best_response, multi_start
    from .dynamics.orders import Network
    from .enumeration.all_equilibria import Equilibria, equilibria
    from .programs import Game

_HOME = {
    "Equilibria": "fairopt.game.enumeration.all_equilibria",
    "EquilibriumCurve": "fairopt.game.curve.two_sided",
    "equilibrium_curve": "fairopt.game.curve.two_sided",
    "Game": "fairopt.game.programs",
    "best_response": "fairopt.game.dynamics.distributed",
    "equilibria": "fairopt.game.enumeration.all_equilibria",
    "multi_start": "fairopt.game.dynamics.distributed",
    "Network": "fairopt.game.dynamics.orders",
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
