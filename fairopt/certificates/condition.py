"""By what a relative change of the data moves each user's tasks: the condition of an alpha-fair answer, user by user.

With J the derivative of the conditions of `backward` in (tasks of kept pairs over x_n, log prices, excess of users who
are served in full), rows of pairs divided by `A = max(alpha, 1)`, a change e of the data moves `log x_n` by at most
`e sum_k |(C J^-1)_nk|` to first order, C the sum over a user's pairs. (In a global program what changes a user's weight
is the same for all of its pairs, and demands of a pair count 1/A.) J is singular where splits or prices are not unique,
though tasks are: a multiple of the identity of 1e-11 makes up for that, and hides nothing below 1e11.

That holds as long as the same rows are priced and the same pairs have tasks. Those whose price or tasks the error found
could take to zero are left out one at a time, by the rank-one formula, and the largest condition counts. What it cannot
know is other equilibria, and pairs that would come in. At scale row sums are estimated (Higham and Tisseur's 1-norm
estimator; users relative to it by random signs).

Source: Higham, "Accuracy and Stability of Numerical Algorithms" (2002), sections 7.2 and 15.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, onenormest, splu

from ..model.criterion import Criterion
from ..model.polytope import Polytope
from .backward import BackwardError, log_price_per_task

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: Multiple of the identity that makes up for splits and prices that are not unique.
_REGULAR = 1e-11
#: Up to so many unknowns the inverse is computed.
_DENSE = 600
#: What the error found times a sensitivity may be before a row or pair counts as one that may leave.
_LEAVES = 0.1
#: Most rows and pairs that are left out in turn, and random signs at scale.
_MOST, _PROBES = 60, 12
#: Users with less room than this are served in full.
_FULL = 1e-6


def conditions(polytope: Polytope, criterion: Criterion, tasks: Array, found: BackwardError) -> Array:
    """The condition of every user, (all users,): 1 for whoever can run nothing, infinite where nothing is proved."""
    result = np.ones(polytope.cluster.shape[0])
    if not len(polytope.users):
        return result
    if not np.isfinite(found.error) or criterion.alpha == 0:
        result[polytope.users] = np.inf  # at alpha = 0 a small change may move all tasks
        return result
    with np.errstate(all="ignore"):
        active = _active(polytope, criterion, tasks, found)
        sizes = _exact(active, found.error) if active.matrix.shape[0] <= _DENSE else _estimated(active)
    result[polytope.users] = np.where(np.isfinite(sizes), np.maximum(sizes, 1.0), np.inf)
    return result


@dataclass(frozen=True)
class _Active:
    """The derivative of the conditions that hold with equality, of and in pairs, then rows, then limits."""

    matrix: sp.csc_matrix
    user: Index  # (pairs,)
    part: Array  # (pairs,), tasks over those of the user
    rows: int
    users: int
    pair_weight: float  # what an error of one pair's own counts
    together: bool  # are errors of pairs those of their user

    def folded(self, sensitivity: Array) -> Array:
        """`sum_k |.|` over equations of rows (..., equations), errors of a user's pairs added up first if together."""
        pairs = len(self.user)
        own, others = sensitivity[:, :pairs], np.abs(sensitivity[:, pairs:]).sum(axis=1)
        if not self.together:
            return np.asarray(np.abs(own).sum(axis=1) + others)
        starts = np.flatnonzero(np.diff(self.user, prepend=-1))
        common = np.abs(np.add.reduceat(own, starts, axis=1)).sum(axis=1)
        return np.asarray(common + self.pair_weight * np.abs(own).sum(axis=1) + others)


def _active(polytope: Polytope, criterion: Criterion, tasks: Array, found: BackwardError) -> _Active:
    total = tasks.sum(axis=1)[polytope.users]
    rule = criterion.restrict(polytope.users)
    here, unit = tasks[polytope.users[polytope.pair_user], polytope.pair_server], rule.measure(total, polytope.reach)
    part, kept = here / total[polytope.pair_user], here > found.error * unit[polytope.pair_user]
    pairs, rows = np.flatnonzero(found.pairs & kept), np.flatnonzero(found.log_rows > -np.inf)
    user, server = polytope.pair_user[pairs], polytope.pair_server[pairs]
    row_of = np.full(polytope.cluster.capacity.shape, -1)
    row_of[polytope.row_server[rows], polytope.row_resource[rows]] = np.arange(len(rows))
    to = row_of[server]
    at, resource = np.nonzero((to >= 0) & (polytope.pair_use[pairs] > 0))
    to = to[at, resource]
    log_cost = log_price_per_task(polytope, found.log_rows)[pairs] + np.log(polytope.gamma[pairs])
    share = np.exp(np.log(polytope.pair_use[pairs][at, resource]) + found.log_rows[rows][to] - log_cost[at])
    use = polytope.pair_use[pairs][at, resource] / polytope.gamma[pairs][at] * total[user[at]]
    scale = criterion.stiffness
    # Who is served in full does not follow prices: its excess is one more unknown.
    full = np.flatnonzero(polytope.limit <= total * (1 + _FULL))
    number = np.full(len(total), -1)
    number[full] = np.arange(len(full))
    own = number[user]
    served = np.flatnonzero(own >= 0)
    p, r, k = len(pairs), len(rows), len(full)
    same = sp.csr_matrix((np.ones(p), (np.arange(p), user)), shape=(p, len(total)))
    entries = [
        (same @ sp.diags(rule.elasticity(total) / scale) @ same.T).tocoo(),
        sp.coo_matrix((share / scale, (at, p + to)), shape=(p, p + r + k)),
        sp.coo_matrix((use, (p + to, at)), shape=(p + r, p)),
        sp.coo_matrix((np.ones(len(served)), (served, p + r + own[served])), shape=(p, p + r + k)),
        sp.coo_matrix((np.ones(len(served)), (p + r + own[served], served)), shape=(p + r + k, p)),
    ]
    size = p + r + k
    joined = [np.concatenate([getattr(each, name) for each in entries]) for name in ("data", "row", "col")]
    signs = np.concatenate([np.ones(p), -np.ones(r + k)])
    matrix = sp.csc_matrix((joined[0], (joined[1], joined[2])), shape=(size, size)) + sp.diags(_REGULAR * signs)
    together = criterion.scope != "game"
    return _Active(matrix.tocsc(), user, part[pairs], r, len(total), 1 / scale, together)


def _exact(active: _Active, error: float) -> Array:
    """Row sums from the inverse, (users,), the largest over what may leave."""
    pairs, size = len(active.user), active.matrix.shape[0]
    try:
        inverse = np.linalg.inv(active.matrix.toarray())
    except np.linalg.LinAlgError:
        return np.full(active.users, np.inf)
    of_user = np.zeros((active.users, size))
    np.add.at(of_user, active.user, inverse[:pairs])
    result = active.folded(of_user)
    # By how much each unknown could move, relative to what it takes to reach zero.
    moved = active.folded(inverse[: pairs + active.rows])
    moved[:pairs] /= active.part
    leaving = np.flatnonzero(~(error * moved < _LEAVES))
    leaving = leaving[np.argsort(-moved[leaving], kind="stable")][:_MOST]
    for k in leaving:
        changed = of_user - np.outer(of_user[:, k], inverse[k] / inverse[k, k])
        changed[:, k] = 0.0
        sizes = active.folded(changed)
        alone = np.bincount(active.user[np.arange(pairs) != k], minlength=active.users) > 0
        result = np.where(alone & np.isfinite(sizes), np.maximum(result, sizes), result)
    return result


def _estimated(active: _Active) -> Array:
    """Row sums (users,): the largest by the 1-norm estimator, the others relative to it by random signs."""
    size, pairs, users = active.matrix.shape[0], len(active.user), active.users
    try:
        factors = splu(active.matrix)
    except RuntimeError:
        return np.full(users, np.inf)
    summed = sp.csr_matrix((np.ones(pairs), (active.user, np.arange(pairs))), shape=(users, size))

    def forward(x: Array) -> Array:
        return np.asarray(summed @ factors.solve(np.asarray(x, dtype=float)))

    def backward(x: Array) -> Array:
        return np.asarray(factors.solve(np.asarray(summed.T @ x, dtype=float), trans="T"))

    padded = LinearOperator(
        (size, size),
        matvec=lambda x: backward(np.ravel(x)[:users]),
        rmatvec=lambda x: np.concatenate([forward(np.ravel(x)), np.zeros(size - users)]),
        dtype=float,
    )
    largest = float(onenormest(padded))
    rng = np.random.default_rng(0)
    sizes = np.sqrt(np.mean([forward(rng.choice([-1.0, 1.0], size)) ** 2 for _ in range(_PROBES)], axis=0))
    return np.asarray(sizes * (largest / sizes.max()) if sizes.max() > 0 else sizes)
