"""Compiled: one small cluster in scaled numbers, as `model.polytope` has it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._loops import compiled


class Cell(NamedTuple):
    """A cluster and a criterion in numbers; numba takes it apart."""

    alpha: float
    game: bool
    capacity: np.ndarray  # (servers, resources)
    demand: np.ndarray  # (users, resources)
    gamma: np.ndarray  # (users, servers), monopoly tasks, 0 for pairs that cannot run a task
    use: np.ndarray  # (users, servers, resources), D = gamma d / c
    row: np.ndarray  # (servers, resources), is it needed by somebody?
    limit: np.ndarray  # (users,)
    weight: np.ndarray  # (users,)
    share: np.ndarray  # (users, servers), u or, in the game, 1/gamma


@compiled
def cell(alpha, game, capacity, demand, eligible, limit, weight, share):  # type: ignore[no-untyped-def]
    """The numbers of one problem."""
    users, servers, resources = len(demand), len(capacity), capacity.shape[1]
    gamma, use = np.empty((users, servers)), np.zeros((users, servers, resources))
    row = np.zeros((servers, resources), np.bool_)
    for n in range(users):
        for i in range(servers):
            most = np.inf if eligible[n, i] and limit[n] > 0 else 0.0
            for r in range(resources):
                if demand[n, r] > 0:
                    most = min(most, capacity[i, r] / demand[n, r])
            gamma[n, i] = most
            for r in range(resources):
                if most > 0 and demand[n, r] > 0:
                    use[n, i, r] = most * demand[n, r] / capacity[i, r]
                    row[i, r] = True
    return Cell(alpha, game, capacity, demand, gamma, use, row, limit, weight, share)
