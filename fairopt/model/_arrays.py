"""Array utilities: read-only arrays, deferred fields of frozen dataclasses, equal rows, and row pointers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..base.errors import DataError

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

V = TypeVar("V")
A = TypeVar("A", bound=np.generic)


def read_only(array: NDArray[A]) -> NDArray[A]:
    """Set the read-only flag of an array that is not shared, and return it."""
    array.flags.writeable = False
    return array


def frozen(array: NDArray[A]) -> NDArray[A]:
    """Read-only copy of an array, or the array itself if it and its base are read-only."""
    base = array.base
    if array.flags.writeable or (isinstance(base, np.ndarray) and base.flags.writeable):
        return read_only(array.copy(order="K"))
    return array


class _Deferred:
    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


def deferred(make: Callable[[], V]) -> V:
    """Placeholder for a field of a `Frozen`, computed by `make()` at first access; typed as the result of `make`.

    The field must not have a default value, since the class attribute would take precedence.
    """
    return cast("V", _Deferred(make))


class Frozen:
    """Base class of frozen dataclasses whose arrays are read-only copies, and whose fields may be `deferred`."""

    def __post_init__(self) -> None:
        known = self.__dict__
        for name, value in list(known.items()):
            if isinstance(value, np.ndarray):
                known[name] = frozen(value)
            elif isinstance(value, _Deferred):
                known.setdefault("_makers", {})[name] = value.make
                del known[name]

    def _maker(self, name: str) -> Callable[[], Any] | None:
        """Function that computes a deferred field, or None; callers may read its attributes without the value."""
        return cast("Callable[[], Any] | None", self.__dict__.get("_makers", {}).get(name))

    if not TYPE_CHECKING:  # type checkers would accept every attribute name

        def __getattr__(self, name: str) -> Any:
            if name == "_makers" or (make := self._maker(name)) is None:
                known = sorted(one for one in {*dir(type(self)), *self.__dict__} if not one.startswith("_"))
                hint = "" if name.startswith("_") else f"; it has {', '.join(known)}"
                raise AttributeError(f"{type(self).__name__} has no attribute {name!r}{hint}")
            made = make()
            self.__dict__[name] = frozen(made) if isinstance(made, np.ndarray) else made
            return self.__dict__[name]

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore read-only flags, which NumPy does not preserve in pickles and deep copies."""
        for value in state.values():
            if isinstance(value, np.ndarray):
                read_only(value)
        self.__dict__.update(state)


def table(shape: tuple[int, ...], instead: str) -> Array:
    """Uninitialised array; raises `DataError` with the remedy `instead` if memory does not suffice."""
    try:
        return np.empty(shape)
    except MemoryError:
        size = " x ".join(f"{count:,}" for count in shape)
        raise DataError(f"there is no memory for a table of {size} numbers, users x servers: {instead}") from None


def ratio(above: ArrayLike, below: NDArray[Any], otherwise: float = 0.0) -> Array:
    """Quotient `above / below`, and `otherwise` where `below` is not positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below > 0, np.divide(above, below), otherwise)


def numbered(rows: NDArray[Any]) -> Index:
    """Number distinct rows in order of appearance, (rows,); comparison is bitwise, so that -0.0 must not occur."""
    rows = np.ascontiguousarray(rows)
    words = rows.view(np.uint64) if rows.itemsize == 8 else rows.astype(np.uint64)
    factors = np.random.default_rng(0).integers(2**63, size=rows.shape[1], dtype=np.uint64) * 2 + 1
    codes = (words ^ (words >> 32)) @ factors  # sorting hashes is ten times as fast as sorting rows
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    if (words[first[inverse]] != words).any():
        whole = rows.view([("", np.void, rows.shape[1] * rows.itemsize)]).ravel()
        _, first, inverse = np.unique(whole, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return np.asarray(rank[inverse.ravel()])


def alike(rows: Array, groups: int) -> Index:
    """Group nonnegative rows of similar direction, in about `groups` groups, by quantiles of ratios of their entries.

    Returns the index of the group of each row, (rows,). Rows with a smallest or largest ratio form separate groups.
    """
    log = np.log(np.maximum(rows, np.finfo(float).tiny))
    rank = np.argsort(np.argsort(log[:, 1:] - log[:, :1], axis=0, kind="stable"), axis=0)
    bins = max(int(groups ** (1 / max(rank.shape[1], 1))), 2)
    quantile = np.where(rank == 0, -1, np.where(rank == len(rank) - 1, bins, rank * bins // len(rank)))
    return numbered(quantile.astype(float))


def kinds(capacity: Array) -> tuple[Index, Mask]:
    """Group servers by available resources: kind of each server, (servers,), and resources, (kinds, resources)."""
    has = capacity > 0
    if has.all():
        return np.zeros(len(has), dtype=np.intp), has[:1]
    kind = numbered(has)
    return kind, has[np.unique(kind, return_index=True)[1]]


def capable(demand: Array, has: Mask) -> Mask:
    """Mask (kinds, users) of kinds of servers with all resources that a user demands."""
    return np.asarray(~(~has[:, None, :] & (demand > 0)[None, :, :]).any(axis=2))


def runnable(capacity: Array, demand: Array, eligible: Mask | None) -> Mask:
    """Mask (users,) of users with an eligible server that has all demanded resources.

    If `eligible` is None, all pairs are eligible.
    """
    kind, has = kinds(capacity)
    able = capable(demand, has)
    if eligible is None:
        return np.asarray(able.any(axis=0))
    allowed = [eligible[:, kind == k].any(axis=1) if len(has) > 1 else eligible.any(axis=1) for k in range(len(has))]
    return np.asarray((able & np.array(allowed)).any(axis=0))


def usable_columns(capacity: Array, demand: Array, eligible: Mask) -> Index:
    """Index of each server's set of usable users, (servers,), among the distinct sets in order of appearance."""
    kind, has = kinds(capacity)
    able = np.packbits(capable(demand, has), axis=1)
    return numbered(np.packbits(eligible, axis=0).T & able[kind])


def row_pointers(group: Index, count: int) -> Index:
    """Row pointers p, (count + 1,), for sorted `group`: the members of group k are `p[k]` to `p[k + 1] - 1`."""
    return np.searchsorted(group, np.arange(count + 1))


def from_sizes(sizes: ArrayLike) -> Index:
    """Row pointers, (groups + 1,), of consecutive groups of the given sizes."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)


def by_group(group: Index, count: int) -> tuple[Index, Index]:
    """Stable order of members by group, (members,), and the row pointers of that order."""
    order = np.argsort(group, kind="stable")
    return order, row_pointers(group[order], count)


def in_tables(order: Index, ends: Index, most: int) -> Iterator[tuple[Index, Index, Mask]]:
    """Generate batches of groups of similar size: groups, members (groups, size), and the mask without padding.

    A batch has at most `most` entries, unless a single group has more.
    """
    sizes = np.diff(ends)
    left = np.argsort(sizes, kind="stable")[::-1]
    left = left[: np.count_nonzero(sizes)]
    while len(left):
        size = sizes[left[0]]
        some = left[: max(most // size, 1)]
        some = some[2 * sizes[some] >= size]
        left = left[len(some) :]
        place = np.arange(size)
        there = place < sizes[some][:, None]
        yield some, order[np.where(there, ends[some][:, None] + place, ends[some][:, None])], there
