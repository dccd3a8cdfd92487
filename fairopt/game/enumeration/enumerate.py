"""All equilibria of a small game at finite alpha, from the faces of its servers."""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np

from ... import _clock
from ...model._arrays import Array, Index
from ..model.equilibrium_system import EquilibriumSystem
from .cells import Game, TooLargeError, cells, faces
from .options import OPTIONS, EnumerationOptions
from .parts import solutions

#: By what part data are changed that ties make degenerate.
JITTER = 1e-6


class Enumeration(NamedTuple):
    """What was found, and how.

    Attributes
    ----------
    tasks, log_price : (solutions, pairs) and, in levels, (solutions, servers, resources)
    reason : why not all cells were gone through; empty if they were
    cells, parts : products of faces of all servers that were looked at, and connected parts of them that were solved
    """

    tasks: Array
    log_price: Array
    reason: str
    cells: int
    parts: int


def enumerated(system: EquilibriumSystem, options: EnumerationOptions = OPTIONS) -> Enumeration:
    """Solutions of all cells; the same allocation may stand in several. None if there are too many cells."""
    (servers, resources), users = system.row.shape, len(system.weight)
    tasks, levels = [np.zeros((0, len(system.user)))], [np.zeros((0, servers, resources))]
    seen, parts, reason = 0, 0, ""
    try:
        game, order = arranged(system, options)
        for faces_of in cells(game):
            solved = solutions(game, faces_of)
            whole = np.zeros((len(solved.tasks), servers, users))
            level = np.full((len(whole), servers, resources), -np.inf)
            whole[:, order], level[:, order] = solved.tasks, solved.prices
            tasks.append(whole[:, system.server, system.user])
            levels.append(level)
            seen, parts = seen + len(faces_of), parts + solved.parts
    except TooLargeError as error:
        reason = str(error)
    return Enumeration(np.concatenate(tasks), np.concatenate(levels), reason, seen, parts)


def arranged(system: EquilibriumSystem, options: EnumerationOptions) -> tuple[Game, Index]:
    """The game, servers with few faces first, and its servers in their order.

    Raises
    ------
    TooLargeError
        It has too many faces.
    """
    (servers, resources), users = system.row.shape, len(system.weight)
    names, shape, until = system.polytope.cluster.servers, (servers, users), _clock.cpu() + options.seconds
    use, gain, size = np.zeros((*shape, resources)), np.full(shape, -np.inf), np.ones(shape)
    use[system.server, system.user] = system.use
    gain[system.server, system.user] = system.log_gain
    size[system.server, system.user] = system.gamma
    usable = gain > -np.inf
    many = 2.0 ** (usable.sum(axis=1) + resources)
    if many.sum() > options.subsets:
        raise TooLargeError(f"server {names[int(many.argmax())]!r} has too many users")
    host, support, rows = faces(use, usable, until)
    count = np.bincount(host, minlength=servers)
    if count.sum() > options.faces:
        raise TooLargeError(f"server {names[int(count.argmax())]!r} has {count.max()} faces")
    order = np.argsort(np.where(count, count, np.inf), kind="stable")[: np.count_nonzero(count)]
    known, gain = usable[order], gain[order]
    middle = np.nanmedian(np.where(known, gain - np.mean(gain, axis=0, where=known), np.nan), axis=1)
    place = np.zeros(servers, np.intp)
    place[order] = np.arange(len(order))
    of = np.argsort(place[host], kind="stable")
    found = use[order], gain, size[order], middle, place[host[of]], support[of], rows[of]
    return Game(system.alpha, *found, until), order


def jittered(system: EquilibriumSystem) -> EquilibriumSystem:
    """The same game with demands of pairs and gains changed by up to `JITTER`, relatively, always in the same way."""
    rng, other = np.random.default_rng(0), copy(system)
    factor = np.exp(JITTER * rng.uniform(-1, 1, system.use.shape))
    other.use, other.per_task = system.use * factor, system.per_task * factor
    other.log_gain = system.log_gain + JITTER * rng.uniform(-1, 1, len(system.user))
    return other
