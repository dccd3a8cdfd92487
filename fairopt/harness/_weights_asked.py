"""What `find_weights` is asked: a criterion whose weights count, and tasks that could be given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..mechanisms import Mechanism
from ..model import _names
from ..model.cluster import Cluster
from ..model.criterion import Criterion
from ._stated import per_user, runnable

Array = NDArray[np.float64]


def criterion_of(mechanism: Mechanism, seen: Cluster) -> Criterion:
    """The criterion on the cluster, of a mechanism whose weights can be found."""
    probe = np.linspace(1.0, 2.0, len(seen.users))
    rule = mechanism.criterion(seen.derived(weight=probe))
    if type(rule) is not Criterion or not mechanism.judged_by_criterion:
        raise DataError(f"{mechanism} is not of the alpha-fair family: find_weights knows no prices for it")
    if rule.alpha == 0:
        raise DataError(f"weights do not matter to {mechanism} (alpha = 0); choose an alpha > 0")
    if not np.array_equal(rule.weight, probe):
        raise DataError(f"weights do not matter to {mechanism}; choose another mechanism, such as DRF or AlphaFair")
    if rule.floor.any():
        raise DataError(f"{mechanism} has floors, which move with the weights; use AlphaFair, or part=0")
    return mechanism.criterion(seen)


def stated_tasks(seen: Cluster, tasks: Any, shares: Any, users: Iterable[object] | None, tol: float) -> Array:
    """The tasks that are asked for, (users,)."""
    if (tasks is None) == (shares is None):
        raise DataError("give either tasks or shares: find_weights(cluster, mechanism, tasks=[...])")
    argument = "tasks" if shares is None else "shares"
    given = per_user(tasks if shares is None else shares, argument, seen, users)
    if missing := [seen.users[n] for n in np.flatnonzero(np.isnan(given) & seen.runnable)]:
        raise DataError(f"{argument} says nothing of {_names.some(missing)}, who can run tasks; state all of them")
    runnable(given, argument, seen, "no weight > 0 gives it nothing: drop it with cluster.drop_user, or give it some")
    if shares is not None:
        per_task = seen.dominant_share_per_task
        given = np.divide(given, per_task, out=np.zeros(len(given)), where=seen.runnable)
    given = np.where(seen.runnable, given, 0.0)
    over = np.flatnonzero(given > seen.max_tasks * (1 + tol))
    if len(over):
        n = int(over[0])
        raise DataError(
            f"user {seen.users[n]!r} is to have {given[n]:.6g} tasks, and has {seen.max_tasks[n]:g} to run; "
            "give it at most these",
            ("users", n),
        )
    return given
