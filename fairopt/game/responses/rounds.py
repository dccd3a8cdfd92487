"""Rounds of best responses on the arrays of an `EquilibriumSystem`: what dynamics and the engine share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...engines.base import Solution
from ...model._pointers import by_group
from ..model.candidate import solution
from ..model.equilibrium_system import EquilibriumSystem
from ._rounds import Game, State, at_once, play, sweep

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: The log of a price, alpha times that of a level price, that is as good as none.
_FREE = -1e6


@dataclass(frozen=True)
class Sweeps:
    """Servers respond, exactly, to what the others give (`_response`)."""

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
        """From tasks of the pairs, in units of users' largest gamma."""
        total = np.add.reduceat(tasks, self.method.start[:-1])
        servers, pairs, users = len(self.method.row), len(tasks), len(total)
        (slope, foreseen), (slopes, expected) = np.zeros((2, pairs)), np.zeros((2, users))
        prices, cap = np.zeros(self.method.row.shape), np.zeros(servers)
        return State(tasks.copy(), slope, foreseen, total, slopes, expected, prices, cap)

    def gauss_seidel(self, state: State, order: Index | None = None, relax: float = 1.0) -> float:
        """All servers in turn; the largest change that a response asked for, relative to the user's tasks."""
        order = np.arange(len(self.method.row)) if order is None else order
        return float(sweep(order, self._game, relax, state))

    def jacobi(self, state: State, relax: float) -> float:
        """All servers at once, each moving by the part `relax` of its response, which is exact."""
        return float(at_once(self._game._replace(accuracy=0.0), relax, state))

    def respond(self, server: int, state: State, relax: float = 1.0) -> float:
        """One server, moving its column by the part `relax` of its response; the largest change that it asked for."""
        return float(play(server, self._game, relax, state))

    def requested(self, state: State) -> float:
        """The largest change that a best response would make now, relative to the user's tasks."""
        copy = self.start(state.tasks)
        copy.log_price[:] = state.log_price
        return self.jacobi(copy, 0.0)

    def log_price(self, state: State) -> Array:
        """Level prices, log v (servers, resources), at which the servers last responded (alpha finite)."""
        return np.where(self.method.row, np.maximum(state.log_price, _FREE / min(self.alpha, 1.0)), 0.0)

    def exploitability(self, state: State) -> float:
        """How far a state is from an equilibrium (alpha finite)."""
        return self.method.exploitability(state.tasks, self.log_price(state))

    def solution(self, state: State, by: str, rounds: int, seconds: float, tol: float) -> Solution:
        """The state as an engine's answer."""
        prices = self.log_price(state) if np.isfinite(self.alpha) else None
        return solution(self.method, state.tasks, prices, by, rounds, seconds, tol)

    @cached_property
    def _game(self) -> Game:
        m, order = self.method, self.pairs
        gain = np.exp(m.log_gain[order]) if np.isinf(self.alpha) else m.log_gain[order]
        user = m.polytope.pair_user[order]
        return Game(
            self.first, order, user, float(self.alpha), gain, m.per_task[order], m.use[order], m.limit, self.accuracy
        )
