"""Row pointers: where each group starts in arrays over pairs, as in a compressed sparse row matrix."""

from __future__ import annotations

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
