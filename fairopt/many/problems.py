"""Problems of `solve_many`: a list of clusters, or stacked arrays checked as a whole."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..model import _intake, _validate
from ..model._arrays import Mask
from ..model._frozen import frozen
from ..model._shown import short
from ..model.cluster import Cluster

#: The arguments of a cluster that come stacked, and their axes behind that of the problems.
_AXES = {
    "capacity": ("servers", "resources"),
    "demand": ("users", "resources"),
    "weight": ("users",),
    "eligible": ("users", "servers"),
    "max_tasks": ("users",),
}
#: From where to where their numbers are, where that is not all that are > 0.
_RANGES: dict[str, tuple[float, ...]] = {"capacity": (0.0,), "demand": (0.0,), "weight": (), "max_tasks": (0.0, np.inf)}


class Listed:
    """Clusters as they are; what is no cluster is found when it is asked for."""

    def __init__(self, clusters: Iterable[object]) -> None:
        self.clusters = list(clusters)
        if not self.clusters:
            raise DataError("the list of clusters is empty; give at least one")

    def __len__(self) -> int:
        return len(self.clusters)

    def __getitem__(self, number: int) -> Cluster:
        found = self.clusters[number]
        if not isinstance(found, Cluster):
            raise DataError(f"it is {short(found)}, of type {type(found).__name__}; make a fairopt.Cluster of it")
        return found


class Stacked:
    """Arrays with the problems first; what has no such axis, or one of length 1, counts for all problems.

    Shapes and types are checked at once, numbers as a whole: only a cluster with a wrong one is made in the ordinary
    way, whose error says what is wrong.
    """

    def __init__(self, **given: Any) -> None:
        arrays = {name: _stacked(name, given[name]) for name in _AXES if given[name] is not None}
        for name in ("capacity", "demand"):
            if name not in arrays:
                raise DataError(f"{name} is missing; give stacked arrays (problems, ...), or a list of clusters")
        counts = {name: len(array) for name, array in arrays.items() if len(array) != 1}
        self.count = next(iter(counts.values()), 1)
        if len({*counts.values()}) > 1 or not self.count:
            raise DataError(f"problems differ in number: {_listed(counts)}; give one for each, or one for all")
        users, servers, resources = arrays["demand"].shape[1], *arrays["capacity"].shape[1:]
        sizes = {"users": users, "servers": servers, "resources": resources}
        if not all(sizes.values()):
            raise DataError(f"there must be at least one of {_listed(sizes)}")
        self.arrays: dict[str, NDArray[Any]] = {}
        for name, array in arrays.items():
            wanted = tuple(sizes[axis] for axis in _AXES[name])
            if name in ("weight", "max_tasks") and array.shape[1:] == (1,):
                array = np.repeat(array, users, axis=1)
            if array.shape[1:] != wanted:
                axes = ", ".join(("problems", *_AXES[name]))
                raise DataError(
                    f"{name} must have shape ({axes}) = {(self.count, *wanted)} here, or "
                    f"without problems; got {array.shape}"
                )
            self.arrays[name] = np.broadcast_to(frozen(array), (self.count, *wanted))

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> Cluster:
        rows = {name: array[number] for name, array in self.arrays.items()}
        if not self.sound[number]:
            return Cluster(**rows)
        if "eligible" in rows:
            rows["eligible"] = frozen(rows["eligible"] == 1)
        if self._first is None:
            self._first = Cluster(**rows)
            return self._first
        return self._first.derived(**rows)

    _first: Cluster | None = None

    @cached_property
    def sound(self) -> Mask:
        """(problems,): whose numbers are all such as a cluster has."""
        given = self.arrays
        with np.errstate(invalid="ignore"):
            good = [_validate.inside(given[name], *ends) for name, ends in _RANGES.items() if name in given]
        good.append(np.asarray(given["demand"].any(axis=2)))
        if "eligible" in given:
            good.append((given["eligible"] == 0) | (given["eligible"] == 1))
        return np.asarray(np.all([each.reshape(self.count, -1).all(axis=1) for each in good], axis=0))


#: Clusters by number; `DataError` where one that is asked for has data that are none.
Problems: TypeAlias = Listed | Stacked


def of(capacity: Any, demand: Any, weight: Any, eligible: Any, max_tasks: Any) -> Problems:
    """Check the arguments of `solve_many`."""
    if demand is not None or isinstance(capacity, np.ndarray):
        return Stacked(capacity=capacity, demand=demand, weight=weight, eligible=eligible, max_tasks=max_tasks)
    if any(value is not None for value in (weight, eligible, max_tasks)):
        raise DataError("a list of clusters comes alone: weight, eligible and max_tasks are theirs")
    if isinstance(capacity, Cluster | str) or not isinstance(capacity, Iterable):
        raise DataError(f"problems are {short(capacity)}; give a list of clusters, or stacked capacity and demand")
    clusters = list(capacity)
    if clusters and not any(isinstance(item, Cluster) for item in clusters):
        raise DataError("demand is missing; give stacked arrays (problems, ...), or a list of clusters")
    return Listed(clusters)


def _stacked(name: str, values: Any) -> NDArray[Any]:
    """An array with the problems first."""
    axes = len(_AXES[name])
    array = _intake.plain(values, name, truths=name == "eligible")
    if array.ndim == 0 and name in ("weight", "max_tasks"):
        array = array[None]
    if array.ndim == axes:
        array = array[None]
    if array.ndim != axes + 1:
        raise DataError(f"{name} must have axes ({', '.join(('problems', *_AXES[name]))}); got shape {array.shape}")
    return array


def _listed(sizes: dict[str, int]) -> str:
    return ", ".join(f"{name} {size}" for name, size in sizes.items())
