"""A direction in which somebody has more and nobody less, in fractions: Pareto optimality without the tasks themselves.

Where tasks are known between bounds only, which rows are used up and who runs where is known all the same. A direction
that keeps those rows and takes from nobody is a linear program of the data alone.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ..exact.rational import numbers
from ..exact.simplex import Dictionary, TooMuch, whole
from ..model.cluster import Cluster
from ._base import Numbers

#: Rows that idle by less than this part count as used up; what a linear program may take.
_FULL, _WORK = Fraction(1, 10**6), 1e6


def gains(cluster: Cluster, low: Numbers, high: Numbers) -> Numbers:
    """What every user can have more, at least, while nobody has less, (users,); zeros where nothing is found.

    `low <= x <= high`, (users, servers), in fractions.
    """
    none = np.full(len(cluster.users), Fraction(0), dtype=object)
    direction = _direction(cluster, low, high)
    if direction is None:
        return none
    demand, capacity = numbers(cluster.demand), numbers(cluster.capacity)
    steps = [low[pair] / -by for pair, by in np.ndenumerate(direction) if by < 0]
    for i, r in np.ndindex(capacity.shape):
        more, used = (direction[:, i] * demand[:, r]).sum(), (high[:, i] * demand[:, r]).sum()
        if more > 0:
            steps.append((capacity[i, r] - used) / more)
    own = direction.sum(axis=1)
    for n in np.flatnonzero(np.isfinite(cluster.max_tasks)):
        if own[n] > 0:
            steps.append((Fraction(cluster.max_tasks[n]) - high[n].sum()) / own[n])
    step = min(steps, default=Fraction(0))
    return np.asarray(own * step) if step > 0 else none


def _direction(cluster: Cluster, low: Numbers, high: Numbers) -> Numbers | None:
    """Changes of tasks, (users, servers): the largest sum of relative gains within `|change| <= gamma`."""
    demand, capacity = numbers(cluster.demand), numbers(cluster.capacity)
    users, servers, _ = cluster.shape
    up = [(n, i) for n in range(users) for i in range(servers) if cluster.usable[n, i] and cluster.max_tasks[n] > 0]
    down = [pair for pair in up if low[pair] > 0]
    columns = [(pair, 1) for pair in up] + [(pair, -1) for pair in down]
    total, goal = high.sum(axis=1), len(columns)
    rows: list[tuple[dict[int, Fraction], Fraction]] = []
    for i, r in np.ndindex(capacity.shape):
        if (high[:, i] * demand[:, r]).sum() >= capacity[i, r] * (1 - _FULL):
            taken = {k: sign * demand[n, r] for k, ((n, j), sign) in enumerate(columns) if i == j and demand[n, r]}
            rows.append((taken, Fraction(0)))
    sums = {n: {k: Fraction(-sign) for k, ((m, _), sign) in enumerate(columns) if m == n} for n in range(users)}
    rows += [(own, Fraction(0)) for own in sums.values() if own]
    at_limit = [n for n in range(users) if total[n] >= cluster.max_tasks[n] * (1 - float(_FULL))]
    rows += [({k: -by for k, by in sums[n].items()}, Fraction(0)) for n in at_limit]
    rows += [({k: Fraction(1)}, Fraction(cluster.gamma[pair])) for k, (pair, _) in enumerate(columns)]
    unit = {n: Fraction(float(total[n])).limit_denominator(1000) for n in range(users) if total[n] > 0}
    if any(n not in unit or unit[n] == 0 for n in range(users) if sums[n]):
        return None
    gain = {k: by / unit[n] for n in range(users) for k, by in sums[n].items()}
    rows.append((gain | {goal: Fraction(1)}, Fraction(0)))
    tables = [whole(*row, width=goal + 1) for row in rows]
    try:
        program = Dictionary([entries for entries, _ in tables], [bound for _, bound in tables], _WORK)
        program.maximise(goal)
    except (TooMuch, ValueError):
        return None
    values = program.values()
    found = np.full((users, servers), Fraction(0), dtype=object)
    for k, (pair, sign) in enumerate(columns):
        found[pair] += sign * values.get(k, Fraction(0))
    return found if values.get(goal, 0) > 0 else None
