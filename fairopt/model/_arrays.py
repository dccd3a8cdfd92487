"""Parts of wholes, which rows are equal, and which users a kind of server can serve."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]


def ratio(above: ArrayLike, below: NDArray[Any], otherwise: float = 0.0) -> Array:
    """`above / below`, and `otherwise` where `below` is not above 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below > 0, np.divide(above, below), otherwise)


def numbered(rows: NDArray[Any]) -> Index:
    """Equal rows get equal numbers, 0 for the first row, in order of appearance. Compares bytes: no -0.0, please."""
    rows = np.ascontiguousarray(rows)
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
