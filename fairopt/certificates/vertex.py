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
#: G is at least this multiple of welfare: the sum of first-order effects of factors `exp(+-e)` of all data on
#: objective, rows and duals.
_CHANGES = 6.0
#: Number of entries of the dense system above which condition numbers are unknown.
_DENSE = 4_000_000
#: Fraction of the largest possible tasks below which a user has none: its error is relative to these.
_NOTHING = 1e-9
#: Residual of w, relative to the largest coefficient, that is attributed to rounding.
_ROUNDING = 1e-10
#: Factor by which prices may be raised to remove negative reduced costs.
_RAISED = 1.1


def vertex_conditions(polytope: Polytope, criterion: Criterion, tasks: Array, log_rows: Array, error: float) -> Array:
    """Condition numbers at alpha = 0, (users of the polytope,); infinite where tasks are not proved to be unique.

    In the game the linear programs of the servers form one program, unless task limits couple them. With task limits in
    the game, or with floors, uniqueness is not decided, and all condition numbers are infinite.

    Parameters
    ----------
    polytope : Polytope
        Feasible set, `Polytope(cluster, criterion.limits(cluster))`.
    criterion : Criterion
        Of the same cluster, with alpha = 0.
    tasks : (users, servers)
    log_rows : (rows,)
        Log prices of whole capacities in the criterion's scale.
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
    own, limited, gamma = criterion.restrict(polytope.users), polytope.limited, polytope.gamma
    best = np.full(len(polytope.users), np.inf)
    if own.floor.any() or (len(limited) and criterion.scope not in ("pool", "servers")):
        return best
    share = gamma * np.exp(own.log_marginal_of(np.ones(len(best)), polytope.pair_user, polytope.pair_server))
    dual, rows = np.exp(log_rows), sp.vstack([polytope.use, polytope.use_of_limit], format="csr")
    # The dual of a limit is what the cheapest of the user's pairs requires.
    lacking = np.maximum.reduceat((share - polytope.use.T @ dual) / polytope.instances, polytope.start[:-1])[limited]
    dual = np.concatenate([dual, np.maximum(lacking, 0.0) * polytope.quota[limited]])
    raised = float(np.max(share / (rows.T @ dual), initial=1.0))
    if not raised < _RAISED:
        return best
    dual = dual * raised
    reduced = np.maximum(rows.T @ dual - share, 0.0)
    z, welfare = polytope.fractions(tasks), dual.sum()
    spread = max(_CHANGES * welfare, (welfare - share @ z) / max(error, np.finfo(float).eps))
    total, priced = polytope.user_tasks(z), np.flatnonzero(spread / dual < np.inf)
    unit = np.where(total > _NOTHING * polytope.reach, total, polytope.reach)
    if len(priced) * max(len(best), len(priced) + len(best)) > _DENSE:
        return best
    wanted = (sp.diags(1 / unit) @ polytope.tasks).toarray().T
    weighted = (sp.diags(1 / (spread / dual[priced] + 4)) @ rows[priced]).T
    for level in _LEVELS:
        kept = reduced <= level * share
        combined = np.linalg.lstsq(weighted[np.flatnonzero(kept)].toarray(), wanted[kept], rcond=_ROUNDING)[0]
        left = np.abs(weighted @ combined - wanted)
        missed = left[kept].max(axis=0, initial=0.0) > _ROUNDING * wanted.max(axis=0)
        bound = np.abs(combined).sum(axis=0) + 2 * spread / reduced[~kept] @ left[~kept]
        best = np.where(missed, best, np.minimum(best, bound))
    return best
