"""`Criterion`: the objective of a mechanism as data, which engines optimise and certificates verify.

maximise  sum_n phi_n f_alpha(sigma_n / phi_n),     sigma_n = u_n x_n,
f_alpha(t) = t^(1-alpha)/(1-alpha),  log t at alpha = 1,  lexicographic max-min at alpha = infinity.

`FairnessEfficiency` and `ConcaveWelfare` are further concave welfare functions with the same interface.
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
    r"""Alpha-fair criterion for the users of one cluster: a share per task, alpha, and a scope.

    .. math:: F(x) = \sum_n \phi_n f_\alpha(u_n x_n / \phi_n), \qquad f_\alpha(t) = \frac{t^{1-\alpha}}{1-\alpha},
        \qquad f_1(t) = \log t

    and lexicographic max-min of :math:`u_n x_n / \phi_n` at alpha = infinity.

    Parameters
    ----------
    share : (users,), or (users, servers) in the scopes `per_server` and `game`
        Share per task :math:`u_n`, or per unit of work if the cluster has rates: x is then work throughout. Infinite
        where no task can run. A deferred field is evaluated at first access, so that the share of a cluster that is
        merged need not be computed.
    alpha : float
        0 to infinity.
    scope : str
        `pool`: one server with the total capacity; `servers`: tasks summed over servers; `per_server`: each server
        separately; `game`: each server with the user's tasks on all servers, as a Nash equilibrium.
    weight : (users,)
        :math:`\phi_n > 0`.
    cap : (users,)
        Task limits of the mechanism, in addition to the cluster's `max_tasks`.
    floor : (users,)
        Lower bounds on tasks, 0 for none; only in the scopes `pool` and `servers`.
    share_rule : str
        Dependence of shares on the data, for derivatives. `dominant`: :math:`\max_r d_{nr} / C_r`; `asset`:
        :math:`\sum_r d_{nr} / C_r`; `alone`: :math:`1 / \sum_i \gamma^0_{ni}`; `demand`: `d[n,0]`; `constant`;
        `unknown`. In the scopes `per_server` and `game` shares are :math:`1 / \gamma_{ni}`.

    >>> import numpy as np, fairopt as fo
    >>> rule = fo.CEEI().criterion(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]))
    >>> np.exp(rule.log_marginal(np.array([4.0, 2.0]))).round(3).tolist()
    [0.25, 0.5]
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
        """Fields of the base class, by name."""
        return {each.name: getattr(self, each.name) for each in fields(Criterion)}

    @property
    def stiffness(self) -> float:
        """Largest elasticity of marginal utilities with respect to weights or demands, `max(alpha, 1)`."""
        return max(self.alpha, 1.0)

    @property
    def starves(self) -> bool:
        """True if marginal utility at zero is finite, so that an optimum may leave a user without tasks."""
        return self.alpha == 0

    @property
    def scale_free(self) -> bool:
        """True if proportional servers act as one; in the game, only if marginal utility is a power of the share."""
        return True

    @property
    def curve(self) -> Array:
        """Minus log marginal utility, increasing, and log share, (coordinates, knots), linear between the knots.

        Empty if marginal utility is a power of the share. Beyond the largest share that a user can have alone, and far
        below that share, marginal utility is extended as a power.
        """
        return np.empty((2, 0))

    @property
    def tabulated(self) -> Criterion:
        """Criterion with marginal utilities interpolated on `curve`; the criterion itself if the curve is empty."""
        return self

    def elasticity(self, user_tasks: Array) -> Array:
        """Elasticity of marginal utility, `-d log U'/d log x`, (users,): alpha."""
        return np.full(len(user_tasks), self.alpha)

    def measure(self, user_tasks: Array, reach: Array) -> Array:
        """Scale of relative changes of tasks, (users,): the tasks, or if `starves` the largest possible `reach`."""
        return reach if self.starves else user_tasks

    def limits(self, cluster: Cluster) -> Array:
        """Task limits, (users,): the smaller of the limit of the cluster and the cap of the mechanism."""
        return np.minimum(cluster.max_tasks, self.cap)

    def surplus(self, user_tasks: Array) -> Array:
        r"""Relative slack of floors, :math:`x_n / \underline{x}_n - 1`, (users,), >= 0; infinite without a floor."""
        above = ratio(user_tasks, self.floor, np.inf)
        return np.asarray(np.maximum(above - 1, 0.0))

    def levels(self, user_tasks: Array) -> Array:
        r"""Levels :math:`\sigma_n / \phi_n` of max-min at user tasks, (users,); in the game (users, servers)."""
        if self.share.ndim == 2:
            return np.asarray(np.asarray(user_tasks)[:, None] * self.share / self.weight[:, None])
        return np.asarray(user_tasks * self.share / self.weight)

    def _like_share(self, user_tasks: Array) -> Array:
        """Reshape (users,) for broadcasting with shares, which may be (users, servers)."""
        return np.asarray(user_tasks).reshape((-1,) + (1,) * (self.share.ndim - 1))

    def log_marginal(self, user_tasks: Array) -> Array:
        r"""Log marginal utilities at user tasks, shaped like `share`: (users,), or (users, servers) in the game.

        .. math:: \log \frac{\partial F}{\partial x_n} = \alpha \log \phi_n + (1 - \alpha) \log u_n - \alpha \log x_n
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            log_share, tasks = np.log(self.share), self._like_share(user_tasks)
            if self.alpha == 0:
                return np.asarray(log_share + 0 * tasks)
            log_weight = np.log(self._like_share(self.weight))
            return np.asarray(self.alpha * log_weight + (1 - self.alpha) * log_share - self.alpha * np.log(tasks))

    def bregman(self, tasks: Array, log_marginal: Array, price: Array, low: Array, high: Array) -> Array:
        r"""Fenchel-Young loss of each user, (users,): shortfall of surplus at x from its maximum in `[low, high]`.

        .. math:: \max_{x'} \{F_n(x') - p_n x'\} - (F_n(x_n) - p_n x_n)
            = G_n x_n \frac{\rho^{1-\alpha} - 1}{1-\alpha} - p_n x_n (\rho - 1)

        with the marginal utility :math:`G = dF/dx` and the maximiser :math:`\rho x`. The loss is of second order in the
        error of x, and infinite for alpha > 0 if x = 0 and `high` > 0.
        """
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if self.alpha == 0:
                marginal = np.exp(log_marginal)
                best = np.where(marginal > price, high, low)
                return np.asarray((marginal - price) * (best - tasks))
            ratio = np.exp((log_marginal - np.log(price)) / self.alpha)
            ratio = np.clip(ratio, low / tasks, high / tasks)
            loss = tasks * _gain(np.log(ratio), self.alpha, log_marginal) - price * tasks * (ratio - 1)
        # Marginal utility at zero tasks is infinite, so that the loss is unbounded.
        return np.where(tasks > 0, np.maximum(loss, 0.0), np.where(high > 0, np.inf, 0.0))

    def log_marginal_of(self, user_tasks: Array, user: Index, server: Index) -> Array:
        """Log marginal utilities of the given (user, server) pairs only, (pairs,)."""
        if self.share.ndim == 1:
            return self.log_marginal(user_tasks)[user]
        own = replace(self, share=self.share[user, server], weight=self.weight[user])
        return own.log_marginal(user_tasks[user])

    def restrict(self, users: Index) -> Criterion:
        """Restrict the criterion to some users, given by indices (some users,)."""
        if np.array_equal(users, np.arange(len(self.weight))):
            return self
        rows = {name: getattr(self, name)[users] for name in ("share", "weight", "cap", "floor")}
        return replace(self, **rows)


def _gain(log_ratio: Array, alpha: float, log_marginal: Array) -> Array:
    """`G (rho^(1-alpha) - 1)/(1-alpha)` without cancellation near rho = 1 or overflow far from it."""
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
    """Construct a `Criterion`; by default with the weights of the cluster, and without caps or floors.

    Arguments that are invalid or do not fit the cluster raise `DataError`, for a callable `share` at first access.

    `share` is per task in the scopes `pool` and `servers`, unless the share rule is `alone` or `constant`, and users
    whose rates differ between servers raise `DataError`; otherwise it is per unit of work.
    """
    alpha = _validate.alpha(alpha)
    if cluster.rated and scope in ("pool", "servers") and share_rule not in ("alone", "constant"):
        cluster.check_one_rate("this mechanism divides resources regardless of the rates")
        share = partial(_per_work, cluster, share)
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
    r"""Virtual dominant share per task or unit of work, (users, servers); infinite for unusable pairs.

    .. math:: 1 / (a_{ni} \gamma_{ni})
    """
    with np.errstate(divide="ignore"):
        return np.asarray(1 / cluster.monopoly_work)


def _per_work(cluster: Cluster, share: Array | Callable[[], Array]) -> Array:
    """Shares per unit of work, (users,), from shares per task, where each user has one rate."""
    one = np.where(cluster.eligible, cluster.rate, 0.0).max(axis=1)
    return ratio(_intake.plain(share() if callable(share) else share, "the share per task"), one, np.inf)


def check_floor_scope(scope: Scope) -> None:
    """Raise `DataError` for a scope in which floors are not supported."""
    if scope not in ("pool", "servers"):
        raise DataError(
            f"floors are for tasks of a pool or of all servers, not for the scope {scope!r}, where servers do not know "
            "the tasks on others: drop them, or choose a global mechanism"
        )


def _floor(cluster: Cluster, floor: Array, limits: Array, scope: Scope) -> Array:
    """Floors (users,); `DataError` if one exceeds its limit, or is not supported. Engines check joint feasibility."""
    floor = _validate.per_user(floor, "the floor", cluster.users)
    if cluster.rated and floor.any():
        raise DataError("floors are in tasks, and this cluster has rates: drop them with cluster.replace(rate=None)")
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
    r"""Criterion of `FDS`: the sum of a fairness term and an efficiency term, the log modulus of the objective.

    .. math:: F = a \log M(\sigma) + b \log T(\sigma), \qquad T = \sum_n \sigma_n, \qquad
        M = S^{1/(1-\beta)}, \qquad S = \sum_n \phi_n^\beta \sigma_n^{1-\beta}

    with a = `fair` > 0, b = `efficient` > 0 and beta = `alpha`, so that marginal utilities are

    .. math:: \frac{\partial F}{\partial x_n} = u_n \Big(\frac{a \phi_n^\beta \sigma_n^{-\beta}}{S} + \frac{b}{T}\Big)

    Source: Joe-Wong, Sen, Lan, Chiang, IEEE/ACM ToN 21(6), 2013 (doi:10.1109/TNET.2012.2233213), extended by weights.
    """

    fair: float = 1.0
    efficient: float = 0.0

    @property
    def stiffness(self) -> float:
        """Always 1: weights also enter S, so that errors of marginal utilities are attributed to demands."""
        return 1.0

    def log_marginal(self, user_tasks: Array) -> Array:
        """Log marginal utilities `log dF/dx_n` at user tasks, (users,)."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            log_share = np.log(self.share) + np.log(user_tasks)
            powers = self.alpha * np.log(self.weight) + (1 - self.alpha) * log_share
            fair = np.log(self.fair) + powers - log_share - log_sum(powers)
            slope = np.logaddexp(fair, np.log(self.efficient) - log_sum(log_share))
            return np.asarray(np.log(self.share) + slope)

    def bregman(self, tasks: Array, log_marginal: Array, price: Array, low: Array, high: Array) -> Array:
        """Upper bounds, (users,), on the gain in surplus `F(x') - p x' - (F(x) - p x)` for `low <= x' <= high`.

        The bounds follow from the tangent of the concave F at x, and add up over users.
        """
        excess = np.exp(log_marginal) - price
        return np.asarray(np.maximum(excess * (high - tasks), excess * (low - tasks)))


def log_sum(logs: Array) -> float:
    """Logarithm of a sum from logarithms of its terms; -inf for an empty sum."""
    most = float(logs.max(initial=-math.inf))
    return most + math.log(np.exp(logs - most).sum()) if math.isfinite(most) else most


Slope = Callable[[Array], Array]


def _proportional(levels: Array) -> Array:
    """Derivative `1/t` of the default utility log t."""
    with np.errstate(divide="ignore"):
        return np.asarray(1 / levels)


#: `_CURVE`: first and last log share of knots, relative to the largest share, and number of knots. `_TILT`: least
#: elasticity between knots, so that marginal utility decreases everywhere. `_BEYOND`: length in log share of an
#: interval added at either end.
_CURVE, _TILT, _BEYOND = (-18.0, 0.0, 32_768), 1e-8, 1e3


@dataclass(frozen=True, eq=False)
class ConcaveWelfare(Criterion):
    r"""Criterion of a user-defined concave utility U.

    .. math:: F(x) = \sum_n \phi_n U(\sigma_n / \phi_n), \qquad
        \frac{\partial F}{\partial x_n} = u_n U'(\sigma_n / \phi_n)

    In the game the welfare of server i has the levels :math:`x_n / (\gamma_{ni} \phi_n)` of its users.

    Attributes
    ----------
    slope : callable
        Function of levels t, of any shape, that returns `U'(t)`; infinite where the derivative at 0 is infinite.
    alpha : float
        Always 1, and unused: the elasticity `-d log U' / d log t` depends on the level (`elasticity`).
    """

    slope: Slope = _proportional

    @property
    def stiffness(self) -> float:
        """Always 1, a lower bound: for steep utilities smaller changes of weights offset errors in marginal utility."""
        return 1.0

    @cached_property
    def starves(self) -> bool:
        """True if marginal utility at zero is finite, so that an optimum may leave a user without tasks."""
        return bool(np.isfinite(self.slope(np.zeros(1))).all())

    @property
    def scale_free(self) -> bool:
        return self.scope != "game"

    def log_marginal(self, user_tasks: Array) -> Array:
        r"""Log marginal utilities :math:`\log u_n + \log U'(u_n x_n / \phi_n)`, shaped like `share`."""
        with np.errstate(divide="ignore", invalid="ignore"):
            # At zero tasks the level is 0 although the share per task may be infinite.
            level = np.where(self._like_share(user_tasks) == 0, 0.0, self.levels(user_tasks))
            return np.asarray(np.log(self.share) + np.log(self.slope(level)))

    @cached_property
    def curve(self) -> Array:
        levels = self.levels((1 / self.share).reshape(len(self.weight), -1).sum(axis=1))
        share = np.log(levels[np.isfinite(levels)].max(initial=np.finfo(float).tiny)) + np.linspace(*_CURVE)
        with np.errstate(divide="ignore", invalid="ignore"):
            less = -np.log(self.slope(np.exp(share)))
        known = np.isfinite(less)
        share, less = share[known], np.maximum.accumulate(less[known]) + _TILT * (share[known] - share[0])
        ends = [share[:1] - _BEYOND, share[-1:] + _BEYOND]
        slopes = [np.diff(less[:2]) / np.diff(share[:2]), np.diff(less[-2:]) / np.diff(share[-2:])]
        more = [less[:1] - _BEYOND * slopes[0], less[-1:] + _BEYOND * slopes[1]]
        return np.array([np.concatenate([more[0], less, more[1]]), np.concatenate([ends[0], share, ends[1]])])

    @property
    def tabulated(self) -> ConcaveWelfare:
        less, share = self.curve
        at_zero = float(self.slope(np.zeros(1))[0])

        def slope(levels: Array) -> Array:
            with np.errstate(divide="ignore"):
                return np.where(levels > 0, np.exp(-np.interp(np.log(levels), share, less)), at_zero)

        return replace(self, slope=slope)

    def elasticity(self, user_tasks: Array) -> Array:
        """Elasticity `-d log U' / d log t`, shaped like `share`, by central differences; 0 at zero tasks."""
        step = 1e-4  # step of log t, with truncation and rounding errors of about 1e-8 and 1e-12
        with np.errstate(all="ignore"):
            more, less = np.log(self.slope(np.stack([self.levels(user_tasks * np.exp(by)) for by in (step, -step)])))
            found = (less - more) / (2 * step)
        return np.where(np.isfinite(found) & (self._like_share(user_tasks) > 0), np.maximum(found, 0.0), 0.0)

    def measure(self, user_tasks: Array, reach: Array) -> Array:
        """Scale of relative changes of tasks, (users,): the change by which log marginal utility decreases by 1.

        It is at least the tasks, and at most the largest possible tasks `reach`; in the game it is the smallest over
        servers.
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
        """Upper bound on the Fenchel-Young loss of each user, (users,), near an optimum within a factor of four.

        By concavity the gain up to a point beyond the maximiser is at most the initial slope times the distance.
        """
        marginal = np.exp(log_marginal)
        wants = marginal > price
        end = np.where(wants, high, low)
        parts = 2.0 ** -np.arange(59, -1, -1)[:, None]  # bisection towards x
        points = np.where(parts < 1, tasks + parts * (end - tasks), end)
        with np.errstate(all="ignore"):
            there = np.log(self.share) + np.log(self.slope(self.levels(points)))
            slope = np.exp(log_marginal + there - self.log_marginal(tasks))
            beyond = np.where(wants, slope <= price, slope >= price)
            beyond[-1] = True
            # The nearest point beyond the maximiser, or the end of the interval.
            nearest = np.take_along_axis(points, beyond.argmax(axis=0)[None], axis=0)[0]
            loss = np.abs(marginal - price) * np.abs(nearest - tasks)
        return np.where(np.isnan(loss), np.inf, loss)
