r"""Condition numbers of alpha-fair allocations by user: the relative change of tasks by a relative change of the data.

Let J be the Jacobian of the optimality conditions of `backward`. Its unknowns are the tasks of kept pairs over
:math:`x_n`, log prices, and duals of limits and floors; its rows of pairs are divided by A, the criterion's `stiffness`
(max(alpha, 1) under alpha-fairness). A relative change e of the data changes :math:`\log x_n` to first order by at most
:math:`e \sum_k |(C J^{-1})_{nk}|`, where C sums over a user's pairs. (In a global program a change of a user's weight
is common to the user's pairs, and changes of the demands of a pair are weighted by 1/A.) J is singular where the split
of tasks or prices are not unique, although tasks of users are unique: it is regularised by the multiple 1e-11 of the
identity, or 1e-14 for large condition numbers.

The bound holds for a constant active set. Constraints whose price or tasks the error could reduce to zero are removed
one at a time, and nearly active constraints are added one at a time (rank-one updates); the largest condition number
is returned. Other equilibria, and several simultaneous changes, are not covered. For large problems row sums are
estimated without changes of the active set: the largest row sum by the 1-norm estimator of Higham and Tisseur, and the
ratios of row sums by random signs.

Source: Higham, "Accuracy and Stability of Numerical Algorithms" (2002), sections 7.2 and 15
(doi:10.1137/1.9780898718027).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.libraries import sp, sparse_linalg
from ..model._arrays import Array, Index, Mask
from ..model.criterion import Criterion
from ..model.polytope import Polytope
from .backward import BackwardError, log_price_per_task
from .vertex import vertex_conditions


def derivative(
    polytope: Polytope,
    pairs: Index,
    rows: Index,
    full: Index,
    total: Array,
    elasticity: Array,
    scale: float,
    cost: Array,
    log_rows: Array,
) -> sp.csr_matrix:
    """Jacobian of the conditions for given pairs, rows and limits; columns of rows without a price are rescaled.

    Parameters
    ----------
    pairs : indices of pairs of the polytope
    rows : indices of rows of the polytope
    full : indices of users at their limit or floor
    total : (users,), tasks
    elasticity : (users,) or (users, servers), negative derivative of log marginal utility by log tasks
    scale : divisor of the equations of pairs
    cost : (pairs,), log costs of a task
    log_rows : (rows,), log prices of whole capacities, -inf for zero
    """
    user, server = polytope.pair_user[pairs], polytope.pair_server[pairs]
    use = polytope.use_by(pairs)[rows].tocoo()
    part = np.log(use.data) - (cost + np.log(polytope.gamma))[pairs][use.col]
    most = np.full(len(rows), -np.inf)
    np.maximum.at(most, use.row, part)
    priced = log_rows[rows]
    priced = np.where(priced > -np.inf, priced, -np.where(np.isfinite(most), most, 0.0))
    share = sp.csr_matrix((np.exp(part + priced[use.row]) / scale, (use.col, use.row)), shape=use.shape[::-1])
    same = sp.csr_matrix((np.ones(len(pairs)), (np.arange(len(pairs)), user)), shape=(len(pairs), len(total)))
    slope = sp.diags(elasticity[user, server] if elasticity.ndim == 2 else elasticity[user]) @ same @ same.T
    amounts = use @ sp.diags(total[user] / polytope.gamma[pairs])
    return sp.bmat([[slope, share, same[:, full]], [amounts, None, None], [same[:, full].T, None, None]], format="csr")


#: Multiples of the identity that regularise non-unique splits and prices: `_REGULAR` limits rounding errors, and
#: `_FINE` resolves condition numbers above `_HIDDEN`.
_REGULAR, _FINE = 1e-11, 1e-14
_HIDDEN = 1e-4 / _REGULAR
#: Number of unknowns up to which the inverse is computed.
_DENSE = 600
#: A constraint may leave or enter the active set if the change caused by the error is at least the fraction `_LEAVES`
#: of its slack, tasks or price. At most `_MOST` such changes are tested.
_LEAVES, _MOST = 0.1, 60
#: Relative distance from a limit or floor at which it counts as active.
_FULL = 1e-6


def conditions(
    polytope: Polytope, criterion: Criterion, tasks: Array, found: BackwardError, dense: int = _DENSE
) -> Array:
    r"""Condition number of every user, (users,): 1 for users that cannot run tasks, infinite where nothing is proved.

    .. math:: \kappa_n = \sum_k |(C J^{-1})_{nk}|, \qquad |\Delta \log x_n| \le \kappa_n e + O(e^2)

    if every datum changes by a factor between `exp(-e)` and `exp(e)`. J is the Jacobian of the optimality conditions,
    and C sums over the pairs of a user. At alpha = 0 condition numbers are infinite unless tasks are proved to be
    unique (`fairopt.certificates.vertex`).

    Parameters
    ----------
    polytope : Polytope
        Feasible set, `Polytope(cluster, criterion.limits(cluster))`.
    criterion : Criterion
        Criterion of the same cluster, with finite alpha.
    tasks : (users, servers)
    found : BackwardError
        Backward error of `tasks`.
    dense : int
        Number of unknowns up to which the inverse is computed; for more unknowns row sums are estimated.

    Source: Higham, "Accuracy and Stability of Numerical Algorithms" (2002), sections 7.2 and 15
    (doi:10.1137/1.9780898718027).

    >>> import numpy as np, fairopt as fo
    >>> from fairopt.model.polytope import Polytope
    >>> cluster, tasks = fo.Cluster([[9, 18]], [[1, 4], [3, 1]]), np.array([[45 / 11], [18 / 11]])
    >>> place, rule = Polytope(cluster, cluster.max_tasks), fo.CEEI().criterion(cluster)
    >>> found = fo.certificates.backward_error(place, rule, tasks, np.log([1.8, 0.2]))
    >>> fo.certificates.conditions(place, rule, tasks, found).round(2).tolist()
    [1.4, 3.0]
    """
    result = np.ones(polytope.cluster.shape[0])
    if not len(polytope.users):
        return result
    if not np.isfinite(found.error):
        result[polytope.users] = np.inf
        return result
    if criterion.alpha == 0:
        with np.errstate(all="ignore"):
            sizes = vertex_conditions(polytope, criterion, tasks, found.log_rows, found.error)
        result[polytope.users] = np.maximum(sizes, 1.0)
        return result
    with np.errstate(all="ignore"):
        active = _active(polytope, criterion, tasks, found, dense)
        if active.matrix.shape[0] > dense:
            sizes = _estimated(active)
        else:
            # The error is at least a rounding error, so that constraints without slack can enter the active set.
            error, hidden = max(found.error, 1e-15), _HIDDEN
            sizes = _exact(active, error, _REGULAR)
            if (sizes > hidden).any():
                sizes = np.where(sizes > hidden, np.maximum(sizes, _exact(active, error, _FINE)), sizes)
    result[polytope.users] = np.where(np.isfinite(sizes), np.maximum(sizes, 1.0), np.inf)
    return result


@dataclass(frozen=True)
class _Active:
    """Jacobian for active and nearly active constraints, in the order of pairs, rows and limits.

    Attributes
    ----------
    matrix : (unknowns, unknowns), the Jacobian
    holds : (unknowns,), mask of active constraints
    slack : (unknowns,), log of the ratio of cost to marginal utility of a pair, divided by A; relative slack of a row
    user : (pairs,), index of the pair's user
    part : (pairs,), fraction of the user's tasks
    users : number of users
    limits : number of active limits
    pair_weight : weight of errors of a single pair
    together : True if errors of a user's pairs have a common part
    """

    matrix: sp.csc_matrix
    holds: Mask
    slack: Array
    user: Index
    part: Array
    users: int
    limits: int
    pair_weight: float
    together: bool

    def regular(self, size: float) -> sp.csc_matrix:
        """Matrix plus a multiple of the identity, with a negative sign for prices and limits."""
        return (self.matrix + sp.diags(np.where(np.arange(len(self.holds)) < len(self.user), size, -size))).tocsc()

    def folded(self, sensitivity: Array, user: Index) -> Array:
        """Row sums of absolute values over equations; common errors of a user's pairs are summed with their signs."""
        own, others = sensitivity[:, : len(user)], np.abs(sensitivity[:, len(user) :]).sum(axis=1)
        if not self.together:
            return np.asarray(np.abs(own).sum(axis=1) + others)
        starts = np.flatnonzero(np.diff(user, prepend=-1))
        common = np.abs(np.add.reduceat(own, starts, axis=1)).sum(axis=1)
        return np.asarray(common + self.pair_weight * np.abs(own).sum(axis=1) + others)


def _active(polytope: Polytope, criterion: Criterion, tasks: Array, found: BackwardError, dense: int) -> _Active:
    total = polytope.cluster.work(tasks)[polytope.users]
    rule, scale = criterion.restrict(polytope.users), criterion.stiffness
    game, user = criterion.scope == "game", polytope.pair_user
    here, unit = polytope.work(tasks), rule.measure(total, polytope.reach)
    part = here / total[user]
    kept, priced = found.pairs & (here > found.error * unit[user]), found.log_rows > -np.inf
    # The dual of an active limit or floor is an additional unknown, as users there do not respond to prices.
    full = np.flatnonzero((polytope.limit <= total * (1 + _FULL)) | (rule.surplus(total) <= _FULL))
    cost = log_price_per_task(polytope, found.log_rows)
    # Slack of a pair: its cost relative to the marginal utility in the game, and to the least cost otherwise.
    if game:
        reference = rule.log_marginal_of(total, user, polytope.pair_server)
    else:
        reference = np.minimum.reduceat(cost, polytope.start[:-1])[user]
    slack = (cost - reference) / scale
    slack[np.isin(user, full)] = np.inf
    idle = 1 - polytope.used(tasks)
    small = int(kept.sum() + priced.sum()) + len(full) <= dense
    pairs = np.union1d(np.flatnonzero(kept), _least(np.where(kept, np.inf, slack), small))
    rows = np.union1d(np.flatnonzero(priced), _least(np.where(priced, np.inf, idle), small))
    return _Active(
        derivative(polytope, pairs, rows, full, total, rule.elasticity(total) / scale, scale, cost, found.log_rows),
        np.concatenate([kept[pairs], priced[rows], np.ones(len(full), dtype=bool)]),
        np.maximum(np.concatenate([slack[pairs], idle[rows], np.zeros(len(full))]), 0.0),
        user[pairs],
        part[pairs],
        len(total),
        len(full),
        1 / scale,
        not game,
    )


def _least(slack: Array, wanted: bool) -> Index:
    """Indices of at most `_MOST` nearly active constraints, by increasing slack; none unless `wanted`."""
    near = np.flatnonzero(slack < 0.1) if wanted else np.zeros(0, dtype=np.intp)
    return near[np.argsort(slack[near], kind="stable")][:_MOST]


def _exact(active: _Active, error: float, regular: float) -> Array:
    """Row sums from the inverse, (users,), the largest over single changes of the active set; infinite if singular."""
    whole, holds, pairs = active.regular(regular).toarray(), np.flatnonzero(active.holds), len(active.user)
    user, outside = active.user[holds[holds < pairs]], np.flatnonzero(~active.holds)
    try:
        inverse = np.linalg.inv(whole[np.ix_(holds, holds)])
    except np.linalg.LinAlgError:
        return np.full(active.users, np.inf)
    of_user = np.zeros((active.users, len(holds)))
    np.add.at(of_user, user, inverse[: len(user)])
    result, rows = active.folded(of_user, user), whole[np.ix_(outside, holds)] @ inverse
    near = error * (active.folded(rows, user) + 1) > _LEAVES * active.slack[outside]
    for k, row in zip(outside[near], rows[near], strict=True):
        column = whole[holds, k]
        gained = of_user @ column  # solution of the bordered system with one more constraint
        if k < pairs:
            gained[active.user[k]] -= 1
        gained /= whole[k, k] - row @ column
        sizes = active.folded(of_user + np.outer(gained, row), user) + np.abs(gained)
        result = np.where(np.isfinite(sizes), np.maximum(result, sizes), result)
    # Changes of unknowns relative to their distance from zero; they are unbounded if the split is not unique.
    moved = active.folded(inverse[holds < len(active.holds) - active.limits], user)
    moved[: len(user)] /= active.part[holds[: len(user)]]
    leaving = np.flatnonzero(~(error * moved < _LEAVES) | (moved > 1e-2 / regular))
    for k in leaving[np.argsort(-moved[leaving], kind="stable")][:_MOST]:
        changed = of_user - np.outer(of_user[:, k], inverse[k] / inverse[k, k])
        changed[:, k] = 0.0
        sizes = active.folded(changed, user)
        alone = np.bincount(user[np.arange(len(user)) != k], minlength=active.users) > 0
        result = np.where(alone & np.isfinite(sizes), np.maximum(result, sizes), result)
    return result


def _estimated(active: _Active) -> Array:
    """Estimated row sums, (users,): the largest by the 1-norm estimator, and their ratios by random signs.

    Row sums are infinite if the matrix cannot be factored.
    """
    size, pairs, users = active.matrix.shape[0], len(active.user), active.users
    try:
        factors = sparse_linalg.splu(active.regular(_REGULAR))
    except (RuntimeError, MemoryError):
        return np.full(users, np.inf)
    summed = sp.csr_matrix((np.ones(pairs), (active.user, np.arange(pairs))), shape=(users, size))

    def forward(x: Array) -> Array:
        return np.asarray(summed @ factors.solve(np.asarray(x, dtype=float)))

    def backward(x: Array) -> Array:
        return np.asarray(factors.solve(np.asarray(summed.T @ x, dtype=float), trans="T"))

    padded = sparse_linalg.LinearOperator(
        (size, size),
        matvec=lambda x: backward(np.ravel(x)[:users]),
        rmatvec=lambda x: np.concatenate([forward(np.ravel(x)), np.zeros(size - users)]),
        dtype=float,
    )
    largest = float(sparse_linalg.onenormest(padded))
    rng = np.random.default_rng(0)
    sizes = np.sqrt(np.mean([forward(rng.choice([-1.0, 1.0], size)) ** 2 for _ in range(12)], axis=0))
    return np.asarray(sizes * (largest / sizes.max()) if sizes.max() > 0 else sizes)
