"""Lexicographic max-min: nobody can rise without taking from somebody at or below its own level, or at its floor.

x is the lexicographic optimum over a convex set iff that holds for every user, re-shuffling over servers
allowed. Prices prove it by arithmetic alone, see `proved`: hints from whoever made x, one set of prices per level or
one for all. For users whom the hints do not hold, one linear program per distinct level: `max sum of relative rises`
of the users at that level, while all at or below it keep theirs; its duals are such prices. Where there are too many
pairs for that, what the hints prove is what is known.
With one server no program is needed: see `bottleneck`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _clock
from .._libraries import sp
from ..model import polytope as polytopes
from ..model.criterion import Criterion
from ..model.polytope import Polytope
from . import _linear

Array = NDArray[np.float64]

#: Levels closer than this are one level; the width of such a group counts as a violation.
SAME_LEVEL = 1e-7
#: Users whom a hint holds to this are not asked about again in a linear program.
SUFFICIENT = 1e-6
#: Without a hint all users are asked about but those so near to their limit that a program knows no better.
_AT_LIMIT = 1e-10


@dataclass(frozen=True)
class LeximinOptions:
    """How long a judge looks for a better proof."""

    #: Seconds that linear programs may look, in all, for a better proof than that of the prices given.
    seconds: float = 20.0


#: What is used unless a caller says otherwise.
OPTIONS = LeximinOptions()


def lexicographic_rise(
    polytope: Polytope, tasks: Array, criterion: Criterion, prices: Array | None = None
) -> tuple[float, Array | None, str]:
    """Largest relative rise in tasks that some user could get without taking from anybody at or below its own level.

    Tasks are the lexicographic max-min if and only if nobody can rise. Infinite where somebody who could run tasks has
    none.

    Parameters
    ----------
    polytope : the feasible set of a cluster under limits, `Polytope(cluster, criterion.limits(cluster))`
    tasks : (users, servers), tasks of the polytope's cluster
    criterion : of the same cluster, with infinite alpha, in the scope `pool` or `servers`
    prices : (servers, resources), or (levels, servers, resources), per unit of resource: a hint. Users whom it does not
        hold to 1e-6 are asked about in linear programs, unless there are more than 300,000 pairs (user, server). None:
        all users are asked about

    Returns
    -------
    rise : of the users of a level, or the relative width of the level if that is larger
    prices : those given, if they prove it alone; or None
    where : who could rise most, in words

    Source: found here; the module's docstring has the condition and how prices prove it.
    """
    users = polytope.cluster.users
    if not len(polytope.users):
        return 0.0, None, "no user can run anything"
    own = criterion.restrict(polytope.users)
    x = polytope.user_tasks(polytope.fractions(tasks))
    if not (x > 0).all():
        return np.inf, None, f"user {users[polytope.users[int(np.argmin(x))]]!r} runs nothing, although it could"
    level = own.levels(x)
    to_limit = polytope.limit / x - 1
    groups = by_level(level)
    rise = np.full(len(x), np.inf) if prices is None else proved(polytope, tasks, groups, prices, own.floor).rise
    rise = np.minimum(rise, np.maximum(to_limit, 0.0))
    alone = prices is not None
    left = _linear.OPTIONS.seconds if prices is None else OPTIONS.seconds
    sufficient = _AT_LIMIT if prices is None else SUFFICIENT
    worst, where = 0.0, "nobody can rise"
    for group in groups:
        width = float(level[group].max() / level[group].min()) - 1
        hungry = group[rise[group] > sufficient]
        if len(hungry) and left > 0 and (prices is None or len(polytope.gamma) <= polytopes.OPTIONS.large):
            alone, begun = False, _clock.now()
            keep = kept(level <= level[group].max(), x, own.floor)
            rise[hungry] = np.minimum(rise[hungry], rise_and_prices(polytope, x, keep, hungry, left)[0])
            left -= _clock.now() - begun
        highest = group[int(np.argmax(rise[group]))]
        found = float(rise[highest])
        if max(found, width) > worst:
            worst = max(found, width)
            where = f"largest for user {users[polytope.users[highest if found >= width else group[0]]]!r}"
    return worst, prices if alone else None, where


class Proof(NamedTuple):
    """What prices prove, all (users,).

    Attributes
    ----------
    rise : bound on the relative rise in tasks; infinite where nothing is proved
    which : the set of prices that proves it, -1 for none
    condition : what capacities are worth at these prices over what the tasks of n's level cost, `maxmin_condition`
    """

    rise: Array
    which: NDArray[np.intp]
    condition: Array


def kept(below: NDArray[np.bool_], x: Array, floor: Array) -> Array:
    """What nobody may take, (users,): all tasks of those at or below a level, of the others their floors."""
    return np.where(below, x, np.minimum(floor, x))


def proved(
    polytope: Polytope, tasks: Array, groups: list[NDArray[np.intp]], prices: Array, floor: Array | float = 0.0
) -> Proof:
    """What prices prove of the relative rise of each user, by which set of them, and how that depends on the data.

    With prices of whole capacities `lambda >= 0`, `P_n` what the tasks of n cost where they cost least, and x' any
    allocation that leaves `keep`, everyone at or below a level, their tasks, and the others their floors:

        sum_keep P_n (x'_n/x_n - 1)  <=  sum lambda idle + sum_all (paid_n - P_n) + sum_others P_n (1 - floor_n/x_n),

    called the gap, so that n rises by at most `gap / P_n`. All terms are >= 0 and none is a difference of large
    numbers. Each user gets the best of all sets of prices, each of which holds for every level.
    """
    fractions = polytope.fractions(tasks)
    x = polytope.user_tasks(fractions)
    start = polytope.start[:-1]
    capacity = polytope.cluster.capacity
    idle = np.zeros_like(capacity)
    idle[polytope.row_server, polytope.row_resource] = np.maximum(1 - polytope.used(tasks), 0.0)
    rank = np.empty(len(x), dtype=np.intp)
    for g, group in enumerate(groups):
        rank[group] = g
    best, which, condition = np.full(len(x), np.inf), np.full(len(x), -1), np.full(len(x), np.inf)
    part, spare = fractions * polytope.gamma / x[polytope.pair_user], 1 - np.minimum(floor / x, 1.0)
    for s, unit in enumerate(np.nan_to_num(prices.reshape(-1, *capacity.shape), posinf=0.0)):
        whole = np.maximum(unit, 0.0) * capacity
        rows = whole[polytope.row_server, polytope.row_resource]
        if not np.isfinite(rows).all() or not rows.any():
            continue
        cost = polytope.price_per_task(rows) * x[polytope.pair_user]
        least = np.minimum.reduceat(cost, start)
        above = np.add.reduceat(part * (cost - least[polytope.pair_user]), start)
        own = np.bincount(rank, np.maximum(above, 0.0), len(groups)).cumsum()
        paid = np.bincount(rank, np.maximum(least * spare + above, 0.0), len(groups))
        others = np.append(paid[::-1].cumsum()[::-1][1:], 0.0)
        gap = (float((whole * idle).sum()) + own + others)[rank]
        with np.errstate(divide="ignore", invalid="ignore"):
            bound = np.where(least > 0, gap / least, np.inf)
        better = bound < best
        best[better], which[better] = bound[better], s
        spent = np.bincount(rank, least, len(groups))[rank]
        condition[better] = rows.sum() / spent[better]
    return Proof(best, which, condition)


def by_level(level: Array) -> list[NDArray[np.intp]]:
    """Users by level, lowest first; neighbours closer than SAME_LEVEL chained together."""
    order = np.argsort(level, kind="stable")
    steps = np.flatnonzero(level[order][1:] > level[order][:-1] * (1 + SAME_LEVEL)) + 1
    return list(np.split(order, steps))


def rise_and_prices(
    polytope: Polytope, x: Array, least: Array, hungry: NDArray[np.intp], seconds: float = _linear.OPTIONS.seconds
) -> tuple[float, Array | None]:
    """A proved bound on the relative rise of any of `hungry` while all users keep `least` of their tasks x (users,).

    And the prices of whole capacities (rows,) in its proof, unless the program failed, or took more `seconds`.

    Variables: fractions z (pairs) and rises r (hungry): `max sum r`, `tasks_n z / x_n - r_n >= least_n / x_n`.
    """
    keep = np.flatnonzero(least > 0)
    pairs, free = len(polytope.gamma), len(hungry)
    relative = sp.diags(1 / x[keep]) @ polytope.tasks[keep]
    position = np.searchsorted(keep, hungry)
    rises = sp.csr_matrix((np.ones(free), (position, np.arange(free))), shape=(len(keep), free))
    rows = [
        sp.hstack([polytope.use, sp.csr_matrix((polytope.use.shape[0], free))]),
        sp.hstack([-relative, rises]),
    ]
    # Slack for rounding in x, or the program would be infeasible; the bound below is on the exact one.
    part = least[keep] / x[keep]
    bounds = [np.ones(polytope.use.shape[0]), 1e-10 - part]
    if len(polytope.limited):
        rows.append(sp.hstack([polytope.use_of_limit, sp.csr_matrix((len(polytope.limited), free))]))
        bounds.append(np.ones(len(polytope.limited)))
    solved = _linear.maximise(np.concatenate([np.zeros(pairs), np.ones(free)]), rows, bounds, seconds)
    if solved is None:
        return np.inf, None
    prices, marginal = solved[1][:2]
    limits = solved[1][2] if len(polytope.limited) else np.zeros(0)
    # Every z <= 1, so a pair worth more than it costs leaks at most the difference.
    idle_priced = np.maximum(
        relative.T @ marginal - polytope.use.T @ prices - polytope.use_of_limit.T @ limits, 0.0
    ).sum()
    gap = prices.sum() + limits.sum() + idle_priced - marginal @ part
    smallest = marginal[position].min()
    return float(max(gap, 0.0) / smallest) if smallest > 0 else np.inf, prices
