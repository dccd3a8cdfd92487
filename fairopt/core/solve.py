"""Answers to problems of one shape and scope at finite alpha: tasks and prices as certificates take them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..model._arrays import Array, Index
from ..model.problem import Problem
from .interior import solved
from .judge import infeasibility
from .system import stacked


class Found(NamedTuple):
    """Tasks (B, N, K), certificates (B,), log prices of whole capacities (B, K, R), -inf for none, and steps (B,)."""

    tasks: Array
    certificate: Array
    log_rows: Array
    steps: Index


def finite(problems: list[Problem], tol: float, aim: float, alpha: Array | None = None) -> Found:
    """Solve a stack: welfare over a pool or servers, or equilibria of the game, at alpha > 0, without floors.

    Parameters
    ----------
    problems : of one shape (users, servers, resources) and one scope
    tol, aim : runs go on to an error of `aim`; above `tol` there is another
    alpha : (problems,), in place of the criteria's

    Returns
    -------
    Found
        certificates are the larger of `certificates.backward_error` and of what is infeasible, infinite for none
    """
    users, servers, resources = problems[0].cluster.shape
    most = max(40_000 // (users * servers * (resources + 1)), 1)  # more do not stay in the cache
    parts = []
    for first in range(0, len(problems), most):
        chosen = slice(first, first + most)
        q = stacked(problems[chosen], None if alpha is None else alpha[chosen])
        found = solved(q, tol, aim)
        error = np.maximum(found.error, infeasibility(q, found.z))
        parts.append(Found(q.tasks(found.z), error, np.transpose(found.log_rows, (2, 1, 0)), found.steps))
    return Found(*(np.concatenate(each) for each in zip(*parts, strict=True)))
