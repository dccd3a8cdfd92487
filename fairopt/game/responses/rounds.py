"""Rounds of best responses on the arrays of an `EquilibriumSystem`: what dynamics and the engine share."""

from __future__ import annotations

import numpy as np

from ...engines.base import Solution
from ...model._arrays import Array, Index, numbered
from ...model._pointers import by_group
from ..model.candidate import solution
from ..model.equilibrium_system import EquilibriumSystem
from ._rounds import Game, State, play, sweep

#: The log of a price, alpha times that of a level price, that is as good as none.
_FREE = -1e6


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
        row, total = self.method.row, self.method.sums(tasks)
        lines = np.zeros_like(tasks), np.zeros_like(tasks)
        sums = np.zeros_like(total), np.zeros_like(total)
        return State(tasks.copy(), *lines, total, *sums, np.zeros(row.shape), np.zeros(len(row)))

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
