"""PS-DSF for positive demands: one price per server, by Newton's method on smoothed choices.

Where every user of a server needs all of its resources, all its users have one level there (see `greatest`), so that
the unknowns are prices `p_i`, minus the logs of the levels. Choices are smoothed by a temperature tau and the fullest
resource by rho = 9 tau:

    l_ni = log(phi_n gamma_ni) - p_i,   x_n = exp(tau log sum_i e^(l_ni/tau)),   x_ni = x_n softmax(l_n/tau)_i,
    F_i(p) = rho log sum_r use_ir^(1/rho) = 0.

Use falls in a server's own price and rises in all others' (tau < 1), and `F(p + t) = F(p) - t`: minus the Jacobian is
an M-matrix whose rows add up to one, so that Newton's equations can always be solved. tau falls from 0.3, faster while
that is easy, and goes back where it is not; prices are extrapolated in tau. `greatest` finds the exact allocation from
the ties that are left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...engines.linalg.damped_newton import Reached, damped_newton
from ..model.equilibrium_system import EquilibriumSystem
from .options import OPTIONS, PositiveOptions

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class Smoothed:
    """Prices (servers,), parts of the pairs and tasks (users,) at one temperature, and the Newton steps up to there."""

    log_price: Array
    part: Array
    total: Array
    tau: float
    steps: int


def follow(q: EquilibriumSystem, options: PositiveOptions = OPTIONS.positive) -> Iterator[Smoothed]:
    """Smoothed allocations as tau falls, until it is `last` or no shorter step helps."""
    served = np.bincount(q.server, minlength=len(q.row)) > 0
    price, tau, factor, steps = np.zeros(len(served)), options.first, 1.0, 0
    price = np.where(served, _Here(q, price, tau, options).excess[served].max(), 0.0)  # all alike, and nothing overused
    before: tuple[float, Array] | None = None
    after: tuple[float, Array] | None = None
    while tau > options.last:
        aim = tau * factor
        guess = price
        if before is not None and after is not None and before[0] != after[0]:
            guess = price + (price - before[1]) * (aim - tau) / (tau - before[0])
        here, taken, _ = _newton(q, guess, aim, served, options)
        steps += taken
        if here is None:
            factor = factor**options.back
            if factor > options.nearest or after is None:
                return
            continue
        tau, price = aim, here.price
        before, after = after, (tau, price)
        factor = min(factor, options.easy_factor) if after is not None and before is None else factor
        if taken <= options.easy_steps:
            factor = max(options.least_factor, factor * options.easier)
        elif taken > options.hard_steps:
            factor = min(factor * options.harder, options.hard_factor)
        yield Smoothed(price, here.parts, here.total, tau, steps)


class _Here:
    """Choices and excess demand at one vector of prices."""

    def __init__(self, q: EquilibriumSystem, price: Array, tau: float, options: PositiveOptions) -> None:
        from . import _choice

        self.q, self.price, self.tau, self.options = q, price, tau, options
        users, pairs = len(q.start) - 1, len(q.server)
        self.first, near = np.empty(users + 1, dtype=np.intp), np.empty(pairs, dtype=np.intp)
        part, self.total, used = np.empty(pairs), np.empty(users), np.zeros(q.row.shape)
        count = _choice.chosen(
            q.start, q.server, q.log_gain, q.per_task, price, tau, self.first, near, part, self.total, used
        )
        self.near, self.part = near[:count], part[:count]
        rho = options.resources * tau
        log_used = np.where(q.row, np.log(np.maximum(used, 1e-300)), -np.inf)
        top = np.where(q.row.any(axis=1), log_used.max(axis=1, initial=-1e300), 0.0)
        share = np.exp((log_used - top[:, None]) / rho)
        whole = np.maximum(share.sum(axis=1), 1e-300)
        self.excess: Array = top + rho * np.log(whole)
        self.weight = np.where(q.row, share / whole[:, None] / np.maximum(used, 1e-300), 0.0)

    @property
    def parts(self) -> Array:
        """Parts of all pairs."""
        result = np.zeros(len(self.q.server))
        result[self.near] = self.part
        return result

    def step(self, served: NDArray[np.bool_]) -> Array | None:
        """Newton's step of the prices."""
        from . import _choice

        q, servers, users = self.q, len(served), len(self.total)
        wanted = np.where(served, self.excess, 0.0)
        few = users < servers / 4
        if few or len(self.near) > self.options.dense * users * servers:
            user, server = q.polytope.pair_user[self.near], q.server[self.near]
            part, cost = np.zeros((2, users, servers))
            part[user, server] = self.part
            cost[user, server] = np.einsum("pr,pr->p", q.per_task[self.near], self.weight[server])
            cost *= part * self.total[:, None]
            if few:
                return self._by_users(part, cost, wanted)
            jacobian = (1 - 1 / self.tau) * (cost.T @ part)
            np.fill_diagonal(jacobian, (cost * ((1 - part) / self.tau + part)).sum(axis=0))
        else:
            jacobian = np.zeros((servers, servers))
            _choice.answers(
                self.first, self.near, self.part, self.total, q.server, q.per_task, self.weight, self.tau, jacobian
            )
        jacobian[~served, ~served] = 1.0
        try:
            return np.asarray(np.linalg.solve(jacobian, wanted), dtype=float)
        except np.linalg.LinAlgError:
            return None

    def _by_users(self, part: Array, cost: Array, wanted: Array) -> Array | None:
        """The same step where users are few: the Jacobian is `diag(sum_n cost_n)/tau - (1/tau - 1) cost^T part`."""
        whole, spread = cost.sum(axis=0) / self.tau, (1 / self.tau - 1) * cost
        whole[whole == 0] = 1.0
        own = part / whole
        step = np.zeros(len(wanted))
        for _ in range(2):  # the second time for what rounding left
            left = wanted - whole * step + (part @ step) @ spread
            try:
                of_users = np.linalg.solve(np.eye(len(own)) - own @ spread.T, own @ left)
            except np.linalg.LinAlgError:
                return None
            step = step + (left + of_users @ spread) / whole
        return step


def _newton(
    q: EquilibriumSystem, price: Array, tau: float, served: NDArray[np.bool_], options: PositiveOptions
) -> Reached[_Here]:
    """The solution at one temperature from a guess."""
    sufficient = max(options.near * min(1.0, 10 * tau), options.rounding / tau)

    def step(here: _Here) -> Array | None:
        found = here.step(served)
        return None if found is None or not np.isfinite(found).all() else found

    return damped_newton(
        _Here(q, price, tau, options),
        lambda here: float(np.abs(here.excess[served]).max()) < sufficient,
        step,
        lambda here, step, t: _Here(q, here.price + t * step, tau, options),
        lambda here: float(np.linalg.norm(here.excess[served])),
        options.steps,
        options.damping,
    )
