"""What one server maximises, given the others: a small CVXPY problem, compiled once and re-solved as they change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..criteria import Criterion
from ..engines import convex
from ..engines.leximin import LeximinProblem
from ..engines.program import Formulation, Leximin
from ..errors import SolverError
from ..polytope import Polytope

Array = NDArray[np.float64]
Index = NDArray[np.intp]


class ServerProgram:
    """The own column of server i, in the vocabulary of `engines.program.Program`.

    Attributes
    ----------
    fraction : cp.Variable (users here,)
        `x[n,i]/gamma[n,i]`.
    share : cp.Expression (users here,)
        Virtual dominant shares `s[n,i] = (y_n + x[n,i])/gamma[n,i]`, y_n what n has elsewhere, divided by `unit`
        (a scaling: `unit` itself reads 1, and `weight` carries what the scaling leaves).
    weight : (users here,)
        `phi_n`.
    constraints : `capacity`, and `max_tasks` where a limit can bind.
    """

    def __init__(self, polytope: Polytope, criterion: Criterion, server: int) -> None:
        self.polytope, self.server = polytope, server
        self.pairs: Index = np.flatnonzero(polytope.pair_server == server)
        self.users: Index = polytope.pair_user[self.pairs]
        own = criterion.restrict(polytope.users)
        self.criterion = own
        self.gamma: Array = polytope.gamma[self.pairs]
        self.weight: Array = own.weight[self.users]
        count = len(self.pairs)
        self.fraction = cp.Variable(count, nonneg=True, name=f"fraction of server {server}")
        self.base = cp.Parameter(count, nonneg=True, name="share had elsewhere")
        self.inverse_unit = cp.Parameter(count, nonneg=True, name="1/unit")
        self.factor = cp.Parameter(count, nonneg=True, name="factor")
        self.share: cp.Expression = self.base + cp.multiply(self.inverse_unit, self.fraction)
        rows = np.flatnonzero(polytope.row_server == server)
        self.rows: Index = rows
        self.constraints: dict[str, cp.Constraint] = {
            "capacity": sp.csr_matrix(polytope.use[rows][:, self.pairs]) @ self.fraction <= 1
        }
        self.limit: Array = polytope.limit[self.users]
        self.room = cp.Parameter(count, nonneg=True, name="room")
        if np.isfinite(self.limit).any():
            self.constraints["max_tasks"] = self.fraction <= self.room

    def give(self, elsewhere: Array, unit: Array, alpha: float) -> None:
        """Set what the users have elsewhere, in tasks (users here,), and the unit of their shares."""
        self.base.value = elsewhere / self.gamma / unit
        self.inverse_unit.value = 1 / unit
        self.room.value = np.clip((self.limit - elsewhere) / self.gamma, 0.0, 1.0)
        if not np.isinf(alpha):
            log_factor = alpha * np.log(self.weight) + (1 - alpha) * np.log(unit)
            self.factor.value = np.exp(log_factor - log_factor.max())
