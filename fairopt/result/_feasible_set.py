"""What two users of a cluster can have: the border of the set of their tasks, by linear programs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .._libraries import optimize
from ..errors import DataError
from ..model.cluster import Cluster

Point = NDArray[np.float64]
#: Corners nearer than this part of the largest tasks are one.
_NEAR = 1e-9
#: Weight of the other user: of a side that is parallel to an axis, the better end. HiGHS sees no less than 1e-7.
_LITTLE = 1e-6
#: More corners than this are not looked for between two.
_DEEPEST = 12


def border(cluster: Cluster) -> Point:
    """Corners of {(x_1, x_2)} that are efficient, from the most of user 1 to the most of user 2: (corners, 2).

        x_n = sum_i y[n,i],   sum_n y[n,i] d[n,r] <= c[i,r],   y >= 0, 0 where n may not use i,   x_n <= max_tasks[n]

    A corner is found for a direction; between two corners the direction is that of the line through them.

    Raises
    ------
    DataError
        There are not two users, or somebody can have infinitely many tasks.
    """
    if len(cluster.users) != 2:
        raise DataError(f"a picture of what users can have needs two; this cluster has {len(cluster.users)}")
    whole = _programs(cluster, np.ones(2))
    scale = np.array([whole(np.array([1.0, 0.0]))[0], whole(np.array([0.0, 1.0]))[1]])
    if not (scale > 0).all():
        raise DataError("a picture of what users can have needs two users that can run something")
    furthest = _programs(cluster, scale)  # in parts of what each could have alone
    first, last = furthest(np.array([1, _LITTLE])), furthest(np.array([_LITTLE, 1]))
    corners: Point = np.array([first, *_between(first, last, furthest, _DEEPEST), last]) * scale
    return corners


def _between(first: Point, last: Point, furthest: Callable[[Point], Point], deep: int) -> list[Point]:
    """Corners between two, in order."""
    across = np.array([last[1] - first[1], first[0] - last[0]])
    if deep == 0 or np.abs(last - first).max() < _NEAR:
        return []
    found = furthest(across / np.abs(across).max())
    if across @ (found - first) <= _NEAR:
        return []
    before, after = _between(first, found, furthest, deep - 1), _between(found, last, furthest, deep - 1)
    return [*before, found, *after]


def _programs(cluster: Cluster, scale: Point) -> Callable[[Point], Point]:
    """The tasks, in units of `scale`, that are furthest in a direction."""
    servers, resources = cluster.capacity.shape
    rows = np.zeros((servers * resources + 2, 2 * servers))
    for n in range(2):
        for i in range(servers):
            rows[i * resources : (i + 1) * resources, n * servers + i] = cluster.demand[n] * scale[n]
        rows[servers * resources + n, n * servers : (n + 1) * servers] = scale[n]
    most = np.concatenate([cluster.capacity.ravel(), cluster.max_tasks])
    bounded = np.isfinite(most)
    upper = np.where(cluster.eligible.ravel(), np.inf, 0.0)

    def furthest(direction: Point) -> Point:
        answer = optimize.linprog(
            -np.repeat(direction, servers),
            rows[bounded],
            most[bounded],
            bounds=np.column_stack([np.zeros(2 * servers), upper]),
            method="highs",
        )
        if answer.status != 0:
            raise DataError(f"what users can have has no border: {answer.message}")
        tasks: Point = answer.x.reshape(2, servers).sum(axis=1)
        return tasks

    return furthest
