"""Compiled: a batch of problems one after the other. Arrays as in `stack.Stacked`, problems first."""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ._efficient import efficiency_error, efficient
from ._lexicographic import ill_scaling, lexicographic_rise
from ._leximin import leximin
from ._psdsf import psdsf
from ._scaled import cell, infeasibility
from ._servers import exploitability, filled


@compiled
def leximins(capacity, demand, eligible, share, weight, limit):  # type: ignore[no-untyped-def]
    """Max-min over a pool or servers: tasks, certificates, sets of prices of whole capacities, ill-scalings, rounds.

    Sets are (problems, sets, servers, resources), as many as users, of which rounds count.
    """
    problems, users, servers = share.shape
    tasks, certificate, scaling = np.zeros((problems, users, servers)), np.empty(problems), np.empty(problems)
    prices, nothing = np.zeros((problems, users, servers, capacity.shape[2])), np.zeros(users)
    rounds = np.zeros(problems, np.int64)
    for k in range(problems):
        q = cell(np.inf, False, capacity[k], demand[k], eligible[k], limit[k], weight[k], share[k])
        scaling[k] = ill_scaling(q)
        if servers == 1:
            filled(q, 0, nothing, q.limit, tasks[k, :, 0])
            rise = exploitability(q, tasks[k], False, q.limit)
        else:
            rounds[k] = leximin(q, tasks[k], prices[k])
            rise = lexicographic_rise(q, tasks[k], prices[k, : rounds[k]]) if rounds[k] >= 0 else np.inf
        certificate[k] = max(rise, infeasibility(q, tasks[k]))
    return tasks, certificate, prices, scaling, rounds


@compiled
def optima(capacity, demand, eligible, share, weight, limit):  # type: ignore[no-untyped-def]
    """The largest sum of shares over a pool or servers: tasks, certificates, prices of whole capacities."""
    problems, users, servers = share.shape
    tasks, certificate, prices = np.zeros((problems, users, servers)), np.empty(problems), np.zeros(capacity.shape)
    for k in range(problems):
        q = cell(0.0, False, capacity[k], demand[k], eligible[k], limit[k], weight[k], share[k])
        error = efficiency_error(q, tasks[k], prices[k]) if efficient(q, tasks[k], prices[k]) else np.inf
        certificate[k] = max(error, infeasibility(q, tasks[k]))
    return tasks, certificate, prices


@compiled
def alone(capacity, demand, eligible, share, weight, limit):  # type: ignore[no-untyped-def]
    """Max-min inside every server, which knows no limit but zero: tasks and certificates."""
    problems, users, servers = share.shape
    tasks, certificate, nothing = np.zeros((problems, users, servers)), np.empty(problems), np.zeros(users)
    for k in range(problems):
        free = np.where(limit[k] > 0, np.inf, 0.0)
        q = cell(np.inf, False, capacity[k], demand[k], eligible[k], free, weight[k], share[k])
        for i in range(servers):
            filled(q, i, nothing, q.limit, tasks[k, :, i])
        certificate[k] = max(exploitability(q, tasks[k], False, q.limit), infeasibility(q, tasks[k]))
    return tasks, certificate


@compiled
def limits(  # type: ignore[no-untyped-def]
    capacity, demand, eligible, share, weight, limit, alpha, tol, rounds, near, log_rows, tasks, missing, certain
):
    """PS-DSF from equilibria at `alpha`, `near` (problems, users, servers) with log prices of whole capacities.

    Where they are not beyond `tol` yet, better tasks are filled in, with their certificates (problems,), and whether
    they are limits for certain.
    """
    for k in range(len(share)):
        q = cell(np.inf, True, capacity[k], demand[k], eligible[k], limit[k], weight[k], share[k])
        if missing[k] > tol and np.isfinite(near[k, 0, 0]):
            best, sure = psdsf(q, alpha, tol, rounds, near[k], log_rows[k], missing[k], certain[k], tasks[k])
            missing[k], certain[k] = max(best, infeasibility(q, tasks[k])), sure
