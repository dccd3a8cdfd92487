"""Rounds of best responses on the arrays of an `EquilibriumSystem`: what dynamics and the engine share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...engines.base import Solution
from ...model._arrays import Array, Index, by_group, numbered
from ..model.equilibrium_system import EquilibriumSystem, solution
from ._rounds import Game, State, play, sweep

#: The log of a price, alpha times that of a level price, that is as good as none.
_FREE = -1e6


@dataclass(frozen=True)
class Sweeps:
    """Rounds of exact best responses (`_response`)."""

    method: EquilibriumSystem
    alpha: float
    first: Index
    pairs: Index
    accuracy: float

    @classmethod
    def of(cls, method: EquilibriumSystem, alpha: float | None = None, accuracy: float = 0.0) -> Sweeps:
        """Pairs in the order of servers; responses may miss a capacity by the part `accuracy`."""
        order, first = by_group(method.server, len(method.row))
        return cls(method, method.alpha if alpha is None else alpha, first, order, accuracy)

    def start(self, tasks: Array) -> State:
        """State at tasks of pairs, in units of users' largest gamma."""
        total = np.add.reduceat(tasks, self.method.start[:-1])
        servers, pairs, users = len(self.method.row), len(tasks), len(total)
        (slope, foreseen), (slopes, expected) = np.zeros((2, pairs)), np.zeros((2, users))
        prices, cap = np.zeros(self.method.row.shape), np.zeros(servers)
        return State(tasks.copy(), slope, foreseen, total, slopes, expected, prices, cap)

    def gauss_seidel(self, state: State, order: Index | None = None, relax: float = 1.0) -> float:
        """Gauss-Seidel round; the largest change that a response asked for, relative to the user's tasks."""
        order = np.arange(len(self.method.row)) if order is None else order
        parts = state.tasks[self.pairs], state.slope, state.slope * state.foreseen
        for sums, part in zip((state.total, state.slopes, state.expected), parts, strict=True):
            # Anew: what is left of rounding as servers add and subtract may be more than a user has.
            sums[:] = np.bincount(self.game.user, part, len(sums))
        return float(sweep(order, self.game, relax, state))

    def jacobi(self, state: State, relax: float) -> float:
        """Jacobi round: all servers at once, each moving by the part `relax` of its exact response."""
        change, seen = 0.0, state.total.copy()
        for server in range(len(self.method.row)):
            change = max(change, self.respond(server, state._replace(total=seen.copy()), relax))
        state.total[:] = self.method.sums(state.tasks)
        return change

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

    def exploitability(self, state: State) -> float:
        """Exploitability of a state (alpha finite)."""
        return self.method.exploitability(state.tasks, self.log_price(state))

    def solution(self, state: State, by: str, rounds: int, seconds: float, tol: float) -> Solution:
        """Wrap the state as a candidate."""
        prices = self.log_price(state) if np.isfinite(self.alpha) else None
        return solution(self.method, state.tasks, prices, by, rounds, seconds, tol)

    @cached_property
    def _doubted(self) -> list[int]:
        """Servers in decreasing order of the change last asked for."""
        return list(range(len(self.method.row)))

    @cached_property
    def game(self) -> Game:
        """Data of the game for compiled rounds."""
        m, order = self.method, self.pairs
        gain = np.exp(m.log_gain[order]) if np.isinf(self.alpha) else m.log_gain[order]
        kind = numbered(m.polytope.cluster.capacity)
        kind = np.where(np.bincount(kind)[kind] > 1, kind, 0)  # those without their like are one
        user, per_task, use = m.user[order], m.per_task[order], m.use[order]
        return Game(kind, self.first, order, user, float(self.alpha), gain, per_task, use, m.limit, self.accuracy)
