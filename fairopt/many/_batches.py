"""Compiled: a batch of problems one after the other. Arrays as in `statements.Batch.stacked`, problems first."""

from __future__ import annotations

import numpy as np

from ._interior import equilibrium
from ._scaled import cell, compiled


@compiled
def equilibria(game, capacity, demand, eligible, share, weight, limit, alpha, tol):  # type: ignore[no-untyped-def]
    """Finite alpha, global or game: tasks (problems, users, servers) and certificates (problems,)."""
    problems, users, servers = share.shape
    tasks, certificate = np.zeros((problems, users, servers)), np.empty(problems)
    log_rows = np.empty(capacity.shape[1:])
    for k in range(problems):
        q = cell(alpha[k], game, capacity[k], demand[k], eligible[k], limit[k], weight[k], share[k])
        certificate[k] = equilibrium(q, tol, tasks[k], log_rows)
    return tasks, certificate
