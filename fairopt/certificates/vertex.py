r"""Condition numbers of tasks at alpha = 0, where the problem is a linear program, by duality alone.

With fractions :math:`z_k` and shares :math:`c_k = u_n \gamma_k` of pairs k, constraints :math:`A z \le 1` for
capacities and task limits, and duals :math:`y \ge 0` with reduced costs :math:`q = A^\top y - c \ge 0`, every z'
satisfies

.. math:: y^\top (1 - A z') + q^\top z' = y^\top 1 - c^\top z'

Let z' be an optimum of data within factors :math:`\exp(\pm e)` of the given data. Then the slack of every row r is at
most :math:`G e / y_r`, and :math:`z'_k \le G e / q_k` for every pair, with G of the order of the welfare
:math:`y^\top 1`. Let K be a set of pairs with small reduced costs, and w coefficients of rows such that
:math:`(A^\top w)_k = g_k` for all k in K, where :math:`g_k = \gamma_k` for the pairs of user n and 0 for other pairs.
Then

.. math:: |x'_n - x_n| \le e \sum_r |w_r| (G/y_r + 4)
    + e \sum_{k \notin K} |(A^\top w)_k - g_k| \, 2 G/q_k

which proves, for e tending to 0, that :math:`x_n` is unique, and bounds its condition number. The vertex may be
degenerate. The coefficients w are a weighted least-squares solution that prefers rows with large duals; of several
sets K the set with the smallest bound is used.
"""

from __future__ import annotations

import numpy as np

from ..base.libraries import sp
from ..model._arrays import Array
from ..model.criterion import Criterion
from ..model.polytope import Polytope

#: Ratios of reduced cost to share up to which pairs belong to K; each is tried.
_LEVELS = (1e-3, 1e-6, 1e-9)
#: Least ratio of G to welfare: the sum of the first-order effects of factors `exp(+-e)` of all data on objective, rows
#: and duals.
_CHANGES = 6.0
#: Number of entries of the dense system above which condition numbers are unknown.
_DENSE = 4_000_000
#: Fraction of a user's largest possible tasks. With fewer tasks, its error is relative to its largest possible tasks.
_NOTHING = 1e-9
#: Residual of the equations of w, relative to the largest coefficient, that is attributed to rounding.
_ROUNDING = 1e-10
#: Largest factor by which prices are increased to remove negative reduced costs.
_RAISED = 1.1


def vertex_conditions(polytope: Polytope, criterion: Criterion, tasks: Array, log_rows: Array, error: float) -> Array:
    """Condition numbers at alpha = 0, (users of the polytope,); infinite where tasks are not proved to be unique.

    In the game the linear programs of the servers form one program, unless task limits couple them. With task limits in
    the game, or with floors, uniqueness is not decided, and all condition numbers are infinite. They are infinite, too,
    if the prices are far from dual feasible, or the problem is too large.

    Parameters
    ----------
    polytope : Polytope
        Feasible set, `Polytope(cluster, criterion.limits(cluster))`.
    criterion : Criterion
        Criterion of the same cluster, with alpha = 0.
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
    # The dual of a user's limit is the smallest at which no pair of the user has a negative reduced cost.
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
