"""Answers for the pool of all servers: they ignore where tasks can run, and are not compared with those that do not."""

from __future__ import annotations

from collections.abc import Iterable

from ..model.cluster import Cluster
from ..result.allocation import Allocation

#: Stands behind the name of a mechanism that answered for the pool; `NOTE` is its footnote.
MARK = "*"
NOTE = f"{MARK} answers for the pool, as if all servers were one; their tasks need not fit on the servers"


def pooled(requested: Cluster, found: Allocation) -> bool:
    """Has the mechanism pooled the servers that it was asked about?"""
    return len(found.cluster.servers) < len(requested.servers)


def marked(labels: Iterable[object], which: Iterable[object]) -> list[str]:
    """The labels of mechanisms, marked where they answered for the pool."""
    return [f"{label}{MARK if one is True else ''}" for label, one in zip(labels, which, strict=True)]
