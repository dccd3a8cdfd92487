"""Clusters on which all task counts can be met at once: the curve stands still, at an equilibrium of every alpha."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._libraries import sp
from ...certificates import _linear
from ...model.problem import Problem

Array = NDArray[np.float64]


#: A user who lacks less than this part of its tasks has them all.
_LACKING = 1e-9


def may_be(problem: Problem) -> bool:
    """Has every user a task count, and are all of them together below what the cluster has?"""
    polytope, cluster = problem.polytope, problem.cluster
    if not len(polytope.users) or not np.isfinite(polytope.limit).all():
        return False
    needed = polytope.limit @ cluster.demand[polytope.users]
    return bool((needed <= cluster.capacity.sum(axis=0)).all() and (polytope.reach >= polytope.limit).all())


def everybody(problem: Problem, tasks: Array) -> bool:
    """Do tasks (users, servers) give every user its count?"""
    polytope = problem.polytope
    return bool((tasks[polytope.users].sum(axis=1) >= (1 - _LACKING) * polytope.limit).all())


def satisfied(problem: Problem) -> tuple[Array, float] | None:
    """Tasks (users, servers) that give every user its count, and by how much rows are overused; None if there are none.

    Of all such tasks those whose fullest row is least full: a linear program.
    """
    if not may_be(problem):
        return None
    polytope = problem.polytope
    rows, pairs = polytope.use.shape
    needs = sp.diags_array(1 / polytope.limit) @ polytope.tasks
    program = sp.block_array([[-polytope.use, np.ones((rows, 1))], [needs, None]], format="csr")
    found = _linear.minimise(
        np.append(np.zeros(pairs), 1.0), program, np.append(np.zeros(rows), np.ones(needs.shape[0]))
    )
    if found is None:
        return None
    part = np.maximum(found[:-1], 0.0)
    part *= (polytope.limit / (polytope.tasks @ part))[polytope.pair_user]
    over = max(float((polytope.use @ part).max()) - 1, 0.0)
    if over > _LACKING:
        return None
    tasks = np.zeros(problem.cluster.shape[:2])
    tasks[polytope.users[polytope.pair_user], polytope.pair_server] = part * polytope.gamma
    return tasks, over
