"""Certificate of progressive filling in a tree of queues: prices or limits prove that each user has to stop.

The final tasks determine the whole path, since the tasks of each user increase at the rates of the tree until the user
has its final tasks. Hence tasks are the result of progressive filling if and only if no user could gain tasks at the
time at which it stops while all users keep the tasks that they have at that time. Prices of capacities bound the
possible gain, as the cost of all tasks is at most the value of the capacities. The check thus solves no program.
"""

from __future__ import annotations

import numpy as np

from ..model._arrays import Array, ratio
from ..model.polytope import Polytope
from ..model.tree_filling import ROUNDING, Filling

#: Relative increase of tasks within which users count as stopping at the same time.
_SAME = 1e-7
#: Fraction of the largest possible tasks of a user. With fewer tasks, its increase is relative to the largest possible.
_NOTHING = 1e-9


def costs(polytope: Polytope, prices: Array) -> tuple[Array, Array]:
    """Least cost of a task by user, (tables, users), and prices of whole capacities, (tables, rows), of sum 1.

    `prices` are several tables of prices per unit of resource, (tables, servers, resources). The results of a table
    without a positive price are 0.
    """
    cost, rows = np.zeros((len(prices), len(polytope.users))), np.zeros((len(prices), len(polytope.row_server)))
    for k, table in enumerate(prices):
        given = polytope.row_prices(np.maximum(np.nan_to_num(table, posinf=0.0), 0.0))
        rows[k] = ratio(given, given.sum())
        cost[k] = np.minimum.reduceat(polytope.price_per_task(rows[k]), polytope.start[:-1])
    return cost, rows


def over_limits(polytope: Polytope, filling: Filling, tasks: Array) -> tuple[float, str]:
    """Largest relative violation of a queue's limit, and its place, for tasks (all users, servers).

    The violation is negative if every limit has room; without limits the result is 0 and ''.
    """
    held = filling.held(filling.limits, tasks[polytope.users].sum(axis=1))
    over = held / np.maximum(filling.limits.most, np.finfo(float).tiny) - 1
    k = int(over.argmax()) if len(over) else -1
    return (float(over[k]), f"largest for {filling.limits.names[k]}, above its limit") if k >= 0 else (0.0, "")


def rise_when_stopped(polytope: Polytope, filling: Filling, tasks: Array, prices: Array) -> Array:
    r"""Bounds on the relative increase of each user's tasks at the time at which it stops, (users that can run tasks,).

    .. math:: \max\Big\{\frac{x'_n}{x_n} - 1 : x' \in \mathcal{X},\ x'_m \ge x_m(t_n) \text{ for all } m\Big\}
        \le \min_\lambda \frac{\sum_{ir} \lambda_{ir} c_{ir} - \sum_m p_m(\lambda) x_m(t_n)}{p_n(\lambda) x_n}

    The numerator is a sum of nonnegative terms, none of which suffers from cancellation,

    .. math:: \sum_{ir} \lambda_{ir} \text{slack}_{ir} + \sum_{mi} x_{mi} (p_{mi} - p_m)
        + \sum_m p_m (x_m - x_m(t_n)),

    with the time :math:`t_n` at which n stops, the tasks :math:`x_m(t)` of the filling, and the least cost
    :math:`p_m = \min_i \sum_r \lambda_{ir} d_{mr}` of a task. The increase is also bounded by the limits of n and of
    its ancestor queues. A user counts as stopped if it must stop within a further relative increase of 1e-7.

    Parameters
    ----------
    tasks : (all users, servers)
    prices : (tables, servers, resources)
        Tables of prices per unit of resource; every table gives a valid bound.
    """
    (cost, rows), fractions = costs(polytope, prices), polytope.fractions(tasks)
    x, idle = polytope.user_tasks(fractions), np.maximum(1 - polytope.used(tasks), 0.0)
    path = filling.path(x, cost)
    above = [polytope.price_per_task(row) - least[polytope.pair_user] for row, least in zip(rows, cost, strict=True)]
    waste = rows @ idle + np.array([one @ (polytope.gamma * fractions) for one in above])
    unit = np.where(x > _NOTHING * polytope.reach, x, polytope.reach)
    room = np.maximum(polytope.limit - x, 0.0)
    bound = np.full(len(x), np.inf)
    limits = filling.limits
    for further, least in ((ROUNDING, 0.0), (_SAME, _SAME)):
        at = np.searchsorted(path.time, path.time[path.stop] + further * ratio(unit, path.rate), side="right") - 1
        gap = (waste + path.left[at]).T
        rise = np.minimum(room, ratio(gap, cost, np.inf).min(axis=0, initial=np.inf))
        left = np.maximum(limits.most[limits.row] - path.held[at[limits.user], limits.row], 0.0)
        np.minimum.at(rise, limits.user, left / limits.use)
        bound = np.minimum(bound, np.maximum(rise / unit, least))
    return np.asarray(bound)
