r"""Index of an equilibrium, and its stability under best responses.

The index is the sign of the determinant of the Jacobian of the equilibrium conditions on the active set,

.. math::

    J = \begin{bmatrix} F_x & F_v & F_\xi \\ -use & 0 & 0 \\ -1/q & 0 & 0 \end{bmatrix}.

It is +1 at alpha = 1, and the indices of all equilibria sum to +1 (docs/uniqueness.md). If tasks of pairs or prices are
not unique although user tasks X are (interchangeable servers, two rows exhausted together), J is singular. A small
multiple of the identity, which corresponds to a strictly convex cost of deviating from these tasks and prices, makes it
regular without changing the index of X. Where X itself changes along the kernel the index is 0: equilibria form a
continuum, or two of them are about to meet (a fold).

Source: Facchinei and Pang, "Finite-Dimensional Variational Inequalities and Complementarity Problems" (2003), section
2.6 (degree of regular solutions).

Stability under cyclic best responses follows from the spectral radius of a round. With J in blocks of servers, D on the
diagonal, L below and U above, a best response solves the block of its server, so that a round maps small deviations by
the block Gauss-Seidel iteration

.. math:: T' = -(D + L)^{-1} U, \qquad I - T' = (D + L)^{-1} J.

Diagonal blocks have positive determinants. Index -1 hence means det(I - T') < 0: T' has a real eigenvalue above 1, and
the equilibrium is unstable. Index +1 does not imply a radius below 1 (an example: docs/algorithms/best-responses.md).
Deviations that leave user tasks unchanged are ignored. The result is valid as long as the active set does not change.
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
    """LU factors of a matrix: solutions, and the sign of its determinant; not `regular` if a pivot is zero."""

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


#: Multiple of the identity that regularizes J where tasks of pairs or prices are not unique.
REGULARIZATION = 1e-10
#: Largest `|d log X_n|` for right-hand sides of size 1 up to which X counts as locally unique; else the index is 0.
_SINGULAR = 1e7
#: Number of unknowns up to which all unit right-hand sides are tested, of random ones beyond, and of unknowns at most.
_ALL_COLUMNS, _RANDOM_COLUMNS, _MOST_UNKNOWNS = 24, 4, 3000
#: Largest alpha at which doubles identify the active set.
_LARGEST_ALPHA = 1e3


class Active(NamedTuple):
    """Active set of an equilibrium: pairs by user; rows, then binding limits."""

    user: Index  # (pairs,)
    server: Index  # (pairs,)
    host: Index  # (rows,), server; -1 for a limit
    share: Array  # (pairs, rows), share of a row in the cost of a pair, over the row's largest share
    use: Array  # (pairs, rows), fraction of the row that all tasks of the user would use on this server

    def jacobian(self) -> Array:
        """J (unknowns, unknowns), with tasks relative to the user's and prices scaled by their largest share."""
        rows = len(self.host)
        same = self.user[:, None] == self.user
        return np.block([[same.astype(float), self.share], [-self.use.T, np.zeros((rows, rows))]])


def index_of_answer(problem: Problem, tasks: Array, log_prices: Array | None) -> int | None:
    """Index +1 or -1, or 0 if user tasks are not locally unique; None if it is unknown, as where a limit binds.

    `tasks` (users, servers) and log prices per resource unit (servers, resources) are those of the certificate's proof.
    At alpha = 1 user tasks are unique, and the index is 1.
    """
    rule = problem.criterion
    if (
        log_prices is None
        or type(rule) is not Criterion
        or rule.scope != "game"
        or not 0 < rule.alpha <= _LARGEST_ALPHA
    ):
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

    Pairs and rows with a slack below `weak` are included. None if some user with a usable pair has no tasks.
    """
    polytope = problem.polytope
    x = tasks[polytope.users[polytope.pair_user], polytope.pair_server]
    shown = Indicated(polytope, problem.criterion, x, polytope.log_row_prices(log_prices))
    if not (shown.total > 0).all():
        return None
    pairs, limits = np.flatnonzero(shown.pairs | (shown.slack < weak)), np.flatnonzero(shown.room <= 1e-9)
    user, use = polytope.pair_user[pairs], polytope.use[:, pairs].toarray()
    rows = np.flatnonzero((shown.rows | (shown.idle < weak)) & use.any(axis=1))
    use = use[rows]
    log_share = (
        np.log(use) - (shown.cost + np.log(polytope.gamma))[pairs]
    )  # without the price of the row, which cancels
    of_rows = np.exp(log_share - log_share.max(axis=1, keepdims=True, initial=-np.inf)).T
    of_limits = (user[:, None] == limits).astype(float)
    return Active(
        user,
        polytope.pair_server[pairs],
        np.concatenate([polytope.row_server[rows], np.full(len(limits), -1)]),
        np.hstack([of_rows, of_limits]),
        np.hstack([(use * (shown.total[user] / polytope.gamma[pairs])).T, of_limits]),
    )


def index(active: Active) -> int | None:
    """Sign of det J, 0 if user tasks are not locally unique; None for too many unknowns."""
    pairs, size = len(active.user), len(active.user) + len(active.host)
    if not size:
        return 1
    if size > _MOST_UNKNOWNS:
        return None
    matrix, rhs = active.jacobian() + REGULARIZATION * np.eye(size), np.eye(size)
    if size > _ALL_COLUMNS:
        rhs = np.where(np.random.default_rng(0).random((size, _RANDOM_COLUMNS)) < 0.5, -1.0, 1.0)
    factors = Factors(matrix)
    if not factors.regular:
        return 0
    first = np.flatnonzero(np.diff(active.user, prepend=-1))
    sensitivity = np.abs(np.add.reduceat(factors.solved(rhs)[:pairs], first)).max()
    return factors.sign if sensitivity < _SINGULAR else 0


def stable(q: Stack, z: Array, log_rows: Array) -> Mask:
    """Mask (problems,) of equilibria whose index is certainly +1, for a stack of small games.

    Given are fractions z (users, servers, problems) and log prices of whole capacities (resources, servers, problems).
    """
    matrix, user = _jacobians(q, z, log_rows)
    sign, _ = np.linalg.slogdet(matrix)
    with np.errstate(all="ignore"):
        inverse = np.linalg.inv(matrix)[:, : user.shape[1]]
    of_users = (user[:, None] == np.arange(len(z))[:, None]).astype(float)
    return np.asarray((sign > 0) & (np.abs(of_users @ inverse).max(axis=(1, 2)) < 0.1 * _SINGULAR))


def negative_index(problems: list[Problem], found: Found) -> Mask:
    """Mask (problems,) of equilibria whose index may be -1, for a stack of small games at one alpha > 0.

    Problems in which a limit binds are excluded, as in `index_of_answer`.
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
    """Regularized J of every problem of a stack, (problems, unknowns, unknowns), and users of pairs (problems, pairs).

    Problems with fewer unknowns are padded by rows and columns of the identity, and users by -1.
    """
    x, slack, share = q.slacks(z, log_rows / q.power, None)
    part = q.size * z / x[:, None]
    pairs = (part > np.maximum(slack, 1e-12)) | (part == part.max(axis=1, keepdims=True))
    share = np.where(pairs, share, 0.0)
    largest = share.max(axis=1)
    rows = largest > np.maximum(1 - q.used(z), 0.0)
    problem = np.arange(z.shape[-1])[:, None]
    user, server, valid_pair = _compressed(pairs)
    resource, host, valid_row = _compressed(rows)
    same_server = (server[:, :, None] == host[:, None]) & valid_pair[:, :, None] & valid_row[:, None]
    at = resource[:, None], user[:, :, None], server[:, :, None], problem[:, None]
    share_block = np.where(same_server, share[at] / np.where(rows, largest, 1.0)[resource, host, problem][:, None], 0.0)
    use_block = np.where(same_server, (q.use * x[:, None] / q.size)[at], 0.0)
    same_user = (user[:, :, None] == user[:, None]) & valid_pair[:, :, None] & valid_pair[:, None]
    matrix = np.concatenate([
        np.concatenate([same_user.astype(float), share_block], axis=2),
        np.concatenate([-use_block.transpose(0, 2, 1), np.zeros((*host.shape, host.shape[1]))], axis=2),
    ], axis=1)  # fmt: skip
    np.einsum("bii->bi", matrix)[...] += np.where(np.concatenate([valid_pair, valid_row], axis=1), REGULARIZATION, 1.0)
    return matrix, np.where(valid_pair, user, -1)


def _compressed(active: Mask) -> tuple[Index, Index, Mask]:
    """Both indices of the active entries of every problem, padded to (problems, most), and the mask of valid ones."""
    flat = active.reshape(-1, active.shape[-1]).T
    order = np.argsort(~flat, axis=1, kind="stable")[:, : max(int(flat.sum(axis=1).max(initial=0)), 1)]
    return *np.divmod(order, active.shape[1]), np.take_along_axis(flat, order, axis=1)


#: Singular values of J below this fraction of the largest count as zero (tasks or prices that are not unique).
_ZERO_SINGULAR = 1e-9
#: Distance from 1 of the corresponding eigenvalues of T'.
_NEAR_ONE = 1e-5
#: Spectral radius below which it counts as zero.
_ZERO_RADIUS = 1e-8


def spectral_radius(active: Active) -> float:
    """Spectral radius of T' for servers in their order; NaN if a limit binds."""
    if (active.host < 0).any():
        return float("nan")
    matrix, server = active.jacobian(), np.concatenate([active.server, active.host])
    nullity = int(
        (np.linalg.svd(matrix, compute_uv=False) < _ZERO_SINGULAR * max(1.0, float(np.abs(matrix).max()))).sum()
    )
    matrix += REGULARIZATION * np.eye(len(matrix))
    lower = np.where(server[:, None] >= server[None, :], matrix, 0.0)
    try:
        values = np.linalg.eigvals(np.linalg.solve(lower, lower - matrix))
    except np.linalg.LinAlgError:
        return float("nan")
    values = values[np.argsort(np.abs(values - 1), kind="stable")]
    neutral = int((np.abs(values[:nullity] - 1) < _NEAR_ONE).sum())
    largest = float(np.abs(values[neutral:]).max(initial=0.0))
    return largest if largest > _ZERO_RADIUS else 0.0
