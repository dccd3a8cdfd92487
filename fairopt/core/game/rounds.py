"""Rounds of best responses (nonlinear Gauss-Seidel), plain and elastic (`elastic`), with compiled loops.

Tasks are in units of the user's largest gamma, as in an `EquilibriumSystem`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from ...base.loops import bundle, compiled
from ...model._arrays import Array, Index, by_group, numbered
from ..factors import TINY
from ..solution import Solution
from .equilibrium_system import EquilibriumSystem, solution
from .response import fill, price_parts, respond, share_at, solve

#: Rounds end at a relative change of tasks of this fraction of the tolerance.
SETTLED = 3e-4
#: Largest alpha of computations with level prices. Minus this value also represents the logarithm of a zero price: of
#: the level price for alpha >= 1, and of the price itself for smaller alpha.
LARGEST_ALPHA = 1e6
#: The empty curve, without knots, of alpha-fair servers, which have no user-defined utility.
ALPHA_FAIR: Array = np.empty((2, 0))


@bundle
class Game(NamedTuple):
    """Data of pairs sorted by server: server i has `pairs[first[i]:first[i + 1]]`; arrays of pairs are in this order.

    `gain` (pairs,) is a logarithm for finite alpha; `limit` is (users,). Servers of a `kind` (servers,) have equal
    capacities. Responses are exact up to the residual `accuracy`, relative to capacities. `curve` (2, knots) is the
    table of a concave utility, without knots for alpha-fair servers.
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
    curve: Array


class State(NamedTuple):
    """State of the game: tasks and linear supply functions of pairs, their sums by user, prices, and caps of slopes.

    The supply function of a pair is `tasks - slope (X - foreseen)` of its user's total X. Plain best responses have no
    slopes, since the caps of their servers are 0. `slope` and `foreseen` are in the order of servers, as in `Game`.
    `total`, `slopes` and `expected` are the sums of tasks, `slope` and `slope foreseen` over the pairs of each user.
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
    """Rounds of best responses (`response`), exact up to a residual `accuracy` relative to capacities.

    `pairs` are sorted by server, and `first` (servers + 1,) has the index of the first pair of each server.
    """

    def __init__(
        self,
        method: EquilibriumSystem,
        alpha: float | None = None,
        accuracy: float = 0.0,
        curve: Array = ALPHA_FAIR,
    ) -> None:
        self.method, self.alpha = method, method.alpha if alpha is None else alpha
        self.pairs, self.first = by_group(method.server, len(method.row))
        kind, gain = numbered(method.polytope.cluster.capacity), method.log_gain[self.pairs]
        #: Data of the game for compiled rounds.
        self.game = Game(
            np.where(np.bincount(kind)[kind] > 1, kind, 0),  # all unique servers form one kind
            self.first,
            self.pairs,
            method.user[self.pairs],
            float(self.alpha),
            np.exp(gain) if np.isinf(self.alpha) else gain,
            method.per_task[self.pairs],
            method.use[self.pairs],
            method.limit,
            accuracy,
            curve,
        )
        #: Servers in the order in which `requested` tests them: servers whose test has failed last come first.
        self._doubted = list(range(len(method.row)))

    def start(self, tasks: Array) -> State:
        """State at tasks (pairs,), in units of users' largest gamma."""
        total, zeros, prices = self.method.sums(tasks), np.zeros_like, np.zeros(self.method.row.shape)
        arrays = tasks.copy(), zeros(tasks), zeros(tasks), total, zeros(total), zeros(total)
        return State(*arrays, prices, np.zeros(len(prices)))

    def gauss_seidel(self, state: State, order: Index | None = None, relax: float = 1.0) -> float:
        """Play one Gauss-Seidel round; return the largest change that a response requests, over the user's tasks.

        Servers respond in `order`, by default that of their indices, and move by the fraction `relax` of the response.
        """
        order = np.arange(len(self.method.row)) if order is None else order
        addends = state.tasks[self.pairs], state.slope, state.slope * state.foreseen
        for sums, addend in zip((state.total, state.slopes, state.expected), addends, strict=True):
            # Recomputed every round, as rounding errors of updates may exceed a user's tasks.
            sums[:] = np.bincount(self.game.user, addend, len(sums))
        return float(sweep(order, self.game, relax, state))

    def rounds(self, state: State) -> Iterator[tuple[float]]:
        """Play Gauss-Seidel rounds without end; yield the largest requested change of each, as `elastic` does."""
        while True:
            yield (self.gauss_seidel(state),)

    def respond(self, server: int, state: State, relax: float = 1.0) -> float:
        """Move one server by the fraction `relax` of its exact response; return the requested change."""
        return float(play(server, self.game._replace(accuracy=0.0), relax, state))

    def requested(self, state: State, enough: float = np.inf) -> float:
        """Largest change that the best response of a server would make, relative to the user's tasks.

        The search ends at the first change above `enough`, which is returned; otherwise the state gets the prices of
        the responses.
        """
        copy = self.start(state.tasks)
        copy.log_price[:] = state.log_price
        change = 0.0
        for position, server in enumerate(self._doubted):
            change = max(change, self.respond(server, copy, 0.0))
            if change > enough:
                self._doubted.insert(0, self._doubted.pop(position))
                return change
        state.log_price[:] = copy.log_price
        return change

    def log_price(self, state: State) -> Array:
        """Log level prices log v (servers, resources) of the last responses, for finite alpha."""
        return np.where(self.method.row, np.maximum(state.log_price, -LARGEST_ALPHA / min(self.alpha, 1.0)), 0.0)

    def solution(self, state: State, by: str, rounds: int, seconds: float, tol: float) -> Solution:
        """Candidate from the state, without prices at alpha = infinity."""
        prices = self.log_price(state) if np.isfinite(self.alpha) else None
        return solution(self.method, state.tasks, prices, by, rounds, seconds, tol)


def settle(game: Iterator[tuple[Any, ...]], most: int, enough: float) -> int:
    """Play at most `most` rounds, until the relative change of a round is at most `enough`; return their number."""
    taken = 0
    for change, *_ in islice(game, most):
        taken += 1
        if change <= enough:
            break
    return taken


@compiled
def play(server, game, relax, state):  # type: ignore[no-untyped-def]
    r"""Let one server respond to the sums of other servers, and move in place by the fraction `relax` of its response.

    With the supply functions :math:`x_j - k_j (X - h_j)` of other servers j, whose slopes are scaled down to a sum of
    at most the server's cap, and its own tasks y, the total of a user is

    .. math:: X = (y + intercept) / stretch, \quad intercept = \sum_j (x_j + k_j h_j), \quad stretch = 1 + \sum_j k_j

    so that its response is a plain best response with the gain multiplied by `stretch`, and `intercept` tasks on other
    servers. Returns the largest requested change, relative to the user's tasks.
    """
    pairs_here, cap, q = slice(game.first[server], game.first[server + 1]), state.cap[server], state.log_price[server]
    user, pair, per_task, use = (
        game.user[pairs_here],
        game.pairs[pairs_here],
        game.per_task[pairs_here],
        game.use[pairs_here],
    )
    slope, foreseen, tasks, total = state.slope[pairs_here], state.foreseen[pairs_here], state.tasks, state.total
    slopes, expected, limit, gain = state.slopes, state.expected, game.limit, game.gain[pairs_here].copy()
    own_tasks, elsewhere, room, stretch = (
        np.empty(len(user)),
        np.empty(len(user)),
        np.empty(len(user)),
        np.ones(len(user)),
    )
    intercept, change, overuse = np.empty(len(user)), 0.0, 1.0
    for k, n in enumerate(user):
        own_tasks[k] = tasks[pair[k]]
        intercept[k] = elsewhere[k] = max(total[n] - own_tasks[k], 0.0)
        room[k] = max(limit[n] - elsewhere[k], 0.0)
        slopes[n] = max(slopes[n] - slope[k], 0.0)
        expected[n] = max(expected[n] - slope[k] * foreseen[k], 0.0)
        if cap > 0 and elsewhere[k] > 0 and slopes[n] > 0:
            part = min(cap / slopes[n], 1.0)
            intercept[k] += part * expected[n]
            stretch[k] += part * slopes[n]
            gain[k] = gain[k] * stretch[k] if game.alpha == np.inf else gain[k] + np.log(stretch[k])
    answer = own_tasks.copy()
    if game.alpha == np.inf:
        fill(gain, per_task, intercept, room, q, answer)
    else:
        respond(game.alpha, gain, per_task, use, intercept, room, q, answer, game.accuracy, game.curve)
    for k in range(len(user)):
        requested = answer[k] - own_tasks[k]
        change = max(change, abs(requested) / max(elsewhere[k] + max(answer[k], own_tasks[k]), TINY))
        own_tasks[k] = min(max(own_tasks[k] + relax * requested, 0.0), room[k])
    for r in range(len(q)):
        overuse = max(overuse, (per_task[:, r] * own_tasks).sum())  # over-relaxation may exceed capacities
    own_tasks /= overuse
    for k, n in enumerate(user):
        tasks[pair[k]] = own_tasks[k]
        total[n] = elsewhere[k] + own_tasks[k]
    if cap > 0:
        kept = leverage(game.alpha, per_task, use, intercept, room, q, answer, game.curve)
        for k, n in enumerate(user):
            slope[k] = min(stretch[k] * (1 - kept[k]) / kept[k], cap)
            foreseen[k] = (intercept[k] + answer[k]) / stretch[k]
            slopes[n] += slope[k]
            expected[n] += slope[k] * foreseen[k]
    return change


@compiled
def leverage(alpha, per_task, use, elsewhere, room, q, answer, curve):  # type: ignore[no-untyped-def]
    r"""Derivative of a user's total in its supply from elsewhere, (users,); 1 for users with 0 or `room` tasks here.

    .. math:: \frac{\partial X_n}{\partial Y_n} = X_n \theta_n^T J^{-1} d_n, \qquad J = \sum_m d_m X_m \theta_m^T

    over the exhausted resources, with total tasks X, the supply Y from elsewhere, the use d of a capacity per task, and
    shares theta of resources in the cost of a task; with a user-defined utility X is multiplied by the elasticity of
    demand with respect to the cost.
    """
    size, power, full, kept = len(q), min(alpha, LARGEST_ALPHA), np.flatnonzero(q > -np.inf), np.ones(len(use))
    served = np.flatnonzero((answer > 0) & (answer < room))
    shares, matrix, inverse = np.empty(use.shape), np.zeros((size, size)), np.eye(size)
    scaled = np.exp(power * (q - q.max()))
    parts = np.empty(size)
    fill_shares(power, per_task, use, elsewhere, q, answer, full, served, scaled, parts, shares, matrix, curve)
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
def fill_shares(power, per_task, use, elsewhere, q, answer, full, served, scaled, parts, shares, matrix, curve):  # type: ignore[no-untyped-def]
    r"""Fill in `shares` (users, resources), :math:`X_n \theta_n` of users `served`; add J of `leverage` to `matrix`.

    Sums are over the exhausted resources, `full`. `scaled` and `parts` (resources,) are as in `price_parts`; `curve` is
    the table of a user-defined utility, and empty under alpha-fairness.
    """
    log_unit = power * q.max()
    for n in served:
        cost, unit = price_parts(power, use, n, scaled, q, log_unit, parts)
        total_per_cost = (elsewhere[n] + answer[n]) / max(cost, TINY)
        if curve.shape[1] > 0 and cost > 0:
            total_per_cost *= power * share_at(curve, np.log(cost) + unit)[1]
        for s in full:
            shares[n, s] = parts[s] * total_per_cost
            for r in full:
                matrix[r, s] += per_task[n, r] * shares[n, s]


@compiled
def sweep(order, game, relax, state):  # type: ignore[no-untyped-def]
    """Play a Gauss-Seidel round in which servers respond in `order`; return the largest requested relative change."""
    change, moved = 0.0, np.zeros_like(state.log_price)
    for i in order:
        q, last_change = state.log_price[i], moved[game.kind[i]]
        previous = q.copy()
        q += last_change  # prices are predicted by the change on the previous server of the same kind
        change = max(change, play(i, game, relax, state))
        for r in range(len(q)):
            step = q[r] - previous[r]
            last_change[r] = step if abs(step) < np.inf else 0.0
    return change


@compiled
def compare(game, state, tasks, step):  # type: ignore[no-untyped-def]
    """Fill `step` (pairs,) with the changes of tasks since `tasks`, relative to user tasks, in the order of servers.

    Returns (servers, 4): the inner product of each server's step with its previous step, the squared norms of both
    steps, and the number of its pairs that have become empty or have ceased to be empty.
    """
    products = np.zeros((len(state.cap), 4))
    for i in range(len(products)):
        for k in range(game.first[i], game.first[i + 1]):
            new, old, last = state.tasks[game.pairs[k]], tasks[game.pairs[k]], step[k]
            step[k] = (new - old) / max(state.total[game.user[k]], TINY)
            products[i, 0] += step[k] * last
            products[i, 1] += step[k] ** 2
            products[i, 2] += last**2
            products[i, 3] += (new > 0) != (old > 0)
    return products
