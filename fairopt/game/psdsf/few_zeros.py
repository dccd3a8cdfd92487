"""PS-DSF with few zero demands: the homotopy, started near its end from two problems with positive demands.

All others need everything, and `core.choices` finds their prices in a few dozen Newton steps. What they leave of
resources that are not full goes to those who need only these, group by group, by the same algorithm on what is left:
the price of such a resource is below the others' by as much as their levels are higher. Both are prices of one game at
a low temperature but for the little that groups take from each other, which Newton's method puts right, or the homotopy
is followed from its beginning.
"""

from __future__ import annotations

import numpy as np

from ...core.choices import Choices
from ...model._arrays import Array, Mask
from ...model.polytope import Polytope
from ..equilibrium.coupling import BARRIER, CoupledGame
from ..equilibrium.entropy_homotopy import Place, newton
from ..model.equilibrium_system import EquilibriumSystem

#: It is tried where at most the part `_PART` of the users can do without a resource, and there are at least `_USERS`
#: for every price (of a resource of a server): with fewer it often fails, and saves little.
_PART, _USERS = 0.1, 2
#: The temperature, and Newton steps.
_TAU, _MOST = 1e-5, 24
#: A resource is full of which this part idles at most; others are cheaper by `_BELOW _TAU`, in logs.
_FULL, _BELOW = 1e-3, 3.0
#: Barriers of the first power of prices: with less the limit was lost on one of the clusters tried.
POWER = 1.0


def beginning(q: EquilibriumSystem) -> Place | None:
    """The game at the temperature `_TAU`; None with too many users who lack a resource or prices, or not found."""
    if len(q.weight) < _USERS * int(q.row.sum()):
        return None
    lacking = ~(q.use > 0) & q.row[q.server]
    lacks = np.add.reduceat(lacking.any(axis=1), q.start[:-1]) > 0
    if not 0 < lacks.sum() <= _PART * len(lacks) or len(q.limited):
        return None
    found = _filled(q, ~lacks, np.ones_like(q.row, dtype=float), _TAU)
    if found is None:
        return None
    price, used, steps = found
    idle = np.maximum(1 - used, 0.0)
    top = price.max(axis=1, initial=-np.inf, where=used > 1 - _FULL)
    barrier = np.log(BARRIER * _TAU / np.maximum(idle, _FULL))
    log_price = np.where(used > 1 - _FULL, top[:, None], np.minimum(barrier, top[:, None] - _BELOW * _TAU))
    needs = [tuple(row) for row in q.polytope.cluster.demand[q.polytope.users] > 0]
    for group in {needs[n] for n in np.flatnonzero(lacks)}:
        mine = np.array([lacks[n] and needs[n] == group for n in range(len(lacks))])
        left = _filled(q, mine, np.where(idle > _FULL, idle, 0.0), _TAU)
        if left is None:
            return None
        of_group = np.array(group) & (left[1] > 1 - _FULL) & (idle > _FULL)
        log_price = np.where(of_group, left[0] - np.log(np.maximum(idle, _FULL)), log_price)
        steps += left[2]
    game = CoupledGame(q, log_price, _TAU, np.zeros(len(q.row)), most=POWER)
    there = newton(game, _MOST)
    return None if there.here is None else Place(there.here, steps + there.systems)


def _filled(q: EquilibriumSystem, users: Mask, part: Array, tau: float) -> tuple[Array, Array, int] | None:
    """Log prices and use (servers, resources), of what they have, and the steps, where some users share a part of all.

    Every resource of a server has the price of the server; None where that is not found.
    """
    whole = q.polytope.cluster
    names = [whole.users[n] for n in q.polytope.users[users]]
    shared = whole.replace(capacity=whole.capacity * part).select(names, whole.servers)
    polytope = Polytope(shared, shared.max_tasks)
    if len(polytope.users) != len(names):
        return None
    system = EquilibriumSystem(polytope, q.weight[users], q.alpha)
    found = Choices(system)
    found.cool(tau)
    return (
        (np.repeat(found.price[:, None], part.shape[1], axis=1), found.used, found.steps) if found.tau <= tau else None
    )
