"""From a violation to the smallest readable one: greedily, while half of it stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..model.cluster import Cluster
from ._base import Deviation
from ._tasks import Instance, clusters

#: Simplifications that are solved together.
_TOGETHER = 24
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
    """Places at which the changed cluster has another number."""
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
    users = {} if axis != "users" else {name: None}
    return _both(instance, lambda cluster: _without(cluster, axis, name), users)


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
    """The place of the same number in the changed cluster: users may have left."""
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
    cluster = instance[0]
    new = {axis: {name: f"{axis[:-1]}{k}" for k, name in enumerate(getattr(cluster, axis), 1)} for axis in _AXES}

    def renamed(one: Cluster) -> Cluster:
        return one.derived(**{axis: tuple(new[axis][name] for name in getattr(one, axis)) for axis in _AXES})

    return _both(instance, renamed, new["users"])


def _both(
    instance: Instance, change: Callable[[Cluster], Cluster], users: Mapping[str, str | None] = MappingProxyType({})
) -> Instance:
    """Both clusters changed alike; `users` has new names of users, or `None` of whom there is no more."""
    cluster, deviation = instance
    if deviation is None:
        return change(cluster), None
    left = (users.get(user, user) for user in deviation.users)
    return change(cluster), Deviation(change(deviation.cluster), tuple(user for user in left if user is not None))


def shrunk(instance: Instance, survives: Callable[[Sequence[Instance]], list[bool]]) -> Instance:
    """The instance after simplifications, one by one, until none `survives`.

    Users first, then servers, resources, weights, task counts, placement, and numbers: the lie towards the truth, then
    each towards 0. Every simplification makes the instance smaller, so that this ends.
    """
    going = True
    while going:
        going = False
        candidates = list(_simpler(instance))
        for first in range(0, len(candidates), _TOGETHER):
            kept = survives(candidates[first : first + _TOGETHER])
            if any(kept):
                instance, going = candidates[first + kept.index(True)], True
                break
    return instance


def _simpler(instance: Instance) -> Iterator[Instance]:
    """Simplifications, the largest first."""
    cluster = instance[0]
    for axis in ("users", "servers", "resources"):
        for name in getattr(cluster, axis):
            yield from _made(partial(without, instance, axis, name))
    for argument, plain in (("weight", 1.0), ("max_tasks", np.inf), ("eligible", 1.0)):
        for at in np.argwhere(getattr(cluster, argument) != plain).tolist():
            yield from _made(partial(with_entry, instance, argument, tuple(at), plain))
    yield from _scaled(instance)
    for argument, place in disagreements(instance):
        reported = float(getattr(cluster, argument)[place])
        yield from _made(partial(with_entry, instance, argument, place, reported, reported=True))
    for argument in ("demand", "capacity", "weight", "max_tasks"):
        yield from _smaller(instance, argument)


def _smaller(instance: Instance, argument: str) -> Iterator[Instance]:
    """Each number smaller, in both clusters or where they differ in either."""
    cluster, deviation = instance
    differ = set(disagreements(instance))
    for place in np.ndindex(getattr(cluster, argument).shape):
        for reported in (False, True) if (argument, place) in differ and deviation is not None else (False,):
            table = getattr(deviation.cluster if reported and deviation is not None else cluster, argument)
            old = float(table[place])
            if np.isfinite(old):
                for value in sorted({0.0, 1.0, old // 2, old - 1}):
                    if 0 <= value < old:
                        yield from _made(partial(with_entry, instance, argument, place, value, reported))


def _scaled(instance: Instance) -> Iterator[Instance]:
    """A resource in a larger unit, where all its numbers have a common divisor."""
    cluster, tables = instance[0], clusters(instance)
    for r in range(len(cluster.resources)):
        columns = np.concatenate([np.concatenate([one.capacity[:, r], one.demand[:, r]]) for one in tables])
        unit = int(np.gcd.reduce(columns.astype(int))) if (columns == columns.astype(int)).all() else 1
        if unit > 1:
            by = np.where(np.arange(len(cluster.resources)) == r, 1.0 / unit, 1.0)
            yield _both(instance, partial(_in_unit, by))


def _in_unit(by: NDArray[np.float64], cluster: Cluster) -> Cluster:
    return cluster.derived(capacity=cluster.capacity * by, demand=cluster.demand * by)


def _made(make: Callable[[], Instance]) -> Iterator[Instance]:
    """The instance, or none where it cannot be made."""
    try:
        yield make()
    except DataError:
        return
