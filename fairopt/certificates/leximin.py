"""Lexicographic max-min: nobody can rise without taking from somebody at or below its own level.

x is the lexicographic optimum over a convex set iff that holds for every user, re-shuffling over servers
allowed. One linear program per distinct level: `max sum of relative rises` of the users at that level, while all
at or below it keep theirs. Its duals prove a bound on each single rise, which arithmetic checks.
With one server no program is needed: see `bottleneck`.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..criteria import Criterion
from ..polytope import Polytope
from . import _linear

Array = NDArray[np.float64]

#: Levels closer than this are one level; the width of such a group counts as a violation.
SAME_LEVEL = 1e-7


def lexicographic_rise(polytope: Polytope, tasks: Array, criterion: Criterion) -> tuple[float, str]:
    """Largest relative rise in tasks that some user could get, and who."""
    users = polytope.cluster.users
    if not len(polytope.users):
        return 0.0, "no user can run anything"
    own = criterion.restrict(polytope.users)
    x = polytope.tasks @ polytope.fractions(tasks)
    if not (x > 0).all():
        return np.inf, f"user {users[polytope.users[int(np.argmin(x))]]!r} runs nothing, although it could"
    level = own.levels(x)
    to_limit = polytope.limit / x - 1
    worst, where = 0.0, "nobody can rise"
    for group in _groups(level):
        width = float(level[group].max() / level[group].min()) - 1
        hungry = group[to_limit[group] > SAME_LEVEL]
        rise = 0.0
        if len(hungry):
            keep = np.flatnonzero(level <= level[group].max())
            rise = _rise(polytope, x, keep, hungry)
        if max(rise, width) > worst:
            worst = max(rise, width)
            where = f"user {users[polytope.users[(hungry if len(hungry) else group)[0]]]!r} could rise"
    return worst, where


def _groups(level: Array) -> list[NDArray[np.intp]]:
    """Users by level, lowest first; neighbours closer than SAME_LEVEL chained together."""
    order = np.argsort(level, kind="stable")
    steps = np.flatnonzero(level[order][1:] > level[order][:-1] * (1 + SAME_LEVEL)) + 1
    return list(np.split(order, steps))


def _rise(polytope: Polytope, x: Array, keep: NDArray[np.intp], hungry: NDArray[np.intp]) -> float:
    """A proved bound on the relative rise of any of `hungry` while all of `keep` keep their tasks.

    Variables: fractions z (pairs) and rises r (hungry): `max sum r`, `tasks_n z / x_n - r_n >= 1`.
    """
    pairs, free = len(polytope.gamma), len(hungry)
    relative = sp.diags(1 / x[keep]) @ polytope.tasks[keep]
    position = np.searchsorted(keep, hungry)
    rises = sp.csr_matrix((np.ones(free), (position, np.arange(free))), shape=(len(keep), free))
    rows = [
        sp.hstack([polytope.use, sp.csr_matrix((polytope.use.shape[0], free))]),
        sp.hstack([-relative, rises]),
    ]
    # Slack for rounding in x, or the program would be infeasible; the bound below is on the exact one.
    bounds = [np.ones(polytope.use.shape[0]), np.full(len(keep), 1e-10 - 1)]
    if len(polytope.limited):
        rows.append(sp.hstack([polytope.use_of_limit, sp.csr_matrix((len(polytope.limited), free))]))
        bounds.append(np.ones(len(polytope.limited)))
    solved = _linear.maximise(np.concatenate([np.zeros(pairs), np.ones(free)]), rows, bounds)
    if solved is None:
        return np.inf
    prices, worth = solved[1][:2]
    limits = solved[1][2] if len(polytope.limited) else np.zeros(0)
    # Every z <= 1, so a pair worth more than it costs leaks at most the difference.
    leak = np.maximum(relative.T @ worth - polytope.use.T @ prices - polytope.use_of_limit.T @ limits, 0.0).sum()
    gap = prices.sum() + limits.sum() + leak - worth.sum()
    smallest = worth[position].min()
    return float(max(gap, 0.0) / smallest) if smallest > 0 else np.inf
