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
    from . import _cells, parts
    from .arranged import arranged

    servers, resources = system.row.shape
    users = len(system.weight)
    begun = _clock.cpu()
    made = arranged(system, options)
    if isinstance(made, str):
        return Enumeration(np.zeros((0, len(system.user))), np.zeros((0, servers, resources)), False, made)
    game, order = made
    there = len(order)
    at, work, seen = game.first[:-1].copy(), np.zeros(2, np.int64), np.zeros(3, np.int64)
    found, start = np.empty((256, there), np.int64), np.empty((256, there, resources))
    kept: list[tuple[Array, Array]] = []
    while work[1] >= 0:
        count = _cells.cells(game, at, int(game.reach[0]), work[0] + 20_000, found, start, work)
        if count:
            solved = parts.solutions(game, found[:count], start[:count])
            whole = np.zeros((len(solved.tasks), servers, users))
            levels = np.full((len(whole), servers, resources), -np.inf)
            whole[:, order], levels[:, order] = solved.tasks, solved.prices
            kept.append((whole[:, system.server, system.user], levels))
            seen += count, solved.parts, solved.searched
        if work[1] >= 0 and _clock.cpu() - begun > options.seconds:
            break
    finished = bool(work[1] < 0)
    return Enumeration(
        np.concatenate([each[0] for each in kept] or [np.zeros((0, len(system.user)))]),
        np.concatenate([each[1] for each in kept] or [np.zeros((0, servers, resources))]),
        finished,
        "" if finished else f"it would have taken more than {options.seconds:g} seconds",
        int(work[0]),
        *seen.tolist(),
    )
