"""Well-conditioned convex programs: fractions of servers as variables, shares near 1, and power cones.

`statement` derives the program from the criterion, so that a mechanism only states the form in which its paper prints
it.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from ...base.libraries import cp, sp
from ...model._arrays import Array, Index, Mask
from ...model.criterion import ConcaveWelfare, Criterion, FairnessEfficiency
from ...model.polytope import Polytope
from .program import Leximin, Program, Statement
from .utility import UtilitySlope


class Scaled(Program):
    r"""Program over the fractions :math:`z_{ni} = x_{ni} / \gamma_{ni}` of some (user, server) pairs.

    Attributes
    ----------
    fraction : (pairs,)
        :math:`z_{ni}`.
    sigma : (users,), or (pairs,) in the scope `per_server`
        The criterion's share; virtual dominant shares in the per-server game.
    unit : shaped like `sigma`
        Normalisation of shares, which does not change the solution. For large alpha solvers fail unless all shares are
        near 1, as they are after division by the shares under max-min.
    scaled_share : shaped like `sigma`
        `sigma / unit`.
    factor : shaped like `sigma`
        Welfare coefficients of scaled shares, `weight^alpha unit^(1-alpha)`, divided by the maximum; 0 for fixed users.
    typical_level : float
        Normalisation of max-min levels.
    """

    polytope: Polytope
    pairs: Index
    rows: Index
    fraction: cp.Expression
    sigma: cp.Expression
    scaled_share: cp.Expression
    weight: Array
    unit: Array
    factor: Array | cp.Parameter
    typical_level: float = 1.0

    @cached_property
    def x(self) -> cp.Expression:
        at = self.polytope
        row = np.searchsorted(self.users, at.users[at.pair_user[self.pairs]])
        column = np.searchsorted(self.servers, at.pair_server[self.pairs])
        shape = len(self.users), len(self.servers)
        entries = at.instances[self.pairs], (row * shape[1] + column, np.arange(len(row)))
        spread = sp.csr_matrix(entries, shape=(shape[0] * shape[1], len(row)))
        return cp.reshape(spread @ self.fraction, shape, order="C")

    def prices(self, dual: Array) -> Array:
        rows = np.zeros(len(self.polytope.row_server))
        rows[self.rows] = np.maximum(dual, 0.0)
        return self.polytope.unit_prices(rows)


def welfare_factor(weight: Array, unit: Array, alpha: float, fixed: Mask) -> tuple[Array, float]:
    """Coefficients `weight^alpha unit^(1-alpha)` divided by their maximum, and the log of this maximum.

    Coefficients are 0 for the fixed users, which the mask `fixed` selects.
    """
    log_factor = np.where(fixed, -np.inf, alpha * np.log(weight) + (1 - alpha) * np.log(unit))
    most = float(log_factor.max())
    return np.asarray(np.exp(log_factor - most)), most


class ClusterProgram(Scaled):
    """Scaled program of a whole cluster, with one share per user, or one per pair in the scope `per_server`.

    `tasks`, (users,), are estimates of the solution, by which variables are scaled. `fixed`, (users,), are the tasks
    of fixed users, and 0 for free users. A solver's tolerance exceeds the welfare of users whose marginal welfare is
    far below the largest: such users are optimised with the tasks of all other users fixed.
    """

    def __init__(
        self,
        polytope: Polytope,
        criterion: Criterion,
        unit: Array | None = None,
        fixed: Array | None = None,
        tasks: Array | None = None,
    ) -> None:
        from .expressions import Named

        own = criterion.restrict(polytope.users)
        self.cluster, self.criterion, self.users = polytope.cluster, criterion, polytope.users
        self.servers = np.arange(polytope.cluster.shape[1])
        self.pairs, self.rows = np.arange(len(polytope.gamma)), np.arange(len(polytope.row_server))
        self.polytope, self._each = polytope, criterion.scope == "per_server"
        # Tolerances of solvers are absolute: variables are scaled to values near 1 even where a fraction is small.
        self.typical_level, scale = _typical(polytope, own)
        if tasks is not None:
            scale = np.clip(tasks[polytope.pair_user] / polytope.gamma, 1e-15, 1.0)
        typical = cp.Constant(scale, name="typical_fraction")
        scaled = cp.multiply(typical, cp.Variable(len(scale), nonneg=True, name="scaled_fraction"))
        self.fraction = Named(scaled, "fraction")
        self.work = self.user_tasks = cp.Constant(polytope.tasks, name="tasks_per_fraction") @ self.fraction
        if polytope.rate is not None:
            self.user_tasks = cp.sum(self.x, axis=1)
        if self._each:
            # A user's dominant share of one server is its fraction of its monopoly tasks on that server.
            self.sigma, self.weight = self.fraction, own.weight[polytope.pair_user]
        else:
            self.sigma = cp.Constant(sp.diags(own.share) @ polytope.tasks, name="share_per_fraction") @ self.fraction
            self.weight = own.weight
        self.unit = np.ones(len(self.weight)) if unit is None else unit
        inverse = cp.Constant(1 / self.unit, name="inverse_unit")
        self.scaled_share = Named(cp.multiply(inverse, self.sigma), "scaled_share")
        self.constraints = {"capacity": cp.Constant(polytope.use, name="use") @ self.fraction <= 1}
        if len(polytope.limited) and not self._each:
            self.constraints["max_tasks"] = cp.Constant(polytope.use_of_limit, name="use_of_limit") @ self.fraction <= 1
        if floored := np.flatnonzero(own.floor > 0).tolist():
            relative = cp.Constant(sp.diags(1 / own.floor[floored]) @ polytope.tasks[floored], name="use_of_floor")
            self.constraints["min_tasks"] = relative @ self.fraction >= 1
        held: Array = np.zeros(len(self.weight)) if fixed is None else fixed
        if kept := np.flatnonzero(held).tolist():
            relative = sp.diags(1 / held[kept]) @ polytope.tasks[kept]
            self.constraints["fixed"] = relative @ self.fraction >= 1 - 1e-12
        if np.isfinite(criterion.alpha) and not isinstance(criterion, FairnessEfficiency):
            self.factor, self.log_unit = welfare_factor(self.weight, self.unit, criterion.alpha, held > 0)

    def cost(self) -> Array:
        """Cost of a user's monopoly tasks on its cheapest server, (users,), at the present prices.

        Costs are relative to the largest price of a whole capacity. In the scope `per_server` they are the costs of
        monopoly tasks at each (user, server) pair, (pairs,).
        """
        prices = np.abs(self.constraints["capacity"].dual_value)
        cost = self.polytope.use.T @ prices / max(prices.max(initial=0.0), np.finfo(float).tiny)
        if self._each:
            return np.asarray(cost)
        least = np.full(len(self.polytope.users), np.inf)
        np.minimum.at(least, self.polytope.pair_user, cost)
        return least


def _typical(polytope: Polytope, own: Criterion) -> tuple[float, Array]:
    """Typical level, and typical fractions of servers, (pairs,), by which variables are scaled.

    In the scope `per_server`, servers are partitioned by weight. In other scopes all users can have the level together,
    apart from task limits, and the fraction of a pair is the part of the server that would hold all tasks of the user.
    """
    weight = own.weight[polytope.pair_user]
    if own.scope == "per_server":
        crowd = np.bincount(polytope.pair_server, weight)[polytope.pair_server]
        return float(1 / np.median(crowd)), np.asarray(weight / crowd)
    alone = own.levels(np.asarray(polytope.tasks.sum(axis=1)).ravel())
    level = float(1 / (1 / alone).sum())
    tasks = level * own.weight / own.share
    return level, np.asarray(np.minimum(1.0, tasks[polytope.pair_user] / polytope.gamma))


def expressible(criterion: Criterion) -> bool:
    """True if the criterion's welfare has an expression in CVXPY, which `statement` needs."""
    return not isinstance(criterion, ConcaveWelfare) or isinstance(criterion.slope, UtilitySlope)


def statement(program: Program) -> Statement:
    """State the objective of a scaled program's criterion, with the program's constraints."""
    assert isinstance(program, Scaled)
    rule = program.criterion
    if isinstance(rule, FairnessEfficiency):
        return _fair_and_efficient(program, rule)
    if isinstance(rule, ConcaveWelfare):
        return _concave(program, rule)
    return _alpha_fair(program, rule.alpha)


def _alpha_fair(program: Scaled, alpha: float) -> Statement:
    r"""Alpha-fair welfare of scaled shares; lexicographic max-min at alpha = infinity.

    With `unit` u and scaled shares :math:`t_n = \sigma_n / u_n`, welfare is, up to a constant and a positive factor,

    .. math:: \sum_n B_n g(t_n), \quad B_n = \phi_n^\alpha u_n^{1-\alpha}, \quad
        g(t) = (t^{1-\alpha} - 1)/(1-\alpha), \quad g(t) = \log t \text{ at } \alpha = 1

    g is written with exact power cones, and shifted such that g(1) = 0, which avoids cancellation near alpha = 1.
    """
    if np.isinf(alpha):
        return Statement(Leximin(program.sigma / program.weight), program.constraints)
    scaled, factor = program.scaled_share, program.factor
    constraints = dict(program.constraints)
    if alpha == 0:
        return Statement(cp.Maximize(factor @ scaled), constraints)
    if alpha == 1:
        return Statement(cp.Maximize(factor @ cp.log(scaled)), constraints)
    gain = cp.Variable(len(program.weight), name="gain")
    one = cp.Constant(np.ones(len(program.weight)), name="one")
    power = 1 + (1 - alpha) * gain  # stands for t^(1-alpha)
    if alpha < 1:
        constraints["utility"] = cp.PowCone3D(scaled, one, power, 1 - alpha)  # t^(1-alpha) >= power
    else:
        constraints["utility"] = cp.PowCone3D(power, scaled, one, 1 / alpha)  # power t^(alpha-1) >= 1
    return Statement(cp.Maximize(factor @ gain), constraints)


def _concave(program: Scaled, rule: ConcaveWelfare) -> Statement:
    r"""Welfare :math:`\sum_n \phi_n U(t_n)` at levels :math:`t_n = \sigma_n / \phi_n`, under a user-defined utility U.

    Except in the game, welfare is divided by the largest :math:`\phi_n U'(t_n) t_n` at the levels of `unit`.
    """
    slope = rule.slope
    assert isinstance(slope, UtilitySlope)
    utility = slope.expression(program.sigma / program.weight)
    if rule.scope == "game":
        return Statement(cp.Maximize(program.weight @ utility), program.constraints)
    level = program.unit / program.weight
    weight = np.asarray(program.factor)  # the weights, as alpha is 1 here; 0 for fixed users
    largest = float((weight * slope(level) * level).max()) or 1.0
    program.log_unit += math.log(largest)
    return Statement(cp.Maximize((weight / largest) @ utility), program.constraints)


def _fair_and_efficient(program: Scaled, rule: FairnessEfficiency) -> Statement:
    r"""Logarithms of a power mean of shares and of the sum of shares, with exact power cones.

    .. math:: \max\ a \log M + b \log T, \quad M \le \Big(\sum_n \omega_n t_n^{1-\beta}\Big)^{1/(1-\beta)},
        \quad T = \sum_n \sigma_n \Big/ \sum_n u_n

    with `unit` u, scaled shares :math:`t_n = \sigma_n / u_n`, and :math:`\omega_n` proportional to
    :math:`\phi_n^\beta u_n^{1-\beta}` with sum 1. With :math:`\rho = 1 - \beta`, the mean is at least M if and only if
    some :math:`h_n \le M ((t_n/M)^\rho - 1)/\rho` have :math:`\sum_n \omega_n h_n \ge 0`. The bounds of h are power
    cones, which are accurate near beta = 1.
    """
    beta = rule.alpha
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
    total = cp.sum(program.sigma) / program.unit.sum()
    return Statement(cp.Maximize(rule.fair * cp.log(mean) + rule.efficient * cp.log(total)), constraints)
