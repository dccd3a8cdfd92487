"""Compiled: the equations of `model.active_set` at one point of the curve, in unknowns that may reach zero.

Log prices are minus infinity where a row leaves the active set. So the price of a row is its largest part w in what
a pair pays, `lambda_k c_k = w_k e^(alpha l_k)`. Of each server one row has w = 1 and its log level l_i as the unknown:
all prices of the server move with it. With tasks z (fractions of monopoly tasks), A = active pairs, rows and limits:

    log X_n + log(sum_r D_pr w_r e^(alpha l_r) + tax_p) / alpha + xi_n = g_p - jitter_p     p in A
    sum_p D_pr z_p = 1 + room_r                                                             r in A
    X_n = q_n                                                                               n in A

A user who has all its tasks where nothing that it needs is used up would pay nothing there, and its xi be infinite. So
users with a limit pay a little on all servers, in proportion to what a task is worth there once the limit is reached:
`tax_p = T e^(alpha h_p), h_p = g_p - log q_n - 3`. Who is at its limit prefers the same servers with it as without.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._loops import compiled

#: log T: the tax of users with a limit, in parts of what their last task is worth.
LOG_TAX = float(np.log(1e-8))


class Game(NamedTuple):
    """What does not change along the curve. Pairs of a user stand together."""

    user: np.ndarray  # (pairs,)
    server: np.ndarray  # (pairs,)
    first: np.ndarray  # (users + 1,), pairs of user n are first[n] to first[n + 1]
    size: np.ndarray  # (pairs,), gamma in units of the user's largest
    gain: np.ndarray  # (pairs,), log(phi_n gamma_p)
    at: np.ndarray  # (pairs, resources), the row, -1: none
    cost: np.ndarray  # (pairs, resources), D
    log_cost: np.ndarray  # (pairs, resources), -inf for none
    host: np.ndarray  # (rows,), the server of a row
    limit: np.ndarray  # (users,), infinite where it cannot bind
    tax: np.ndarray  # (pairs,), log level of the tax, h_p; -inf where the limit cannot bind
    jitter: np.ndarray  # (pairs,), by how much a pair is dearer than in the data, log
    room: np.ndarray  # (rows,), by how much a row is larger than in the data, relative


class Place(NamedTuple):
    """A point of the curve, changed in place."""

    z: np.ndarray  # (pairs,)
    w: np.ndarray  # (rows,), largest part of a row in what a pair pays; 1 for the row that stands for its server
    level: np.ndarray  # (rows,), l
    xi: np.ndarray  # (users,), by how much a limit bends the level, log
    theta: np.ndarray  # (1,), log alpha
    pair_on: np.ndarray  # (pairs,), active?
    row_on: np.ndarray  # (rows,)
    limit_on: np.ndarray  # (users,)
    stands: np.ndarray  # (rows,), does the row stand for its server?


class Values(NamedTuple):
    """What the equations say at a point."""

    x: np.ndarray  # (users,)
    felt: np.ndarray  # (pairs, resources), by how much the log of a cost rises with w, relative to the cost
    slack: np.ndarray  # (pairs,)
    idle: np.ndarray  # (rows,)
    turn: np.ndarray  # (pairs,), the slack's derivative by log alpha


@compiled
def values_of(g):  # type: ignore[no-untyped-def]
    """Room for values."""
    pairs, rows, users = len(g.user), len(g.host), len(g.limit)
    return Values(np.empty(users), np.empty(g.cost.shape), np.empty(pairs), np.empty(rows), np.empty(pairs))


@compiled
def copied(at):  # type: ignore[no-untyped-def]
    """Another place with the same numbers."""
    return Place(
        at.z.copy(),
        at.w.copy(),
        at.level.copy(),
        at.xi.copy(),
        at.theta.copy(),
        at.pair_on.copy(),
        at.row_on.copy(),
        at.limit_on.copy(),
        at.stands.copy(),
    )


@compiled
def put(to, source):  # type: ignore[no-untyped-def]
    """Copy a place into another."""
    to.z[:], to.w[:], to.level[:], to.xi[:], to.theta[:] = source.z, source.w, source.level, source.xi, source.theta
    to.pair_on[:], to.row_on[:] = source.pair_on, source.row_on
    to.limit_on[:], to.stands[:] = source.limit_on, source.stands


@compiled
def evaluate(g, at, v):  # type: ignore[no-untyped-def]
    """Fill the values at a place; False where a user has no tasks or a cost is not positive."""
    alpha, sound = np.exp(at.theta[0]), True
    v.x[:] = g.first[1:] == g.first[:-1]  # who can run nothing is of no account, and has 1 for no logarithm to fail
    v.idle[:] = 1 + g.room
    for p in range(len(g.user)):
        v.x[g.user[p]] += g.size[p] * at.z[p]
        for r in range(g.at.shape[1]):
            if g.cost[p, r] > 0:
                v.idle[g.at[p, r]] -= g.cost[p, r] * at.z[p]
    log_x, price = np.empty(len(v.x)), np.empty(len(g.host))
    for n in range(len(v.x)):
        sound &= v.x[n] > 0
        log_x[n] = np.log(v.x[n]) + at.xi[n] if v.x[n] > 0 else np.nan
    for k in range(len(g.host)):
        price[k] = alpha * at.level[k] if at.row_on[k] else -np.inf
    if not sound:
        return False
    for p in range(len(g.user)):
        top, whole, turn = -np.inf, 0.0, 0.0
        for r in range(g.at.shape[1]):
            if g.cost[p, r] > 0:
                v.felt[p, r] = g.log_cost[p, r] + price[g.at[p, r]]
                top = max(top, v.felt[p, r])
        if g.tax[p] > -np.inf:
            tax = LOG_TAX + alpha * g.tax[p]
            top = max(top, tax)
            whole = np.exp(tax - top)
            turn = whole * g.tax[p]
        for r in range(g.at.shape[1]):
            if g.cost[p, r] > 0 and at.row_on[g.at[p, r]]:
                k = g.at[p, r]
                v.felt[p, r] = np.exp(v.felt[p, r] - top) if v.felt[p, r] < top else 1.0
                whole += v.felt[p, r] * at.w[k]
                turn += v.felt[p, r] * at.w[k] * at.level[k]
            else:
                v.felt[p, r] = 0.0
        if not whole > 0:
            sound &= not at.pair_on[p]
            v.slack[p], v.turn[p] = -np.inf, 0.0
            continue
        for r in range(g.at.shape[1]):
            v.felt[p, r] /= whole
        log_cost = (top + np.log(whole)) / alpha
        v.turn[p] = turn / whole - log_cost
        v.slack[p] = log_x[g.user[p]] + log_cost - g.gain[p] + g.jitter[p]
    return sound


@compiled
def numbered(g, at, place):  # type: ignore[no-untyped-def]
    """Fill `place` (pairs + rows + users,) with numbers of unknowns, -1 for none; how many there are."""
    pairs, rows, count = len(g.user), len(g.host), 0
    for p in range(pairs):
        place[p] = count if at.pair_on[p] else -1
        count += at.pair_on[p]
    for k in range(rows):
        place[pairs + k] = count if at.row_on[k] else -1
        count += at.row_on[k]
    for n in range(len(g.limit)):
        place[pairs + rows + n] = count if at.limit_on[n] else -1
        count += at.limit_on[n]
    return count


@compiled
def slack_gradient(g, at, v, place, p, row):  # type: ignore[no-untyped-def]
    """Fill `row` (unknowns + 1,) with the derivative of a pair's slack; the last is by log alpha."""
    pairs, rows, n = len(g.user), len(g.host), g.user[p]
    alpha = np.exp(at.theta[0])
    row[:] = 0.0
    for j in range(g.first[n], g.first[n + 1]):
        if place[j] >= 0:
            row[place[j]] = g.size[j] / v.x[n]
    together, stand = 0.0, -1
    for r in range(g.at.shape[1]):
        k = g.at[p, r]
        if k >= 0 and at.row_on[k]:
            together += v.felt[p, r] * at.w[k]
            if not at.stands[k]:
                row[place[pairs + k]] = v.felt[p, r] / alpha
    for k in range(rows):
        if at.stands[k] and g.host[k] == g.server[p]:
            stand = k
    if stand >= 0:
        row[place[pairs + stand]] = together
    if at.limit_on[n]:
        row[place[pairs + rows + n]] = 1.0
    row[len(row) - 1] = v.turn[p]


@compiled
def use_gradient(g, place, k, row):  # type: ignore[no-untyped-def]
    """Fill `row` with the derivative of what is used of a row."""
    row[:] = 0.0
    for p in range(len(g.user)):
        if g.server[p] == g.host[k] and place[p] >= 0:
            for r in range(g.at.shape[1]):
                if g.at[p, r] == k:
                    row[place[p]] = g.cost[p, r]


@compiled
def total_gradient(g, place, n, row):  # type: ignore[no-untyped-def]
    """Fill `row` with the derivative of X_n over the limit."""
    row[:] = 0.0
    for p in range(g.first[n], g.first[n + 1]):
        if place[p] >= 0:
            row[place[p]] = g.size[p] / g.limit[n]


@compiled
def bordered(g, at, v, place, border):  # type: ignore[no-untyped-def]
    """The derivative of the equations by unknowns and log alpha, and `border` as the last row."""
    pairs, rows, count = len(g.user), len(g.host), len(border) - 1
    matrix = np.zeros((count + 1, count + 1))
    for p in range(pairs):
        if place[p] >= 0:
            slack_gradient(g, at, v, place, p, matrix[place[p]])
            for r in range(g.at.shape[1]):
                k = g.at[p, r]
                if k >= 0 and at.row_on[k]:
                    matrix[place[pairs + k], place[p]] = g.cost[p, r]
    for n in range(len(g.limit)):
        if at.limit_on[n]:
            total_gradient(g, place, n, matrix[place[pairs + rows + n]])
    matrix[count] = border
    return matrix


@compiled
def residual(g, at, v, place, rhs):  # type: ignore[no-untyped-def]
    """Fill `rhs` (unknowns + 1,) with minus what is wrong, 0 at last; the largest."""
    pairs, rows, worst = len(g.user), len(g.host), 0.0
    for p in range(pairs):
        if place[p] >= 0:
            rhs[place[p]] = -v.slack[p]
            worst = max(worst, abs(v.slack[p]))
    for k in range(rows):
        if at.row_on[k]:
            rhs[place[pairs + k]] = v.idle[k]
            worst = max(worst, abs(v.idle[k]))
    for n in range(len(g.limit)):
        if at.limit_on[n]:
            rhs[place[pairs + rows + n]] = 1 - v.x[n] / g.limit[n]
            worst = max(worst, abs(1 - v.x[n] / g.limit[n]))
    rhs[len(rhs) - 1] = 0.0
    return worst if worst == worst else np.inf


@compiled
def moved(g, at, place, step, t):  # type: ignore[no-untyped-def]
    """Change a place by a part of a step (unknowns + 1,)."""
    pairs, rows, count = len(g.user), len(g.host), len(step) - 1
    for p in range(pairs):
        if place[p] >= 0:
            at.z[p] += t * step[place[p]]
    for k in range(rows):
        if at.row_on[k]:
            if at.stands[k]:
                for j in range(rows):
                    if g.host[j] == g.host[k] and at.row_on[j]:
                        at.level[j] += t * step[place[pairs + k]]
            else:
                at.w[k] += t * step[place[pairs + k]]
    for n in range(len(g.limit)):
        if at.limit_on[n]:
            at.xi[n] += t * step[place[pairs + rows + n]]
    at.theta[0] += t * step[count]
