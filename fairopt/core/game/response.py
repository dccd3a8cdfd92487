r"""Exact best response of one server, compiled. Tasks are in units of the user's largest gamma.

At alpha = infinity the response is computed by progressive filling (`fill`). At a finite alpha the unknowns are log
level prices :math:`\log v_r`, called q in the code. A user demands

.. math:: X_n = \phi_n \gamma_n \Big(\sum_r D_{nr} v_r^\alpha\Big)^{-1/\alpha}

tasks in total (under a concave utility, the tasks at which its marginal utility equals the cost: `share_at`), and runs
here the difference between this total and its tasks on other servers. At the solution the use of each resource equals
its capacity, or is less at a price of zero. These equations are the optimality conditions of the dual problem, which is
convex in v^alpha. A Newton step combines a common change of all log prices, along which total demand is linear in 1/v,
with changes of single prices, linear in a power of v and within a trust region that shrinks after a rejected step.
Where the step fails, and after every `_DESCENT_EVERY` steps, the equations are solved for one price after the other
(coordinate descent by a safeguarded Newton method). An iteration that has stalled ends: near ties at a large alpha
demand depends on digits of prices that doubles do not have.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...base.loops import compiled
from ...model._arrays import Array
from ..accuracy import CONVERGED, NEWTON_ROUNDING, REFINED, SOLVE_ROUNDING, SUM_ROUNDING, VISIBLE
from ..factors import LOG_RANGE, TINY, UNDERFLOW

#: Tolerance of the residual relative to capacities (`_RESIDUAL`), and rounding error of demand relative to total demand
#: (`_ROUNDING`).
_RESIDUAL, _ROUNDING = NEWTON_ROUNDING, 2e-15
#: A response counts as stalled, and ends, if coordinate descent leaves more than the fraction `_STALLED` of the error
#: that the last descent left, and this error is below `_ACCURATE`.
_STALLED, _ACCURATE = 0.5, VISIBLE
#: Initial radius of the trust region in log prices alpha q, if alpha is small; otherwise the radius is 1 in q.
_LOG_PRICE_STEP = 0.02
#: A step is accepted if the slope of the dual function along the step is negative at its start, at most `_CURVATURE`
#: times the absolute initial slope at its end, and the residual at its end is below `_MOST_USE` times the sum of 1 and
#: the initial residual.
_CURVATURE, _MOST_USE = 0.8, 100.0
#: Largest number of steps of a response, or of the solution for one price (`_MOST_STEPS`); and number of steps between
#: coordinate descents (`_DESCENT_EVERY`).
_MOST_STEPS, _DESCENT_EVERY = 300, 20
#: Largest power of v in which steps of single prices are linear.
_MOST_POWER = 2.0
#: Solution for one price: tolerance relative to the initial residual (`_REDUCED`), and at least `_PRICE_RESIDUAL` due
#: to rounding; initial width of the interval of log prices (`_FIRST_WIDTH`), and relative length of an interval below
#: which its ends count as the same number (`_SAME`).
_REDUCED, _PRICE_RESIDUAL, _FIRST_WIDTH, _SAME = 0.1, SOLVE_ROUNDING, 0.25, SUM_ROUNDING
#: Residual below which a response ends where no step is accepted.
_SUFFICIENT = REFINED
#: Smallest ratio of powers of a price in a step; at a smaller ratio the price becomes zero.
_LEAST_RATIO = CONVERGED
#: Factor of the trust region of a price after a step in which users without demand for its resource began to demand it.
_NARROWER = 0.3
#: Relative (`_REGULARIZATION`) and absolute (`_LEAST_DIAGONAL`) regularization of Newton's equations, which are
#: singular where no user's demand depends on a price.
_REGULARIZATION, _LEAST_DIAGONAL = REFINED, NEWTON_ROUNDING
#: A rate of use below this multiple of the largest rate of a single user is the rounding error of the rates of users
#: whose tasks are constant.
_RATE_ROUNDING = SOLVE_ROUNDING


class Server(NamedTuple):
    """Problem of one server at finite alpha: arrays (users,) of its users; `per_task` and `use` are (users, resources).

    `choke_cost` (users,) is the cost, in the unit whose log is `alpha unit`, above which a user demands nothing here;
    NaN until it is needed. `curve` is the table of an arbitrary concave utility (`ConcaveWelfare.curve`), and empty
    under alpha-fairness.
    """

    alpha: float
    log_gain: Array
    per_task: Array
    use: Array
    elsewhere: Array
    room: Array
    unit: float
    choke_cost: Array
    curve: Array


class Demand(NamedTuple):
    """Demand at prices: tasks, excess demand of resources, and its derivatives.

    The excess demand, relative to capacities, is minus the derivative of the dual function. Derivatives are with
    respect to log level prices, and for resources with a price of zero with respect to the price over alpha, in units
    of the largest price. `parts` and `scaled`, (resources,), are work arrays of `evaluate_demand`, which allocates no
    arrays: reference counting for every user would double its time. A single tuple with `Server` would take longer to
    compile.
    """

    tasks: Array
    excess: Array
    jacobian: Array
    parts: Array
    scaled: Array


@compiled(inline=True)
def price_parts(alpha, use, n, scaled, q, usual, parts):  # type: ignore[no-untyped-def]
    r"""Fill in the terms :math:`D_{nr} v_r^\alpha` of user n's cost in a unit; return their sum, and the unit's log.

    `scaled` (resources,) is :math:`v_r^\alpha` in the usual unit, whose log is `usual`. The unit is the usual one, or
    the largest term where the sum in the usual unit would underflow. The sum is 0 for a cost of zero.
    """
    size, total, unit = use.shape[1], 0.0, usual
    for r in range(size):
        parts[r] = use[n, r] * scaled[r]
        total += parts[r]
    if not total > UNDERFLOW:  # all demanded resources have a negligible price, or the price zero
        unit, total = -np.inf, 0.0
        for r in range(size):
            parts[r] = np.log(use[n, r]) + alpha * q[r]
            unit = max(unit, parts[r])
        for r in range(size):
            parts[r] = np.exp(parts[r] - unit) if unit > -np.inf else 0.0
            total += parts[r]
    return total, unit


@compiled(inline=True)
def share_at(curve, log_cost):  # type: ignore[no-untyped-def]
    """Log share at which marginal utility equals the cost, and minus the share's elasticity in the cost, by `curve`."""
    low, high = 0, curve.shape[1] - 1
    while high - low > 1:
        middle = (low + high) // 2
        if curve[0, middle] <= -log_cost:
            low = middle
        else:
            high = middle
    elasticity = (curve[1, high] - curve[1, low]) / (curve[0, high] - curve[0, low])
    return curve[1, low] - elasticity * (log_cost + curve[0, low]), elasticity


@compiled(borrows=True)
def evaluate_demand(server, q, demanded):  # type: ignore[no-untyped-def]
    """Fill in `demanded` at log level prices q (resources,): tasks, excess demand, and its Jacobian in q.

    The cost beyond which a user demands nothing, `choke_cost` of `server`, is computed here when first needed.
    Returns the residual of the complementarity conditions: the largest excess demand, or idle capacity of a resource
    with a price, as a fraction of the capacity.
    """
    alpha, log_gain, per_task, use, elsewhere, room, unit, choke_cost, curve = server
    tasks, excess, jacobian, parts, scaled = demanded
    count, size = use.shape
    largest = -np.inf
    for r in range(size):
        largest = max(largest, q[r])
    for r in range(size):
        scaled[r] = np.exp(alpha * (q[r] - largest)) if q[r] > -np.inf else 0.0
    usual, factor = alpha * largest, np.exp(alpha * (largest - unit)) if alpha * (largest - unit) < LOG_RANGE else 0.0
    excess[:] = -1.0
    jacobian[:, :] = 0.0
    for n in range(count):
        total, log_unit = price_parts(alpha, use, n, scaled, q, usual, parts)
        if tasks[n] == 0 and np.isnan(choke_cost[n]):
            least = np.exp(alpha * (log_gain[n] - np.log(elsewhere[n]) - unit))
            # Smaller costs lose digits to underflow, so that the demand is computed at every price.
            choke_cost[n] = least if least > UNDERFLOW and curve.shape[1] == 0 else np.inf
        tasks[n] = 0.0
        if log_unit == usual and total * factor > choke_cost[n]:
            continue
        # At a cost of zero demand is a large finite number, since products of zero and infinity are NaN.
        log_demand, elasticity = LOG_RANGE, 1.0
        if total > 0:
            log_demand = log_gain[n] - (np.log(total) + log_unit) / alpha
            if curve.shape[1] > 0:
                log_share, elasticity = share_at(curve, np.log(total) + log_unit)
                log_demand, elasticity = log_gain[n] + log_share, alpha * elasticity
        demand = np.exp(min(log_demand, LOG_RANGE))
        tasks[n] = min(max(demand - elsewhere[n], 0.0), room[n])
        if tasks[n] > 0:
            for r in range(size):
                excess[r] += per_task[n, r] * tasks[n]
        if 0 < tasks[n] < room[n] and total > 0:
            for s in range(size):
                rate = elasticity * demand * (parts[s] if q[s] > -np.inf else use[n, s]) / total
                for r in range(size):
                    jacobian[r, s] -= per_task[n, r] * rate
    residual = 0.0
    for r in range(size):
        residual = max(residual, excess[r] if q[r] == -np.inf else abs(excess[r]))
    return residual


@compiled(borrows=True)
def one_price(server, r, q, demanded):  # type: ignore[no-untyped-def]
    """Reduce the excess demand of resource r to a tenth by a change of its price, with a safeguarded Newton method.

    The log level price `q[r]` is updated in place; it becomes -inf if the capacity is not exhausted at a price of zero.
    """
    middle, tol = q[r] if q[r] > -np.inf else 0.0, max(_PRICE_RESIDUAL, _REDUCED * abs(demanded.excess[r]))
    q[r] = -np.inf
    evaluate_demand(server, q, demanded)
    if demanded.excess[r] <= 0:
        return
    low, high, width = -np.inf, np.inf, _FIRST_WIDTH
    for _ in range(_MOST_STEPS):
        q[r] = middle
        evaluate_demand(server, q, demanded)
        if abs(demanded.excess[r]) < tol or high - low < _SAME * max(1.0, abs(high)):
            return
        if demanded.excess[r] > 0:
            low = middle
        else:
            high = middle
        if low > -np.inf and high < np.inf:
            newton = middle - demanded.excess[r] / demanded.jacobian[r, r]
            middle = newton if low < newton < high else (low + high) / 2
        else:
            middle = high - width if low == -np.inf else low + width
        width *= 2


@compiled
def solve(matrix, rhs):  # type: ignore[no-untyped-def]
    """Solve a small linear system by elimination, into `rhs`; undetermined unknowns of a singular matrix are 0.

    Matrices are positive semidefinite up to scales of columns, so that no pivoting is needed.
    """
    size = len(rhs)
    for k in range(size):
        pivot = matrix[k, k]
        rhs[k] = rhs[k] / pivot if abs(pivot) > TINY else 0.0
        for j in range(k + 1, size):
            matrix[k, j] = matrix[k, j] / pivot if abs(pivot) > TINY else 0.0
        for i in range(size):
            if i != k:
                factor = matrix[i, k]
                rhs[i] -= factor * rhs[k]
                for j in range(k + 1, size):
                    matrix[i, j] -= factor * matrix[k, j]


@compiled
def respond(alpha, log_gain, per_task, use, elsewhere, room, q, tasks, accuracy, curve):  # type: ignore[no-untyped-def]
    """Compute the best response of a server at finite alpha: fill in `tasks` and log level prices `q`.

    Tasks are scaled down where they exceed a capacity. Returns the residual of the complementarity conditions, as a
    fraction of capacities.

    Parameters
    ----------
    log_gain : (users here,), log of phi gamma
    per_task : (users here, resources), fraction of a capacity that a task uses
    use : (users here, resources), fraction of a capacity that gamma tasks use
    elsewhere, room : (users here,), tasks on other servers, and largest number of tasks here
    q : (resources,), initial log level prices, -inf for a price of zero
    tasks : (users here,), initial tasks
    accuracy : tolerance of the residual, if it exceeds the rounding error
    curve : table of the utility, as described in `Server`
    """
    count, size = use.shape
    for r in range(size):
        if not (use[:, r].sum() > 0 and q[r] < np.inf):
            q[r] = -np.inf
    demanded = Demand(tasks, np.empty(size), np.empty((size, size)), np.empty(size), np.empty(size))
    server = Server(alpha, log_gain, per_task, use, elsewhere, room, q.max(), np.full(count, np.nan), curve)
    residual, reach = evaluate_demand(server, q, demanded), np.full(size, max(1.0, _LOG_PRICE_STEP / alpha))
    last, stalled = np.inf, False
    for k in range(1, _MOST_STEPS):
        better = improve(server, q, demanded, residual, reach, accuracy)
        if better < -1 or (better < 0 and residual < _SUFFICIENT):
            break
        if better < 0 or k % _DESCENT_EVERY == 0:  # coordinate descent
            for r in range(size * (1 + k // _DESCENT_EVERY)):
                one_price(server, r % size, q, demanded)
            better, reach[:] = evaluate_demand(server, q, demanded), max(1.0, _LOG_PRICE_STEP / alpha)
            last, stalled = better, _STALLED * last < better < _ACCURATE
        residual = better
        if stalled:  # demand is rounded by more than the residual
            break
    tasks /= 1 + max(demanded.excess.max(), 0.0)
    return residual


@compiled
def improve(server, q, demanded, residual, reach, accuracy):  # type: ignore[no-untyped-def]
    r"""Take a step from prices q with demand `demanded`, within a trust region of radius `reach`, which is updated.

    A common change h of log prices, along which total demand is linear in 1/v, is combined with changes of single
    prices, linear in :math:`v_r^p` with :math:`p = \min(\alpha, 2)` (`bounded`),

    .. math:: e^{-h} = 1 - \frac{\sum_r v_r^\alpha excess_r}{\sum_r v_r^\alpha total_r}, \qquad
        v_r \leftarrow v_r (1 + t p\, step_r)^{1/p} e^{t h},

    with the use `total` of resources by the total demand of the server's users, and t halved from 1 until the step is
    accepted. Returns the residual, -1 if no step is accepted, or -2 if the residual is within the tolerance.
    """
    alpha, size, top = server.alpha, len(q), q.max()
    old, excess, jacobian, weight = (
        q.copy(),
        demanded.excess.copy(),
        demanded.jacobian.copy(),
        np.exp(alpha * (q - top)),
    )
    power, step, total_demand = np.full(size, alpha), np.zeros(size), np.zeros(size)
    for r in range(size):  # total demand of users here is minus the derivative of use in a common log price
        if q[r] > -np.inf:
            total_demand -= jacobian[:, r]
            power[r] = min(alpha, _MOST_POWER)
    # Tasks here are the difference of total demand and tasks elsewhere, with the rounding error of the total.
    tol = max(_RESIDUAL + _ROUNDING * total_demand.max(), accuracy)
    if residual < tol:
        return -2.0
    unpriced, radius, t = q == -np.inf, reach.max(), 1.0
    decrease = (weight * excess).sum() / (weight * total_demand).sum()  # change of 1/v; infinite for constant demand
    common = max(min(-np.log1p(-decrease), radius), -radius) if decrease < 1 else radius
    bound, free = np.zeros(size, np.bool_), unpriced & (excess <= tol)
    for _ in range(10):
        after = excess + total_demand * np.expm1(min(-common, LOG_RANGE))
        bounded(after, jacobian, free, power, reach, step, bound)
        for r in range(size):
            base, priced, least = (top, 0.0, 0.0) if unpriced[r] else (old[r], 1.0, _LEAST_RATIO)
            ratio = priced + t * power[r] * step[r]
            q[r] = base + np.log(ratio) / power[r] + t * common if ratio > least else -np.inf
        new_residual, highest = evaluate_demand(server, q, demanded), max(top, q.max())
        price_change = np.exp(alpha * (q - highest)) - np.exp(alpha * (old - highest))
        slope_start, slope_end = -(price_change * excess).sum(), -(price_change * demanded.excess).sum()
        accepted = (
            slope_start < 0 and slope_end <= -_CURVATURE * slope_start and new_residual < _MOST_USE * (1 + residual)
        ) or new_residual < 0.5 * residual
        for r in range(size):
            if accepted and (bound[r] or abs(common) == radius):
                reach[r] *= 2.0
            elif not accepted and step[r] < 0 and excess[r] < 0:  # users without demand began to demand the resource
                reach[r] *= _NARROWER
        if accepted:
            return new_residual
        t *= 0.5
    for r in range(size):
        q[r] = old[r]
    evaluate_demand(server, q, demanded)
    return -1.0


@compiled
def bounded(excess, jacobian, free, power, reach, step, bound):  # type: ignore[no-untyped-def]
    """Fill in `step`, the Newton step within bounds by an active-set method, and the mask `bound` of prices at a bound.

    A price may decrease to zero, and increase by `reach` in its log; `excess` is the excess use after the common change
    of all prices.
    """
    step[:], bound[:] = 0.0, False
    for _ in range(len(step) + 1):
        matrix, newton, fixed, fraction, blocking, limit = jacobian.copy(), -excess, free | bound, 1.0, -1, 0.0
        for r in range(len(step)):
            matrix[r, r] += _REGULARIZATION * matrix[r, r] - _LEAST_DIAGONAL
            if fixed[r]:
                matrix[r, :], matrix[r, r], newton[r] = 0.0, 1.0, step[r]
        solve(matrix, newton)
        for r in range(len(step)):
            if fixed[r]:
                newton[r] = step[r]
            clipped = min(max(newton[r], -1 / power[r]), np.expm1(power[r] * reach[r]) / power[r])
            if clipped != newton[r] and (clipped - step[r]) / (newton[r] - step[r]) < fraction:
                fraction, blocking, limit = (clipped - step[r]) / (newton[r] - step[r]), r, clipped
        step += fraction * (newton - step)
        if blocking < 0:
            break
        bound[blocking], step[blocking] = True, limit


@compiled(borrows=True)
def settle(order, events, k, left):  # type: ignore[no-untyped-def]
    """Restore the heap of events, the first `left` entries of `order`, by sifting down entry k."""
    sifted = order[k]
    while 2 * k + 1 < left:
        child = 2 * k + 1
        if child + 1 < left and events[order[child + 1]] < events[order[child]]:
            child += 1
        if events[sifted] <= events[order[child]]:
            break
        order[k], k = order[child], child
    order[k] = sifted


@compiled
def fill(gain, per_task, elsewhere, room, q, tasks):  # type: ignore[no-untyped-def]
    """Progressive filling: raise a common level until every user attains its bound or needs an exhausted resource.

    User n has `level gain[n]` tasks in total, `elsewhere[n]` of them on other servers and at most `room[n]` here, and
    each task uses the fraction `per_task[n, r]` of capacity r. Fills in `tasks` (users,) and `q` (resources,): minus
    the log of the level at which resource r is exhausted, or -inf. With a heap of events the cost is O(N (M + log N))
    for N users and M resources.
    """
    count, size = per_task.shape
    frozen = room <= 0
    used, rate, largest_rate = np.zeros(size), np.zeros(size), np.zeros(size)
    q[:] = -np.inf
    tasks[:] = 0.0
    # The rate of use changes at the level at which a user's tasks here exceed zero, and at which they attain `room`.
    events, order = np.empty(2 * count), np.empty(2 * count, np.int64)
    for n in range(count):
        events[n], events[count + n] = elsewhere[n] / gain[n], (elsewhere[n] + room[n]) / gain[n]
    last_level, active_users, pending = 0.0, count - frozen.sum(), 0
    for k in range(2 * count):
        if events[k] < np.inf:
            order[pending] = k
            pending += 1
    for k in range(pending // 2 - 1, -1, -1):
        settle(order, events, k, pending)
    while active_users > 0:
        level, full = events[order[0]] if pending > 0 else np.inf, -1
        for r in range(size):
            if rate[r] > _RATE_ROUNDING * largest_rate[r] and q[r] == -np.inf:
                exhausted_at = last_level + max(1 - used[r], 0.0) / rate[r]
                if exhausted_at < level:
                    level, full = exhausted_at, r
        if level == np.inf:
            break
        used += rate * (level - last_level)
        last_level = level
        if full < 0:
            pending -= 1
            k, order[0] = order[0], order[pending]
            settle(order, events, 0, pending)
            for r in range(0 if frozen[k % count] else size):
                change = gain[k % count] * per_task[k % count, r]
                rate[r] += change if k < count else -change
                largest_rate[r] = max(largest_rate[r], change)
            continue
        q[full] = -np.log(level)
        rate[:] = 0.0
        for n in range(count):
            if not frozen[n] and per_task[n, full] > 0:
                frozen[n] = True
                active_users -= 1
                tasks[n] = min(max(level * gain[n] - elsewhere[n], 0.0), room[n])
            if not frozen[n] and events[n] <= level < events[count + n]:
                for r in range(size):
                    rate[r] += gain[n] * per_task[n, r]
    for n in range(count):
        if not frozen[n]:
            tasks[n] = room[n]
