"""What one server maximises, given the others: a small CVXPY problem, compiled once and re-solved as they change."""

from __future__ import annotations

from collections.abc import Callable

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..criteria import Criterion
from ..engines import convex
from ..engines.leximin import LeximinProblem
from ..engines.program import Formulation, Leximin, Program, welfare_factor
from ..polytope import Polytope

Array = NDArray[np.float64]
Index = NDArray[np.intp]


class ServerProgram(Program):
    """The own column of one server: shares are virtual dominant shares `s[n,i] = (y_n + x[n,i])/gamma[n,i]`.

    What the others give, `y_n`, and the unit of the shares are parameters (`give`), so that nothing is compiled
    twice. alpha cannot be one: CVXPY would have to know the cones in advance.
    """

    def __init__(self, polytope: Polytope, criterion: Criterion, server: int) -> None:
        self.alpha = criterion.alpha
        self.pairs: Index = np.flatnonzero(polytope.pair_server == server)
        self.users: Index = polytope.pair_user[self.pairs]
        self.rows: Index = np.flatnonzero(polytope.row_server == server)
        self.gamma: Array = polytope.gamma[self.pairs]
        self.limit: Array = polytope.limit[self.users]
        count = len(self.pairs)
        self.weight = criterion.restrict(polytope.users).weight[self.users]
        self.unit = np.ones(count)
        self.fraction = cp.Variable(count, nonneg=True, name=f"fraction of server {server}")
        self._elsewhere = cp.Parameter(count, nonneg=True, name="share elsewhere")
        self._scaled_elsewhere = cp.Parameter(count, nonneg=True, name="share elsewhere / unit")
        self._inverse_unit = cp.Parameter(count, nonneg=True, name="1 / unit")
        self._factor = cp.Parameter(count, nonneg=True, name="factor")
        self._room = cp.Parameter(count, nonneg=True, name="room up to the limit")
        self.share = self._elsewhere + self.fraction
        self.user_tasks = cp.multiply(self.gamma, self.share)
        # A variable of its own, as parameters (the factor) must not multiply parameters: CVXPY would compile anew.
        self.scaled_share = cp.Variable(count, name="share / unit")
        self.use = sp.csr_matrix(polytope.use[self.rows][:, self.pairs])
        self.constraints = {"capacity": self.use @ self.fraction <= 1}
        if not np.isinf(self.alpha):
            scaled = self._scaled_elsewhere + cp.multiply(self._inverse_unit, self.fraction)
            self.constraints["scaled_share"] = self.scaled_share <= scaled
        if np.isfinite(self.limit).any():
            self.constraints["max_tasks"] = self.fraction <= self._room

    def factor(self, alpha: float) -> cp.Parameter:
        return self._factor

    def give(self, elsewhere: Array, unit: Array) -> None:
        """Set what the users have elsewhere, in tasks, and the unit of their shares; both (users here,)."""
        self._elsewhere.value = elsewhere / self.gamma
        self._scaled_elsewhere.value = self._elsewhere.value / unit
        self._inverse_unit.value = 1 / unit
        self._room.value = np.clip((self.limit - elsewhere) / self.gamma, 0.0, 1.0)
        if not np.isinf(self.alpha):
            self._factor.value = welfare_factor(self.weight, unit, self.alpha)

    @property
    def base(self) -> Array:
        """Weighted virtual dominant shares from elsewhere: levels that users have in any case."""
        return np.asarray(self._elsewhere.value / self.weight)


class ServerProblem:
    """The best response of one server, as its mechanism formulates it."""

    def __init__(
        self, polytope: Polytope, criterion: Criterion, server: int, formulate: Callable[[Program], Formulation]
    ) -> None:
        self.program = ServerProgram(polytope, criterion, server)
        self.formulation = formulate(self.program)
        self.runs: list[convex.Run] = []
        self._maxmin: LeximinProblem | None = None
        if isinstance(self.formulation.objective, Leximin):
            self._maxmin = LeximinProblem(self.formulation, self._cost, runs=self.runs)
        else:
            self._problem = cp.Problem(self.formulation.objective, list(self.formulation.constraints.values()))

    def respond(self, elsewhere: Array, share: Array, solver: str | None = None) -> tuple[Array, Array]:
        """The server's best fractions (users here,), and prices of its whole capacities (rows here,).

        `elsewhere` is what its users have on other servers, in tasks; `share` their present virtual dominant share.
        """
        self.program.give(elsewhere, share)
        if self._maxmin is not None:
            self._maxmin.solve(solver, self.program.base)
        else:
            self.runs.append(convex.first_success(self._problem, solver))
        prices = self.formulation.constraints["capacity"].dual_value
        rows = np.zeros(len(self.program.rows)) if prices is None else np.abs(prices)
        return np.maximum(self.program.fraction.value, 0.0), rows

    def _cost(self) -> Array:
        """What all of the server would cost each user at the prices of the last round; a limit reached blocks too."""
        constraints = self.formulation.constraints
        prices = np.abs(constraints["capacity"].dual_value)
        cost = self.program.use.T @ prices / max(prices.max(initial=0.0), np.finfo(float).tiny)
        if "max_tasks" in constraints:
            cost = cost + np.where(np.abs(constraints["max_tasks"].dual_value) > 0, 1.0, 0.0)
        return np.asarray(cost)
