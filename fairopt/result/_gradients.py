"""How measures move with tasks, and with the data directly: gradients of those of `metrics`.

Of levels `l_n = k_n x_n / phi_n`, `k_n = max_r d_nr/C_r`, and dominant shares `s_n = k_n x_n`:

    tasks        sum x_n                      x_n                          by log x_n
    welfare      sum s_n                      s_n                          by log s_n
    min_share    min l_n                      l_n of the least             by log l_n
    jain         S^2 / (N Q)                  2 S l_n / (N Q) (1 - S l_n / Q)    S = sum l_n, Q = sum l_n^2
    utilization  mean_r sum x_n d_nr / C_r    the mean of x_n d_nr / C_r   by log x_n, log d_nr, -log C_r
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..sensitivity.shares import share_derivatives
from ._answer import Answer

Array = NDArray[np.float64]

#: Users tie for the smallest or largest share if they are this close.
_TIED = 1e-9


@dataclass(frozen=True)
class Gradient:
    """A measure by log tasks (users,), and by data with tasks held: log weights, demands, pooled capacities."""

    tasks: Array
    weight: Array
    demand: Array
    pool: Array


def gradients(answer: Answer, name: str) -> list[Gradient] | None:
    """The gradients of a measure: several where users or their resources tie for it; `None` for measures of others."""
    return _KNOWN[name](answer) if name in _KNOWN else None


def _of_shares(answer: Answer, by_share: Array, by_weight: Array) -> list[Gradient]:
    """Of something that moves with log dominant shares, and with log weights."""
    rules = share_derivatives(answer.cluster, "dominant")
    demands = [rule.by_demand * by_share[:, None] for rule in rules]
    return [Gradient(by_share, by_weight, demand, -demand.sum(axis=0)) for demand in demands]


def _tasks(answer: Answer) -> list[Gradient]:
    none = np.zeros(answer.cluster.demand.shape)
    x = answer.user_tasks
    return [Gradient(x, np.zeros(len(x)), none, none.sum(axis=0))]


def _welfare(answer: Answer) -> list[Gradient]:
    share = answer.dominant_shares
    return _of_shares(answer, share, np.zeros(len(share)))


def _levels(answer: Answer) -> Array:
    return np.where(answer.cluster.runnable, answer.dominant_shares / answer.cluster.weight, np.nan)


def _extreme(answer: Answer, largest: bool) -> list[Gradient]:
    level = _levels(answer)
    if np.isnan(level).all():
        return []
    best = np.nanmax(level) if largest else np.nanmin(level)
    tied = np.flatnonzero(np.abs(level - best) <= _TIED * best)
    some = np.zeros((2, len(level)))
    some[0, tied[0]] = best
    some[1, tied] = best * np.random.default_rng(0).dirichlet(np.ones(len(tied)))
    return [one for each in some[: len(tied)] for one in _of_shares(answer, each, -each)]


def _jain(answer: Answer) -> list[Gradient]:
    level = np.nan_to_num(_levels(answer))
    count, total, squares = int(answer.cluster.runnable.sum()), level.sum(), (level**2).sum()
    if not squares > 0:
        return []
    by_level = 2 * total * level / (count * squares) * (1 - total * level / squares)
    return _of_shares(answer, by_level, -by_level)


def _utilization(answer: Answer) -> list[Gradient]:
    cluster = answer.cluster
    there = cluster.pooled_capacity
    used = answer.user_tasks[:, None] * cluster.demand
    part = np.divide(used, there, out=np.zeros(used.shape), where=there > 0) / max(int((there > 0).sum()), 1)
    return [Gradient(part.sum(axis=1), np.zeros(len(part)), part, -part.sum(axis=0))]


_KNOWN: dict[str, Callable[[Answer], list[Gradient]]] = {
    "tasks": _tasks,
    "welfare": _welfare,
    "min_share": lambda answer: _extreme(answer, False),
    "max_share": lambda answer: _extreme(answer, True),
    "jain": _jain,
    "utilization": _utilization,
}
