"""Equilibria of the per-server game as fixed points of one convex program with reweighted shares.

With reweightings `eta[n,i] = (gamma[n,i]/gbar_n)^(1-alpha)`, gbar_n the geometric mean of gamma[n,:], and
`w_n = sum_i x[n,i]/eta[n,i]`, an equilibrium maximises `sum_n B_n f_alpha(w_n)` for
`B_n = phi_n^alpha gbar_n^(alpha-1) (w_n/x_n)^alpha`. So solve, update B, repeat. It needs few solves on typed
and sparse clusters and stalls on dense heterogeneous ones at alpha >= 2, where best responses go on. At alpha = 1
nothing is reweighted and one solve is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._libraries import cp, sp
from ...engines.base import Run
from ...engines.reference import solvers
from ...engines.reference.program import Program, alpha_fair
from ...model.criterion import Criterion
from ...model.polytope import Polytope

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ReweightedOptions:
    """When shares are reweighted."""

    #: Reweightings beyond this spread leave nothing of double precision.
    widest: float = 1e8


#: What is used unless a caller says otherwise.
OPTIONS = ReweightedOptions()


class _Reweighted(Program):
    def __init__(self, polytope: Polytope, criterion: Criterion, reweighting: Array, start: Array) -> None:
        users = len(polytope.users)
        self.fraction = cp.Variable(len(polytope.gamma), nonneg=True, name="fraction")
        self.user_tasks = polytope.tasks @ self.fraction
        self.reweighted = sp.csr_matrix(polytope.tasks @ sp.diags(1 / reweighting))
        self.weight = criterion.restrict(polytope.users).weight
        self.unit = self.reweighted @ start
        self.share = self.reweighted @ self.fraction
        self.scaled_share = sp.diags(1 / self.unit) @ self.reweighted @ self.fraction
        self.constraints = {"capacity": polytope.use @ self.fraction <= 1}
        if len(polytope.limited):
            self.constraints["max_tasks"] = polytope.use_of_limit @ self.fraction <= 1
        self._factor = cp.Parameter(users, nonneg=True, name="factor")

    def factor(self, alpha: float) -> cp.Parameter:
        return self._factor


def solves(
    polytope: Polytope, criterion: Criterion, start: Array, solver: str | None = None
) -> Iterator[tuple[Array, Array, Run]]:
    """Fractions (pairs,), prices of whole capacities (rows,) and the run of one reweighted solve after another.

    `start` are fractions (pairs,) with tasks for every user.
    """
    alpha = criterion.alpha
    log_gamma = np.log(polytope.gamma)
    counts = np.bincount(polytope.pair_user)
    log_mean = np.bincount(polytope.pair_user, log_gamma) / counts
    log_reweighting = (1 - alpha) * (log_gamma - log_mean[polytope.pair_user])
    if np.ptp(log_reweighting) > np.log(OPTIONS.widest):
        return
    program = _Reweighted(polytope, criterion, np.exp(log_reweighting), start)
    formulation = alpha_fair(program, alpha)
    problem = cp.Problem(formulation.objective, list(formulation.constraints.values()))
    fractions = start
    while True:
        ratio = np.log(program.reweighted @ fractions) - np.log(polytope.tasks @ fractions)
        log_factor = (
            alpha * np.log(program.weight) + (alpha - 1) * log_mean + alpha * ratio + (1 - alpha) * np.log(program.unit)
        )
        program._factor.value = np.exp(log_factor - log_factor.max())
        run = solvers.first_success(problem, solver)
        fractions = np.maximum(program.fraction.value, 0.0)
        prices = np.maximum(formulation.constraints["capacity"].dual_value, 0.0)
        yield fractions, prices, run
