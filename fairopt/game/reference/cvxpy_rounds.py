"""Rounds in which every server's problem is solved as it is declared, in CVXPY: the slow reference for the fast."""

from __future__ import annotations

import math

import numpy as np

from ...engines.reference.program import Formulation, Leximin, Program, alpha_fair
from ...errors import SolverError
from ...model._arrays import Index
from ...model.criterion import Criterion
from ..model.equilibrium_system import EquilibriumSystem
from ..responses.rounds import State, Sweeps
from .server_problem import ServerProblem

#: An answer that is more wrong than this, in tasks, is none: an honest tolerance of the declared problems.
_TRUSTED = 1e-4


class CvxpySweeps(Sweeps):
    """`Sweeps` whose servers are `ServerProblem`s, for the game of a criterion."""

    def __init__(self, method: EquilibriumSystem, rule: Criterion) -> None:
        super().__init__(method, rule.alpha)
        self._rule = rule
        self._problems: dict[int, ServerProblem] = {}

    def gauss_seidel(self, state: State, order: Index | None = None, relax: float = 1.0) -> float:
        servers = range(len(self.method.row)) if order is None else order
        return max(self.respond(int(i), state, relax) for i in servers)

    def respond(self, server: int, state: State, relax: float = 1.0) -> float:
        mine = self.pairs[self.first[server] : self.first[server + 1]]
        if not len(mine):
            return 0.0
        method, polytope = self.method, self.method.polytope
        if server not in self._problems:
            self._problems[server] = ServerProblem(polytope, self._rule, server, self._formulate)
        user = polytope.pair_user[mine]
        size = method.largest[user]
        elsewhere = np.maximum(state.total[user] - state.tasks[mine], 0.0)
        share = state.total[user] * size / polytope.gamma[mine]
        problem = self._problems[server]
        found = problem.best(elsewhere * size, share)
        problem.runs.clear()
        if not found.residual <= _TRUSTED:
            raise SolverError(
                f"CVXPY's best answer to the problem of server {polytope.cluster.servers[server]!r} for alpha="
                f"{self.alpha:g} is wrong by {found.residual:.1e} of somebody's tasks, above {_TRUSTED:g}: use "
                "server_solver='native', or bring weights and demands closer together"
            )
        answer = found.fraction * method.gamma[mine]
        whole = np.maximum(elsewhere + answer, state.total[user])
        change = float((np.abs(answer - state.tasks[mine]) / whole).max())
        room = np.maximum(method.limit[user] - elsewhere, 0.0)
        moved = np.clip(state.tasks[mine] + relax * (answer - state.tasks[mine]), 0.0, room)
        moved /= max(1.0, float((method.per_task[mine] * moved[:, None]).sum(axis=0).max()))
        state.tasks[mine] = moved
        state.total[user] = elsewhere + moved
        if math.isfinite(self.alpha):
            rows = polytope.row_server == server
            state.log_price[server] = -np.inf
            state.log_price[server, polytope.row_resource[rows]] = found.log_price / self.alpha
        return change

    def _formulate(self, program: Program) -> Formulation:
        if math.isinf(self.alpha):
            return Formulation(Leximin(program.share / program.weight), program.constraints)
        return alpha_fair(program, self.alpha)
