r"""Optimality conditions of welfare and of the per-server game at finite alpha, for a stack of problems of one shape.

Welfare is the game in which a task is worth the same on every server. Unknowns are fractions `z` of monopoly tasks of
pairs (user, server), prices `v` of rows (resource, server) and `xi` of task limits. With `A = max(alpha, 1)`,
`rho = alpha/A`, user tasks `x = sum_k size z` in units of the user's largest `gamma`, in levels

.. math::

    s_{nk} = \rho \log x_n + \tfrac1A \log \sum_r D_{nkr} v_{kr}^A + \xi_n - gain_{nk} \ge 0 \perp z_{nk} \ge 0

    w_{kr} = 1 - \sum_n D_{nkr} z_{nk} \ge 0 \perp v_{kr} \ge 0, \qquad
    w_n = 1 - \sum_k \tau_{nk} z_{nk} \ge 0 \perp \xi_n \ge 0

Arrays end with the axis of problems, which keeps NumPy's inner loops long: pairs are (users, servers, problems), rows
(resources, servers, problems).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

from ..model._arrays import Array, Mask
from ..model.problem import Problem

#: An array of limits, whose first axis is that of users, or None where none could bind.
OfLimits = Any
T = TypeVar("T")


def of_some(whole: T, chosen: Any) -> T:
    """Restrict a dataclass of arrays to some of the problems."""
    parts: Any = [getattr(whole, each.name) for each in fields(whole)]  # type: ignore[arg-type]
    parts = [one[..., chosen] if isinstance(one, np.ndarray) else one for one in parts]
    return type(whole)(*parts)


@dataclass
class Stack:
    """Scaled data of problems of one shape: N users, K servers, R resources, B problems."""

    game: bool
    alpha: Array  # (B,)
    power: Array  # (B,), A
    ratio: Array  # (B,), rho = alpha/A
    use: Array  # (R, N, K, B), D: of whole servers
    log_use: Array  # the same, -inf for none
    gamma: Array  # (N, K, B), monopoly tasks, 0 for pairs that are not usable
    usable: Mask  # (N, K, B)
    unused: Array  # (N, B): 1 of users who can run nothing
    size: Array  # (N, K, B), gamma by the user's largest
    gain: Array  # (N, K, B): exp(A gain) is what the first unit of x is worth
    log_worth: Array  # (N, K, B), log of the marginal utility at one task
    rows: Mask  # (R, K, B), rows that some pair uses
    limit: Array  # (N, B), most tasks, infinite for none
    limited: OfLimits  # (N, B): whose limit could bind; None: nobody's
    share_of_limit: OfLimits  # (N, K, B), tau
    bottom: OfLimits  # (N, K, B), log of the least that a pair pays, where a limit could bind

    def some(self, chosen: Any) -> Stack:
        """Restrict to some of the problems."""
        return of_some(self, chosen)

    def user_tasks(self, z: Array) -> Array:
        """User tasks in units of the largest gamma, (N, B); 1 of users who can run nothing."""
        return np.asarray(np.add.reduce(self.size * z, axis=1) + self.unused)

    def used(self, z: Array) -> Array:
        """Used part of every row, (R, K, B)."""
        return np.asarray(np.add.reduce(self.use * z, axis=1))

    def of_limits(self, z: Array) -> Array:
        """Used part of every limit, (N, B)."""
        return np.asarray(np.add.reduce(self.share_of_limit * z, axis=1))

    def costs(self, log_v: Array, norm: Array | None = None) -> tuple[Array, Array]:
        """Log costs of pairs in levels (N, K, B), and shares of rows in them (R, N, K, B), from log prices v.

        `norm` (B,): the exponent of the sum over rows, A unless given.
        """
        norm = self.power if norm is None else norm
        bottom = None if self.bottom is None else norm * self.bottom
        each = (norm / self.power) * self.log_use + (norm * log_v)[:, None]
        top = np.maximum.reduce(each, axis=0)
        if bottom is not None:
            np.maximum(top, bottom, out=top)
        top[~self.usable] = 0.0
        each -= top
        np.exp(each, out=each)
        total = np.add.reduce(each, axis=0)
        if bottom is not None:
            total += np.exp(bottom - top)
        total[~self.usable] = 1.0
        each /= total
        return (top + np.log(total)) / norm, each

    def slacks(self, z: Array, log_v: Array, xi: OfLimits, norm: Array | None = None) -> tuple[Array, Array, Array]:
        """User tasks x (N, B), slacks of pairs (N, K, B) and shares of rows in costs (R, N, K, B)."""
        x = self.user_tasks(z)
        cost, share = self.costs(log_v, norm)
        level = self.ratio * np.log(x)
        if xi is not None:
            level = level + xi
        return x, level[:, None] + cost - self.gain, share

    def tasks(self, z: Array) -> Array:
        """Tasks, (B, N, K)."""
        return np.ascontiguousarray(np.moveaxis(z * self.gamma, -1, 0))


def stacked(problems: list[Problem], alpha: Array | None = None) -> Stack:
    """Stack problems of one shape and scope; `alpha` (B,) replaces their criteria's."""
    rules, clusters = [one.criterion for one in problems], [one.cluster for one in problems]
    game = rules[0].scope == "game"
    capacity = np.stack([one.capacity for one in clusters], axis=-1)
    demand = np.stack([one.demand for one in clusters], axis=-1)
    eligible = np.stack([one.eligible for one in clusters], axis=-1)
    weight = np.stack([one.weight for one in rules], axis=-1)
    limit = np.stack([one.limits for one in problems], axis=-1)
    alpha = np.array([one.alpha for one in rules]) if alpha is None else alpha
    game = game or rules[0].scope == "per_server"  # of which data are asked for only
    share: Any = None if game else np.stack([one.share for one in rules], axis=-1)
    return of_arrays(game, alpha, capacity.swapaxes(0, 1), demand.swapaxes(0, 1), eligible, weight, limit, share)


def of_arrays(
    game: bool,
    alpha: Array,
    capacity: Array,
    demand: Array,
    eligible: Mask,
    weight: Array,
    limit: Array,
    share: Any,
) -> Stack:
    """Stack from capacity (R, K, B), demand (R, N, B), eligible (N, K, B); weight, limit and share per task (N, B)."""
    power = np.maximum(alpha, 1.0)
    ratio = alpha / power
    needed = (demand > 0)[:, :, None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        most = np.where(needed, capacity[:, None] / demand[:, :, None], np.inf).min(axis=0)
        usable = eligible & (limit > 0)[:, None] & (most > 0)
        gamma = np.where(usable, most, 0.0)
        use = np.where(needed & usable, gamma * demand[:, :, None] / capacity[:, None], 0.0)
        largest = gamma.max(axis=1)
        unused = (largest <= 0).astype(float)
        size = gamma / (largest + unused)[:, None]
        log_use, log_gamma = np.log(use), np.log(np.where(usable, gamma, 1.0))
        own = alpha * np.log(weight)
        if game:
            log_worth: Any = own[:, None] + (alpha - 1) * log_gamma
        else:
            log_worth = np.broadcast_to((own + (1 - alpha) * np.log(share))[:, None], gamma.shape)
        log_largest = np.log(largest + unused)[:, None]
        gain = np.where(usable, (log_worth + log_gamma - alpha * log_largest) / power, 0.0)
        limited: OfLimits = (limit < gamma.sum(axis=1) * (1 + 1e-9)) & (unused == 0)
        tau = bottom = None
        if limited.any():
            tau = np.where(limited[:, None], gamma / np.where(limited, limit, 1.0)[:, None], 0.0)
            # Nothing costs nothing: the price of a limit stays bounded where its user stands on an idle server.
            at_limit = ratio * (np.log(np.where(limited, limit, 1.0))[:, None] - log_largest)
            bottom = np.where(limited[:, None] & usable, gain - at_limit - 40.0, -np.inf)
    rows: Any = use.any(axis=1)
    some = limited if tau is not None else None
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
        log_worth,
        rows,
        limit,
        some,
        tau,
        bottom,
    )
