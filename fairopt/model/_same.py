"""Comparison of clusters: the first difference in names or data, in words.

Arrays are compared by position, so names have to be in the same order.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .cluster import Cluster

#: The servers of the pool of several.
_POOL = ("pool",)
_NAMES = ("users", "servers", "resources")
_DATA = {"capacity": "servers", "demand": "users", "weight": "users", "eligible": "users", "max_tasks": "users"}


def other_names(one: Cluster, other: Cluster, axes: tuple[str, ...] = _NAMES) -> str:
    """First difference in names between two clusters, as a sentence without its end; empty if none."""
    for axis in axes:
        for mine, theirs in zip_longest(getattr(one, axis), getattr(other, axis)):
            if mine != theirs:
                return f"their {axis} differ, first {mine!r} and {theirs!r}"
    return ""


def other_data(one: Cluster, other: Cluster) -> str:
    """First difference in names or numbers between two clusters, as a sentence without its end; empty if none."""
    if one is other:
        return ""
    names = other_names(one, other)
    if names:
        return names
    for name, axis in _DATA.items():
        mine, theirs = getattr(one, name), getattr(other, name)
        apart = np.flatnonzero((mine != theirs).reshape(len(mine), -1).any(axis=1))
        if apart.size:
            return f"their {name} differs, first of {axis[:-1]} {getattr(one, axis)[apart[0]]!r}"
    return ""


def different_clusters(one: Cluster, other: Cluster) -> str:
    """First difference as `other_data` has it, where the pool of a cluster counts as that cluster."""
    found = other_data(one, other)
    if not found or not other_data(one.pool(), other) or not other_data(one, other.pool()):
        return ""
    return found


def unfit_start(start: Cluster, cluster: Cluster) -> str:
    """Why an answer on the cluster `start` is no start for `cluster`; empty if it may be one, for some engine.

    Users, resources and servers must have the same names, or one of the two be a pool. Other data may have changed.
    """
    pooled = _POOL in (start.servers, cluster.servers)
    return other_names(start, cluster, ("users", "resources") if pooled else _NAMES)
