"""Compiled: a batch of problems one after the other. Arrays as in `stack.Stacked`, problems first."""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ._efficient import efficiency_error, efficient
from ._interior import equilibrium
from ._lexicographic import ill_scaling, lexicographic_rise
from ._leximin import leximin
from ._psdsf import psdsf
from ._scaled import cell, infeasibility
from ._servers import exploitability, filled


@compiled
def equilibria(game, capacity, demand, eligible, share, weight, limit, alpha, tol, aim, most):  # type: ignore[no-untyped-def]
    """Finite alpha, global or game: tasks (problems, users, servers), certificates (problems,), prices and steps.

    Prices (problems, servers, resources) are logarithms, of whole capacities. Below `tol` a run goes on to `aim`, but
    there is no further one; there are never more than `most` steps.
    """
    problems, users, servers = share.shape
    tasks, certificate = np.zeros((problems, users, servers)), np.empty(problems)
    log_rows, steps = np.empty(capacity.shape), np.zeros(problems, np.int64)
    for k in range(problems):
        q = cell(alpha[k], game, capacity[k], demand[k], eligible[k], limit[k], weight[k], share[k])
        certificate[k], steps[k] = equilibrium(q, tol, aim, most, tasks[k], log_rows[k])
    return tasks, certificate, log_rows, steps


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
def limits(capacity, demand, eligible, share, weight, limit, tol, steps, alphas, rounds):  # type: ignore[no-untyped-def]
    """PS-DSF: tasks, certificates, and whether they are limits for certain. See `_psdsf.psdsf` for the rest."""
    problems, users, servers = share.shape
    tasks, certificate = np.zeros((problems, users, servers)), np.empty(problems)
    certain = np.zeros(problems, np.bool_)
    for k in range(problems):
        q = cell(np.inf, True, capacity[k], demand[k], eligible[k], limit[k], weight[k], share[k])
        missing, certain[k] = psdsf(q, tol, steps, alphas, rounds, tasks[k])
        certificate[k] = max(missing, infeasibility(q, tasks[k]))
    return tasks, certificate, certain
