"""All equilibria of a small game at finite alpha, from the faces of its servers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import _clock
from ..model.equilibrium_system import EquilibriumSystem
from .options import OPTIONS, EnumerationOptions

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Enumeration:
    """What was found, and how.

    Attributes
    ----------
    tasks, log_price : (solutions, pairs) and, in levels, (solutions, servers, resources)
    finished : were all cells gone through?
    reason : why not
    nodes, cells : products of faces of some servers, and of all, that were looked at
    components, searched : connected parts of cells that were solved, and those that needed Newton's method
    """

    tasks: Array
    log_price: Array
    finished: bool
    reason: str
    nodes: int = 0
    cells: int = 0
    components: int = 0
    searched: int = 0


def enumerated(system: EquilibriumSystem, options: EnumerationOptions = OPTIONS) -> Enumeration:
    """Solutions of all cells; the same allocation may stand in several."""
    from . import _cell, _cells
    from .arranged import arranged

    servers, resources = system.row.shape
    users = len(system.weight)
    begun = _clock.cpu()
    made = arranged(system, options)
    if isinstance(made, str):
        return Enumeration(np.zeros((0, len(system.user))), np.zeros((0, servers, resources)), False, made)
    game, order = made
    there = len(order)
    at, work, seen = game.first[:-1].copy(), np.zeros(2, np.int64), np.zeros(2, np.int64)
    found = np.empty((256, there), np.int64)
    tasks, prices = np.empty((16, there, users)), np.empty((16, there, resources))  # most solutions of a cell
    kept: list[tuple[Array, Array]] = []
    cells = 0
    while work[1] >= 0:
        count = _cells.cells(game, at, int(game.reach[0]), work[0] + 20_000, found, work)
        for k in range(count):
            for s in range(_cell.solutions(game, found[k], tasks, prices, seen)):
                whole, levels = np.zeros((servers, users)), np.full((servers, resources), -np.inf)
                whole[order], levels[order] = tasks[s], prices[s]
                kept.append((whole[system.server, system.user], levels))
        cells += count
        if work[1] >= 0 and _clock.cpu() - begun > options.seconds:
            break
    finished = bool(work[1] < 0)
    return Enumeration(
        np.array([each[0] for each in kept]).reshape(-1, len(system.user)),
        np.array([each[1] for each in kept]).reshape(-1, servers, resources),
        finished,
        "" if finished else f"it would have taken more than {options.seconds:g} seconds",
        int(work[0]),
        cells,
        int(seen[0]),
        int(seen[1]),
    )
