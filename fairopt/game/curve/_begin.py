"""Start of the curve: the equilibrium near alpha = 1, as a regular active set.

Splits of users over servers, and prices of rows that are full together, may be undetermined, for all alpha where users
share a bottleneck. Then the set is made regular: along a direction in which nothing but the split changes something
falls to zero and leaves. Whatever is not in the set is made worse by a little, other for every pair and row, so that
ties do not come back; the point is exactly an equilibrium of the data that were changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ...core.interior import solved
from ...core.settled import settled
from ...core.system import stacked
from ...errors import SolverError
from ...model._arrays import Array, Index, Mask
from ...model.problem import Problem
from .. import engine
from ._system import Game, Place, Values, gauge

#: The core looks again from another start above the error `_GOOD`, and the engine is asked above `_SOUND`.
_GOOD, _SOUND = 1e-9, 1e-8
#: Singular values below this part of the largest are ties, and rates below it are none.
_TIE = 1e-9
#: By how much what is outside the active set is worse than in the data, and the most that data may change.
_JITTER, _MOST = 1e-8, 1e-5
#: Splits and prices are determined in turn, at most so often.
_ROUNDS = 4


def begun(problem: Problem, alpha: float) -> tuple[Game, Place] | None:
    """The game of a problem, whose alpha is not read, and the curve's place at an alpha near 1."""
    if not len(problem.polytope.users):
        return None
    g, polytope, rule = Game.of(problem), problem.polytope, replace(problem.criterion, alpha=alpha)
    near = next(_near(Problem(problem.cluster, rule)), None)
    if near is None:
        return None
    try:
        active = settled(polytope, rule, *near, None)
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
    return (g, at) if Values(g, at).sound and _regular(g, at) else None


def _near(problem: Problem) -> Iterator[tuple[Array, Array]]:
    """Tasks (users, servers) and log prices of whole capacities (rows,): of the core, else of the engine."""
    polytope, stack = problem.polytope, stacked([problem])
    found = solved(stack, _GOOD, 1e-12, 60)
    if found.error[0] <= _SOUND:
        yield stack.tasks(found.z)[0], found.log_rows[polytope.row_resource, polytope.row_server, 0]
    for other in engine.solutions(problem, _GOOD):
        if other.log_prices is not None:
            yield other.tasks, polytope.log_row_prices(other.log_prices)


def _regular(g: Game, at: Place) -> bool:
    """Make the active set regular and the rest worse by a little; False where that cannot be done."""
    for _ in range(_ROUNDS):
        for amounts in (_split, _price):
            taken = amounts(g, at, Values(g, at))
            gauge(g, at)
            if taken < 0 or not Values(g, at).sound:
                return False
        if taken == 0:
            break
    return _perturbed(g, at)


def _split(g: Game, at: Place, v: Values) -> int:
    """Move tasks between servers, every user's total and the use of priced rows held, until the split is determined."""
    users = len(g.limit)
    matrix = np.vstack([(np.arange(users)[:, None] == g.user) * g.size, g.use])
    value, fixed = np.append(np.zeros(users), v.idle), np.append(np.ones(users, np.bool_), at.row_on)
    taken = _pushed(matrix, at.z, at.pair_on, value, -1.0, fixed)
    at.row_on[:] = fixed[users:]
    return taken


def _price(g: Game, at: Place, v: Values) -> int:
    """Move prices, what active pairs pay held, until they are determined."""
    matrix, (p, r) = np.zeros((len(g.user), len(g.host))), np.nonzero(g.log_cost > -np.inf)
    matrix[p, g.at[p, r]] = v.felt[p, r]
    return _pushed(matrix, at.w, at.row_on, -np.expm1(-np.exp(at.theta) * v.slack), 1.0, at.pair_on)


def _pushed(matrix: Array, amount: Array, on: Mask, value: Array, sign: float, fixed: Mask) -> int:
    """Move `amount` along directions in which nothing that is `fixed` changes until none are left; how many it took.

    What falls to zero first is no longer `on`; a row of the matrix whose `value` falls to zero first, by `sign` times
    the product with the direction, is fixed from then on. -1 where nothing falls.
    """
    for taken in range(len(on) + len(fixed)):
        members = np.flatnonzero(on)
        along = _null(matrix[np.ix_(fixed, members)])
        if along is None:
            return taken
        change = sign * matrix[:, members] @ along
        rate = np.concatenate([along, np.where(fixed, 0.0, change)])
        end = np.concatenate([amount[members], np.maximum(value, 0.0)])
        falls = np.abs(rate) > _TIE
        far = np.where(falls, end / np.where(falls, np.abs(rate), 1.0), np.inf)
        k = int(far.argmin())
        if not np.isfinite(far[k]):
            return -1
        step = -np.sign(rate[k]) * far[k]
        value[~fixed] += step * change[~fixed]
        amount[members] = np.maximum(amount[members] + step * along, 0.0)
        if k < len(members):
            amount[members[k]], on[members[k]] = 0.0, False
        else:
            fixed[k - len(members)] = True
    return -1


def _null(matrix: Array) -> Array | None:
    """A direction of length 1 that the matrix (equations, unknowns) maps to zero."""
    if matrix.shape[1] == 0:
        return None
    _, values, right = np.linalg.svd(matrix, full_matrices=True)
    tied = len(values) < matrix.shape[1] or values[-1] < _TIE * values[0]
    return np.asarray(right[-1]) if tied else None


def _spread(k: Index) -> Array:
    """Numbers in (1, 2), other for every k; nor are differences alike, as ties are of two users on two servers."""
    return np.asarray(1 + (43758.5453123 * np.sin(12.9898 * (k + 1))) % 1)


def _perturbed(g: Game, at: Place) -> bool:
    """Move everything active off zero, and change the data so that the place is exactly an equilibrium."""
    pairs, v = len(g.user), Values(g, at)
    of_pairs, of_rows = (_JITTER * _spread(k) for k in (np.arange(pairs), pairs + np.arange(len(g.host))))
    of_users = _JITTER * _spread(np.arange(len(g.limit))) * at.limit_on
    # In parts of the user's tasks, but of the server where these are more than it can hold.
    at.z += of_pairs * np.minimum(v.x[g.user] / g.size, 1.0) * at.pair_on
    at.w += of_rows * (at.row_on & ~at.stands)
    v = Values(g, at)
    if not v.sound:
        return False
    g.jitter[:] = np.where(at.pair_on, -v.slack, np.maximum(-v.slack, 0.0) + of_pairs)
    g.room[:] = np.where(at.row_on, -v.idle, np.maximum(-v.idle, 0.0) + of_rows)
    worst = max(np.abs(g.jitter).max(), np.abs(g.room).max(), np.abs((v.x / g.limit - 1)[at.limit_on]).max(initial=0.0))
    at.xi += of_users
    g.limit[at.limit_on] = v.x[at.limit_on]
    g.jitter[:] -= of_users[g.user]
    return bool(worst <= _MOST)
