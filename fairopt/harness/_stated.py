"""Numbers per user that somebody states: tasks that were observed, or that are to be reached."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._libraries import pd
from ..errors import DataError
from ..model import _intake, _names, _validate
from ..model.cluster import Cluster

Array = NDArray[np.float64]


def per_user(given: Any, argument: str, cluster: Cluster, users: Iterable[object] | None = None) -> Array:
    """A finite number >= 0 per user, (users,), NaN for users who are not named.

    `given` is a list in the order of `users` (by default all of the cluster's), or a series or dict, which counts by
    its labels: these must be `users`, in any order.

    Raises
    ------
    DataError
        Naming the user whose number is missing, negative or none, and names that the cluster does not have.
    """
    wanted = cluster.users if users is None else _names.labels(users, "user")
    places = {name: n for n, name in enumerate(cluster.users)}
    unknown = [name for name in wanted if name not in places]
    if unknown:
        raise DataError(f"users has {unknown[0]!r}; the cluster has {_names.some(cluster.users)}")
    if isinstance(given, Mapping):
        given = pd.Series(dict(given), dtype=object)
    numbers = _intake.plain(_validate.row(given, argument, wanted, "user"), argument)
    if numbers.shape != (len(wanted),):
        raise DataError(
            f"{argument} must have one number per user, {len(wanted)} in all ({_names.some(wanted)}); "
            f"got shape {numbers.shape}"
        )
    for name, value in zip(wanted, numbers.tolist(), strict=True):
        if not (np.isfinite(value) and value >= 0):
            raise DataError(
                f"{argument} of user {name!r} is {value:g}; it must be a finite number >= 0", ("users", places[name])
            )
    result = np.full(len(cluster.users), np.nan)
    result[[places[name] for name in wanted]] = numbers
    return result


def runnable(tasks: Array, argument: str, cluster: Cluster, remedy: str) -> NDArray[np.intp]:
    """The users who can run tasks and of whom some are stated: all must be > 0 and within the task limit.

    Raises
    ------
    DataError
        Naming the user who has tasks and can run none, who has none, or who has more than it may run.
    """
    for n, name in enumerate(cluster.users):
        value = tasks[n]
        if np.isnan(value):
            continue
        if value > 0 and not cluster.runnable[n]:
            raise DataError(
                f"{argument} of user {name!r} is {value:g}, but it can run nowhere; give 0, or mend its eligibility, "
                "task limit or demand",
                ("users", n),
            )
        if value == 0 and cluster.runnable[n]:
            raise DataError(f"{argument} of user {name!r} is 0, although it could run tasks; {remedy}", ("users", n))
    return np.flatnonzero(cluster.runnable & ~np.isnan(tasks))
