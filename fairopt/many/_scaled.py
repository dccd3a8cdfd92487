"""Compiled: the feasible set of one small cluster in scaled numbers, as `model.polytope` has it, and feasibility."""

from __future__ import annotations

import numpy as np
from numba import njit

compiled = njit(cache=True, error_model="numpy", nogil=True)


@compiled
def monopoly(capacity, demand, eligible, limit, gamma):  # type: ignore[no-untyped-def]
    """Fill `gamma` (users, servers): monopoly tasks, 0 for pairs that cannot run a task, and for limits of 0."""
    for n in range(len(demand)):
        for i in range(len(capacity)):
            most = np.inf if eligible[n, i] and limit[n] > 0 else 0.0
            for r in range(capacity.shape[1]):
                if demand[n, r] > 0:
                    most = min(most, capacity[i, r] / demand[n, r])
            gamma[n, i] = most


@compiled
def parts(capacity, demand, gamma, use, row):  # type: ignore[no-untyped-def]
    """Fill `use` (users, servers, resources), `D = gamma d / c`, and `row` (servers, resources): is it needed?"""
    use[:] = 0.0
    row[:] = False
    for n in range(len(demand)):
        for i in range(len(capacity)):
            if gamma[n, i] > 0:
                for r in range(capacity.shape[1]):
                    if demand[n, r] > 0:
                        use[n, i, r] = gamma[n, i] * demand[n, r] / capacity[i, r]
                        row[i, r] = True


@compiled
def infeasibility(capacity, demand, limit, tasks, gamma):  # type: ignore[no-untyped-def]
    """`certificates.feasibility`: the largest relative overuse, excess over a limit or negative share."""
    users, servers = tasks.shape
    worst = 0.0
    for i in range(servers):
        for r in range(capacity.shape[1]):
            used = 0.0
            for n in range(users):
                used += tasks[n, i] * demand[n, r]
            if used > 0:
                worst = max(worst, used / capacity[i, r] - 1)
    for n in range(users):
        total = 0.0
        for i in range(servers):
            if not np.isfinite(tasks[n, i]) or (tasks[n, i] != 0 and gamma[n, i] <= 0):
                return np.inf
            if tasks[n, i] < 0:
                worst = max(worst, -tasks[n, i] / gamma[n, i])
            total += tasks[n, i]
        if total > 0:
            worst = max(worst, total / max(limit[n], 2.2250738585072014e-308) - 1)
    return worst
