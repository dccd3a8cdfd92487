"""Solutions of stacks of problems at finite alpha, with tasks and prices in the units of the certificates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..model._arrays import Array, Index
from ..model.problem import Problem
from .interior import solved
from .judge import infeasibility
from .system import stacked

#: Largest number of array entries of a chunk of problems, so that its arrays fit into the processor's cache.
_CACHE_ENTRIES = 40_000


class Found(NamedTuple):
    """Tasks (B, N, K), certificates (B,), log prices of whole capacities (B, K, R), and numbers of steps (B,).

    Log prices of zero are -inf. The certificate is the larger of the backward error and the infeasibility, and infinite
    without a solution.
    """

    tasks: Array
    certificate: Array
    log_rows: Array
    steps: Index


def finite(problems: list[Problem], tol: float, aim: float, alpha: Array | None = None) -> Found:
    """Solve a stack: welfare over a pool or servers, or equilibria of the game, at alpha > 0, without floors.

    Parameters
    ----------
    problems : of one shape (users, servers, resources) and one scope
    tol, aim : iterations end at a backward error of `aim`; problems with an error above `tol` are solved once more
    alpha : (problems,), replaces the alphas of the criteria
    """
    users, servers, resources = problems[0].cluster.shape
    chunk = max(_CACHE_ENTRIES // (users * servers * (resources + 1)), 1)
    parts = []
    for first in range(0, len(problems), chunk):
        chosen = slice(first, first + chunk)
        q = stacked(problems[chosen], None if alpha is None else alpha[chosen])
        found = solved(q, tol, aim)
        error = np.maximum(found.error, infeasibility(q, found.z))
        parts.append(Found(q.tasks(found.z), error, np.transpose(found.log_rows, (2, 1, 0)), found.steps))
    return Found(*(np.concatenate(each) for each in zip(*parts, strict=True)))
