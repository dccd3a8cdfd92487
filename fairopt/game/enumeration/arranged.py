"""A game as arrays for the enumeration: faces of every server, servers with few faces first."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...model._pointers import from_sizes
from ..model.equilibrium_system import EquilibriumSystem
from .options import EnumerationOptions

if TYPE_CHECKING:
    from ._cells import Game

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: By what part data are changed that ties make degenerate.
JITTER = 1e-6


def arranged(system: EquilibriumSystem, options: EnumerationOptions) -> tuple[Game, Index] | str:
    """The game, and its servers in their order; or why it is too large."""
    from . import _cells, _faces

    servers, resources = system.row.shape
    users, names = len(system.weight), system.polytope.cluster.servers
    if users > 40:  # of which sets are bits of a number
        return f"{users} users are too many"
    shape = servers, users
    use, gain, size = np.zeros((*shape, resources)), np.full(shape, -np.inf), np.ones(shape)
    use[system.server, system.user] = system.use
    gain[system.server, system.user] = system.log_gain
    size[system.server, system.user] = system.gamma
    found: dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
    for i in np.unique(system.server):
        usable = gain[i] > -np.inf
        if 2.0 ** (int(usable.sum()) + resources) > options.subsets:
            return f"server {names[i]!r} has too many users"
        support, rows = np.empty(options.faces, np.int64), np.empty(options.faces, np.int64)
        count = _faces.faces(use[i], usable, support, rows)
        if count > options.faces:
            return f"server {names[i]!r} has {count} faces"
        found[int(i)] = support[:count], rows[:count]
    order: Index = np.array(sorted(found, key=lambda i: len(found[i][0])), dtype=np.intp)
    many = np.array([len(found[i][0]) for i in order])
    place, total = np.zeros((len(order), len(order)), np.int64), 0
    for j in range(len(order)):
        for i in range(j):
            place[i, j] = total
            total += int(many[i]) * int(many[j])
    if total > options.tabulated:
        return f"{total} pairs of faces are too many"
    usable = gain[order] > -np.inf
    masks = np.array([sum(1 << int(n) for n in np.flatnonzero(own)) for own in usable], dtype=np.int64)
    game = _cells.Game(
        system.alpha,
        np.ascontiguousarray(use[order]),
        np.ascontiguousarray(gain[order]),
        np.ascontiguousarray(size[order]),
        _middles(gain[order]),
        np.array([np.bitwise_or.reduce(masks[k:]) for k in range(len(order))], dtype=np.int64),
        system.alpha < 6.0,  # beyond it prices differ by more than rounding leaves of the smaller
        from_sizes(many),
        np.concatenate([found[i][0] for i in order]),
        np.concatenate([found[i][1] for i in order]),
        np.zeros(total, np.int8),
        place,
    )
    return game, order


def _middles(gain: Array) -> Array:
    """(servers,): the median gain of users there, relative to their average."""
    known = gain > -np.inf
    average = np.where(known, gain, 0.0).sum(axis=0) / known.sum(axis=0)
    return np.array([np.median((row - average)[own]) for row, own in zip(gain, known, strict=True)])


def jittered(system: EquilibriumSystem) -> EquilibriumSystem:
    """The same game with demands of pairs and gains changed by up to `JITTER`, relatively, always in the same way."""
    rng, other = np.random.default_rng(0), copy(system)
    factor = np.exp(JITTER * rng.uniform(-1, 1, system.use.shape))
    other.use, other.per_task = system.use * factor, system.per_task * factor
    other.log_gain = system.log_gain + JITTER * rng.uniform(-1, 1, len(system.user))
    return other
