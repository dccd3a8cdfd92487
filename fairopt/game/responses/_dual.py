"""Compiled: the dual of one server's problem for finite alpha, and small linear systems; see `_response`.

Its derivative in a price is minus the excess, how much more than its capacity a resource is asked for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._loops import compiled
from ...model._arrays import Array


class Server(NamedTuple):
    """Problem of one server at finite alpha: arrays of its users, `per_task` and `use` of (users, resources).

    Who has to pay more than `dear`, in units of `e^(alpha unit)`, asks for nothing; it is nan of those who were served
    at all prices so far.
    """

    alpha: float
    log_gain: Array
    per_task: Array
    use: Array
    elsewhere: Array
    room: Array
    unit: float
    dear: Array
    accuracy: float


class Asked(NamedTuple):
    """Demand at prices: tasks, excess demand of resources, and its derivatives.

    These are in log level prices, of free resources in their price over alpha, the largest one being 1. `parts` and
    `scaled`, (resources,), are room for `ask`, which makes no array: what is written into it would have the references
    of its arrays counted for every user, which takes as long as all the rest.
    """

    tasks: Array
    excess: Array
    jacobian: Array
    parts: Array
    scaled: Array


@compiled(inline=True)
def price_parts(alpha, use, n, scaled, q, usual, parts):  # type: ignore[no-untyped-def]
    """Fill in terms of user n's cost, `sum_r use_r e^(alpha q_r)`; the sum, and the log of its unit.

    `scaled` is `e^(alpha q - usual)`; the log is `usual` but for those who pay next to nothing, the sum 0 for who pays
    nothing at all.
    """
    size, total, unit = use.shape[1], 0.0, usual
    for r in range(size):
        parts[r] = use[n, r] * scaled[r]
        total += parts[r]
    if not total > 1e-200:  # only resources that are next to free, or free
        unit, total = -np.inf, 0.0
        for r in range(size):
            parts[r] = np.log(use[n, r]) + alpha * q[r]
            unit = max(unit, parts[r])
        for r in range(size):
            parts[r] = np.exp(parts[r] - unit) if unit > -np.inf else 0.0
            total += parts[r]
    return total, unit


@compiled(borrows=True)
def ask(server, q, asked):  # type: ignore[no-untyped-def]
    """Fill in `asked` at log level prices q; the residual, relative to capacities."""
    alpha, log_gain, per_task, use, elsewhere, room, unit, dear, _ = server
    tasks, excess, jacobian, parts, scaled = asked
    count, size = use.shape
    top = -np.inf
    for r in range(size):
        top = max(top, q[r])
    for r in range(size):
        scaled[r] = np.exp(alpha * (q[r] - top)) if q[r] > -np.inf else 0.0
    usual, factor = alpha * top, np.exp(alpha * (top - unit)) if alpha * (top - unit) < 600 else 0.0
    excess[:] = -1.0
    jacobian[:, :] = 0.0
    for n in range(count):
        total, log_unit = price_parts(alpha, use, n, scaled, q, usual, parts)
        if tasks[n] == 0 and np.isnan(dear[n]):
            least = np.exp(alpha * (log_gain[n] - np.log(elsewhere[n]) - unit))
            dear[n] = least if least > 1e-290 else np.inf  # smaller ones have few digits
        tasks[n] = 0.0
        if log_unit == usual and total * factor > dear[n]:
            continue
        # Finite where nothing is to be paid: it is multiplied by 0 elsewhere.
        wanted = np.exp(min(log_gain[n] - (np.log(total) + log_unit) / alpha, 600.0)) if total > 0 else np.exp(600.0)
        tasks[n] = min(max(wanted - elsewhere[n], 0.0), room[n])
        if tasks[n] > 0:
            for r in range(size):
                excess[r] += per_task[n, r] * tasks[n]
        if 0 < tasks[n] < room[n] and total > 0:
            for s in range(size):
                rate = wanted * (parts[s] if q[s] > -np.inf else use[n, s]) / total
                for r in range(size):
                    jacobian[r, s] -= per_task[n, r] * rate
    worst = 0.0
    for r in range(size):
        worst = max(worst, excess[r] if q[r] == -np.inf else abs(excess[r]))
    return worst


@compiled(borrows=True)
def one_price(server, r, q, asked):  # type: ignore[no-untyped-def]
    """Solve for q_r at which resource r is used up, to a tenth of its excess; -infinity if it idles when free."""
    middle, enough = q[r] if q[r] > -np.inf else 0.0, max(1e-14, 0.1 * abs(asked.excess[r]))
    q[r] = -np.inf
    ask(server, q, asked)
    if asked.excess[r] <= 0:
        return
    low, high, width = -np.inf, np.inf, 0.25
    for _ in range(300):
        q[r] = middle
        ask(server, q, asked)
        if abs(asked.excess[r]) < enough or high - low < 1e-15 * max(1.0, abs(high)):
            return
        if asked.excess[r] > 0:
            low = middle
        else:
            high = middle
        slope = asked.jacobian[r, r]
        newton = middle - asked.excess[r] / slope if slope < 0 else np.inf
        inside = low > -np.inf and low < newton < high < np.inf
        if inside:
            middle = newton
        elif low > -np.inf and high < np.inf:
            middle = (low + high) / 2
        else:
            middle = high - width if low == -np.inf else low + width
        width *= 2


@compiled
def solve(matrix, rhs):  # type: ignore[no-untyped-def]
    """Solve a small linear system in place by elimination; undetermined unknowns of a singular matrix are 0."""
    size = len(rhs)
    for k in range(size):
        best = k + np.abs(matrix[k:, k]).argmax()
        if not abs(matrix[best, k]) > 1e-300:
            continue
        row, rhs[k], rhs[best] = matrix[best].copy(), rhs[best], rhs[k]
        matrix[best], matrix[k] = matrix[k], row
        for i in range(k + 1, size):
            factor = matrix[i, k] / matrix[k, k]
            if factor != 0.0:
                matrix[i, k:] -= factor * row[k:]
                rhs[i] -= factor * rhs[k]
    for k in range(size - 1, -1, -1):
        value = rhs[k]
        for j in range(k + 1, size):
            value -= matrix[k, j] * rhs[j]
        rhs[k] = value / matrix[k, k] if abs(matrix[k, k]) > 1e-300 else 0.0
    return rhs
