"""How far a user's tasks may be from lexicographic max-min where everybody's rise is bounded: a condition per user.

A certificate bounds by what anybody could rise, relative to its own tasks. A user who needs 1e-8 of what the others do
may have half of its tasks too many at a price of 1e-8 to them: their rise is then all that is seen of it.

With prices lambda of one level, and `P_m` what the tasks of m cost where they cost least, the level t of the users G
that have it moves with the data, to first order, by

    dt / t  =  sum_ir lambda_ir (c_ir dlog c_ir - x_ir d_r dlog d_r) / sum_{m in G} P_m,

(the dual of the linear program of that level), so that a relative change e of everything, the others' tasks included,
moves it by e times about

    condition  =  sum_ir lambda_ir c_ir / sum_{m in G} P_m  >=  1.

A user whose level is alone at what others have left over by rounding has few P_m in the sum, and a large condition.
e is what the certificate shows, the larger of rise and infeasibility; tasks are known to about e times the condition
(measured on 451 small clusters against exact optima: never more than 10 times that). It is of first order, and leaves
out that lower levels may be off by more than e themselves. Where a certificate measures the distance from an exact
optimum there is nothing to add. Levels closer than `SAME_LEVEL` are one; so close to its limit a user is held
by it, unless prices prove that capacity leaves it less.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..model import polytope as polytopes
from ..model.cluster import Cluster
from ..model.criterion import Criterion
from ..model.merging import merge
from ..model.polytope import Polytope
from ..model.split import Split
from .leximin import SAME_LEVEL, by_level, kept, proved, rise_and_prices

Array = NDArray[np.float64]

#: Sums of doubles are no better than this, whatever a certificate shows.
_ROUNDING = 1e-15


@dataclass(frozen=True)
class MaxminConditionOptions:
    """Which hints are proofs."""

    #: A hint that proves this much less for a user is no proof of its level.
    proves: float = 1e-4


#: What is used unless a caller says otherwise.
OPTIONS = MaxminConditionOptions()


def condition(cluster: Cluster, tasks: Array | Split, criterion: Criterion, prices: Array | None = None) -> Array:
    """The condition of every user, (users,), of a feasible max-min allocation `tasks` (users, servers).

    1 for who is held by its task limit or floor or can run nothing, infinite where no prices prove a level. `prices`
    (levels, servers, resources) are a hint; without, those of a linear program per level are taken, unless there are
    too many pairs. On one server no prices are needed.

    Raises
    ------
    DataError
        The criterion is not lexicographic max-min over a pool or servers.
    """
    if not (np.isinf(criterion.alpha) and criterion.scope in ("pool", "servers")):
        raise DataError(
            f"alpha is {criterion.alpha:g} and the scope {criterion.scope!r} here: only lexicographic max-min over a "
            "pool or over servers has one level per user"
        )
    split = tasks if isinstance(tasks, Split) else Split.from_table(merge(cluster, users=False), tasks)
    limits, table, merged = criterion.limits(cluster), split.merged, split.merging.cluster
    polytope, result = Polytope(merged, limits), np.ones(len(limits))
    users = polytope.users
    if not len(users):
        return result
    x = table.sum(axis=1)[users]
    if not (x > 0).all():
        result[users] = np.inf
        return result
    own = criterion.restrict(users)
    level, to_limit, above = own.levels(x), polytope.limit / x - 1, own.surplus(x) > SAME_LEVEL
    free = (to_limit > SAME_LEVEL) & above
    hint = None
    if merged.shape[1] == 1:
        hint = _single(merged)
    elif prices is not None:
        first = np.unique(split.merging.server_of, return_index=True)[1]
        hint = prices.reshape(-1, *cluster.capacity.shape)[:, first]
    rise, found = _of_levels(polytope, table, x, level, free, own.floor, hint)
    # Capacity may hold who is a little below its limit, and not the limit.
    result[users] = np.where(free | (above & (rise < to_limit)), found, 1.0)
    return result


def _single(cluster: Cluster) -> Array:
    """On one server a level is held by one resource: a price for each alone, (resources, 1, resources)."""
    capacity = cluster.capacity[0]
    marginal = np.divide(1.0, capacity, out=np.zeros(len(capacity)), where=capacity > 0)
    return np.asarray(np.diag(marginal)[:, None, :])


def _of_levels(
    polytope: Polytope,
    tasks: Array,
    x: Array,
    level: Array,
    free: NDArray[np.bool_],
    floor: Array,
    hint: Array | None,
) -> tuple[Array, Array]:
    """What is proved of users' rises, limits aside, and their condition by the prices that prove most for them."""
    groups = by_level(level)
    sets = [] if hint is None else list(hint)
    known = proved(polytope, tasks, groups, np.array(sets), floor).rise if sets else np.full(len(x), np.inf)
    if polytope.cluster.shape[1] > 1 and len(polytope.gamma) <= polytopes.OPTIONS.large:
        for group in groups:
            hungry = group[free[group] & (known[group] > OPTIONS.proves)]
            if len(hungry):
                rows = rise_and_prices(polytope, x, kept(level <= level[group].max(), x, floor), hungry)[1]
                sets += [] if rows is None else [polytope.unit_prices(rows)]
    if not sets:
        return np.full(len(x), np.inf), np.full(len(x), np.inf)
    found = proved(polytope, tasks, groups, np.array(sets), floor)
    return found.rise, np.where(found.rise <= OPTIONS.proves, found.condition, np.inf)
