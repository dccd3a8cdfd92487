"""Compiled: rounds of responses, plain and elastic (`elastic`). Users in units of their largest gamma."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._loops import bundle, compiled
from ._dual import price_parts, solve
from ._filling import fill
from ._response import respond

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@bundle
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
    accuracy: float


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
    here, cap, q = slice(game.first[server], game.first[server + 1]), state.cap[server], state.log_price[server]
    user, pair, per_task, use = game.user[here], game.pairs[here], game.per_task[here], game.use[here]
    count, size = per_task.shape
    gain, stretch, over = game.gain[here].copy(), np.ones(count), np.zeros(size)
    now, elsewhere, room, line = np.empty(count), np.empty(count), np.empty(count), np.empty(count)
    see(game, user, pair, cap, state, gain, now, elsewhere, room, line, stretch)
    answer = now.copy()
    if game.alpha == np.inf:
        fill(gain, per_task, line, room, q, answer)
    else:
        respond(game.alpha, gain, per_task, use, line, room, q, answer, game.accuracy)
    change = move(user, pair, per_task, relax, state, now, elsewhere, room, answer, over)
    if cap > 0:
        kept = leverage(game.alpha, per_task, use, line, room, q, answer)
        foresee(user, pair, cap, state, line, stretch, answer, kept)
    return change


@compiled(borrows=True)
def see(game, user, pair, cap, state, gain, now, elsewhere, room, line, stretch):  # type: ignore[no-untyped-def]
    """Fill what the server needs to know; take its own supply lines off the users' sums."""
    for k in range(len(user)):
        n, p = user[k], pair[k]
        now[k] = state.tasks[p]
        elsewhere[k] = line[k] = max(state.total[n] - now[k], 0.0)
        room[k] = max(game.limit[n] - elsewhere[k], 0.0)
        if cap > 0:
            if state.slope[p] > 0:
                state.slopes[n] = max(state.slopes[n] - state.slope[p], 0.0)
                state.expected[n] = max(state.expected[n] - state.slope[p] * state.foreseen[p], 0.0)
            if elsewhere[k] > 0 and state.slopes[n] > 0:
                part = min(cap / state.slopes[n], 1.0)
                stretch[k] += part * state.slopes[n]
                line[k] += part * state.expected[n]
                gain[k] = gain[k] * stretch[k] if game.alpha == np.inf else gain[k] + np.log(stretch[k])


@compiled(borrows=True)
def move(user, pair, per_task, relax, state, now, elsewhere, room, answer, over):  # type: ignore[no-untyped-def]
    """Go from `now` towards the answer; the largest change that it asks for. `over` is room for what is used."""
    change, most = 0.0, 1.0
    for k in range(len(user)):
        whole = elsewhere[k] + max(answer[k], now[k])
        if whole > 0:
            change = max(change, abs(answer[k] - now[k]) / whole)
        now[k] = min(max(now[k] + relax * (answer[k] - now[k]), 0.0), room[k])
        if now[k] > 0:
            for r in range(len(over)):
                over[r] += per_task[k, r] * now[k]
                most = max(most, over[r])  # steps beyond the response may use too much
    for k in range(len(user)):
        state.tasks[pair[k]] = now[k] / most
        state.total[user[k]] = elsewhere[k] + now[k] / most
    return change


@compiled(borrows=True)
def foresee(user, pair, cap, state, line, stretch, answer, kept):  # type: ignore[no-untyped-def]
    """Tell the supply lines of the users that are served."""
    for k in range(len(user)):
        n, p = user[k], pair[k]
        if kept[k] == 1 and state.slope[p] == 0:
            continue
        state.slope[p] = min(stretch[k] * (1 - kept[k]) / kept[k], cap)
        state.foreseen[p] = (line[k] + answer[k]) / stretch[k]
        state.slopes[n] += state.slope[p]
        state.expected[n] += state.slope[p] * state.foreseen[p]


@compiled
def leverage(alpha, per_task, use, line, room, q, answer):  # type: ignore[no-untyped-def]
    r"""The part of a rise of its supply line that a user keeps, (users,), 1 of users that are not served.

    .. math:: t_n = W_n s_n^T J^{-1} D_n, \qquad J = \sum_m D_m W_m s_m^T

    over the resources that are full, W being tasks and line together and s the shares of the price.
    """
    (count, size), kept = use.shape, np.ones(len(use))
    full, shares, matrix = np.flatnonzero(q > -np.inf), np.empty((count, size)), np.zeros((size, size))
    if len(full):
        power = min(alpha, 1e6)
        scaled = np.exp(power * (q - q.max()))
        fill_shares(power, per_task, use, line, room, q, answer, full, scaled, np.empty(size), shares, matrix)
        inverse = np.zeros((size, size))
        for r in full:
            inverse[r, r] = 1.0
            inverse[r] = solve(matrix.copy(), inverse[r])
        fill_kept(per_task, room, answer, full, shares, inverse, kept)
    return kept


@compiled(borrows=True)
def fill_shares(power, per_task, use, line, room, q, answer, full, scaled, parts, shares, matrix):  # type: ignore[no-untyped-def]
    """`W_n s_n` of users that are served, and J."""
    usual = power * q.max()
    for n in range(len(use)):
        if 0 < answer[n] < room[n]:
            whole = max(price_parts(power, use, n, scaled, q, usual, parts)[0], 1e-300)
            for s in full:
                shares[n, s] = parts[s] * (line[n] + answer[n]) / whole
                for r in full:
                    matrix[r, s] += per_task[n, r] * shares[n, s]


@compiled(borrows=True)
def fill_kept(per_task, room, answer, full, shares, inverse, kept):  # type: ignore[no-untyped-def]
    """The part t_n of users that are served."""
    for n in range(len(kept)):
        if 0 < answer[n] < room[n]:
            part = 0.0
            for r in full:
                for s in full:
                    part += per_task[n, r] * inverse[r, s] * shares[n, s]
            if part > 0:
                kept[n] = min(part, 1.0)


@compiled
def sweep(order, game, relax, state):  # type: ignore[no-untyped-def]
    """Gauss-Seidel: servers respond one after the other; returns the largest relative change asked for."""
    add_up(game, state)
    change, moved = 0.0, np.zeros(state.log_price.shape[1])
    for i in order:
        q = state.log_price[i]
        begun = q.copy()
        q += moved  # as those of the server before did
        change = max(change, play(i, game, relax, state))
        for r in range(len(q)):
            moved[r] = q[r] - begun[r] if abs(q[r] - begun[r]) < np.inf else 0.0
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
