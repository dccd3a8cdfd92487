"""`Criterion`: what a mechanism means by fair, as a value that engines optimise and certificates judge.

maximise  sum_n phi_n f_alpha(sigma_n / phi_n),     sigma_n = u_n x_n,
f_alpha(t) = t^(1-alpha)/(1-alpha),  log t at alpha = 1,  lexicographic max-min at alpha = infinity.

`FairnessEfficiency` and `ConcaveWelfare` are other concave welfares, with all that a certificate asks of one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, Literal, get_args

import numpy as np

from ..base.errors import DataError
from . import _intake, _validate
from ._arrays import Array, Frozen, Index, deferred, ratio, read_only
from .cluster import Cluster

Scope = Literal["pool", "servers", "per_server", "game"]
ShareRule = Literal["dominant", "asset", "alone", "demand", "constant", "unknown"]


@dataclass(frozen=True, eq=False)
class Criterion(Frozen):
    """A share, an alpha and a scope, for the users of one cluster.

    Attributes
    ----------
    share : (users,), or (users, servers) in the scopes `per_server` and `game`
        `u_n`, the share that one task counts for. Infinite where no task can run. May be given as a function,
        called when the share is first needed: servers that merge never need that of the whole cluster.
    alpha : float in [0, infinity]
    scope : where shares are compared
        `pool`: one server with all capacity; `servers`: tasks summed over the servers; `per_server`: inside
        every server on its own; `game`: every server with the user's tasks everywhere, as a Nash equilibrium.
    weight : (users,)
        `phi_n > 0`.
    cap : (users,)
        The most tasks that the mechanism lets n run, on top of the cluster's `max_tasks`.
    floor : (users,)
        The least tasks that n must have, 0 for no floor; in the scopes `pool` and `servers`.
    share_rule : how shares of users follow from the data, for derivatives by these
        `dominant`: `max_r d[n,r]/C_r`; `asset`: `sum_r d[n,r]/C_r`; `alone`: `1/sum_i gamma0[n,i]`; `demand`: `d[n,0]`;
        `constant`: given as numbers. In the scopes `per_server` and `game` shares are `1/gamma[n,i]`.
    """

    share: Array
    alpha: float
    scope: Scope
    weight: Array
    cap: Array
    floor: Array
    share_rule: ShareRule = field(default="unknown", kw_only=True)

    @property
    def plain(self) -> dict[str, Any]:
        """The fields that every criterion has, by name."""
        return {each.name: getattr(self, each.name) for each in fields(Criterion)}

    @property
    def stiffness(self) -> float:
        """`max(alpha, 1)`: by so much the log of a marginal utility changes with that of the weight (or demands)."""
        return max(self.alpha, 1.0)

    @property
    def starves(self) -> bool:
        """May an optimum give nothing to a user who could run tasks, as its first task is worth a finite amount?"""
        return self.alpha == 0

    @property
    def scale_free(self) -> bool:
        """True if proportional servers act as one: in the game, where worth is a power of the share."""
        return True

    def elasticity(self, user_tasks: Array) -> Array:
        """Elasticity of marginal utility, `-d log U'/d log x` (users,): alpha."""
        return np.full(len(user_tasks), self.alpha)

    def measure(self, user_tasks: Array, reach: Array) -> Array:
        """Unit of changes of user tasks, (users,): the tasks; where a user may have none, its reach."""
        return reach if self.starves else user_tasks

    def limits(self, cluster: Cluster) -> Array:
        """The most tasks that n may run, (users,): its own task count or the mechanism's cap."""
        return np.minimum(cluster.max_tasks, self.cap)

    def surplus(self, user_tasks: Array) -> Array:
        """Slack of floors relative to them, (users,), at least 0; infinite without a floor."""
        above = ratio(user_tasks, self.floor, np.inf)
        return np.asarray(np.maximum(above - 1, 0.0))

    def levels(self, user_tasks: Array) -> Array:
        """`sigma_n / phi_n` of user tasks (users,): what max-min compares; in `game`, (users, servers)."""
        if self.share.ndim == 2:
            return np.asarray(np.asarray(user_tasks)[:, None] * self.share / self.weight[:, None])
        return np.asarray(user_tasks * self.share / self.weight)

    def _like_share(self, user_tasks: Array) -> Array:
        """Numbers of users beside shares, which may be (users, servers)."""
        return np.asarray(user_tasks).reshape((-1,) + (1,) * (self.share.ndim - 1))

    def log_marginal(self, user_tasks: Array) -> Array:
        """`log dF/dx_n = alpha log phi_n + (1 - alpha) log u_n - alpha log x_n`, shaped like `share`."""
        with np.errstate(divide="ignore", invalid="ignore"):
            log_share, tasks = np.log(self.share), self._like_share(user_tasks)
            if self.alpha == 0:
                return np.asarray(log_share + 0 * tasks)
            log_weight = np.log(self._like_share(self.weight))
            return np.asarray(self.alpha * log_weight + (1 - self.alpha) * log_share - self.alpha * np.log(tasks))

    def bregman(self, tasks: Array, log_marginal: Array, price: Array, low: Array, high: Array) -> Array:
        """Gap of each user's utility less the price of its tasks to the maximum over `low <= x' <= high`.

        With `G = dF/dx`, `rho` the maximiser over x: `G x (rho^(1-alpha) - 1)/(1-alpha) - p x (rho - 1) >= 0`,
        a Fenchel-Young loss, of second order in the error of x.
        """
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if self.alpha == 0:
                marginal = np.exp(log_marginal)
                best = np.where(marginal > price, high, low)
                return np.asarray((marginal - price) * (best - tasks))
            ratio = np.exp((log_marginal - np.log(price)) / self.alpha)
            ratio = np.clip(ratio, low / tasks, high / tasks)
            loss = tasks * _gain(np.log(ratio), self.alpha, log_marginal) - price * tasks * (ratio - 1)
        # The slope at no tasks at all is infinite: nothing bounds what such a user could gain.
        return np.where(tasks > 0, np.maximum(loss, 0.0), np.where(high > 0, np.inf, 0.0))

    def log_marginal_of(self, user_tasks: Array, user: Index, server: Index) -> Array:
        """`log_marginal` of pairs, (pairs,): without those that nobody asks for."""
        if self.share.ndim == 1:
            return self.log_marginal(user_tasks)[user]
        own = replace(self, share=self.share[user, server], weight=self.weight[user])
        return own.log_marginal(user_tasks[user])

    def restrict(self, users: Index) -> Criterion:
        """The same criterion for some of the users."""
        if np.array_equal(users, np.arange(len(self.weight))):
            return self
        rows = {name: getattr(self, name)[users] for name in ("share", "weight", "cap", "floor")}
        return replace(self, **rows)


def _gain(log_ratio: Array, alpha: float, log_marginal: Array) -> Array:
    """`G (rho^(1-alpha) - 1)/(1-alpha)`, neither cancelling near rho = 1 nor overflowing far from it."""
    if alpha == 1:
        return np.asarray(np.exp(log_marginal) * log_ratio)
    power = (1 - alpha) * log_ratio
    near = np.exp(log_marginal) * np.expm1(np.clip(power, -1, 1))
    far = np.exp(log_marginal + power) - np.exp(log_marginal)
    return np.asarray(np.where(np.abs(power) < 1, near, far) / (1 - alpha))


def criterion(
    cluster: Cluster,
    share: Array | Callable[[], Array],
    alpha: float,
    scope: Scope,
    weight: Array | None = None,
    cap: Array | None = None,
    floor: Array | None = None,
    *,
    share_rule: ShareRule = "unknown",
) -> Criterion:
    """A `Criterion` with the cluster's weights, no cap and no floor unless given, checked against the cluster."""
    alpha = _validate.alpha(alpha)
    if scope not in get_args(Scope):
        raise DataError(f"scope {scope!r} is not one of {', '.join(get_args(Scope))}")
    n = cluster.shape[0]
    cap = np.full(n, np.inf) if cap is None else np.asarray(cap, dtype=float)
    return Criterion(
        deferred(partial(_checked, cluster, share, scope)) if callable(share) else _checked(cluster, share, scope),
        alpha,
        scope,
        cluster.weight if weight is None else np.asarray(weight, dtype=float),
        cap,
        np.zeros(n) if floor is None else _floor(cluster, floor, np.minimum(cap, cluster.max_tasks), scope),
        share_rule=share_rule,
    )


def virtual_share_per_task(cluster: Cluster) -> Array:
    """`1/gamma[n,i]`, (users, servers): what one task adds to a virtual dominant share; infinite where none can run."""
    with np.errstate(divide="ignore"):
        return np.asarray(1 / cluster.gamma)


def check_floor_scope(scope: Scope) -> None:
    """`DataError` for a scope that knows no floors."""
    if scope not in ("pool", "servers"):
        raise DataError(
            f"floors are for tasks of a pool or of all servers, not for the scope {scope!r}, where no server knows "
            "what the others give: drop them, or choose a global mechanism"
        )


def _floor(cluster: Cluster, floor: Array, limits: Array, scope: Scope) -> Array:
    """Floors, checked one by one; whether they can be met together is found out by who solves."""
    floor = _validate.per_user(floor, "the floor", cluster.users)
    for n in np.flatnonzero(floor > limits).tolist():
        raise DataError(
            f"the floor {floor[n]:g} of user {cluster.users[n]!r} is above the most tasks that it may run; choose one "
            f"of at most {limits[n]:g}",
            ("users", n),
        )
    if floor.any():
        check_floor_scope(scope)
    return floor


def _checked(cluster: Cluster, share: Array | Callable[[], Array], scope: Scope) -> Array:
    share = _intake.plain(share() if callable(share) else share, "the share per task")
    wanted = cluster.shape[:2] if scope in ("per_server", "game") else cluster.shape[:1]
    if share.shape != wanted:
        raise DataError(f"the share must have shape {wanted} here, one number per user; got {share.shape}")
    bad = np.flatnonzero(~(share > 0).reshape(wanted[0], -1).all(axis=1))
    if bad.size:
        raise DataError(f"the share per task of user {cluster.users[bad[0]]!r} must be > 0", ("users", int(bad[0])))
    return read_only(share)


@dataclass(frozen=True, eq=False)
class FairnessEfficiency(Criterion):
    """`F = fair log M(sigma) + efficient log T(sigma)`, both factors > 0: the logarithm of |f| of `FDS`.

    `T = sum_n sigma_n`, `S = sum_n phi_n^beta sigma_n^(1-beta)` and `M = S^(1/(1-beta))`, beta = `alpha`. What a
    task is worth has a part for fairness and one for efficiency, which is the same for every share:

        dF/dx_n = u_n (fair phi_n^beta sigma_n^(-beta) / S + efficient / T)

    Source: Joe-Wong, Sen, Lan, Chiang, IEEE/ACM ToN 21(6), 2013; the logarithm, weights and bound are ours.
    """

    fair: float = 1.0
    efficient: float = 0.0

    @property
    def stiffness(self) -> float:
        """1: weights are in S as well, so that errors of marginal utilities are made up for by demands."""
        return 1.0

    def log_marginal(self, user_tasks: Array) -> Array:
        """`log dF/dx_n` at user tasks (users,)."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            log_share = np.log(self.share) + np.log(user_tasks)
            powers = self.alpha * np.log(self.weight) + (1 - self.alpha) * log_share
            fair = np.log(self.fair) + powers - log_share - log_sum(powers)
            slope = np.logaddexp(fair, np.log(self.efficient) - log_sum(log_share))
            return np.asarray(np.log(self.share) + slope)

    def bregman(self, tasks: Array, log_marginal: Array, price: Array, low: Array, high: Array) -> Array:
        """Per user, by the tangent at x, what in sum bounds `F(x') - p x' - (F(x) - p x)` over `low <= x' <= high`."""
        excess = np.exp(log_marginal) - price
        return np.asarray(np.maximum(excess * (high - tasks), excess * (low - tasks)))


def log_sum(logs: Array) -> float:
    """The logarithm of a sum, from logarithms of its terms."""
    most = float(logs.max(initial=-math.inf))
    return most + math.log(np.exp(logs - most).sum()) if math.isfinite(most) else most


Slope = Callable[[Array], Array]


def _proportional(levels: Array) -> Array:
    """`1/t`: of log t, if no slope is given."""
    with np.errstate(divide="ignore"):
        return np.asarray(1 / levels)


@dataclass(frozen=True, eq=False)
class ConcaveWelfare(Criterion):
    """`F = sum_n phi_n U(t_n)` with `t_n = sigma_n / phi_n`, so that `dF/dx_n = u_n U'(t_n)`.

    In the game every server has a welfare of its own, of its users' `t_ni = x_n / (gamma[n,i] phi_n)`.

    Attributes
    ----------
    slope : function of levels t (any shape) that returns `U'(t)`, without a unit; infinite where there is none at 0
    alpha : 1, and not used: what it is elsewhere, `-d log U' / d log t`, depends on the level (`elasticity`)
    """

    slope: Slope = _proportional

    @property
    def stiffness(self) -> float:
        """1: errors of marginal utilities count in full, although steep utilities need less of a change of weights."""
        return 1.0

    @cached_property
    def starves(self) -> bool:
        """True if the first task is worth a finite amount, so that an optimum may give a user nothing."""
        return bool(np.isfinite(self.slope(np.zeros(1))).all())

    @property
    def scale_free(self) -> bool:
        return self.scope != "game"

    def log_marginal(self, user_tasks: Array) -> Array:
        """`log dF/dx_n = log u_n + log U'(u_n x_n / phi_n)`, shaped like `share`."""
        with np.errstate(divide="ignore", invalid="ignore"):
            # Shares may be infinite.
            level = np.where(self._like_share(user_tasks) == 0, 0.0, self.levels(user_tasks))
            return np.asarray(np.log(self.share) + np.log(self.slope(level)))

    def elasticity(self, user_tasks: Array) -> Array:
        """`-d log U' / d log t`, shaped like `share`, by a difference; 0 where there are no tasks."""
        step = 1e-4  # in log t: errors of the difference, of order step^2 and 1e-16 / step, are about 1e-8 and 1e-12
        with np.errstate(all="ignore"):
            more, less = np.log(self.slope(np.stack([self.levels(user_tasks * np.exp(by)) for by in (step, -step)])))
            found = (less - more) / (2 * step)
        return np.where(np.isfinite(found) & (self._like_share(user_tasks) > 0), np.maximum(found, 0.0), 0.0)

    def measure(self, user_tasks: Array, reach: Array) -> Array:
        """Tasks that would change the marginal utility by a factor, at least those there are and at most the reach.

        In the game those of the server where this takes fewest.
        """
        if not self.starves:
            return user_tasks
        step = 1e-6 * reach
        with np.errstate(all="ignore"):
            change = (self.log_marginal(user_tasks) - self.log_marginal(user_tasks + step)) / self._like_share(step)
            needed = np.where(change > 0, 1 / change, np.inf)
            needed = needed.min(axis=1) if needed.ndim == 2 else needed
            return np.asarray(np.clip(needed, np.minimum(user_tasks, reach), reach))

    def bregman(self, tasks: Array, log_marginal: Array, price: Array, low: Array, high: Array) -> Array:
        """At least what each user's utility less the price of its tasks falls short of its maximum.

        Near an optimum at most four times that.
        Slopes fall: on the way to a point beyond the maximiser no task gains more than the first one.
        """
        marginal = np.exp(log_marginal)
        wants = marginal > price
        end = np.where(wants, high, low)
        parts = 2.0 ** -np.arange(59, -1, -1)[:, None]  # halvings of the way
        points = np.where(parts < 1, tasks + parts * (end - tasks), end)
        with np.errstate(all="ignore"):
            there = np.log(self.share) + np.log(self.slope(self.levels(points)))
            slope = np.exp(log_marginal + there - self.log_marginal(tasks))
            beyond = np.where(wants, slope <= price, slope >= price)
            beyond[-1] = True
            # The nearest point beyond the maximiser, or the end of the way.
            nearest = np.take_along_axis(points, beyond.argmax(axis=0)[None], axis=0)[0]
            loss = np.abs(marginal - price) * np.abs(nearest - tasks)
        return np.where(np.isnan(loss), np.inf, loss)
