"""Compiled: rounds of responses, plain and elastic (`elastic`). Users in units of their largest gamma."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._loops import compiled
from ._dual import price_shares, solve
from ._filling import refill
from ._response import respond

Array = NDArray[np.float64]
Index = NDArray[np.intp]


class Game(NamedTuple):
    """What rounds need of the pairs: those of server i are `pairs[first[i]:first[i + 1]]`, other arrays in that order.

    `gain` (pairs,) is its log for finite alpha; `limit` (users,).
    """

    first: Index
    pairs: Index
    user: Index
    alpha: float
    gain: Array
    per_task: Array
    use: Array
    limit: Array


class State(NamedTuple):
    """What rounds change: tasks and supply lines of the pairs, their sums of the users, prices and caps of the servers.

    A pair's supply line is `tasks - slope (X - foreseen)` at a total X of its user; plain responses have no slopes, as
    their servers' caps are 0.
    """

    tasks: Array
    slope: Array
    foreseen: Array
    total: Array
    slopes: Array
    expected: Array
    log_price: Array
    cap: Array


@compiled
def play(server, game, relax, state):  # type: ignore[no-untyped-def]
    """One server responds to the sums that it sees, and moves its column by `relax` of the way.

    Returns the largest change that the response asks for, relative to the user's tasks.
    """
    low, high = game.first[server], game.first[server + 1]
    count, size = high - low, game.per_task.shape[1]
    if count == 0:
        return 0.0
    elsewhere, room, answer = np.empty(count), np.empty(count), np.empty(count)
    stretch, line, gain = np.empty(count), np.empty(count), np.empty(count)
    for k in range(count):
        n, pair = game.user[low + k], game.pairs[low + k]
        elsewhere[k] = max(state.total[n] - state.tasks[pair], 0.0)
        room[k] = max(game.limit[n] - elsewhere[k], 0.0)
        gives = state.slopes[n] - state.slope[pair]
        part = min(1.0, state.cap[server] / gives) if gives > 0 and elsewhere[k] > 0 else 0.0
        stretch[k] = 1 + part * gives
        line[k] = elsewhere[k] + part * max(state.expected[n] - state.slope[pair] * state.foreseen[pair], 0.0)
        gain[k] = game.gain[low + k]
        if part > 0:
            gain[k] = gain[k] * stretch[k] if game.alpha == np.inf else gain[k] + np.log(stretch[k])
    q, per_task, use = state.log_price[server], game.per_task[low:high], game.use[low:high]
    if game.alpha == np.inf:
        refill(gain, per_task, line, room, q, answer)
    else:
        respond(game.alpha, gain, per_task, use, line, room, q, answer)
    leverage = np.ones(count)
    if state.cap[server] > 0:
        fill_leverage(game.alpha, per_task, use, line, room, q, answer, leverage)
    change = 0.0
    over = np.zeros(size)
    for k in range(count):
        n, pair = game.user[low + k], game.pairs[low + k]
        now = state.tasks[pair]
        whole = max(elsewhere[k] + answer[k], state.total[n])
        if whole > 0:
            change = max(change, abs(answer[k] - now) / whole)
        if state.cap[server] > 0:
            slope = min(state.cap[server], stretch[k] * (1 - leverage[k]) / leverage[k])
            foreseen = (line[k] + answer[k]) / stretch[k]
            state.slopes[n] -= state.slope[pair]
            state.expected[n] -= state.slope[pair] * state.foreseen[pair]
            state.slope[pair] += relax * (slope - state.slope[pair])
            state.foreseen[pair] += relax * (foreseen - state.foreseen[pair])
            state.slopes[n] += state.slope[pair]
            state.expected[n] += state.slope[pair] * state.foreseen[pair]
        answer[k] = min(max(now + relax * (answer[k] - now), 0.0), room[k])
        if answer[k] > 0:
            for r in range(size):
                over[r] += per_task[k, r] * answer[k]
    part = 1 / max(over.max(), 1.0)  # steps beyond the response may use too much
    for k in range(count):
        state.total[game.user[low + k]] = elsewhere[k] + part * answer[k]
        state.tasks[game.pairs[low + k]] = part * answer[k]
    return change


@compiled
def fill_leverage(alpha, per_task, use, line, room, q, answer, leverage):  # type: ignore[no-untyped-def]
    r"""Fill the part of a rise of its supply line that a user keeps, 1 of users that are not served.

    .. math:: t_n = W_n s_n^T J^{-1} D_n, \qquad J = \sum_m D_m W_m s_m^T

    over the resources that are full, W being tasks and line together and s the shares of the price.
    """
    count, size = use.shape
    shares, matrix, inverse = np.zeros((count, size)), np.zeros((size, size)), np.zeros((size, size))
    top = q.max()
    if top == -np.inf:
        return
    for n in range(count):
        if 0 < answer[n] < room[n]:
            if alpha == np.inf:
                dearest = -1
                for r in range(size):
                    if use[n, r] > 0 and q[r] > -np.inf and (dearest < 0 or q[r] > q[dearest]):
                        dearest = r
                if dearest >= 0:
                    shares[n, dearest] = 1.0
            else:
                price_shares(alpha, use[n], np.exp(alpha * (q - top)), q, top, shares[n])
            for r in range(size):
                for s in range(size):
                    matrix[r, s] += per_task[n, r] * (line[n] + answer[n]) * shares[n, s]
    for r in range(size):
        if q[r] == -np.inf:
            matrix[r, :], matrix[:, r] = 0.0, 0.0
    for r in range(size):
        inverse[r, r] = 1.0
        inverse[r] = solve(matrix.copy(), inverse[r])
    for n in range(count):
        kept = 0.0
        for r in range(size):
            for s in range(size):
                kept += per_task[n, r] * inverse[r, s] * shares[n, s]
        if kept > 0:
            leverage[n] = min(kept * (line[n] + answer[n]), 1.0)


@compiled
def sweep(order, game, relax, state):  # type: ignore[no-untyped-def]
    """Gauss-Seidel: servers respond one after the other; returns the largest relative change asked for."""
    add_up(game, state)
    change = 0.0
    for i in order:
        change = max(change, play(i, game, relax, state))
    return change


@compiled
def at_once(game, relax, state):  # type: ignore[no-untyped-def]
    """Jacobi: all servers respond to the same sums; returns the largest relative change asked for."""
    change = 0.0
    total, slopes, expected = state.total.copy(), state.slopes.copy(), state.expected.copy()
    for i in range(len(game.first) - 1):
        seen = State(
            state.tasks, state.slope, state.foreseen, total.copy(), slopes.copy(), expected.copy(), state.log_price,
            state.cap,
        )  # fmt: skip
        change = max(change, play(i, game, relax, seen))
    add_up(game, state)
    return change


@compiled
def add_up(game, state):  # type: ignore[no-untyped-def]
    """Sums of users: what is left of rounding as servers add and subtract may be more than a user has."""
    state.total[:], state.slopes[:], state.expected[:] = 0.0, 0.0, 0.0
    for k in range(len(game.pairs)):
        n, pair = game.user[k], game.pairs[k]
        state.total[n] += state.tasks[pair]
        state.slopes[n] += state.slope[pair]
        state.expected[n] += state.slope[pair] * state.foreseen[pair]
