"""From a violation to the smallest readable one: greedily, while half of it stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..errors import DataError
from ._moves import disagreements, with_entry, without
from ._solved import Instance


@dataclass(frozen=True)
class ShrinkOptions:
    """How counterexamples are made smaller."""

    #: So many simplifications are tried at a time.
    together: int = 24


#: What is used unless a caller says otherwise.
OPTIONS = ShrinkOptions()


def shrunk(instance: Instance, survives: Callable[[Sequence[Instance]], list[bool]]) -> Instance:
    """The instance after simplifications, one by one, until none `survives`.

    Users first, then servers, resources, weights, task counts, placement, and numbers: the lie towards the truth, then
    each towards 0. Every simplification makes the instance smaller, so that this ends.
    """
    going = True
    while going:
        going = False
        candidates = list(_simpler(instance))
        for first in range(0, len(candidates), OPTIONS.together):
            some = candidates[first : first + OPTIONS.together]
            kept = survives(some)
            if any(kept):
                instance, going = some[kept.index(True)], True
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
    cluster, deviation = instance
    for r in range(len(cluster.resources)):
        tables = [cluster] if deviation is None else [cluster, deviation.cluster]
        columns = np.concatenate([np.concatenate([one.capacity[:, r], one.demand[:, r]]) for one in tables])
        unit = int(np.gcd.reduce(columns.astype(int))) if (columns == columns.astype(int)).all() else 1
        if unit > 1:
            by = np.where(np.arange(len(cluster.resources)) == r, 1.0 / unit, 1.0)
            new = [one.derived(capacity=one.capacity * by, demand=one.demand * by) for one in tables]
            yield new[0], None if deviation is None else type(deviation)(new[1], deviation.users)


def _made(make: Callable[[], Instance]) -> Iterator[Instance]:
    """What can be made."""
    try:
        yield make()
    except DataError:
        return
