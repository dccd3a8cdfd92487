"""All equilibria of a small game at finite alpha, from the faces of its servers."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..model.equilibrium_system import EquilibriumSystem

Array = NDArray[np.float64]


@dataclass(frozen=True)
class EnumerationOptions:
    """What an enumeration may take."""

    #: CPU seconds.
    seconds: float = 60.0
    #: Most faces of a server, and most pairs of faces of two servers that are tabulated.
    faces: int = 20_000
    tabulated: int = 200_000_000
    #: From this alpha on prices of a cell may differ by more than rounding leaves of the smaller.
    wide: float = 6.0
    #: Cells that are made at a time, and nodes between two looks at the clock.
    cells: int = 256
    nodes: int = 20_000
    #: Solutions of a cell.
    solutions: int = 16


OPTIONS = EnumerationOptions()


@dataclass(frozen=True)
class Enumeration:
    """What was found: tasks of pairs (equilibria, pairs), log level prices (equilibria, servers, resources)."""

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

    servers, resources = system.row.shape
    users = len(system.weight)
    none = Enumeration(np.zeros((0, len(system.user))), np.zeros((0, servers, resources)), False, "")
    begun = time.process_time()
    if users > 40:
        return Enumeration(none.tasks, none.log_price, False, f"{users} users are too many")
    made = _game(system, options)
    if isinstance(made, str):
        return Enumeration(none.tasks, none.log_price, False, made)
    game, order = made
    at, work, seen = game.first[:-1].copy(), np.zeros(2, np.int64), np.zeros(2, np.int64)
    everybody = int(game.reach[0])
    found = np.empty((options.cells, servers), np.int64)
    tasks = np.empty((options.solutions, servers, users))
    prices = np.empty((options.solutions, servers, resources))
    kept: list[tuple[Array, Array]] = []
    cells = 0
    while work[1] >= 0:
        count = _cells.cells(game, at, everybody, work[0] + options.nodes, found, work)
        for k in range(count):
            for s in range(_cell.solutions(game, found[k], tasks, prices, seen)):
                kept.append((tasks[s].copy(), prices[s].copy()))
        cells += count
        if work[1] >= 0 and time.process_time() - begun > options.seconds:
            break
    back = np.argsort(order)
    all_tasks = np.array([each[0][back][system.server, system.user] for each in kept]).reshape(-1, len(system.user))
    all_prices = np.array([each[1][back] for each in kept]).reshape(-1, servers, resources)
    finished = bool(work[1] < 0)
    reason = "" if finished else f"more than {options.seconds:g} seconds"
    return Enumeration(all_tasks, all_prices, finished, reason, int(work[0]), cells, int(seen[0]), int(seen[1]))


def _game(system: EquilibriumSystem, options: EnumerationOptions) -> tuple[object, NDArray[np.intp]] | str:
    """The game for compiled loops, servers with few faces first; or why there is none."""
    from . import _cells, _faces

    servers, resources = system.row.shape
    users = len(system.weight)
    use, gain, size = (
        np.zeros((servers, users, resources)),
        np.full((servers, users), -np.inf),
        np.ones((servers, users)),
    )
    use[system.server, system.user] = system.use
    gain[system.server, system.user] = system.log_gain
    size[system.server, system.user] = system.gamma
    found: list[tuple[Array, Array]] = []
    for i in range(servers):
        usable = gain[i] > -np.inf
        if 2.0 ** usable.sum() * 2.0**resources > 4e6:
            return f"server {i} has too many faces"
        support, rows = np.empty(options.faces, np.int64), np.empty(options.faces, np.int64)
        count = _faces.faces(use[i], usable, support, rows)
        if count > options.faces:
            return f"server {i} has {count} faces"
        found.append((support[:count], rows[:count]))
    order = np.argsort([len(each[0]) for each in found], kind="stable")
    many = np.array([len(found[i][0]) for i in order])
    place, total = np.zeros((servers, servers), np.int64), 0
    for j in range(servers):
        for i in range(j):
            place[i, j] = total
            total += int(many[i]) * int(many[j])
    if total > options.tabulated:
        return f"{total} pairs of faces"
    masks = np.array([sum(1 << int(n) for n in np.flatnonzero(gain[i] > -np.inf)) for i in order], dtype=np.int64)
    reach = np.array([np.bitwise_or.reduce(masks[k:]) for k in range(servers)], dtype=np.int64)
    centred = np.where(gain > -np.inf, gain - np.nanmean(np.where(gain > -np.inf, gain, np.nan), axis=0), np.nan)
    game = _cells.Game(
        system.alpha,
        np.ascontiguousarray(use[order]),
        np.ascontiguousarray(gain[order]),
        np.ascontiguousarray(size[order]),
        np.nan_to_num(np.nanmedian(centred, axis=1))[order],
        reach,
        system.alpha < options.wide,
        np.concatenate([[0], np.cumsum(many)]),
        np.concatenate([found[i][0] for i in order]),
        np.concatenate([found[i][1] for i in order]),
        np.zeros(total, np.int8),
        place,
    )
    return game, order
