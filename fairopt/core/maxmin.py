r"""Max-min and utilitarian optima of stacks of small problems, by the dense simplex method, with certificates.

.. math::
    \text{lex}\max_x \min_n \frac{u_n x_n}{\phi_n} \qquad \text{and} \qquad \max_x \sum_n u_n x_n

over the polytope of `system`, with shares per task u and weights phi; :math:`\phi_n / u_n` is called `rate`. `simplex`
finds the optimal vertices; a single server is solved by progressive filling (`filling`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..certificates.bottleneck import rises
from ..certificates.ill_scaled import SEEN
from ..certificates.leximin import least_rises, unprotected
from ..model._arrays import Array, Index, Mask
from ..model.problem import Problem
from . import simplex
from .factors import TINY
from .filling import filled
from .judge import backward_errors, infeasibility
from .system import Stack, stacked


class Found(NamedTuple):
    """Tasks (B, N, K), certificates (B,), prices of whole capacities (B, rounds, K, R), and numbers of rounds (B,)."""

    tasks: Array
    certificate: Array
    prices: Array
    rounds: Index


def leximin(problems: list[Problem]) -> Found:
    """Lexicographic max-min over a pool or servers, of problems of one shape.

    The certificate is infinite for failures, and for ill-scaled problems, in which rounding may hide the use of a user.
    On a single server there are no prices, and the number of rounds is 0.
    """
    q = stacked(problems, np.ones(len(problems)))
    rate = np.stack([one.criterion.weight / one.criterion.share for one in problems], axis=-1)
    if q.gamma.shape[1] == 1:
        tasks = _filled(q, rate[:, None])
        rise, prices, rounds = (
            largest_rise(q, rate[:, None], tasks, False),
            np.zeros((len(tasks), 0, 1, len(q.use))),
            None,
        )
    else:
        reach = q.gamma.sum(axis=1)
        per_level = np.divide(rate, reach, out=np.zeros(reach.shape), where=reach > 0).T
        part = np.divide(q.gamma, reach[:, None], out=np.zeros(q.gamma.shape), where=q.usable)
        tasks, prices, rounds = _vertices(q, _by_user(part), per_level)
        rise = np.where(rounds < 0, np.inf, lexicographic_rise(q, rate, tasks, prices))
    error = np.where(_ill_scaled(q, rate), np.inf, np.maximum(rise, infeasibility(q, fractions(q, tasks))))
    return Found(tasks, error, prices, np.zeros(len(tasks), dtype=np.intp) if rounds is None else rounds)


def largest_sum(problems: list[Problem]) -> Found:
    """Utilitarian optima (alpha = 0), the largest sums of shares, over a pool or servers, of problems of one shape.

    The certificate is the larger of the backward error and the infeasibility, infinite for a failure.
    """
    q = stacked(problems, np.zeros(len(problems)))
    share = np.stack([one.criterion.share for one in problems], axis=-1)
    share_of_gamma = q.gamma * np.where(q.unused > 0, 0.0, share)[:, None]
    unit = np.maximum(share_of_gamma.sum(axis=1).max(axis=0), TINY)
    objective = (share_of_gamma / unit).transpose(2, 0, 1).reshape(len(unit), 1, -1)
    tasks, prices, rounds = _vertices(q, objective, (unit > TINY)[:, None] * 1.0)
    prices *= unit[:, None, None, None]
    z = fractions(q, tasks)
    with np.errstate(divide="ignore"):
        log_rows = np.log(prices.sum(axis=1)).transpose(2, 1, 0)
    error = np.maximum(backward_errors(q, z, log_rows), infeasibility(q, z))
    able = (q.unused == 0).any(axis=0)
    return Found(tasks, np.where(rounds < 0, np.inf, np.where(able, error, 0.0)), prices, rounds)


def _by_user(values: Array) -> Array:
    """Matrices (B, N, N K) whose row of a user has the values (N, K, B) of its pairs, and zeros elsewhere."""
    users, servers, count = values.shape
    result = np.zeros((count, users, users, servers))
    result[:, np.arange(users), np.arange(users)] = values.transpose(2, 0, 1)
    return result.reshape(count, users, -1)


def _vertices(q: Stack, levels: Array, per_level: Array) -> tuple[Array, Array, Index]:
    """Lexicographically optimal vertices: tasks, prices and numbers of rounds, -1 for a failure, as in `Found`.

    Parameters
    ----------
    levels, per_level : (B, levels, N K) and (B, levels), L and omega of `simplex.lexicographic`, in fractions of gamma
    """
    resources, users, servers, count = q.use.shape
    of_servers = np.arange(servers)
    use = np.zeros((count, servers, resources, users, servers))
    use[:, of_servers, :, :, of_servers] = q.use.transpose(2, 3, 0, 1)
    rows = use.reshape(count, servers * resources, -1)
    if q.limited is not None:
        rows = np.append(rows, _by_user(q.share_of_limit), axis=1)
    z, prices, rounds = simplex.lexicographic(rows, levels, per_level)
    prices = prices[:, :, : servers * resources].reshape(count, -1, servers, resources)
    return z.reshape(count, users, servers) * q.gamma.transpose(2, 0, 1), prices, rounds


def alone(problems: list[Problem]) -> Found:
    """Max-min on every server by itself, of problems of one shape, with certificates but without prices.

    Limits other than zero are ignored.
    """
    q = stacked(problems, np.ones(len(problems)))
    q.limit = np.where(q.limit > 0, np.inf, 0.0)
    rate = np.stack([one.criterion.weight[:, None] / one.criterion.share for one in problems], axis=-1)
    tasks = _filled(q, rate)
    error = np.maximum(largest_rise(q, rate, tasks, False), infeasibility(q, fractions(q, tasks)))
    nothing = np.zeros((len(tasks), 0, *q.use.shape[2::-2]))
    return Found(tasks, error, nothing, np.zeros(len(tasks), dtype=np.intp))


def fractions(q: Stack, tasks: Array) -> Array:
    """Fractions z (N, K, B) of gamma from tasks (B, N, K)."""
    return tasks.transpose(1, 2, 0) / np.where(q.usable, q.gamma, 1.0)


def _filled(q: Stack, rate: Array) -> Array:
    """Max-min tasks (B, N, K) of every server by itself, with levels x/rate and `rate` (N, K, B)."""
    users, servers, count = q.gamma.shape
    unit = np.where(q.usable, q.gamma, 1.0)
    gain = np.where(q.usable, rate, 1.0) / unit
    room = np.where(q.usable, q.limit[:, None], 0.0) / unit
    per_task = np.moveaxis(q.use, 0, -1).reshape(users, -1, len(q.use)).swapaxes(0, 1)
    parts = filled(gain.reshape(users, -1).T, per_task, np.zeros(per_task.shape[:2]), room.reshape(users, -1).T)
    return (parts.T.reshape(users, servers, count) * q.gamma).transpose(2, 0, 1)


def largest_rise(q: Stack, rate: Array, tasks: Array, everywhere: bool) -> Array:
    """Largest relative increase (B,) of a user's tasks that a unilateral deviation of one server allows.

    A server may give a user more by taking tasks only from users of higher levels (`certificates.bottleneck.rises`).

    Parameters
    ----------
    rate : (N, K, B), tasks per level; (N, 1, B) if it is the same on all servers
    tasks : (B, N, K)
    everywhere : True if a level is that of a user's tasks on all servers, as in the game, False for tasks on one server
    """
    users, servers, count = q.gamma.shape
    z, unit = fractions(q, tasks), np.where(q.usable, q.gamma, 1.0)
    total = tasks.transpose(1, 2, 0)
    if everywhere:
        total = np.broadcast_to(total.sum(axis=1)[:, None], total.shape)
    total = np.where(q.usable, total, 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        level = np.where(q.usable, total / rate, np.inf)

    def by_server(values: Any) -> Any:
        return np.broadcast_to(values, q.gamma.shape).reshape(users, -1).T

    demand = np.moveaxis(q.use, 0, -1).reshape(users, servers * count, -1).swapaxes(0, 1)
    found = rises(
        demand, np.ones(demand.shape[::2]), by_server(z), by_server(level), by_server(total / unit),
        by_server(q.limit[:, None] / unit),
    )  # fmt: skip
    found = np.where(by_server(q.usable), found, 0.0)
    return np.asarray(found.max(axis=1).reshape(servers, count).max(axis=0))


def lexicographic_rise(q: Stack, rate: Array, tasks: Array, prices: Array) -> Array:
    """Upper bound (B,) of the relative increase of a user in any lexicographically better allocation.

    It is also an upper bound on `certificates.lexicographic_rise`, which solves linear programs, and infinite if a user
    with a usable pair has no tasks.

    Parameters
    ----------
    rate : (N, B), tasks per level
    tasks : (B, N, K)
    prices : (B, sets, K, R) of whole capacities
    """
    able = (q.unused == 0).T
    count, users = able.shape
    gamma, use, usable = q.gamma.transpose(2, 0, 1), q.use.transpose(3, 1, 2, 0), q.usable.transpose(2, 0, 1)
    total = np.where(able, tasks.sum(axis=2), 1.0)
    without_tasks = (able & ~(total > 0)).any(axis=1)
    total = np.where(total > 0, total, 1.0)
    level = np.divide(total, rate.T, out=np.full(total.shape, np.inf), where=able)
    order = np.argsort(level, axis=1, kind="stable")

    def ordered(values: Array) -> Array:
        return np.take_along_axis(values, order, axis=1)

    idle = np.where(q.rows, np.maximum(1 - q.used(fractions(q, tasks)), 0.0), 0.0)
    unused = np.einsum("bskr,rkb->bs", prices, idle)
    unit = np.where(usable, total[:, :, None] / np.where(usable, gamma, 1.0), 0.0)
    part = tasks / total[:, :, None]
    best = np.full((count, users), np.inf)
    for s in range(prices.shape[1]):
        cost = np.matmul(use.transpose(0, 2, 1, 3), prices[:, s, :, :, None])[..., 0].transpose(0, 2, 1) * unit
        least = np.where(able, np.where(usable, cost, np.inf).min(axis=2), 0.0)
        above = ordered(np.where(able, (part * (cost - least[:, :, None])).sum(axis=2), 0.0))
        least = ordered(least)
        gap = unused[:, s, None] + unprotected(above, least)
        best = np.minimum(best, least_rises(ordered(level), gap, least))
    rise = np.where(ordered(able), np.minimum(best, ordered(q.limit.T / total - 1)), 0.0)
    return np.where(without_tasks, np.inf, np.maximum(rise.max(axis=1), 0.0))


def _ill_scaled(q: Stack, rate: Array) -> Mask:
    """True (B,) if at equal levels some user's use of a row is less than the fraction `SEEN` of another user's use."""
    demanded = q.use > 0
    use_per_level = q.use * (rate[:, None] / np.where(q.usable, q.gamma, 1.0))
    low, high = (
        np.where(demanded, use_per_level, np.inf).min(axis=1),
        np.where(demanded, use_per_level, 0.0).max(axis=1),
    )
    return np.asarray((low < SEEN * high).any(axis=(0, 1)))
