"""Rounds in which every server's problem is solved as it is declared, in CVXPY: the slow reference for the fast."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..criteria import Criterion
from ..engines.program import Formulation, Leximin, Program, alpha_fair
from .equations import Equations
from .server_problem import ServerProblem
from .sweeps import State, Sweeps

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class CvxpySweeps(Sweeps):
    """`Sweeps` whose servers are `ServerProblem`s."""

    rule: Criterion | None = None
    problems: dict[int, ServerProblem] = field(default_factory=dict)

    @classmethod
    def declared(cls, method: Equations, rule: Criterion) -> CvxpySweeps:
        """For the game of a criterion."""
        native = Sweeps.of(method, rule.alpha)
        return cls(native.method, native.alpha, native.first, native.pairs, rule)

    def gauss_seidel(self, state: State, order: Index | None = None, relax: float = 1.0) -> float:
        servers = range(len(self.method.row)) if order is None else order
        return max(self.respond(int(i), state, relax) for i in servers)

    def jacobi(self, state: State, relax: float) -> float:
        change, seen = 0.0, state.total.copy()
        for i in range(len(self.method.row)):
            change = max(change, self.respond(i, State(state.tasks, seen.copy(), state.log_price), relax))
        state.total[:] = np.add.reduceat(state.tasks, self.method.start[:-1])
        return change

    def respond(self, server: int, state: State, relax: float = 1.0) -> float:
        mine = self.pairs[self.first[server] : self.first[server + 1]]
        if not len(mine):
            return 0.0
        method, polytope = self.method, self.method.polytope
        if server not in self.problems:
            assert self.rule is not None
            self.problems[server] = ServerProblem(polytope, self.rule, server, self._formulate)
        user = polytope.pair_user[mine]
        size = method.largest[user]
        elsewhere = np.maximum(state.total[user] - state.tasks[mine], 0.0)
        share = state.total[user] * size / polytope.gamma[mine]
        fractions, prices = self.problems[server].respond(elsewhere * size, share)
        self.problems[server].runs.clear()
        answer = fractions * method.gamma[mine]
        whole = np.maximum(elsewhere + answer, state.total[user])
        change = float((np.abs(answer - state.tasks[mine]) / whole).max())
        room = np.maximum(method.limit[user] - elsewhere, 0.0)
        moved = np.clip(state.tasks[mine] + relax * (answer - state.tasks[mine]), 0.0, room)
        moved /= max(1.0, float((method.per_task[mine] * moved[:, None]).sum(axis=0).max()))
        state.tasks[mine] = moved
        state.total[user] = elsewhere + moved
        if math.isfinite(self.alpha):
            with np.errstate(divide="ignore"):
                rows = np.flatnonzero(polytope.row_server == server)
                log_price = np.log(np.where(prices > 1e-9 * prices.max(), prices, 0.0)) / self.alpha
                state.log_price[server] = -np.inf
                state.log_price[server, polytope.row_resource[rows]] = log_price
            self._level(state, server, mine, user, elsewhere + answer, answer)
        return change

    def _level(self, state: State, server: int, mine: Index, user: Index, total: Array, answer: Array) -> None:
        """Solvers have prices on a scale of their own: bring them to the level form."""
        method = self.method
        used = method.use[mine]
        with np.errstate(divide="ignore"):
            log_cost = np.log(used @ np.exp(self.alpha * (state.log_price[server] - state.log_price[server].max())))
        log_norm = log_cost / self.alpha + state.log_price[server].max()
        known = np.isfinite(log_norm) & (answer > 1e-6 * total)
        if known.any():
            off = method.log_gain[mine] - log_norm - np.log(total)
            state.log_price[server] += np.average(off[known], weights=(answer / total)[known])

    def _formulate(self, program: Program) -> Formulation:
        if math.isinf(self.alpha):
            return Formulation(Leximin(program.share / program.weight), program.constraints)
        return alpha_fair(program, self.alpha)
