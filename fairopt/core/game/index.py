r"""Index of an equilibrium, and its stability under best responses.

The index is the sign of the determinant of the Jacobian of the equilibrium conditions on the active set,

.. math::

    J = \begin{bmatrix} F_x & F_v & F_\xi \\ -use & 0 & 0 \\ -1/q & 0 & 0 \end{bmatrix},

with the derivatives of the slacks F of active pairs in tasks x, prices v of rows and prices xi of limits q. The index
is +1 at alpha = 1, and the indices of all equilibria sum to +1 (docs/uniqueness.md). If tasks of pairs or prices are
not unique although user tasks X are unique (interchangeable servers, two rows exhausted together), J is singular. A
small multiple of the identity, which corresponds to a strictly convex cost of deviating from the tasks and prices of
the equilibrium, makes J regular without changing the index of X. Where X itself changes along the kernel the index is
0: equilibria form a continuum, or two equilibria are about to meet (a fold).

Source: Facchinei and Pang, "Finite-Dimensional Variational Inequalities and Complementarity Problems" (2003), section
2.6 (degree of regular solutions).

Stability under cyclic best responses follows from the spectral radius of a round. Let J = D + L + U, with the block
diagonal part D, one block for each server, and the parts L below and U above it. A best response solves the block of
its server, so that a round maps small deviations by the block Gauss-Seidel iteration

.. math:: T' = -(D + L)^{-1} U, \qquad I - T' = (D + L)^{-1} J.

Diagonal blocks have positive determinants. Index -1 therefore implies det(I - T') < 0: T' has a real eigenvalue above
1, and the equilibrium is unstable. Index +1 does not imply a spectral radius below 1 (example:
docs/algorithms/best-responses.md).
Deviations that leave user tasks unchanged are ignored. The result is valid as long as the active set does not change.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...base.libraries import lapack
from ...model._arrays import Array, Index, Mask
from ...model.criterion import Criterion
from ...model.problem import Problem
from ..accuracy import CONVERGED, HALF_PRECISION, NEGLIGIBLE, REFINED
from ..active_set import ActiveSet
from ..identification import Indicated
from ..maxmin import fractions
from ..solve import Found
from ..system import AT_LIMIT, OfLimits, Stack, stacked


class Factors:
    """LU factors of a matrix, for solutions and the sign of its determinant; `regular` is False if a pivot is zero."""

    def __init__(self, matrix: Array) -> None:
        self.lu, self.pivots, singular = lapack.dgetrf(matrix)
        self.regular = not singular and bool(np.isfinite(self.lu).all())

    def solved(self, rhs: Array) -> Array:
        """Solve for one right-hand side (n,), or for several (n, k)."""
        return np.asarray(lapack.dgetrs(self.lu, self.pivots, rhs)[0])

    @property
    def sign(self) -> int:
        """Sign of the determinant."""
        swaps = int(np.count_nonzero(self.pivots != np.arange(len(self.pivots))))
        return int((-1) ** swaps * np.prod(np.sign(self.lu.diagonal())))


#: Multiple of the identity that regularizes J where tasks of pairs or prices are not unique.
REGULARIZATION = REFINED
#: Largest `|d log X_n|` for right-hand sides of size 1 up to which X counts as locally unique; above it the index is 0.
_SINGULAR = 1e7
#: Number of unknowns up to which all unit vectors are tested as right-hand sides (`_ALL_COLUMNS`), number of random
#: right-hand sides for more unknowns (`_RANDOM_COLUMNS`), and largest number of unknowns for which an index is computed
#: (`_MOST_UNKNOWNS`).
_ALL_COLUMNS, _RANDOM_COLUMNS, _MOST_UNKNOWNS = 24, 4, 3000
#: Largest alpha at which doubles identify the active set.
_LARGEST_ALPHA = 1e3
#: Part of a user's tasks up to which a pair counts as empty, even if its slack is zero.
_EMPTY = CONVERGED


class Active(NamedTuple):
    """Jacobian on the active set of an equilibrium, with the user and server of each pair, and the server of each row.

    Unknowns are pairs, then rows, then limits; `host` is -1 for limits.
    """

    user: Index  # (pairs,)
    server: Index  # (pairs,)
    host: Index  # (rows and limits,)
    jacobian: Array  # (unknowns, unknowns)


def index_of_answer(problem: Problem, tasks: Array, log_prices: Array | None) -> int | None:
    """Index of a solution, +1 or -1, or 0 if user tasks are not locally unique; None if the index is not computed.

    It is not computed outside the game, without prices, at extreme alpha, where a limit binds, or where `active_at`
    returns None. At alpha = 1 user tasks are unique, and the index is 1.

    Parameters
    ----------
    tasks, log_prices : (users, servers), and per resource unit (servers, resources), as in the certificate's proof
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
    if (tasks.sum(axis=1) >= problem.limits * (1 - AT_LIMIT))[problem.limits > 0].any():
        return None
    active = active_at(problem, tasks, log_prices)
    return None if active is None else index(active)


@np.errstate(all="ignore")
def active_at(problem: Problem, tasks: Array, log_prices: Array, weak: float = 0.0) -> Active | None:
    """Active set at tasks (users, servers) and log prices per resource unit (servers, resources).

    Pairs and rows with a slack below `weak` are included. The result is None if some user with a usable pair has no
    tasks, or if there are too many unknowns.
    """
    polytope, q, log_rows = problem.polytope, stacked([problem]), problem.polytope.log_row_prices(log_prices)
    user, server = polytope.users[polytope.pair_user], polytope.pair_server
    shown = Indicated(polytope, problem.criterion, polytope.work(tasks), log_rows)
    if not (shown.total > 0).all():
        return None
    pairs, rows, limits = (np.zeros(shape, dtype=bool) for shape in (q.gamma.shape, q.rows.shape, q.limit.shape))
    pairs[user, server, 0] = shown.pairs | (shown.slack < weak)
    rows[polytope.row_resource, polytope.row_server, 0] = shown.rows | (shown.idle < weak)
    rows &= (q.use * pairs).any(axis=1)
    limits[polytope.users, 0] = shown.room <= AT_LIMIT
    if np.count_nonzero(pairs) + np.count_nonzero(rows) > _MOST_UNKNOWNS:
        return None
    z, log_v = (
        fractions(q, (tasks * problem.cluster.rate)[None]),
        polytope.by_server(log_rows, -np.inf).T[..., None] / q.power,
    )
    matrix, found = _jacobians(q, z, log_v, pairs, rows, None if q.limited is None else limits & q.limited)
    host = np.concatenate([found.host[0], np.full(found.limited.shape[1], -1)])
    return Active(found.user[0], found.server[0], host, matrix[0])


def index(active: Active) -> int:
    """Index of the equilibrium: sign of det J, 0 if user tasks are not locally unique, 1 for an empty active set."""
    pairs, size = len(active.user), len(active.user) + len(active.host)
    if not size:
        return 1
    matrix, rhs = active.jacobian + REGULARIZATION * np.eye(size), np.eye(size)
    if size > _ALL_COLUMNS:
        rhs = np.where(np.random.default_rng(0).random((size, _RANDOM_COLUMNS)) < 0.5, -1.0, 1.0)
    factors = Factors(matrix)
    if not factors.regular:
        return 0
    first = np.flatnonzero(np.diff(active.user, prepend=-1))
    sensitivity = np.abs(np.add.reduceat(factors.solved(rhs)[:pairs], first)).max()
    return factors.sign if sensitivity < _SINGULAR else 0


def negative_index(problems: list[Problem], found: Found) -> Mask:
    """Mask (problems,) of equilibria whose index may be -1, for a stack of small games at one alpha > 0.

    Problems in which a limit binds are excluded, as in `index_of_answer`, and all problems at alpha = 1.
    """
    result = np.zeros(len(problems), dtype=bool)
    if problems[0].criterion.alpha == 1:
        return result
    q, tasks = stacked(problems), np.moveaxis(found.tasks, 0, -1)
    z, log_rows = tasks / np.where(q.usable, q.gamma, 1.0), found.log_rows.transpose(2, 1, 0)
    with np.errstate(all="ignore"):
        sign, _ = np.linalg.slogdet(_regular_jacobians(q, z, log_rows)[0])
    limits = np.array([problem.limits for problem in problems])
    bound = (found.tasks.sum(axis=2) >= limits * (1 - AT_LIMIT)) & (limits > 0)
    return np.asarray((sign < 0) & ~bound.any(axis=1))


@np.errstate(all="ignore")
def _regular_jacobians(q: Stack, z: Array, log_rows: Array) -> tuple[Array, ActiveSet]:
    """Regularized J of every problem of a stack, (problems, unknowns, unknowns), and the active sets.

    Problems with fewer unknowns are padded by rows and columns of the identity.
    """
    x, slack, share = q.slacks(z, log_rows / q.power, None)
    part = q.size * z / x[:, None]
    pairs = (part > np.maximum(slack, _EMPTY)) | (part == part.max(axis=1, keepdims=True))
    rows = np.where(pairs, share, 0.0).max(axis=1) > np.maximum(1 - q.used(z), 0.0)
    matrix, active = _jacobians(q, z, log_rows / q.power, pairs, rows)
    np.einsum("bii->bi", matrix)[...] += np.where(active.valid, REGULARIZATION, 1.0)
    return matrix, active


def _jacobians(
    q: Stack, z: Array, log_v: Array, pairs: Mask, rows: Mask, limits: OfLimits = None
) -> tuple[Array, ActiveSet]:
    """J of every problem, (problems, unknowns, unknowns), on given active sets, and these as an `ActiveSet`.

    Prices of rows are in units of their largest share in a cost.
    """
    active = ActiveSet(pairs, rows, limits)
    # The ratio of a row's share in a cost to its largest share does not depend on the row's price, which may be zero.
    log_share = np.where(pairs, q.log_use - q.power * q.costs(log_v)[0], -np.inf)
    share = np.exp(log_share - log_share.max(axis=1, keepdims=True))
    matrix = active.jacobian(q, q.user_tasks(z), share, np.ones(len(q.alpha)))
    matrix[:, active.user.shape[1] :] *= -1
    return matrix, active


#: Singular values of J below this fraction of the largest count as zero (tasks or prices that are not unique).
_ZERO_SINGULAR = NEGLIGIBLE
#: Distance from 1 up to which eigenvalues of T' are attributed to zero singular values of J.
_NEAR_ONE = 1e-5
#: Spectral radius below which the radius counts as zero.
_ZERO_RADIUS = HALF_PRECISION


def spectral_radius(active: Active) -> float:
    """Spectral radius of T' for servers that respond in the order of their indices.

    The result is NaN if a limit binds, or if D + L is singular.
    """
    if (active.host < 0).any():
        return float("nan")
    matrix, server = active.jacobian.copy(), np.concatenate([active.server, active.host])
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
