r"""Condition numbers of tasks at alpha = 0, where an optimum is that of a linear program, by duality alone.

With fractions z, shares `c_k = u_n gamma_k` of pairs, `A z <= 1` for capacities and task limits (and `-A z <= -1` for
floors), and duals `y >= 0` with reduced costs `q = A'y - c >= 0`, every feasible z' satisfies

.. math:: y^\top (1 - A z') + q^\top z' = y^\top 1 - c^\top z'

Thus an optimum z' of data within a factor `exp(+-e)` of the given has slack at most `G e/y_r` in every row, and at most
`G e/q_k` of every pair, with G of the order of welfare `y'1`. If a user's tasks are a combination w of rows on the
pairs K of small reduced cost, `(A'w)_k = gamma_k` for its own pairs in K and 0 for the others, then

.. math:: |x'_n - x_n| \le e \sum_r |w_r| (G/y_r + 4)
    + e \sum_{k \notin K} |(A^\top w)_k - [k \in n] \gamma_k| \, 2 G/q_k

which proves that `x_n` is unique, for e -> 0, and its condition number. No assumption is made about the vertex. Rows
are weighted by their duals, so that w prefers those of large ones; K is the best of several.
"""

from __future__ import annotations

import numpy as np

from ..base.libraries import sp
from ..model._arrays import Array
from ..model.criterion import Criterion
from ..model.polytope import Polytope

#: Reduced costs, relative to a pair's share, up to which pairs may have tasks; tried in turn.
_LEVELS = (1e-3, 1e-6, 1e-9)
#: Factor of welfare in G, for changes of all data by a factor `exp(+-e)` of objective, rows, and duals.
_CHANGES = 6.0
#: Number of entries of the dense system up to which condition numbers are computed.
_DENSE = 4_000_000
#: Fraction of the largest possible tasks below which a user has none: its error is relative to these.
NOTHING = 1e-9
#: Residual of w, relative to the largest coefficient, that is attributed to rounding.
_ROUNDING = 1e-10


def vertex_conditions(polytope: Polytope, criterion: Criterion, tasks: Array, log_rows: Array, error: float) -> Array:
    """Condition numbers at alpha = 0, (users of the polytope,); infinite where tasks are not proved to be unique.

    Parameters
    ----------
    polytope : Polytope
        Feasible set, `Polytope(cluster, criterion.limits(cluster))`.
    criterion : Criterion
        Of the same cluster, with alpha = 0. In the game servers are judged one by one; task limits, which couple them,
        leave everything unknown.
    tasks : (users, servers)
    log_rows : (rows,), log prices of whole capacities in the criterion's scale
    error : float
        Backward error of the tasks.

    >>> import numpy as np, fairopt as fo
    >>> from fairopt.certificates.vertex import vertex_conditions
    >>> from fairopt.model.polytope import Polytope
    >>> cluster, tasks = fo.Cluster([[9, 18]], [[1, 4], [3, 1]]), np.array([[45 / 11], [18 / 11]])
    >>> place, rule = Polytope(cluster, cluster.max_tasks), fo.Utilitarian().criterion(cluster)
    >>> prices = np.log([10 / 11, 6 / 11])
    >>> bool(np.isfinite(vertex_conditions(place, rule, tasks, prices, 1e-15)).all())
    True
    """
    users, z = len(polytope.users), polytope.fractions(tasks)
    unknown = np.full(users, np.inf)
    game, own = criterion.scope in ("game", "per_server"), criterion.restrict(polytope.users)
    if game and len(polytope.limited):
        return unknown
    user, gamma = polytope.pair_user, polytope.gamma
    share = gamma * np.exp(own.log_marginal_of(np.ones(users), user, polytope.pair_server))
    reduced = polytope.use.T @ np.exp(log_rows) - share
    # Duals of limits and floors are those that the reduced costs of the user's pairs require.
    first, limited = polytope.start[:-1], polytope.limited
    floored = np.flatnonzero(own.floor > 0)
    per_task = np.minimum.reduceat(reduced / gamma, first)
    of_limit = np.maximum(-per_task[limited], 0.0) * polytope.limit[limited]
    of_floor = np.maximum(per_task[floored], 0.0) * own.floor[floored]
    floors = sp.diags(1 / own.floor[floored]) @ polytope.tasks[floored]
    rows = sp.vstack([polytope.use, polytope.use_of_limit, floors], format="csr")
    dual = np.concatenate([np.exp(log_rows), of_limit, -of_floor])
    reduced = rows.T @ dual - share
    # What is left of negative reduced costs is removed by higher prices.
    high = 1 + float(np.max(-reduced / (share + reduced), initial=0.0))
    if not 1 <= high < 1.1:
        return unknown
    dual, reduced = high * dual, np.maximum(high * (share + reduced) - share, 0.0)
    group = polytope.row_server if game else np.zeros(len(polytope.row_server), dtype=np.intp)
    groups = int(polytope.cluster.shape[1]) if game else 1
    seller = polytope.pair_server if game else np.zeros(len(user), dtype=np.intp)
    group = np.concatenate([group, np.zeros(len(dual) - len(group), dtype=np.intp)])
    welfare = np.bincount(group, np.abs(dual), groups)
    gap = np.bincount(group, dual, groups) - np.bincount(seller, share * z, groups)
    spread = np.maximum(_CHANGES * welfare, gap / max(error, 1e-15))
    total = polytope.user_tasks(z)
    unit = np.where(total > NOTHING * polytope.reach, total, polytope.reach)
    wanted = (sp.diags(1 / unit) @ polytope.tasks).toarray()
    with np.errstate(divide="ignore", invalid="ignore"):
        of_row, of_pair = spread[group] / np.abs(dual) + 4, 2 * spread[seller] / reduced
        priced = np.flatnonzero(of_row < np.inf)
        best = unknown
        for level in _LEVELS:
            kept = reduced <= level * share
            if len(priced) * kept.sum() > _DENSE or len(priced) * users > _DENSE:
                continue
            best = np.minimum(best, _bounds(rows[priced], wanted, kept, of_row[priced], of_pair))
    return best


def _bounds(rows: sp.csr_matrix, wanted: Array, kept: Array, of_row: Array, of_pair: Array) -> Array:
    """Bounds, (users,), by combinations of rows that are `wanted` (users, pairs) on the kept pairs."""
    weighted = sp.diags(1 / of_row) @ rows
    system = weighted[:, np.flatnonzero(kept)].toarray().T
    combined = np.linalg.lstsq(system, wanted[:, kept].T, rcond=_ROUNDING)[0] if system.size else None
    if combined is None:
        return np.full(len(wanted), np.inf)
    left = np.abs(weighted.T @ combined - wanted.T)
    missed = left[kept].max(axis=0, initial=0.0) > _ROUNDING * np.maximum(wanted.max(axis=1), 1e-300)
    bound = np.abs(combined).sum(axis=0) + of_pair[~kept] @ left[~kept]
    return np.where(missed, np.inf, bound)
