"""A search for allocations that a judge passes although somebody's tasks are far off the exact answer.

It starts at proved answers, of the cluster itself and of the cluster with weights changed by as much as the judge may
pass, and goes on with random and coordinate steps in tasks and prices: the largest `|x_n - x*_n| / x*_n` of anybody,
subject to `e <= bound`. What it does not find may exist all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from reference import Kind, reference

from fairopt.model.cluster import Cluster
from fairopt.model.criterion import Criterion
from fairopt.result.allocation import Allocation

from .reference import cut

Array = NDArray[np.float64]
Rng = np.random.Generator
#: e of tasks (users, servers) and log prices of whole capacities (servers, resources) by a criterion.
Judge = Callable[[Cluster, Array, Criterion, Array], float]


class Find(NamedTuple):
    """The worst that was passed: how far off, relative, whose tasks, and its e."""

    off: float
    user: int
    e: float
    tasks: Array
    log_prices: Array


def log_price(cluster: Cluster, n: int, i: int, log_prices: Array) -> float:
    """`log sum_r lambda_ir d_nr` of one pair; -inf if nothing that n needs on i has a price."""
    needed = cluster.demand[n] > 0
    terms = log_prices[i, needed] + np.log(cluster.demand[n, needed] / cluster.capacity[i, needed])
    return float(np.logaddexp.reduce(terms))


def log_marginal(cluster: Cluster, n: int, i: int, total: float, alpha: float, share: Array | None) -> float:
    """`log m_n` with shares per task (users,), `log m_ni` of the game without."""
    per_task = 1 / cluster.gamma[n, i] if share is None else share[n]
    return float(alpha * np.log(cluster.weight[n]) + (1 - alpha) * np.log(per_task) - alpha * np.log(total))


def attack(
    answer: Allocation,
    certify: Judge,
    rng: Rng,
    bound: float = 1e-6,
    tries: int = 2000,
    starts: int = 4,
) -> Find:
    """The allocation with `judge <= bound` that is farthest from the proved answer, of those it meets.

    That is the exact answer near a computed one, and must pass itself. It tries `starts` answers of changed weights,
    and `tries` steps in all.
    """
    cluster, criterion = answer.cluster, answer.criterion
    kind: Kind = "game" if criterion.scope == "game" else "global"
    share = None if kind == "game" else criterion.share
    exact = reference(cluster, criterion.alpha, kind, answer.tasks, answer.log_prices + np.log(cluster.capacity), share)
    assert exact is not None, "nothing to compare with"

    def judged(tasks: Array, log_prices: Array) -> Find:
        with np.errstate(divide="ignore", invalid="ignore"):
            away = np.where(exact.user_tasks > 0, abs(tasks.sum(axis=1) / exact.user_tasks - 1), 0.0)
        user = int(away.argmax())
        return Find(float(away[user]), user, certify(cluster, tasks, criterion, log_prices), tasks, log_prices)

    best = judged(exact.tasks, exact.log_prices)
    assert best.e <= bound, f"the exact answer has e = {best.e}"
    for _ in range(starts):
        other = cluster.replace(weight=cluster.weight * np.exp(bound * rng.choice([-0.9, 0.9], len(cluster.weight))))
        moved = reference(other, criterion.alpha, kind, exact.tasks, exact.log_prices, share)
        if moved is not None and (found := judged(moved.tasks, moved.log_prices)).e <= bound:
            best = max(best, found, key=lambda one: one.off)
    sizes = np.full(STEPS, 10 * bound)
    for _ in range(tries):
        kind_of, tasks, prices = rng.integers(STEPS), best.tasks.copy(), best.log_prices.copy()
        _step(kind_of, cluster, tasks, prices, sizes[kind_of] * rng.lognormal(0, 2), rng)
        tasks = _fitted(cluster, tasks)
        if rng.random() < 0.5:
            _follow(cluster, criterion, tasks, prices, rng)
        found = judged(tasks, prices)
        passed = found.e <= bound and found.off >= best.off
        # Longer steps after one that led farther, shorter ones after others.
        farther = passed and found.off > best.off
        sizes[kind_of] = np.clip(sizes[kind_of] * (1.5 if farther else 0.95), 1e-12, 1.0)
        best = found if passed else best
    return best


def _fitted(cluster: Cluster, tasks: Array) -> Array:
    """Tasks cut down, server by server and user by user, to what is feasible."""
    tasks = cut(cluster, tasks)
    total = tasks.sum(axis=1)
    return (
        tasks * np.minimum(1.0, np.divide(cluster.max_tasks, total, out=np.ones_like(total), where=total > 0))[:, None]
    )


def _follow(cluster: Cluster, criterion: Criterion, tasks: Array, prices: Array, rng: Rng) -> None:
    """Prices of every server rise or fall in proportion until those of a user there equal its marginal."""
    total = tasks.sum(axis=1)
    share = None if criterion.scope == "game" else criterion.share
    for i in range(cluster.shape[1]):
        there = np.flatnonzero(tasks[:, i] > 1e-9 * total)
        if len(there):
            n = int(rng.choice(there))
            off = log_marginal(cluster, n, i, total[n], criterion.alpha, share) - log_price(cluster, n, i, prices)
            prices[i] += off if np.isfinite(off) else 0.0


#: How many kinds of steps there are.
STEPS = 7


def _step(kind: int, cluster: Cluster, tasks: Array, prices: Array, size: float, rng: Rng) -> None:
    """Tasks and log prices change in place by about a relative `size`."""
    n, i = rng.choice(np.argwhere(cluster.usable))
    j, r = rng.choice(np.flatnonzero(cluster.usable[n])), rng.integers(prices.shape[1])
    m = rng.choice(np.flatnonzero(cluster.usable[:, j if kind == 2 else i]))
    amount, needed = min(size * tasks[n].sum(), tasks[n, i]), cluster.demand[m] > 0
    instead = cluster.demand[n, needed] / cluster.demand[m, needed]
    match kind:
        case 0:  # from server to server
            tasks[n, i] -= amount
            tasks[n, j] += amount
        case 1:  # from user to user
            tasks[n, i] -= amount
            tasks[m, i] += amount * instead.min()
        case 2:  # n leaves i for j, where m gives way to it
            tasks[n, i] -= amount
            tasks[n, j] += amount
            tasks[m, j] = max(tasks[m, j] - amount * instead.max(), 0.0)
        case 3:
            tasks[n] *= np.exp(rng.choice([-1, 1]) * size)
        case 4:
            prices[i, r] += rng.choice([-1, 1]) * size
        case 5:
            prices[i] += rng.choice([-1, 1]) * size
        case 6:  # a price is dropped, and a user there takes less
            prices[i, r] = -np.inf
            tasks[n, i] *= max(1 - size, 0.0)
