"""Rounds of best responses, plain and elastic (`elastic`): what dynamics and the engine share, and compiled loops.

Users in units of their largest gamma, as in an `EquilibriumSystem`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...base.loops import bundle, compiled
from ...model._arrays import Array, Index, by_group, numbered
from ..solution import Solution
from .equilibrium_system import EquilibriumSystem, solution
from .response import fill, price_parts, respond, solve

#: The log of a price, alpha times that of a level price, that is as good as none.
_FREE = -1e6


@bundle
class Game(NamedTuple):
    """Data of pairs by server: those of server i are `pairs[first[i]:first[i + 1]]`, other arrays in that order.

    `gain` (pairs,) is its log for finite alpha; `limit` (users,). Servers of a `kind` (servers,) have equal capacities.
    """

    kind: Index
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
    """State of the game: tasks and supply lines of pairs, their sums by user, prices and caps of servers.

    A pair's supply line is `tasks - slope (X - foreseen)` at a total X of its user; plain responses have no slopes, as
    their servers' caps are 0. `slope` and `foreseen` are in the order of servers, as in `Game`.
    """

    tasks: Array
    slope: Array
    foreseen: Array
    total: Array
    slopes: Array
    expected: Array
    log_price: Array
    cap: Array


class Sweeps:
    """Rounds of exact best responses (`_response`), which may miss a capacity by the part `accuracy`.

    `pairs` are in the order of servers, `first` where those of each begin.
    """

    def __init__(self, method: EquilibriumSystem, alpha: float | None = None, accuracy: float = 0.0) -> None:
        self.method, self.alpha = method, method.alpha if alpha is None else alpha
        self.pairs, self.first = by_group(method.server, len(method.row))
        kind, gain = numbered(method.polytope.cluster.capacity), method.log_gain[self.pairs]
        #: Data of the game for compiled rounds.
        self.game = Game(
            np.where(np.bincount(kind)[kind] > 1, kind, 0),  # those without their like are one
            self.first,
            self.pairs,
            method.user[self.pairs],
            float(self.alpha),
            np.exp(gain) if np.isinf(self.alpha) else gain,
            method.per_task[self.pairs],
            method.use[self.pairs],
            method.limit,
            accuracy,
        )
        #: Servers in decreasing order of the change last asked for.
        self._doubted = list(range(len(method.row)))

    def start(self, tasks: Array) -> State:
        """State at tasks of pairs, in units of users' largest gamma."""
        total, none, prices = self.method.sums(tasks), np.zeros_like, np.zeros(self.method.row.shape)
        lines = tasks.copy(), none(tasks), none(tasks), total, none(total), none(total)
        return State(*lines, prices, np.zeros(len(prices)))

    def gauss_seidel(self, state: State, order: Index | None = None, relax: float = 1.0) -> float:
        """Gauss-Seidel round; the largest change that a response asked for, relative to the user's tasks."""
        order = np.arange(len(self.method.row)) if order is None else order
        parts = state.tasks[self.pairs], state.slope, state.slope * state.foreseen
        for sums, part in zip((state.total, state.slopes, state.expected), parts, strict=True):
            # Anew: what is left of rounding as servers add and subtract may be more than a user has.
            sums[:] = np.bincount(self.game.user, part, len(sums))
        return float(sweep(order, self.game, relax, state))

    def respond(self, server: int, state: State, relax: float = 1.0) -> float:
        """Let one server move by the part `relax` of its exact response; the change asked for."""
        return float(play(server, self.game._replace(accuracy=0.0), relax, state))

    def requested(self, state: State, enough: float = np.inf) -> float:
        """Largest change that a best response would make, relative to the user's tasks; stops early above `enough`.

        If it does not, the state has the prices of these responses.
        """
        copy = self.start(state.tasks)
        copy.log_price[:] = state.log_price
        change = 0.0
        for place, server in enumerate(self._doubted):
            change = max(change, self.respond(server, copy, 0.0))
            if change > enough:
                self._doubted.insert(0, self._doubted.pop(place))
                return change
        state.log_price[:] = copy.log_price
        return change

    def log_price(self, state: State) -> Array:
        """Level prices, log v (servers, resources), at which the servers last responded (alpha finite)."""
        return np.where(self.method.row, np.maximum(state.log_price, _FREE / min(self.alpha, 1.0)), 0.0)

    def solution(self, state: State, by: str, rounds: int, seconds: float, tol: float) -> Solution:
        """Wrap the state as a candidate."""
        prices = self.log_price(state) if np.isfinite(self.alpha) else None
        return solution(self.method, state.tasks, prices, by, rounds, seconds, tol)


@compiled
def play(server, game, relax, state):  # type: ignore[no-untyped-def]
    """Let one server respond to the sums that it sees, and move by the part `relax` of its response.

    Returns the largest change that the response asks for, relative to the user's tasks.
    """
    here, cap, q = slice(game.first[server], game.first[server + 1]), state.cap[server], state.log_price[server]
    user, pair, per_task, use = game.user[here], game.pairs[here], game.per_task[here], game.use[here]
    slope, foreseen, tasks, total = state.slope[here], state.foreseen[here], state.tasks, state.total
    slopes, expected, limit, gain = state.slopes, state.expected, game.limit, game.gain[here].copy()
    now, elsewhere, room, stretch = np.empty(len(user)), np.empty(len(user)), np.empty(len(user)), np.ones(len(user))
    line, change, most = np.empty(len(user)), 0.0, 1.0
    for k, n in enumerate(user):
        now[k] = tasks[pair[k]]
        line[k] = elsewhere[k] = max(total[n] - now[k], 0.0)
        room[k] = max(limit[n] - elsewhere[k], 0.0)
        slopes[n] = max(slopes[n] - slope[k], 0.0)
        expected[n] = max(expected[n] - slope[k] * foreseen[k], 0.0)
        if cap > 0 and elsewhere[k] > 0 and slopes[n] > 0:
            part = min(cap / slopes[n], 1.0)
            line[k] += part * expected[n]
            stretch[k] += part * slopes[n]
            gain[k] = gain[k] * stretch[k] if game.alpha == np.inf else gain[k] + np.log(stretch[k])
    answer = now.copy()
    if game.alpha == np.inf:
        fill(gain, per_task, line, room, q, answer)
    else:
        respond(game.alpha, gain, per_task, use, line, room, q, answer, game.accuracy)
    for k in range(len(user)):
        wanted = answer[k] - now[k]
        change = max(change, abs(wanted) / max(elsewhere[k] + max(answer[k], now[k]), 1e-300))
        now[k] = min(max(now[k] + relax * wanted, 0.0), room[k])
    for r in range(len(q)):
        most = max(most, (per_task[:, r] * now).sum())  # steps beyond the response may use too much
    now /= most
    for k, n in enumerate(user):
        tasks[pair[k]] = now[k]
        total[n] = elsewhere[k] + now[k]
    if cap > 0:
        kept = leverage(game.alpha, per_task, use, line, room, q, answer)
        for k, n in enumerate(user):
            slope[k] = min(stretch[k] * (1 - kept[k]) / kept[k], cap)
            foreseen[k] = (line[k] + answer[k]) / stretch[k]
            slopes[n] += slope[k]
            expected[n] += slope[k] * foreseen[k]
    return change


@compiled
def leverage(alpha, per_task, use, line, room, q, answer):  # type: ignore[no-untyped-def]
    r"""Part of a rise of its supply line that a user keeps, (users,); 1 for users that are not served.

    .. math:: t_n = W_n s_n^T J^{-1} D_n, \qquad J = \sum_m D_m W_m s_m^T

    over the resources that are full, W being tasks and line together and s the shares of the price.
    """
    size, power, full, kept = len(q), min(alpha, 1e6), np.flatnonzero(q > -np.inf), np.ones(len(use))
    served = np.flatnonzero((answer > 0) & (answer < room))
    shares, matrix, inverse = np.empty(use.shape), np.zeros((size, size)), np.eye(size)
    scaled = np.exp(power * (q - q.max()))
    fill_shares(power, per_task, use, line, q, answer, full, served, scaled, np.empty(size), shares, matrix)
    for r in full:
        solve(matrix.copy(), inverse[r])
    for n in served:
        part = 0.0
        for r in full:
            for s in full:
                part += per_task[n, r] * inverse[r, s] * shares[n, s]
        kept[n] = min(part, 1.0) if part > 0 else 1.0
    return kept


@compiled(borrows=True)
def fill_shares(power, per_task, use, line, q, answer, full, served, scaled, parts, shares, matrix):  # type: ignore[no-untyped-def]
    """`W_n s_n` of users that are served, and J."""
    usual = power * q.max()
    for n in served:
        whole = (line[n] + answer[n]) / max(price_parts(power, use, n, scaled, q, usual, parts)[0], 1e-300)
        for s in full:
            shares[n, s] = parts[s] * whole
            for r in full:
                matrix[r, s] += per_task[n, r] * shares[n, s]


@compiled
def sweep(order, game, relax, state):  # type: ignore[no-untyped-def]
    """Gauss-Seidel round: servers respond one after the other; the largest relative change asked for."""
    change, moved = 0.0, np.zeros_like(state.log_price)
    for i in order:
        q, last = state.log_price[i], moved[game.kind[i]]
        begun = q.copy()
        q += last  # as those of the server of its kind before did
        change = max(change, play(i, game, relax, state))
        for r in range(len(q)):
            step = q[r] - begun[r]
            last[r] = step if abs(step) < np.inf else 0.0
    return change


@compiled
def compare(game, state, tasks, step):  # type: ignore[no-untyped-def]
    """Fill in `step`, changes of tasks since `tasks` relative to their users', in the order of servers.

    Returns, (servers, 4), the products of each server's step with the one before and of both with themselves, and how
    many of its pairs have come or gone.
    """
    products = np.zeros((len(state.cap), 4))
    for i in range(len(products)):
        for k in range(game.first[i], game.first[i + 1]):
            now, then, last = state.tasks[game.pairs[k]], tasks[game.pairs[k]], step[k]
            step[k] = (now - then) / max(state.total[game.user[k]], 1e-300)
            products[i, 0] += step[k] * last
            products[i, 1] += step[k] ** 2
            products[i, 2] += last**2
            products[i, 3] += (now > 0) != (then > 0)
    return products
