"""Compiled: the simplex method on one small tableau, from a feasible basis; ties end by Bland's rule.

Entries below 1e-9 are rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._loops import compiled


class Tableau(NamedTuple):
    """`basic_i = table[i, -1] - sum_j table[i, j] free_j`; variables by number: columns first, then slacks of rows."""

    table: np.ndarray
    basic: np.ndarray
    free: np.ndarray


@compiled
def pivot(t, i, j):  # type: ignore[no-untyped-def]
    """Exchange the variables of row i and column j."""
    at = t.table[i, j]
    t.table[i] /= at
    t.table[i, j] = 1 / at
    for k in range(len(t.table)):
        by = t.table[k, j]
        if k != i and by != 0:
            for m in range(t.table.shape[1]):
                if m != j:
                    t.table[k, m] -= by * t.table[i, m]
            t.table[k, j] = -by / at
    t.basic[i], t.free[j] = t.free[j], t.basic[i]


@compiled
def _leaving(t, j, bland):  # type: ignore[no-untyped-def]
    """The row that stops a column first; of several the largest entry, by Bland's rule the first variable."""
    best, ratio = -1, np.inf
    for i in range(len(t.table)):
        if t.table[i, j] > 1e-9:
            own = t.table[i, -1] / t.table[i, j]
            if own < ratio - 1e-13 or best < 0:
                best, ratio = i, own
            elif own <= ratio + 1e-13:
                better = t.basic[i] < t.basic[best] if bland else t.table[i, j] > t.table[best, j]
                best, ratio = (i, min(own, ratio)) if better else (best, ratio)
    return best


@compiled
def place(numbers, variable):  # type: ignore[no-untyped-def]
    """Where a variable is; -1: not there."""
    for k in range(len(numbers)):
        if numbers[k] == variable:
            return k
    return -1


@compiled
def raised(t, level):  # type: ignore[no-untyped-def]
    """Make the variable `level`, which is free, as large as it can be: its row then, -1 where that fails."""
    i = _leaving(t, place(t.free, level), False)
    if i < 0:
        return -1
    pivot(t, i, place(t.free, level))
    size = len(t.table) + len(t.free)
    still = 0
    for _ in range(50 * size):
        enter, most, bland = -1, -1e-9, still > size
        for j in range(len(t.free)):
            if t.table[i, j] < most and (not bland or enter < 0 or t.free[j] < t.free[enter]):
                enter = j
                most = -1e-9 if bland else t.table[i, j]
        if enter < 0:
            return i
        out, before = _leaving(t, enter, bland), t.table[i, -1]
        if out < 0 or out == i:
            return -1
        pivot(t, out, enter)
        t.table[:, -1] = np.maximum(t.table[:, -1], 0.0)
        still = still + 1 if t.table[i, -1] <= before else 0
    return -1
