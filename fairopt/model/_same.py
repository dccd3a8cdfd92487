"""Comparison of clusters: a description of the first difference in names or data, by position."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .cluster import Cluster

#: Names of servers of a pooled cluster.
_POOL = ("pool",)
_NAMES = ("users", "servers", "resources")
_DATA = {
    "capacity": "servers",
    "demand": "users",
    "weight": "users",
    "eligible": "users",
    "max_tasks": "users",
    "rate": "users",
}


def other_names(one: Cluster, other: Cluster, axes: tuple[str, ...] = _NAMES) -> str:
    """First difference in names of two clusters, as a clause; '' if there is none."""
    for axis in axes:
        for mine, theirs in zip_longest(getattr(one, axis), getattr(other, axis)):
            if mine != theirs:
                return f"their {axis} differ, first {mine!r} and {theirs!r}"
    return ""


def other_data(one: Cluster, other: Cluster) -> str:
    """First difference in names or numbers of two clusters, as a clause; '' if there is none."""
    if one is other:
        return ""
    names = other_names(one, other)
    if names:
        return names
    rated = one.rated or other.rated
    for name, axis in _DATA.items() if rated else [*_DATA.items()][:-1]:
        mine, theirs = getattr(one, name), getattr(other, name)
        apart = np.flatnonzero((mine != theirs).reshape(len(mine), -1).any(axis=1))
        if apart.size:
            return f"their {name} differs, first of {axis[:-1]} {getattr(one, axis)[apart[0]]!r}"
    return ""


def different_clusters(one: Cluster, other: Cluster) -> str:
    """First difference that `other_data` finds; '' also if one cluster is the pool of the other."""
    found = other_data(one, other)
    if not found or not other_data(one.pool(), other) or not other_data(one, other.pool()):
        return ""
    return found


def unfit_start(start: Cluster, cluster: Cluster) -> str:
    """Reason why a solution on the cluster `start` cannot be a warm start for `cluster`; '' if there is none.

    Users, resources and servers must have the same names, unless one cluster is a pool. Other data may differ.
    """
    pooled = _POOL in (start.servers, cluster.servers)
    return other_names(start, cluster, ("users", "resources") if pooled else _NAMES)
