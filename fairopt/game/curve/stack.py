"""What compiled batches are given: the numbers of problems of one shape."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...model.problem import Problem

Array = NDArray[np.float64]


class Stacked(NamedTuple):
    """The numbers of problems of one shape."""

    capacity: Array  # (problems, servers, resources)
    demand: Array  # (problems, users, resources)
    eligible: NDArray[np.bool_]  # (problems, users, servers)
    share: Array  # (problems, users, servers)
    weight: Array  # (problems, users)
    limit: Array  # (problems, users)


def stacked(problems: list[Problem]) -> Stacked:
    """Of problems of one shape."""
    clusters, rules = [one.cluster for one in problems], [one.criterion for one in problems]
    share = np.array([rule.share for rule in rules])
    if share.ndim == 2:  # the same on every server
        share = np.repeat(share[:, :, None], len(clusters[0].capacity), axis=2)
    return Stacked(
        np.array([cluster.capacity for cluster in clusters]),
        np.array([cluster.demand for cluster in clusters]),
        np.array([cluster.eligible for cluster in clusters]),
        share,
        np.array([rule.weight for rule in rules]),
        np.array([one.limits for one in problems]),
    )
