"""Row pointers: where each group starts in arrays over pairs, as in a compressed sparse row matrix."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

Index = NDArray[np.intp]


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


def in_tables(order: Index, ends: Index, most: int) -> Iterator[tuple[Index, Index, NDArray[np.bool_]]]:
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
