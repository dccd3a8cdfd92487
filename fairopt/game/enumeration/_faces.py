"""Compiled: upper faces of one server's polytope, and the linear programs of the enumeration.

A column of an equilibrium lies in the relative interior of a face `{z_S > 0, (D z)_R = 1, the rest zero or <= 1}` on
which some positive prices of R are maximal: a support S and rows R. Users without a demand for any row of R could take
more for nothing, so every usable pair must need one.
"""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ._tableau import Tableau, place, raised


@compiled
def highest(rows, level, point):  # type: ignore[no-untyped-def]
    """The largest t with `rows @ y + level t <= 0`, `y >= 0`, `sum y <= 1`; fills `point` (unknowns,) with its y.

    -1 where the simplex method fails.
    """
    count, size = rows.shape
    table = np.zeros((count + 1, size + 2))
    table[:count, :size] = rows
    table[:count, size] = level
    table[count, :size] = 1.0
    table[count, size + 1] = 1.0
    t = Tableau(table, np.arange(size + 1, size + 2 + count), np.arange(size + 1))
    i = raised(t, size)
    if i < 0:
        return -1.0
    for k in range(size):
        at = place(t.basic, k)
        point[k] = t.table[at, -1] if at >= 0 else 0.0
    return t.table[i, -1]


@compiled
def is_face(use, members, rows):  # type: ignore[no-untyped-def]
    """Do positive fractions of `members` fill exactly `rows` (numbers of resources), and no other row over?"""
    count, resources, size = len(rows), use.shape[1], len(members)
    table, level, k = np.zeros((size + resources - 1 + count - 1, size)), np.zeros(size + resources + count - 2), 0
    for a in range(size):
        table[k, a], level[k] = -1.0, 1.0
        k += 1
    inside = np.zeros(resources, np.bool_)
    inside[rows] = True
    for r in range(resources):
        if r == rows[0]:
            continue
        for a in range(size):
            table[k, a] = use[members[a], r] - use[members[a], rows[0]]
        k += 1
        if inside[r]:
            table[k] = -table[k - 1]
            k += 1
    return highest(table, level, np.empty(size)) > 1e-9  # a common margin of points of sum one


@compiled
def faces(use, usable, supports, priced):  # type: ignore[no-untyped-def]
    """Fill bit masks of users and of resources of the faces of a server; how many there are (they may not all fit)."""
    resources = use.shape[1]
    own, found = np.flatnonzero(usable), 0
    touched = np.zeros(resources, np.bool_)
    for r in range(resources):
        for n in own:
            touched[r] |= use[n, r] > 0
    for rows in range(1, 1 << resources):
        chosen = np.array([r for r in range(resources) if rows >> r & 1])
        possible = True
        for r in chosen:
            possible &= touched[r]
        for n in own:
            possible &= use[n][chosen].max() > 0
        if not possible:
            continue
        for part in range(1, 1 << len(own)):
            members = np.array([own[a] for a in range(len(own)) if part >> a & 1])
            if len(members) < len(chosen) or not is_face(use, members, chosen):
                continue
            if found < len(supports):
                mask = 0
                for n in members:
                    mask |= 1 << n
                supports[found], priced[found] = mask, rows
            found += 1
    return found
