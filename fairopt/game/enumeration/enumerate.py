"""All equilibria of a small game at finite alpha, from the faces of its servers."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np

from ... import _clock
from ...model._arrays import Array, Index
from ..model.equilibrium_system import EquilibriumSystem
from .cells import Game, LateError, cells, faces
from .options import OPTIONS, EnumerationOptions
from .parts import solutions

#: By what part data are changed that ties make degenerate.
JITTER = 1e-6


@dataclass(frozen=True)
class Enumeration:
    """What was found, and how.

    Attributes
    ----------
    tasks, log_price : (solutions, pairs) and, in levels, (solutions, servers, resources)
    reason : why not all cells were gone through; empty if they were
    cells : products of faces of all servers that were looked at
    parts, searched : connected parts of cells that were solved, and those that needed Newton's method
    """

    tasks: Array
    log_price: Array
    reason: str
    cells: int = 0
    parts: int = 0
    searched: int = 0


def enumerated(system: EquilibriumSystem, options: EnumerationOptions = OPTIONS) -> Enumeration:
    """Solutions of all cells; the same allocation may stand in several. None if there are too many cells."""
    (servers, resources), users = system.row.shape, len(system.weight)
    tasks, levels = [np.zeros((0, len(system.user)))], [np.zeros((0, servers, resources))]
    seen = np.zeros(3, np.int64)
    until = _clock.cpu() + options.seconds
    try:
        made = arranged(system, options, until)
        if isinstance(made, str):
            return Enumeration(tasks[0], levels[0], made)
        game, order = made
        for faces_of in cells(game):
            solved = solutions(game, faces_of)
            whole = np.zeros((len(solved.tasks), servers, users))
            level = np.full((len(whole), servers, resources), -np.inf)
            whole[:, order], level[:, order] = solved.tasks, solved.prices
            tasks.append(whole[:, system.server, system.user])
            levels.append(level)
            seen += len(faces_of), solved.parts, solved.searched
        reason = ""
    except LateError:
        reason = f"it would have taken more than {options.seconds:g} seconds"
    return Enumeration(np.concatenate(tasks), np.concatenate(levels), reason, *seen.tolist())


def arranged(system: EquilibriumSystem, options: EnumerationOptions, until: float) -> tuple[Game, Index] | str:
    """The game, servers with few faces first, and its servers in their order; or why it is too large."""
    (servers, resources), users = system.row.shape, len(system.weight)
    names, shape = system.polytope.cluster.servers, (servers, users)
    use, gain, size = np.zeros((*shape, resources)), np.full(shape, -np.inf), np.ones(shape)
    use[system.server, system.user] = system.use
    gain[system.server, system.user] = system.log_gain
    size[system.server, system.user] = system.gamma
    usable = gain > -np.inf
    many = 2.0 ** (usable.sum(axis=1) + resources)
    if many.sum() > options.subsets:
        return f"server {names[int(many.argmax())]!r} has too many users"
    host, support, rows = faces(use, usable, until)
    count = np.bincount(host, minlength=servers)
    if count.sum() > options.faces:
        return f"server {names[int(count.argmax())]!r} has {count.max()} faces"
    order = np.argsort(np.where(count, count, np.inf), kind="stable")[: np.count_nonzero(count)]
    of_order = np.concatenate([np.flatnonzero(host == i) for i in order])
    known = usable[order]
    average = np.where(known, gain[order], 0.0).sum(axis=0) / known.sum(axis=0)
    middle = np.array([np.median((row - average)[own]) for row, own in zip(gain[order], known, strict=True)])
    of_faces = np.repeat(np.arange(len(order)), count[order])
    game = Game(
        system.alpha, use[order], gain[order], size[order], middle, of_faces, support[of_order], rows[of_order], until
    )
    return game, order


def jittered(system: EquilibriumSystem) -> EquilibriumSystem:
    """The same game with demands of pairs and gains changed by up to `JITTER`, relatively, always in the same way."""
    rng, other = np.random.default_rng(0), copy(system)
    factor = np.exp(JITTER * rng.uniform(-1, 1, system.use.shape))
    other.use, other.per_task = system.use * factor, system.per_task * factor
    other.log_gain = system.log_gain + JITTER * rng.uniform(-1, 1, len(system.user))
    return other
