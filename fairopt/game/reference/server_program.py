"""Problem of one server, given the others: a small CVXPY program with parameters."""

from __future__ import annotations

import numpy as np

from ..._libraries import cp, sp
from ...engines.reference.program import Program, welfare_factor
from ...model._arrays import Array, Index
from ...model.concave_welfare import ConcaveWelfare
from ...model.criterion import Criterion
from ...model.polytope import Polytope


class ServerProgram(Program):
    """The own column of one server: shares are virtual dominant shares `s[n,i] = (y_n + x[n,i])/gamma[n,i]`.

    What the others give, `y_n`, and the unit of the shares are parameters (`give`), so that nothing is compiled
    twice. alpha cannot be one: CVXPY would have to know the cones in advance.
    """

    def __init__(self, polytope: Polytope, criterion: Criterion, server: int) -> None:
        self.alpha, self._rule = criterion.alpha, criterion
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
        self._floor = cp.Parameter(count, nonneg=True, value=np.zeros(count), name="fraction of those who are settled")
        self.share = self._elsewhere + self.fraction
        self.user_tasks = cp.multiply(self.gamma, self.share)
        # A variable of its own, as parameters (the factor) must not multiply parameters: CVXPY would compile anew.
        self.scaled_share = cp.Variable(count, name="share / unit")
        self.use = sp.csr_matrix(polytope.use[self.rows][:, self.pairs])
        self.constraints = {"capacity": self.use @ self.fraction <= 1}
        if not criterion.scale_free:
            self.scaled_share = self.share
        elif not np.isinf(self.alpha):
            scaled = self._scaled_elsewhere + cp.multiply(self._inverse_unit, self.fraction)
            self.constraints["scaled_share"] = self.scaled_share <= scaled
            self.constraints["fixed"] = self.fraction >= self._floor
        if np.isfinite(self.limit).any():
            self.constraints["max_tasks"] = self.fraction <= self._room

    def log_worth(self, share: Array) -> Array:
        """Log of what a fraction of the server is worth, (users here,), to users with virtual dominant shares."""
        if isinstance(self._rule, ConcaveWelfare):
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(self._rule.slope(share / self.weight)))
        return np.asarray(self.alpha * (np.log(self.weight) - np.log(share)))

    @property
    def scale_free(self) -> bool:
        """True if worth is a power of the share, so that the unit of shares is free."""
        return self._rule.scale_free

    def factor(self, alpha: float) -> cp.Parameter:
        return self._factor

    def give(self, elsewhere: Array, unit: Array, fixed: Array | None = None) -> float:
        """Set what the users have elsewhere, in tasks, and the unit of their shares; both (users here,).

        `fixed` are the fractions of those who are solved, else NaN. Returns the log of what one is of the objective, in
        true welfare.
        """
        self._elsewhere.value = elsewhere / self.gamma
        self._scaled_elsewhere.value = self._elsewhere.value / unit
        self._inverse_unit.value = 1 / unit
        self._room.value = self.room(elsewhere)
        if np.isinf(self.alpha) or not self.scale_free:
            return 0.0
        waiting = np.isnan(fixed) if fixed is not None else np.ones(len(unit), dtype=bool)
        self._floor.value = np.zeros(len(unit)) if fixed is None else np.where(waiting, 0.0, fixed * (1 - 1e-9))
        self._factor.value = welfare_factor(self.weight, unit, self.alpha, np.where(waiting, 0.0, 1.0))
        log_factor = self.alpha * np.log(self.weight) + (1 - self.alpha) * np.log(unit)
        return float(log_factor[waiting].max())

    def room(self, elsewhere: Array) -> Array:
        """Fractions up to the limits; without one 2, as 1 may be what capacity says already, and halve its price."""
        return np.asarray(np.clip((self.limit - elsewhere) / self.gamma, 0.0, 2.0))
