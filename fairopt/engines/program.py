"""What a mechanism writes its problem with: the feasible set of a cluster as CVXPY expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..criteria import Criterion
from ..polytope import Polytope

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Leximin:
    """Maximise the smallest of `levels`, then the second smallest, and so on: lexicographic max-min."""

    levels: cp.Expression


@dataclass(frozen=True)
class Formulation:
    """A mechanism's problem: an objective and named constraints, so that duals are read by name."""

    objective: cp.Maximize | Leximin
    constraints: Mapping[str, cp.Constraint]


class Program:
    """The users, tasks and constraints of a cluster, for those users who can run anything.

    Attributes
    ----------
    fraction : cp.Variable (pairs,)
        `x[n,i]/gamma[n,i]`, of the usable pairs.
    user_tasks : cp.Expression (users,)
        `x_n`, in tasks.
    share : cp.Expression (users,), or (pairs,) in the scope `each`
        `sigma_n = u_n x_n` with the criterion's share per task.
    weight : (users,), or (pairs,) in the scope `each`
        `phi_n`.
    unit : (users,)
        What shares are measured in while solving, by default 1. A scaling, not part of the mathematics:
        large alpha needs shares near 1 (each divided by its max-min level) to be solved at all.
    held : (users,)
        Tasks that a user keeps while the others are settled (0: nobody is held). Also a numerical matter: users
        whose welfare is far below the largest need a solve of their own.
    constraints : dict of str to cp.Constraint
        `capacity`, `max_tasks` where a limit can bind, `held` where somebody is held.
    """

    def __init__(
        self, polytope: Polytope, criterion: Criterion, unit: Array | None = None, held: Array | None = None
    ) -> None:
        self.polytope = polytope
        self.criterion = criterion.restrict(polytope.users)
        pairs = len(polytope.gamma)
        self.fraction = cp.Variable(pairs, nonneg=True, name="fraction")
        self.user_tasks: cp.Expression = polytope.tasks @ self.fraction
        if criterion.scope == "each":
            # On its own server, a user's dominant share is the fraction of its monopoly tasks.
            self.share: cp.Expression = self.fraction
            self.weight: Array = self.criterion.weight[polytope.pair_user]
        else:
            self.share = sp.diags(self.criterion.share) @ polytope.tasks @ self.fraction
            self.weight = self.criterion.weight
        self.unit: Array = np.ones(len(self.weight)) if unit is None else unit
        self.constraints: dict[str, cp.Constraint] = {"capacity": polytope.use @ self.fraction <= 1}
        if len(polytope.limited) and criterion.scope != "each":
            self.constraints["max_tasks"] = polytope.use_of_limit @ self.fraction <= 1
        self.held: Array = np.zeros(len(polytope.users)) if held is None else held
        if kept := np.flatnonzero(self.held).tolist():
            relative = sp.diags(1 / self.held[kept]) @ polytope.tasks[kept]
            self.constraints["held"] = relative @ self.fraction >= 1 - 1e-12


def alpha_fair(program: Program, alpha: float) -> Formulation:
    """`maximise sum_n phi_n f_alpha(sigma_n / phi_n)`: the alpha-fair welfare of a program's shares, alpha finite.

    With `t = sigma/unit` the welfare is, up to a constant and a positive factor, `sum_n B_n g(t_n)` with
    `B_n = phi_n^alpha unit_n^(1-alpha)` and `g(t) = (t^(1-alpha) - 1)/(1-alpha)`, `log t` at alpha = 1. g is
    written with exact power cones and without its constant, which would drown it near alpha = 1.
    """
    scaled = cp.multiply(1 / program.unit, program.share)
    log_factor = alpha * np.log(program.weight) + (1 - alpha) * np.log(program.unit)
    log_factor = np.where(program.held > 0, -np.inf, log_factor)
    factor = np.exp(log_factor - log_factor.max())
    constraints = dict(program.constraints)
    if alpha == 0:
        return Formulation(cp.Maximize(factor @ scaled), constraints)
    if alpha == 1:
        return Formulation(cp.Maximize(factor @ cp.log(scaled)), constraints)
    gain = cp.Variable(len(program.weight), name="gain")
    one = np.ones(len(program.weight))
    power = 1 + (1 - alpha) * gain  # stands for t^(1-alpha)
    if alpha < 1:
        constraints["utility"] = cp.PowCone3D(scaled, one, power, 1 - alpha)  # t^(1-alpha) >= power
    else:
        constraints["utility"] = cp.PowCone3D(power, scaled, one, 1 / alpha)  # power t^(alpha-1) >= 1
    return Formulation(cp.Maximize(factor @ gain), constraints)


def power_mean(program: Program, beta: float) -> tuple[cp.Variable, dict[str, cp.Constraint]]:
    """`M <= (sum_n w_n t_n^(1-beta))^(1/(1-beta))`, a concave mean of the shares `t = sigma/unit`, and its constraints.

    `w_n = phi_n^beta unit_n^(1-beta)`, made to sum to 1. With `p = 1 - beta` and the perspective
    `h_n <= M ((t_n/M)^p - 1)/p`, the mean is at least M iff `sum_n w_n h_n >= 0`: exact power cones, stable near beta = 1.
    """
    p = 1 - beta
    log_weight = beta * np.log(program.weight) + p * np.log(program.unit)
    weight = np.exp(log_weight - log_weight.max())
    count = len(weight)
    mean, gain = cp.Variable(nonneg=True, name="mean"), cp.Variable(count, name="gain")
    scaled = cp.multiply(1 / program.unit, program.share)
    means = mean * np.ones(count)
    if p > 0:
        cone = cp.PowCone3D(scaled, means, means + p * gain, p)  # t^p M^(1-p) >= M + p h
    else:
        cone = cp.PowCone3D(means + p * gain, scaled, means, 1 / beta)  # (M + p h)^(1/beta) t^(1-1/beta) >= M
    constraints = {**program.constraints, "utility": cone, "mean": (weight / weight.sum()) @ gain >= 0}
    return mean, constraints
