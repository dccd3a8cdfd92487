"""Max-min mechanisms without rounding: tasks as fractions."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from ..exact import rational
from ..mechanisms import Mechanism
from ..model.cluster import Cluster
from ..model.criterion import Criterion
from ._base import Numbers

#: A share per task is a fraction with at most this denominator, or it is not known exactly.
_MOST = 10**6
#: Whole numbers up to here are doubles.
_WHOLE = 2**53


def exact_tasks(mechanism: Mechanism, cluster: Cluster) -> Numbers | None:
    """`x[n,i]` as fractions, (users, servers) of the cluster that the mechanism sees.

    `None` where there is no such answer: other criteria than lexicographic max-min, caps, or a cluster that is too
    large. Two fractions with denominators up to 10^6 differ by 10^-12, so that the double of a share per task tells
    which one it is. Only ratios of shares matter: they are scaled to whole numbers.
    """
    seen = mechanism.prepare(cluster)[0]
    rule = mechanism.criterion(seen)
    if not np.isinf(rule.alpha) or rule.scope == "game" or not mechanism.judged_by_criterion:
        return None
    if np.isfinite(rule.cap).any() or rule.floor.any():
        return None
    if rule.scope == "per_server":
        each = [rational.on_one(seen, rule, i) for i in range(len(seen.servers))]
        found = [_leximin(*one) for one in each]
        return None if any(one is None for one in found) else np.hstack([one for one in found if one is not None])
    return _leximin(seen, rule)


def _leximin(cluster: Cluster, rule: Criterion) -> Numbers | None:
    runs = cluster.runnable
    share = {int(n): Fraction(rule.share[n]).limit_denominator(_MOST) for n in np.flatnonzero(runs)}
    common = math.lcm(*(value.denominator for value in share.values()))
    whole = np.ones(len(runs))
    for n, value in share.items():
        if float(value) != rule.share[n] or value * common > _WHOLE:
            return None
        whole[n] = float(value * common)
    found = rational.leximin(cluster, replace(rule, share=whole), rule.limits(cluster))
    return None if found is None else found.tasks
