r"""Optimality conditions of welfare and of the per-server game at finite alpha, for a stack of problems of one shape.

They are a mixed complementarity problem: the KKT conditions of the welfare program, or of the programs of all servers
in the game. Welfare is the special case of the game in which a user's marginal utility is the same on every server.
Unknowns are the fractions `z` of monopoly tasks of pairs (user, server), the prices `v` of rows (resource, server) as
levels, and the prices `xi` of task limits. With :math:`A = \max(\alpha, 1)`, :math:`\rho = \alpha/A`, the use D of a
row by the monopoly tasks of a pair, :math:`e^{A\,gain}` the marginal welfare of these tasks at x = 1, their fraction
tau of the user's limit, and user tasks :math:`x_n = \sum_k size_{nk} z_{nk}` in units of the user's largest gamma, the
conditions in logarithms over A are

.. math::

    s_{nk} = \rho \log x_n + \tfrac1A \log \sum_r D_{nkr} v_{kr}^A + \xi_n - gain_{nk} \ge 0 \perp z_{nk} \ge 0,

    w_{kr} = 1 - \sum_n D_{nkr} z_{nk} \ge 0 \perp v_{kr} \ge 0, \qquad
    w_n = 1 - \sum_k \tau_{nk} z_{nk} \ge 0 \perp \xi_n \ge 0.

The axis of problems comes last, so that the inner loops of NumPy are long: arrays of pairs have the shape
(users, servers, problems), arrays of rows (resources, servers, problems).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

from ..model._arrays import Array, Mask
from ..model.problem import Problem
from .accuracy import NEGLIGIBLE

#: Array of task limits, (users, problems) or (users, servers, problems); None if no limit can bind.
OfLimits = Any
T = TypeVar("T")

#: Relative slack below which a limit counts as attained; a limit that exceeds the sum of a user's monopoly tasks by
#: more than this fraction cannot bind.
AT_LIMIT = NEGLIGIBLE
#: Log ratio, over A, of a user's marginal utility at its limit to the lower bound of its costs, which bounds the price
#: of the limit where servers are idle.
_LOG_PRICE_RANGE = 40.0


def select(data: T, problems: Any) -> T:
    """Restrict every array of a dataclass to some problems, by indices or a mask along the last axis."""
    arrays: Any = [getattr(data, field.name) for field in fields(data)]  # type: ignore[arg-type]
    arrays = [array[..., problems] if isinstance(array, np.ndarray) else array for array in arrays]
    return type(data)(*arrays)


@dataclass
class Stack:
    """Scaled data of problems of one shape: N users, K servers, R resources, B problems."""

    game: bool
    alpha: Array  # (B,)
    power: Array  # (B,), A
    ratio: Array  # (B,), rho = alpha/A
    use: Array  # (R, N, K, B), D: fraction of a capacity that gamma tasks use
    log_use: Array  # (R, N, K, B), its logarithm, -inf where a resource is not demanded
    gamma: Array  # (N, K, B), monopoly tasks, 0 for ineligible pairs
    usable: Mask  # (N, K, B), True for pairs that can run tasks
    unused: Array  # (N, B), 1 for users without a usable pair, else 0
    size: Array  # (N, K, B), gamma over the largest gamma of the user
    gain: Array  # (N, K, B), exp(A gain) is the marginal welfare of gamma tasks at x = 1
    log_marginal: Array  # (N, K, B), log marginal utility of a task at one task
    rows: Mask  # (R, K, B), rows that some pair uses
    limit: Array  # (N, B), task limits, infinite for users without a limit
    limited: OfLimits  # (N, B), True for users whose limit can bind
    share_of_limit: OfLimits  # (N, K, B), tau: gamma over the limit
    least_cost: OfLimits  # (N, K, B), lower bound of log costs over A, for users whose limit can bind

    def some(self, chosen: Any) -> Stack:
        """Restrict to some problems, by indices or a mask."""
        return select(self, chosen)

    def user_tasks(self, z: Array) -> Array:
        """User tasks x in units of the largest gamma, (N, B); 1 for users without a usable pair."""
        return np.asarray(np.add.reduce(self.size * z, axis=1) + self.unused)

    def used(self, z: Array) -> Array:
        """Utilization of every row, (R, K, B)."""
        return np.asarray(np.add.reduce(self.use * z, axis=1))

    def of_limits(self, z: Array) -> Array:
        """Tasks as a fraction of the limit, (N, B)."""
        return np.asarray(np.add.reduce(self.share_of_limit * z, axis=1))

    def costs(self, log_v: Array, norm: Array | None = None) -> tuple[Array, Array]:
        r"""Log costs of pairs (N, K, B), and shares of rows in costs (R, N, K, B), at log prices (R, K, B).

        .. math:: \tfrac1p \log \sum_r D_{nkr}^{p/A} v_{kr}^p

        with the exponent `p = norm` (B,), by default A; evaluated by a stable log-sum-exp. Sums include `least_cost`, a
        positive lower bound of the costs of users whose limit can bind.
        """
        norm = self.power if norm is None else norm
        least_cost = None if self.least_cost is None else norm * self.least_cost
        terms = (norm / self.power) * self.log_use + (norm * log_v)[:, None]
        largest = np.maximum.reduce(terms, axis=0)
        if least_cost is not None:
            np.maximum(largest, least_cost, out=largest)
        largest[~self.usable] = 0.0
        terms -= largest
        np.exp(terms, out=terms)
        total = np.add.reduce(terms, axis=0)
        if least_cost is not None:
            total += np.exp(least_cost - largest)
        total[~self.usable] = 1.0
        terms /= total
        return (largest + np.log(total)) / norm, terms

    def slacks(self, z: Array, log_v: Array, xi: OfLimits, norm: Array | None = None) -> tuple[Array, Array, Array]:
        """User tasks x (N, B), slacks s of pairs (N, K, B), and shares of rows in costs (R, N, K, B)."""
        x = self.user_tasks(z)
        cost, share = self.costs(log_v, norm)
        level = self.ratio * np.log(x)
        if xi is not None:
            level = level + xi
        return x, level[:, None] + cost - self.gain, share

    def tasks(self, z: Array) -> Array:
        """Tasks of every pair, (B, N, K)."""
        return np.ascontiguousarray(np.moveaxis(z * self.gamma, -1, 0))


def stacked(problems: list[Problem], alpha: Array | None = None) -> Stack:
    """Stack B problems of the same shape and scope; `alpha` (B,) replaces the alphas of their criteria."""
    rules, clusters = [one.criterion for one in problems], [one.cluster for one in problems]
    game = rules[0].scope == "game"
    capacity = np.stack([one.capacity for one in clusters], axis=-1)
    demand = np.stack([one.demand for one in clusters], axis=-1)
    eligible = np.stack([one.eligible for one in clusters], axis=-1)
    weight = np.stack([one.weight for one in rules], axis=-1)
    limit = np.stack([one.limits for one in problems], axis=-1)
    alpha = np.array([one.alpha for one in rules]) if alpha is None else alpha
    game = game or rules[0].scope == "per_server"  # only the data of servers are read, not the utilities
    share: Any = None if game else np.stack([one.share for one in rules], axis=-1)
    rate = np.stack([one.rate for one in clusters], axis=-1) if any(one.rated for one in clusters) else None
    return of_arrays(game, alpha, capacity.swapaxes(0, 1), demand.swapaxes(0, 1), eligible, weight, limit, share, rate)


def of_arrays(
    game: bool,
    alpha: Array,
    capacity: Array,
    demand: Array,
    eligible: Mask,
    weight: Array,
    limit: Array,
    share: Any,
    rate: Array | None = None,
) -> Stack:
    """Stack from capacity (R, K, B), demand (R, N, B), eligible (N, K, B); weight, limit, share per task (N, B).

    With `rate` (N, K, B) tasks are work throughout; limits must then be infinite, or 0. In a `game` the share is not
    read.
    """
    power = np.maximum(alpha, 1.0)
    ratio = alpha / power
    demanded = (demand > 0)[:, :, None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        monopoly = np.where(demanded, capacity[:, None] / demand[:, :, None], np.inf).min(axis=0)
        usable = eligible & (limit > 0)[:, None] & (monopoly > 0)
        gamma = np.where(usable, monopoly, 0.0)
        use = np.where(demanded & usable, gamma * demand[:, :, None] / capacity[:, None], 0.0)
        gamma = gamma if rate is None else gamma * rate
        largest = gamma.max(axis=1)
        unused = (largest <= 0).astype(float)
        size = gamma / (largest + unused)[:, None]
        log_use, log_gamma = np.log(use), np.log(np.where(usable, gamma, 1.0))
        log_weight = alpha * np.log(weight)
        if game:
            log_marginal: Any = log_weight[:, None] + (alpha - 1) * log_gamma
        else:
            log_marginal = np.broadcast_to((log_weight + (1 - alpha) * np.log(share))[:, None], gamma.shape)
        log_largest = np.log(largest + unused)[:, None]
        gain = np.where(usable, (log_marginal + log_gamma - alpha * log_largest) / power, 0.0)
        limited: OfLimits = (limit < gamma.sum(axis=1) * (1 + AT_LIMIT)) & (unused == 0)
        tau = least_cost = None
        if limited.any():
            tau = np.where(limited[:, None], gamma / np.where(limited, limit, 1.0)[:, None], 0.0)
            # Costs are bounded from below, so that the price of a limit is finite where the user has an idle server.
            at_limit = ratio * (np.log(np.where(limited, limit, 1.0))[:, None] - log_largest)
            least_cost = np.where(limited[:, None] & usable, gain - at_limit - _LOG_PRICE_RANGE, -np.inf)
    rows: Any = use.any(axis=1)
    capped = limited if tau is not None else None
    return Stack(
        game,
        alpha,
        power,
        ratio,
        use,
        log_use,
        gamma,
        usable,
        unused,
        size,
        gain,
        log_marginal,
        rows,
        limit,
        capped,
        tau,
        least_cost,
    )
