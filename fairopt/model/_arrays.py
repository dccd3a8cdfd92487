"""Arrays: read-only by NumPy's flag, in copies and pickles of frozen dataclasses too; equal rows, row pointers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

V = TypeVar("V")
A = TypeVar("A", bound=np.generic)


def read_only(array: NDArray[A]) -> NDArray[A]:
    """The same array, which nobody else has, with its flag set."""
    array.flags.writeable = False
    return array


def frozen(array: NDArray[A]) -> NDArray[A]:
    """A read-only copy; the same array if neither it nor what it is a view of can be written to."""
    base = array.base
    if array.flags.writeable or (isinstance(base, np.ndarray) and base.flags.writeable):
        return read_only(array.copy(order="K"))
    return array


class _Deferred:
    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


def deferred(make: Callable[[], V]) -> V:
    """Placeholder for a field of a `Frozen`, computed by `make()` on first access and typed as its result.

    The field must not have a default value, which a class attribute would answer with.
    """
    return cast("V", _Deferred(make))


class Frozen:
    """A frozen dataclass whose arrays are read-only copies of those given; fields may be `deferred`."""

    def __post_init__(self) -> None:
        known = self.__dict__
        for name, value in list(known.items()):
            if isinstance(value, np.ndarray):
                known[name] = frozen(value)
            elif isinstance(value, _Deferred):
                known.setdefault("_makers", {})[name] = value.make
                del known[name]

    def _maker(self, name: str) -> Callable[[], Any] | None:
        """The function that a deferred field was given as, if it was: it may tell more cheaply what is asked."""
        return cast("Callable[[], Any] | None", self.__dict__.get("_makers", {}).get(name))

    if not TYPE_CHECKING:  # which would take it for an answer to any name

        def __getattr__(self, name: str) -> Any:
            if name == "_makers" or (make := self._maker(name)) is None:
                known = sorted(one for one in {*dir(type(self)), *self.__dict__} if not one.startswith("_"))
                hint = "" if name.startswith("_") else f"; it has {', '.join(known)}"
                raise AttributeError(f"{type(self).__name__} has no attribute {name!r}{hint}")
            made = make()
            self.__dict__[name] = frozen(made) if isinstance(made, np.ndarray) else made
            return self.__dict__[name]

    def __setstate__(self, state: dict[str, Any]) -> None:
        """NumPy unpickles arrays, and copies them deeply, as ones that can be written to."""
        for value in state.values():
            if isinstance(value, np.ndarray):
                read_only(value)
        self.__dict__.update(state)


def ratio(above: ArrayLike, below: NDArray[Any], otherwise: float = 0.0) -> Array:
    """`above / below`, and `otherwise` where `below` is not above 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below > 0, np.divide(above, below), otherwise)


def numbered(rows: NDArray[Any]) -> Index:
    """Equal rows get equal numbers, 0 for the first row, in order of appearance. Compares bytes: no -0.0, please."""
    rows = np.ascontiguousarray(rows)
    words = rows.view(np.uint64) if rows.itemsize == 8 else rows.astype(np.uint64)
    factors = np.random.default_rng(0).integers(2**63, size=rows.shape[1], dtype=np.uint64) * 2 + 1
    codes = (words ^ (words >> 32)) @ factors  # a number is sorted ten times as fast as a row
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    if (words[first[inverse]] != words).any():
        whole = rows.view([("", np.void, rows.shape[1] * rows.itemsize)]).ravel()
        _, first, inverse = np.unique(whole, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return np.asarray(rank[inverse.ravel()])


def kinds(capacity: Array) -> tuple[Index, Mask]:
    """Servers by the resources that they have: the kind of each (servers,), and what a kind has (kinds, resources)."""
    has = capacity > 0
    if has.all():
        return np.zeros(len(has), dtype=np.intp), has[:1]
    kind = numbered(has)
    return kind, has[np.unique(kind, return_index=True)[1]]


def capable(demand: Array, has: Mask) -> Mask:
    """Kinds of servers with everything that a user needs, (kinds, users)."""
    return np.asarray(~(~has[:, None, :] & (demand > 0)[None, :, :]).any(axis=2))


def runnable(capacity: Array, demand: Array, eligible: Mask | None) -> Mask:
    """Users who are eligible on some server with everything that they need, (users,); `None`: eligible everywhere."""
    kind, has = kinds(capacity)
    able = capable(demand, has)
    if eligible is None:
        return np.asarray(able.any(axis=0))
    allowed = [eligible[:, kind == k].any(axis=1) if len(has) > 1 else eligible.any(axis=1) for k in range(len(has))]
    return np.asarray((able & np.array(allowed)).any(axis=0))


def usable_columns(capacity: Array, demand: Array, eligible: Mask) -> Index:
    """Servers that the same users can use get equal numbers, (servers,)."""
    kind, has = kinds(capacity)
    able = np.packbits(capable(demand, has), axis=1)
    return numbered(np.packbits(eligible, axis=0).T & able[kind])


def row_pointers(group: Index, count: int) -> Index:
    """(count + 1,): members of group k are `pointers[k]` to `pointers[k + 1]`, for `group` (members,) in order."""
    return np.searchsorted(group, np.arange(count + 1))


def from_sizes(sizes: ArrayLike) -> Index:
    """(groups + 1,): the pointers of groups of these sizes, one after another."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)


def by_group(group: Index, count: int) -> tuple[Index, Index]:
    """Members in the order of their groups, those of one as they were, and the row pointers of that order."""
    order = np.argsort(group, kind="stable")
    return order, row_pointers(group[order], count)


def in_tables(order: Index, ends: Index, most: int) -> Iterator[tuple[Index, Index, Mask]]:
    """Groups of similar size, with their members (groups, size) and which of these are some, not padding.

    A table has at most `most` places, unless one group has more.
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
