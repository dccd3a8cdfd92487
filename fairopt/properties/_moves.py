"""Changes of an instance, in its cluster and in the changed cluster at once: for climbing and for shrinking."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..errors import DataError
from ..model.cluster import Cluster
from ._base import Deviation
from ._solved import Instance

_AXES = ("users", "servers", "resources")
#: Arguments of a cluster and what their rows are.
_ROWS = {"capacity": "servers", "demand": "users", "weight": "users", "eligible": "users", "max_tasks": "users"}


def with_entry(
    instance: Instance, argument: str, place: tuple[int, ...], value: float, reported: bool = False
) -> Instance:
    """One number anew: in both clusters where they agree on it, else in the first, or (`reported`) in the changed one.

    Raises
    ------
    DataError
        No cluster has such a number.
    """
    cluster, deviation = instance
    if deviation is None:
        return _entry(cluster, argument, place, value), None
    changed, there = deviation.cluster, _place(cluster, deviation.cluster, argument, place)
    agree = there is not None and getattr(changed, argument)[there] == getattr(cluster, argument)[place]
    if there is not None and (agree or reported):
        changed = _entry(changed, argument, there, value)
    return (cluster if reported and not agree else _entry(cluster, argument, place, value)), Deviation(
        changed, deviation.users
    )


def disagreements(instance: Instance) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Where the changed cluster has another number."""
    cluster, deviation = instance
    if deviation is None:
        return
    for argument in _ROWS:
        for place in np.ndindex(getattr(cluster, argument).shape):
            there = _place(cluster, deviation.cluster, argument, place)
            if there is not None and getattr(cluster, argument)[place] != getattr(deviation.cluster, argument)[there]:
                yield argument, place


def without(instance: Instance, axis: str, name: str) -> Instance:
    """Without a user, a server or a resource.

    Raises
    ------
    DataError
        It is the only one, or a user who needs no other resource is left.
    """
    cluster, deviation = instance
    if deviation is None:
        return _without(cluster, axis, name), None
    users = tuple(user for user in deviation.users if (axis, user) != ("users", name))
    return _without(cluster, axis, name), Deviation(_without(deviation.cluster, axis, name), users)


def moved(instance: Instance, rng: np.random.Generator) -> Instance:
    """One or two numbers changed at random; the same instance where a change makes no cluster."""
    try:
        for _ in range(int(rng.integers(1, 3))):
            instance = _moved(instance, rng)
    except DataError:
        return instance
    return instance


def _moved(instance: Instance, rng: np.random.Generator) -> Instance:
    lies = list(disagreements(instance))
    if lies and rng.random() < 0.4:
        argument, place = lies[int(rng.integers(len(lies)))]
    else:
        argument = str(rng.choice(["demand", "demand", "capacity", "capacity", "weight"]))
        table = getattr(instance[0], argument)
        place = tuple(int(rng.integers(size)) for size in table.shape)
    old = float(getattr(instance[0], argument)[place])
    if argument in ("eligible", "max_tasks") or not np.isfinite(old):
        return instance
    reported = bool(rng.random() < 0.5)
    value = float(rng.choice([old + 1, old - 1, 2 * old, np.ceil(old / 2), old + rng.integers(-3, 4)]))
    return with_entry(instance, argument, place, max(value, 0.0), reported)


def _entry(cluster: Cluster, argument: str, place: tuple[int, ...], value: float) -> Cluster:
    table = np.array(getattr(cluster, argument))
    table[place] = value
    good = value > 0 if argument == "weight" else value >= 0
    if not good or (argument == "demand" and not table[place[0]].any()):
        raise DataError(f"{argument} {value:g} makes no cluster")
    return cluster.derived(**{argument: table})


def _place(cluster: Cluster, changed: Cluster, argument: str, place: tuple[int, ...]) -> tuple[int, ...] | None:
    """Where the same number is in the changed cluster: users may have left."""
    names, others = getattr(cluster, _ROWS[argument]), getattr(changed, _ROWS[argument])
    if names == others:
        return place
    return (others.index(names[place[0]]), *place[1:]) if names[place[0]] in others else None


def _without(cluster: Cluster, axis: str, name: str) -> Cluster:
    names = getattr(cluster, axis)
    left = [other for other in names if other != name]
    if not left:
        raise DataError(f"{name!r} is the only one of {axis}")
    return cluster if len(left) == len(names) else cluster.select(**{axis: left})


def renumbered(instance: Instance) -> Instance:
    """The same with users `user1`, `user2`, ..., and servers and resources likewise."""
    cluster, deviation = instance
    new = {axis: {name: f"{axis[:-1]}{k}" for k, name in enumerate(getattr(cluster, axis), 1)} for axis in _AXES}

    def renamed(one: Cluster) -> Cluster:
        return one.derived(**{axis: tuple(new[axis][name] for name in getattr(one, axis)) for axis in _AXES})

    if deviation is None:
        return renamed(cluster), None
    return renamed(cluster), Deviation(renamed(deviation.cluster), tuple(new["users"][u] for u in deviation.users))
