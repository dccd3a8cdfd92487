r"""Start of a curve of equilibria: an equilibrium near alpha = 1 whose active set is regular, by perturbed data.

Tasks of pairs, and prices of rows that are exhausted together, may be undetermined at the equilibrium, and remain so at
all alpha if users share a bottleneck. The active set is then reduced to a vertex of the set of solutions: each move
changes only undetermined tasks or prices, until one of them becomes zero. Constraints outside of the active set are
perturbed by small irregular amounts, so that ties do not recur; the point is an exact equilibrium of the perturbed
data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ...base.errors import SolverError
from ...model._arrays import Array, Index, Mask
from ...model.problem import Problem
from .. import accuracy
from ..identification import identified
from ..interior import solved
from ..system import stacked
from . import engine
from .curve_system import Game, Place, Values, gauge

#: Backward errors of the first equilibrium: above `_CORE_ERROR` the interior-point method restarts, at `_CORE_AIM` it
#: ends, and above `_MOST_ERROR` its result is rejected, and the other methods of `engine` are tried.
_CORE_ERROR, _CORE_AIM, _MOST_ERROR = accuracy.NEGLIGIBLE, accuracy.CONVERGED, accuracy.HALF_PRECISION
#: Relative threshold below which singular values and rates count as zero (`_SINGULAR`), and largest number of
#: alternations between tasks and prices (`_ROUNDS`).
_SINGULAR, _ROUNDS = accuracy.NEGLIGIBLE, 4
#: Perturbation of inactive constraints (`_PERTURBATION`), and largest admissible change of the data
#: (`_MOST_PERTURBATION`).
_PERTURBATION, _MOST_PERTURBATION = accuracy.HALF_PRECISION, 1e-5


def beginning(problem: Problem, alpha: float) -> tuple[Game, Place] | None:
    """Start of the curve: data of the game, and a regular point at an `alpha` near 1; None if no such point is found.

    The equilibrium is computed, and its active set identified. Shares w and prices xi of limits follow from the prices
    of the equilibrium. The active set is then reduced to a regular active set, and the data perturbed. The alpha of
    `problem` is not read.
    """
    if not len(problem.polytope.users):
        return None
    g, polytope, rule = Game.of(problem), problem.polytope, replace(problem.criterion, alpha=alpha)
    equilibrium = next(_first_equilibria(Problem(problem.cluster, rule)), None)
    if equilibrium is None:
        return None
    try:
        active = identified(polytope, rule, *equilibrium, None)
    except SolverError:
        return None
    on = np.concatenate([active.pairs, active.rows, active.limits])
    z = active.part * active.total[g.user] / polytope.gamma
    amount = np.concatenate([z, active.rows, np.zeros(len(g.limit))])
    level = np.where(active.rows, active.prices[0].log_rows, 0.0) / alpha
    at = Place(amount, on, level, np.zeros(len(g.host), np.bool_), float(np.log(alpha)), len(z))
    gauge(g, at)
    v, excess = Values(g, at), np.zeros(len(g.limit))
    np.minimum.at(excess, g.user[at.pair_on], v.slack[at.pair_on])
    at.xi[at.limit_on] = -excess[at.limit_on]
    return (g, at) if Values(g, at).valid and _regularized(g, at) else None


def _first_equilibria(problem: Problem) -> Iterator[tuple[Array, Array]]:
    """Yield tasks (users, servers) and log prices of whole capacities (rows,) of equilibria.

    The result of the dense interior-point method comes first, if its error is small, then candidates of `engine`.
    """
    polytope, stack = problem.polytope, stacked([problem])
    found = solved(stack, _CORE_ERROR, _CORE_AIM)
    if found.error[0] <= _MOST_ERROR:
        tasks = problem.cluster.tasks_of(stack.tasks(found.z)[0])
        yield tasks, found.log_rows[polytope.row_resource, polytope.row_server, 0]
    for other in engine.solutions(problem, _CORE_ERROR):
        if other.log_prices is not None:
            yield other.tasks, polytope.log_row_prices(other.log_prices)


def _regularized(g: Game, at: Place) -> bool:
    """Reduce the active set, in place, until its Jacobian is regular, and perturb the data; False for a failure.

    The Jacobian is singular if the active set does not determine the tasks, or the prices. Tasks are moved to a vertex
    of the set of tasks that the active set allows, then prices to a vertex of the set of prices, alternately until
    neither changes, at most `_ROUNDS` times.
    """
    for _ in range(_ROUNDS):
        for amounts in (_determine_tasks, _determine_prices):
            taken = amounts(g, at, Values(g, at))
            gauge(g, at)
            if taken < 0 or not Values(g, at).valid:
                return False
        if taken == 0:
            break
    return _perturbed(g, at)


def _determine_tasks(g: Game, at: Place, v: Values) -> int:
    """Move tasks between servers, at constant user tasks and use of rows with a price, until tasks are determined.

    Returns the number of moves, -1 for a failure.
    """
    users = len(g.limit)
    matrix = np.vstack([(np.arange(users)[:, None] == g.user) * g.size, g.use])
    value, fixed = np.append(np.zeros(users), v.idle), np.append(np.ones(users, np.bool_), at.row_on)
    taken = _reduced_to_vertex(matrix, at.z, at.pair_on, value, -1.0, fixed)
    at.row_on[:] = fixed[users:]
    return taken


def _determine_prices(g: Game, at: Place, v: Values) -> int:
    """Change prices, at constant costs of active pairs, until they are determined.

    Returns the number of moves, -1 for a failure.
    """
    matrix, (p, r) = np.zeros((len(g.user), len(g.host))), np.nonzero(g.log_cost > -np.inf)
    matrix[p, g.at[p, r]] = v.row_slope[p, r]
    return _reduced_to_vertex(matrix, at.w, at.row_on, -np.expm1(-np.exp(at.theta) * v.slack), 1.0, at.pair_on)


def _reduced_to_vertex(matrix: Array, amount: Array, on: Mask, value: Array, sign: float, fixed: Mask) -> int:
    """Move `amount` along null directions of the `fixed` rows of a matrix until there are none; return how many moves.

    Each move ends where an amount becomes zero, which is then removed from the mask `on`, or where the `value` of a row
    that is not fixed becomes zero, and the row is fixed from then on. A value changes at the rate `sign` times the
    product of its row and the direction. The result is -1 if a move is unbounded.
    """
    for count in range(len(on) + len(fixed)):
        members = np.flatnonzero(on)
        direction = _null(matrix[np.ix_(fixed, members)])
        if direction is None:
            return count
        change = sign * matrix[:, members] @ direction
        rate = np.concatenate([direction, np.where(fixed, 0.0, change)])
        end = np.concatenate([amount[members], np.maximum(value, 0.0)])
        changing = np.abs(rate) > _SINGULAR
        lengths = np.where(changing, end / np.where(changing, np.abs(rate), 1.0), np.inf)
        k = int(lengths.argmin())
        if not np.isfinite(lengths[k]):
            return -1
        step = -np.sign(rate[k]) * lengths[k]
        value[~fixed] += step * change[~fixed]
        amount[members] = np.maximum(amount[members] + step * direction, 0.0)
        if k < len(members):
            amount[members[k]], on[members[k]] = 0.0, False
        else:
            fixed[k - len(members)] = True
    return -1


def _null(matrix: Array) -> Array | None:
    """Unit vector (unknowns,) in the null space of a matrix (equations, unknowns), by SVD; None for a trivial one."""
    if matrix.shape[1] == 0:
        return None
    _, values, right = np.linalg.svd(matrix, full_matrices=True)
    tied = len(values) < matrix.shape[1] or values[-1] < _SINGULAR * values[0]
    return np.asarray(right[-1]) if tied else None


def _irregular(k: Index) -> Array:
    """Pseudo-random factor in (1, 2) for every index k, equal in all runs; only unequal perturbations break ties."""
    return np.asarray(1 + np.random.default_rng(0).random(int(k.max(initial=-1)) + 1)[k])


def _perturbed(g: Game, at: Place) -> bool:
    """Increase active amounts slightly above zero, and change the data so that the point is an exact equilibrium.

    Returns False if the point is not valid, or the data would change by more than `_MOST_PERTURBATION`.
    """
    pairs, v = len(g.user), Values(g, at)
    of_pairs, of_rows = (_PERTURBATION * _irregular(k) for k in (np.arange(pairs), pairs + np.arange(len(g.host))))
    of_users = _PERTURBATION * _irregular(np.arange(len(g.limit))) * at.limit_on
    # Perturbations of pairs are relative to the user's tasks, or to gamma where gamma is smaller.
    at.z += of_pairs * np.minimum(v.x[g.user] / g.size, 1.0) * at.pair_on
    at.w += of_rows * (at.row_on & ~at.reference)
    v = Values(g, at)
    if not v.valid:
        return False
    g.jitter[:] = np.where(at.pair_on, -v.slack, np.maximum(-v.slack, 0.0) + of_pairs)
    g.room[:] = np.where(at.row_on, -v.idle, np.maximum(-v.idle, 0.0) + of_rows)
    off = np.abs((v.x / g.limit - 1)[at.limit_on]).max(initial=0.0)
    largest = max(np.abs(g.jitter).max(), np.abs(g.room).max(), off)
    at.xi += of_users
    g.limit[at.limit_on] = v.x[at.limit_on]
    g.jitter[:] -= of_users[g.user]
    return bool(largest <= _MOST_PERTURBATION)
