r"""The index of an equilibrium, and its stability under best responses.

The index is the sign of the determinant of its equations' derivative on the active set,

.. math::

    J = \begin{bmatrix} F_x & F_v & F_\xi \\ -use & 0 & 0 \\ -1/q & 0 & 0 \end{bmatrix}

+1 at alpha = 1, and the sum over all equilibria is +1 (docs/uniqueness.md). Where splits or prices are not unique
though X is (servers that are alike, two rows that are used up together), the matrix is singular; a small multiple of
the identity, which is what a small convex cost of departing from this split or these prices adds, makes it regular
without a change of the index of X. Where X itself moves along the kernel the index is 0: equilibria are a continuum
there, or two are about to meet (a fold).

Source: Facchinei and Pang, "Finite-Dimensional Variational Inequalities and Complementarity Problems" (2003), section
2.6 (degree of regular solutions).

Stability under cyclic best responses is the spectral radius of a round. With J in blocks of servers, D on the diagonal,
L below, U above, a server's response solves its own block, so that a round moves a small deviation by

    T' = -(D + L)^-1 U,        I - T' = (D + L)^-1 J.

Own blocks have positive determinants. So index -1 means det(I - T') < 0: T' has a real eigenvalue above 1, and the
equilibrium is unstable. Index +1 does not imply a radius below 1 (an example: docs/algorithms/best-responses.md).
Departures that move splits only, and nobody's tasks, do not count. Valid as long as the active set stays what it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...base.libraries import lapack
from ...model._arrays import Array, Index, Mask
from ...model.criterion import Criterion
from ...model.problem import Problem
from ..settled import Indicated
from ..solve import Found
from ..system import Stack, stacked


class Factors:
    """LU factors of a matrix: solutions, and the sign of its determinant; not `regular` where a pivot is 0."""

    def __init__(self, matrix: Array) -> None:
        self.lu, self.pivots, singular = lapack.dgetrf(matrix)
        self.regular = not singular and bool(np.isfinite(self.lu).all())

    def solved(self, rhs: Array) -> Array:
        """Solve for one right-hand side, or several as columns."""
        return np.asarray(lapack.dgetrs(self.lu, self.pivots, rhs)[0])

    @property
    def sign(self) -> int:
        """Sign of the determinant."""
        swaps = int(np.count_nonzero(self.pivots != np.arange(len(self.pivots))))
        return int((-1) ** swaps * np.prod(np.sign(self.lu.diagonal())))


#: The multiple of the identity that makes up for splits and prices that are not unique.
REGULAR = 1e-10
#: X is not locally unique where `|d log X_n|`, for right-hand sides of size 1, is above this: the index is 0.
_SINGULAR = 1e7
#: Up to so many unknowns each has a right-hand side of its own, beyond a few have signs; more are too many.
_ALL, _PROBES, _MOST = 24, 4, 3000
#: Above this alpha ties and prices next to zero are beyond what doubles tell apart.
_STEEP = 1e3


class Active(NamedTuple):
    """Active set of an equilibrium: pairs by user; rows, then binding limits."""

    user: Index  # (pairs,)
    server: Index  # (pairs,)
    host: Index  # (rows,), server; -1 for a limit
    share: Array  # (pairs, rows), part in what a pair pays, by the row's largest
    use: Array  # (pairs, rows), part that the user's tasks would take if all were of this pair

    def jacobian(self) -> Array:
        """J, with tasks in units of the user's and prices in units of their largest part in a cost."""
        rows = len(self.host)
        same = self.user[:, None] == self.user
        return np.block([[same.astype(float), self.share], [-self.use.T, np.zeros((rows, rows))]])


def index_of_answer(problem: Problem, tasks: Array, log_prices: Array | None) -> int | None:
    """+1, -1, or 0 where tasks are not locally unique; None where that is not known, as a limit binds.

    `tasks` (users, servers) and log prices per resource unit (servers, resources), as the certificate's proof has them.
    At alpha = 1 tasks are unique: the index is 1.
    """
    rule = problem.criterion
    if log_prices is None or type(rule) is not Criterion or rule.scope != "game" or not 0 < rule.alpha <= _STEEP:
        return None
    if rule.alpha == 1:
        return 1
    if (tasks.sum(axis=1) >= problem.limits * (1 - 1e-9))[problem.limits > 0].any():
        return None
    active = active_at(problem, tasks, log_prices)
    return None if active is None else index(active)


@np.errstate(all="ignore")
def active_at(problem: Problem, tasks: Array, log_prices: Array, weak: float = 0.0) -> Active | None:
    """Active set at tasks (users, servers) and log prices per resource unit (servers, resources).

    Besides what they show (`core.settled`), pairs and rows with less slack than `weak`. None where somebody who can run
    something has no tasks.
    """
    polytope = problem.polytope
    x = tasks[polytope.users[polytope.pair_user], polytope.pair_server]
    at = Indicated(polytope, problem.criterion, x, polytope.log_row_prices(log_prices))
    if not (at.total > 0).all():
        return None
    pairs, limits = np.flatnonzero(at.pairs | (at.slack < weak)), np.flatnonzero(at.room <= 1e-9)
    user, use = polytope.pair_user[pairs], polytope.use[:, pairs].toarray()
    rows = np.flatnonzero((at.rows | (at.idle < weak)) & use.any(axis=1))
    use = use[rows]
    paid = np.log(use) - (at.cost + np.log(polytope.gamma))[pairs]  # by the price of the row
    of_rows = np.exp(paid - paid.max(axis=1, keepdims=True, initial=-np.inf)).T
    of_limits = (user[:, None] == limits).astype(float)
    return Active(
        user,
        polytope.pair_server[pairs],
        np.concatenate([polytope.row_server[rows], np.full(len(limits), -1)]),
        np.hstack([of_rows, of_limits]),
        np.hstack([(use * (at.total[user] / polytope.gamma[pairs])).T, of_limits]),
    )


def index(active: Active) -> int | None:
    """The sign of det J, 0 where tasks of users are not locally unique; None for too many unknowns."""
    pairs, size = len(active.user), len(active.user) + len(active.host)
    if not size:
        return 1
    if size > _MOST:
        return None
    matrix, rhs = active.jacobian() + REGULAR * np.eye(size), np.eye(size)
    if size > _ALL:
        rhs = np.where(np.random.default_rng(0).random((size, _PROBES)) < 0.5, -1.0, 1.0)
    factors = Factors(matrix)
    if not factors.regular:
        return 0
    first = np.flatnonzero(np.diff(active.user, prepend=-1))
    moved = np.abs(np.add.reduceat(factors.solved(rhs)[:pairs], first)).max()
    return factors.sign if moved < _SINGULAR else 0


def stable(q: Stack, z: Array, log_rows: Array) -> Mask:
    """True where the index of an equilibrium is certainly +1, (problems,), for a stack of small games.

    Fractions z (users, servers, problems) and log prices of whole capacities (resources, servers, problems).
    """
    matrix, user = _jacobians(q, z, log_rows)
    sign, _ = np.linalg.slogdet(matrix)
    with np.errstate(all="ignore"):
        moved = np.linalg.inv(matrix)[:, : user.shape[1]]
    of_users = (user[:, None] == np.arange(len(z))[:, None]).astype(float)
    return np.asarray((sign > 0) & (np.abs(of_users @ moved).max(axis=(1, 2)) < 0.1 * _SINGULAR))


def negative_index(problems: list[Problem], found: Found) -> Mask:
    """True where the index of an equilibrium may be -1, (problems,), for a stack of small games at one alpha > 0.

    False where a task count binds, as in `index_of_answer`.
    """
    result = np.zeros(len(problems), dtype=bool)
    if problems[0].criterion.alpha == 1:
        return result
    q, tasks = stacked(problems), np.moveaxis(found.tasks, 0, -1)
    z, log_rows = tasks / np.where(q.usable, q.gamma, 1.0), found.log_rows.transpose(2, 1, 0)
    with np.errstate(all="ignore"):
        sign, _ = np.linalg.slogdet(_jacobians(q, z, log_rows)[0])
    limits = np.array([problem.limits for problem in problems])
    bound = (found.tasks.sum(axis=2) >= limits * (1 - 1e-9)) & (limits > 0)
    return np.asarray((sign < 0) & ~bound.any(axis=1))


@np.errstate(all="ignore")
def _jacobians(q: Stack, z: Array, log_rows: Array) -> tuple[Array, Index]:
    """J of every problem of a stack on its active set, (problems, unknowns, unknowns), and the users of pairs.

    Problems with fewer active unknowns than others have rows and columns of the identity; users are -1 there.
    """
    x, slack, share = q.slacks(z, log_rows / q.power, None)
    part = q.size * z / x[:, None]
    pairs = (part > np.maximum(slack, 1e-12)) | (part == part.max(axis=1, keepdims=True))
    share = np.where(pairs, share, 0.0)
    largest = share.max(axis=1)
    rows = largest > np.maximum(1 - q.used(z), 0.0)
    problem = np.arange(z.shape[-1])[:, None]
    user, server, taken = _listed(pairs)
    resource, host, priced = _listed(rows)
    here = (server[:, :, None] == host[:, None]) & taken[:, :, None] & priced[:, None]
    at = resource[:, None], user[:, :, None], server[:, :, None], problem[:, None]
    paid = np.where(here, share[at] / np.where(rows, largest, 1.0)[resource, host, problem][:, None], 0.0)
    used = np.where(here, (q.use * x[:, None] / q.size)[at], 0.0)
    same = (user[:, :, None] == user[:, None]) & taken[:, :, None] & taken[:, None]
    matrix = np.concatenate([
        np.concatenate([same.astype(float), paid], axis=2),
        np.concatenate([-used.transpose(0, 2, 1), np.zeros((*host.shape, host.shape[1]))], axis=2),
    ], axis=1)  # fmt: skip
    np.einsum("bii->bi", matrix)[...] += np.where(np.concatenate([taken, priced], axis=1), REGULAR, 1.0)
    return matrix, np.where(taken, user, -1)


def _listed(active: Mask) -> tuple[Index, Index, Mask]:
    """Both coordinates of active entries of every problem, padded, (problems, most), and which are not padding."""
    flat = active.reshape(-1, active.shape[-1]).T
    order = np.argsort(~flat, axis=1, kind="stable")[:, : max(int(flat.sum(axis=1).max(initial=0)), 1)]
    return *np.divmod(order, active.shape[1]), np.take_along_axis(flat, order, axis=1)


#: Singular values of J below this part of the largest are splits or prices that are not unique;
_NULL = 1e-9
#: their eigenvalues of T' are this near to 1.
_ONE = 1e-5
#: A radius below this is rounding.
_NOTHING = 1e-8


def spectral_radius(active: Active) -> float:
    """Spectral radius of T', servers in their order; NaN where a user is at its limit."""
    if (active.host < 0).any():
        return float("nan")
    matrix, server = active.jacobian(), np.concatenate([active.server, active.host])
    null = int((np.linalg.svd(matrix, compute_uv=False) < _NULL * max(1.0, float(np.abs(matrix).max()))).sum())
    matrix += REGULAR * np.eye(len(matrix))
    lower = np.where(server[:, None] >= server[None, :], matrix, 0.0)
    try:
        values = np.linalg.eigvals(np.linalg.solve(lower, lower - matrix))
    except np.linalg.LinAlgError:
        return float("nan")
    values = values[np.argsort(np.abs(values - 1), kind="stable")]
    free = int((np.abs(values[:null] - 1) < _ONE).sum())
    largest = float(np.abs(values[free:]).max(initial=0.0))
    return largest if largest > _NOTHING else 0.0
