"""Feasible set of a cluster as CVXPY expressions, for formulations of mechanisms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..._libraries import cp, sp
from ...errors import DataError
from ...model._arrays import Array
from ...model.criterion import Criterion
from ...model.polytope import Polytope


@dataclass(frozen=True)
class Leximin:
    """Maximise the smallest of `levels`, then the second smallest, and so on: lexicographic max-min."""

    levels: cp.Expression


@dataclass(frozen=True)
class Formulation:
    """A mechanism's problem: an objective and named constraints, so that duals are read by name.

    Constraints are those of the program and, called `utility` or `mean`, those that define what is maximised with
    variables of their own. Any other takes a mechanism with its own `certify`, as criteria know of none
    (`check_expressed`).
    """

    objective: cp.Maximize | Leximin
    constraints: Mapping[str, cp.Constraint]


class Program:
    """CVXPY expressions for formulations.

    Attributes
    ----------
    alpha : float
        The criterion's.
    fraction : cp.Expression (pairs,)
        `x[n,i]/gamma[n,i]`, of the usable pairs.
    user_tasks : cp.Expression (users,)
        `x_n`, in tasks, of those users who can run anything.
    share : cp.Expression (users,), or (pairs,) in the scope `per_server`
        `sigma_n = u_n x_n` with the criterion's share per task; virtual dominant shares in the per-server game.
    weight : (users,), or (pairs,) in the scope `per_server`
        `phi_n`.
    unit : (users,)
        What shares are measured in while solving. A scaling, not part of the mathematics: large alpha needs shares
        near 1 (each divided by its max-min level) to be solved at all.
    scaled_share : cp.Expression
        `share / unit`.
    typical_level : float
        What max-min levels are measured in while solving: about what everyone could have.
    constraints : dict of str to cp.Constraint
        `capacity`, `max_tasks` where a limit can bind, `min_tasks` where there are floors, and `held` where users
        keep what they have.
    """

    alpha: float
    fraction: cp.Expression
    user_tasks: cp.Expression
    share: cp.Expression
    scaled_share: cp.Expression
    weight: Array
    unit: Array
    constraints: dict[str, cp.Constraint]
    typical_level: float = 1.0

    def factor(self, alpha: float) -> Array | cp.Parameter:
        """`phi_n^alpha unit_n^(1-alpha)`, the largest made 1: what the welfare of a scaled share counts."""
        return welfare_factor(self.weight, self.unit, alpha)


def welfare_factor(weight: Array, unit: Array, alpha: float, fixed: Array | None = None) -> Array:
    """`weight^alpha unit^(1-alpha)` without overflow, the largest 1, and 0 for those held."""
    log_factor = alpha * np.log(weight) + (1 - alpha) * np.log(unit)
    if fixed is not None:
        log_factor = np.where(fixed > 0, -np.inf, log_factor)
    return np.asarray(np.exp(log_factor - log_factor.max()))


class ClusterProgram(Program):
    """The users of a whole cluster with a share that is global (or one per pair, in the scope `per_server`).

    `tasks` (users,) are about what is expected, to scale unknowns by.
    `held` (users,) are tasks that a user keeps while others are settled (0: nobody is held). A numerical matter:
    users whose welfare is far below the largest need a solve of their own.
    """

    def __init__(
        self,
        polytope: Polytope,
        criterion: Criterion,
        unit: Array | None = None,
        fixed: Array | None = None,
        tasks: Array | None = None,
    ) -> None:
        own, self.alpha = criterion.restrict(polytope.users), criterion.alpha
        self._polytope, self._each = polytope, criterion.scope == "per_server"
        # Unknowns near 1 however small a user's part of a server is: solvers' tolerances are absolute.
        self.typical_level, scale = _typical(polytope, own)
        if tasks is not None:
            scale = np.clip(tasks[polytope.pair_user] / polytope.gamma, 1e-15, 1.0)
        self.fraction = cp.multiply(scale, cp.Variable(len(scale), nonneg=True, name="fraction / typical"))
        self.user_tasks = polytope.tasks @ self.fraction
        if criterion.scope == "per_server":
            # On its own server, a user's dominant share is the fraction of its monopoly tasks.
            self.share, self.weight = self.fraction, own.weight[polytope.pair_user]
        else:
            self.share = sp.diags(own.share) @ polytope.tasks @ self.fraction
            self.weight = own.weight
        self.unit = np.ones(len(self.weight)) if unit is None else unit
        self.scaled_share = cp.multiply(1 / self.unit, self.share)
        self.constraints = {"capacity": polytope.use @ self.fraction <= 1}
        if len(polytope.limited) and criterion.scope != "per_server":
            self.constraints["max_tasks"] = polytope.use_of_limit @ self.fraction <= 1
        if floored := np.flatnonzero(own.floor > 0).tolist():
            relative = sp.diags(1 / own.floor[floored]) @ polytope.tasks[floored]
            self.constraints["min_tasks"] = relative @ self.fraction >= 1
        self._fixed: Array = np.zeros(len(polytope.users)) if fixed is None else fixed
        if kept := np.flatnonzero(self._fixed).tolist():
            relative = sp.diags(1 / self._fixed[kept]) @ polytope.tasks[kept]
            self.constraints["held"] = relative @ self.fraction >= 1 - 1e-12

    def factor(self, alpha: float) -> Array:
        return welfare_factor(self.weight, self.unit, alpha, self._fixed)

    def cost(self) -> Array:
        """Least cost of a whole server by user (by pair, in the scope `per_server`), at the last prices.

        Relative to the largest price of a whole capacity.
        """
        prices = np.abs(self.constraints["capacity"].dual_value)
        cost = self._polytope.use.T @ prices / max(prices.max(initial=0.0), np.finfo(float).tiny)
        if self._each:
            return np.asarray(cost)
        least = np.full(len(self._polytope.users), np.inf)
        np.minimum.at(least, self._polytope.pair_user, cost)
        return least


def _typical(polytope: Polytope, own: Criterion) -> tuple[float, Array]:
    """A level that everyone could have, and what part of each server (pairs,) its tasks there would take of it."""
    weight = own.weight[polytope.pair_user]
    if own.scope == "per_server":
        crowd = np.bincount(polytope.pair_server, weight)[polytope.pair_server]
        return float(1 / np.median(crowd)), np.asarray(weight / crowd)
    alone = own.levels(np.asarray(polytope.tasks.sum(axis=1)).ravel())
    level = float(1 / (1 / alone).sum())
    tasks = level * own.weight / own.share
    return level, np.asarray(np.minimum(1.0, tasks[polytope.pair_user] / polytope.gamma))


def alpha_fair(program: Program, alpha: float) -> Formulation:
    """`maximise sum_n phi_n f_alpha(sigma_n / phi_n)`: the alpha-fair welfare of a program's shares.

    At alpha = infinity that is lexicographic max-min. Else, with `t = sigma/unit`, the welfare is, up to a constant and
    a positive factor, `sum_n B_n g(t_n)` with `B_n = phi_n^alpha unit_n^(1-alpha)` and
    `g(t) = (t^(1-alpha) - 1)/(1-alpha)`, `log t` at alpha = 1. g is written with exact power cones and without its
    constant, which would drown it near alpha = 1.
    """
    if np.isinf(alpha):
        return Formulation(Leximin(program.share / program.weight), program.constraints)
    scaled, factor = program.scaled_share, program.factor(alpha)
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
    `h_n <= M ((t_n/M)^p - 1)/p`, the mean is at least M iff `sum_n w_n h_n >= 0`: exact power cones, stable near 1.
    """
    p = 1 - beta
    log_weight = beta * np.log(program.weight) + p * np.log(program.unit)
    weight = np.exp(log_weight - log_weight.max())
    count = len(weight)
    mean, gain = cp.Variable(nonneg=True, name="mean"), cp.Variable(count, name="gain")
    scaled = program.scaled_share
    means = mean * np.ones(count)
    if p > 0:
        cone = cp.PowCone3D(scaled, means, means + p * gain, p)  # t^p M^(1-p) >= M + p h
    else:
        cone = cp.PowCone3D(means + p * gain, scaled, means, 1 / beta)  # (M + p h)^(1/beta) t^(1-1/beta) >= M
    constraints = {**program.constraints, "utility": cone, "mean": (weight / weight.sum()) @ gain >= 0}
    return mean, constraints


#: Constraints that define what is maximised, by variables of their own (cones and means of shares).
DEFINING = ("utility", "mean")


def check_expressed(program: Program, formulation: Formulation, mechanism: str) -> None:
    """`DataError` for a formulation with other constraints than those of its program, or without some of them.

    Those called `utility` and `mean` may be added if they have variables of their own. Certificates judge by the
    criterion alone, which knows capacities, limits (the cluster's and a mechanism's cap) and what is maximised: with a
    floor on somebody's tasks, or a rule on who shares a server, an answer without it would be certified.
    """
    own = program.constraints
    variables = {v.id for rule in own.values() for v in rule.variables()} | {v.id for v in program.share.variables()}
    for name, rule in formulation.constraints.items():
        if rule is own.get(name):
            continue
        if name in DEFINING and name not in own and any(v.id not in variables for v in rule.variables()):
            continue
        raise DataError(
            f"{mechanism} states a constraint {name!r}, which its criterion does not express: an answer without it "
            "would be certified. Define certify(cluster, tasks, log_prices) in the mechanism, which judges it as well, "
            "or drop the constraint"
        )
    if missing := [name for name in own if name not in formulation.constraints]:
        raise DataError(
            f"{mechanism} leaves out the constraint {missing[0]!r}, by which its criterion judges. Give all of "
            "program.constraints, or define certify(cluster, tasks, log_prices) in the mechanism"
        )
