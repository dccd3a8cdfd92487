"""Tasks as fractions: max-min mechanisms, PS-DSF and the utilitarian rule without rounding."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..exact import psdsf, rational
from ..exact.efficient import unique_optimum
from ..mechanisms import Mechanism
from ..model.cluster import Cluster
from ..model.criterion import Criterion
from ._base import Numbers

#: A share per task is a fraction with at most this denominator, or it is not known exactly.
_MOST = 10**6
#: And its double is this near to it: shares come of a division or two.
_ULPS = 2
#: Whole numbers up to here are doubles.
_WHOLE = 2**53
#: What answers are certified to whose fractions are looked for.
_NEAR = 1e-9


def exact_tasks(mechanism: Mechanism, cluster: Cluster) -> Numbers | None:
    """`x[n,i]` as fractions, (users, servers) of the cluster that the mechanism sees.

    `None` where there is no such answer: other criteria than lexicographic max-min, PS-DSF and the largest sum of
    shares (alpha = 0), or a cluster that is too large. Of PS-DSF, which has several, that of `Mechanism.solve`, if
    simple fractions next to it meet the definition. At alpha = 0 the optimum if there is one only.

    Two fractions with denominators up to 10^6 differ by 10^-12, so that the double of a share per task, or of a limit,
    tells which one it is. Only ratios of shares matter: they are scaled to whole numbers.
    """
    seen = mechanism.prepare(cluster)[0]
    rule = mechanism.criterion(seen)
    if rule.alpha not in (0, np.inf) or not mechanism.judged_by_criterion:
        return None
    if rule.scope == "game":
        return psdsf.nearest(seen, np.maximum(mechanism.solve(seen, _NEAR).tasks, 0)) if rule.alpha else None
    if rule.floor.any():
        return None
    if rule.alpha == 0:
        return _efficient(seen, rule)
    if rule.scope == "per_server":
        each = [rational.on_one(seen, rule, i) for i in range(len(seen.servers))]
        found = [_leximin(*one) for one in each]
        return None if any(one is None for one in found) else np.hstack([one for one in found if one is not None])
    return _leximin(seen, rule)


def _leximin(cluster: Cluster, rule: Criterion) -> Numbers | None:
    runs = cluster.runnable
    share = _fractions(rule.share, runs)
    limits = _fractions(rule.limits(cluster), np.isfinite(rule.limits(cluster)))
    if share is None or limits is None:
        return None
    common, unit = (math.lcm(*(value.denominator for value in some.values())) for some in (share, limits))
    whole, most = np.ones(len(runs)), np.full(len(runs), np.inf)
    for table, some, by in ((whole, share, common), (most, limits, unit)):
        for n, value in some.items():
            table[n] = float(value * by)
    large = cluster.derived(capacity=cluster.capacity * unit)  # and tasks in parts of a task, so that limits are whole
    if max(whole.max(), most[np.isfinite(most)].max(initial=0), large.capacity.max()) > _WHOLE:
        return None
    found = rational.leximin(large, replace(rule, share=whole, cap=np.full(len(runs), np.inf)), most)
    return None if found is None else np.asarray(found.tasks / unit)


def _efficient(cluster: Cluster, rule: Criterion) -> Numbers | None:
    share = _fractions(rule.share, cluster.runnable)
    limits = _fractions(rule.limits(cluster), np.isfinite(rule.limits(cluster)))
    return None if share is None or limits is None else unique_optimum(cluster, share, limits)


def _fractions(values: NDArray[np.float64], some: NDArray[np.bool_]) -> dict[int, Fraction] | None:
    """What the doubles of some users stand for; `None` where that is not known."""
    found = {int(n): Fraction(values[n]).limit_denominator(_MOST) for n in np.flatnonzero(some)}
    ulps = {n: abs(float(value) - values[n]) / np.spacing(abs(values[n])) for n, value in found.items()}
    return found if all(ulp <= _ULPS for ulp in ulps.values()) else None
