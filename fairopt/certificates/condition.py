"""Condition of an alpha-fair answer, user by user: the relative change of tasks by a relative change of data.

With J the derivative of the conditions of `backward` in (tasks of kept pairs over x_n, log prices, excess of users who
are served in full), rows of pairs divided by `A = max(alpha, 1)`, a change e of the data moves `log x_n` by at most
`e sum_k |(C J^-1)_nk|` to first order, C the sum over a user's pairs. (In a global program what changes a user's weight
is the same for all of its pairs, and demands of a pair count 1/A.) J is singular where splits or prices are not unique,
though tasks are: a multiple of the identity makes up for that, 1e-11 of it, or 1e-14 for users whom 1e-11 would hide.

That holds as long as the same rows are priced and the same pairs have tasks. Those whose price or tasks the error found
could take to zero are left out one at a time; pairs without tasks that it could make as cheap as others, and rows that
it could fill, come in one at a time (rank-one formulas); and the largest condition counts. What it cannot know is other
equilibria, and several such changes at once. At scale row sums are estimated (Higham and Tisseur's 1-norm estimator;
users relative to it by random signs), for the pairs with tasks and the rows with a price.

Source: Higham, "Accuracy and Stability of Numerical Algorithms" (2002), sections 7.2 and 15.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.libraries import sp, sparse_linalg
from ..model._arrays import Array, Index, Mask
from ..model.criterion import Criterion
from ..model.polytope import Polytope
from .backward import BackwardError, log_price_per_task


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
    """The derivative for these pairs, rows and limits; a row without a price has one in another unit.

    Parameters
    ----------
    pairs, rows, full : of the polytope; users who are served in full, or at their floor
    total : (users,), tasks
    elasticity : (users,) or (users, servers), by how much the log of what a task is worth falls with log tasks
    scale : what equations of pairs are divided by
    cost, log_rows : (pairs,), (rows,), log prices of a task and of whole capacities, -inf for none
    """
    user, server = polytope.pair_user[pairs], polytope.pair_server[pairs]
    use = polytope.use[rows][:, pairs].tocoo()
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


#: A multiple of the identity makes up for splits and prices that are not unique: the first keeps rounding small, the
#: second is for users whose condition comes near what the first can show.
_REGULAR, _FINE = 1e-11, 1e-14
_HIDDEN = 1e-4 / _REGULAR
#: Up to this number of unknowns the inverse is computed.
_DENSE = 600
#: The error found times a sensitivity is at least this of a row or pair that may leave or come in; most of them.
_LEAVES, _MOST = 0.1, 60
#: Users with less room than this are served in full, with less surplus at their floor.
_FULL = 1e-6


def conditions(
    polytope: Polytope, criterion: Criterion, tasks: Array, found: BackwardError, dense: int = _DENSE
) -> Array:
    """The condition of every user, (all users,): 1 for whoever can run nothing, infinite where nothing is proved.

    If the data change by a factor of `exp(+-e)`, user n's tasks change by `condition[n] e` at most, to first order. At
    alpha = 0 all are infinite: a small change may move all tasks.

    Parameters
    ----------
    polytope : the feasible set of a cluster under limits, `Polytope(cluster, criterion.limits(cluster))`
    criterion : of the same cluster, with finite alpha
    tasks : (users, servers), tasks of the polytope's cluster
    found : their `backward_error`
    dense : up to this number of unknowns the inverse is computed, for more its row sums are estimated

    Source: Higham, "Accuracy and Stability of Numerical Algorithms" (2002), sections 7.2 and 15.
    """
    result = np.ones(polytope.cluster.shape[0])
    if not len(polytope.users):
        return result
    if not np.isfinite(found.error) or criterion.alpha == 0:
        result[polytope.users] = np.inf  # at alpha = 0 a small change may move all tasks
        return result
    with np.errstate(all="ignore"):
        active = _active(polytope, criterion, tasks, found, dense)
        if active.matrix.shape[0] > dense:
            sizes = _estimated(active)
        else:
            # No error is below rounding, though it may be found to be nothing: at an exact tie pairs come in all the
            # same.
            error, hidden = max(found.error, 1e-15), _HIDDEN
            sizes = _exact(active, error, _REGULAR)
            if (sizes > hidden).any():
                sizes = np.where(sizes > hidden, np.maximum(sizes, _exact(active, error, _FINE)), sizes)
    result[polytope.users] = np.where(np.isfinite(sizes), np.maximum(sizes, 1.0), np.inf)
    return result


@dataclass(frozen=True)
class _Active:
    """The derivative of the conditions, of and in pairs, then rows, then limits: those that hold, and nearly do.

    Attributes
    ----------
    matrix : (unknowns, unknowns)
    holds : (unknowns,), which hold with equality
    slack : (unknowns,), a pair's price above what a task is worth, over A; a row's idle part
    user : (pairs,); part : (pairs,), tasks over those of the user
    users, limits : how many
    pair_weight : what an error of one pair's own counts
    together : are errors of pairs those of their user
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
        """The matrix with this multiple of the identity, negative for prices and limits."""
        return (self.matrix + sp.diags(np.where(np.arange(len(self.holds)) < len(self.user), size, -size))).tocsc()

    def folded(self, sensitivity: Array, user: Index) -> Array:
        """`sum_k |.|` over equations of rows (..., equations), errors of a user's pairs added up first if together."""
        own, others = sensitivity[:, : len(user)], np.abs(sensitivity[:, len(user) :]).sum(axis=1)
        if not self.together:
            return np.asarray(np.abs(own).sum(axis=1) + others)
        starts = np.flatnonzero(np.diff(user, prepend=-1))
        common = np.abs(np.add.reduceat(own, starts, axis=1)).sum(axis=1)
        return np.asarray(common + self.pair_weight * np.abs(own).sum(axis=1) + others)


def _active(polytope: Polytope, criterion: Criterion, tasks: Array, found: BackwardError, dense: int) -> _Active:
    total = tasks.sum(axis=1)[polytope.users]
    rule, scale = criterion.restrict(polytope.users), criterion.stiffness
    game, user = criterion.scope == "game", polytope.pair_user
    here, unit = tasks[polytope.users[user], polytope.pair_server], rule.measure(total, polytope.reach)
    part = here / total[user]
    kept, priced = found.pairs & (here > found.error * unit[user]), found.log_rows > -np.inf
    # Who is served in full, or at its floor, does not follow prices: its excess is one more unknown.
    full = np.flatnonzero((polytope.limit <= total * (1 + _FULL)) | (rule.surplus(total) <= _FULL))
    cost = log_price_per_task(polytope, found.log_rows)
    # By how much pairs are dearer: in the game than a task is worth, otherwise than where it costs least.
    if game:
        worth = rule.log_marginal_of(total, user, polytope.pair_server)
    else:
        worth = np.minimum.reduceat(cost, polytope.start[:-1])[user]
    slack = (cost - worth) / scale
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
    """Nearly active constraints, the nearest first."""
    near = np.flatnonzero(slack < 0.1) if wanted else np.zeros(0, dtype=np.intp)
    return near[np.argsort(slack[near], kind="stable")][:_MOST]


def _exact(active: _Active, error: float, regular: float) -> Array:
    """Row sums from the inverse, (users,), the largest over what may leave or come in."""
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
        gained = of_user @ column  # bordered by one more unknown and its equation
        if k < pairs:
            gained[active.user[k]] -= 1
        gained /= whole[k, k] - row @ column
        sizes = active.folded(of_user + np.outer(gained, row), user) + np.abs(gained)
        result = np.where(np.isfinite(sizes), np.maximum(result, sizes), result)
    # By how much each unknown could move, relative to what it takes to reach zero; without bound where splits are free.
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
    """Row sums (users,): the largest by the 1-norm estimator, the others relative to it by random signs."""
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
