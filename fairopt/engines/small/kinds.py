"""Kernels for small problems: by criterion, and up to which size they are fastest."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ...model.cluster import Cluster
from ...model.criterion import Criterion

#: What kernels solve: max-min over a pool or servers (`leximin`), inside every server, finite alpha, the largest sum of
#: shares (alpha = 0), the game's limit.
Kind = Literal["leximin", "per_server", "global", "efficient", "game", "psdsf"]

#: Pairs (user, server) up to which kernels are faster than the engines for large problems: theirs is dense algebra.
LARGEST: dict[Kind, int] = {
    "leximin": 450,
    "per_server": 10_000,
    "global": 300,
    "efficient": 800,
    "game": 500,
    "psdsf": 400,
}
#: The same above this alpha, where ties of many pairs cost steps.
_STEEP, _LARGEST_STEEP = 5.0, {"global": 80, "game": 250}


#: Kernels of concave programs with alpha of at most `_GENTLE` count usable pairs only, where there are at most `_ROWS`
#: rows, a resource of a server each, and `_PAIRS` pairs in all: their algebra is dense in rows.
_GENTLE, _ROWS, _PAIRS = 2.0, 120, 10_000
#: Most numbers in a tableau of max-min: beyond it the interior point of large problems is faster.
_TABLEAU = 40_000


def small_enough(kind: Kind, pairs: int, alpha: float) -> bool:
    """True if the kernel is usually the fastest, by the number of pairs, usable or not."""
    steep = alpha > _STEEP and kind in _LARGEST_STEEP
    return pairs <= (min(LARGEST[kind], _LARGEST_STEEP[kind]) if steep else LARGEST[kind])


def fastest(kind: Kind, cluster: Cluster, alpha: float) -> bool:
    """True if the kernel is the fastest for a cluster: its pairs, or its usable pairs, are few."""
    users, servers, resources = cluster.shape
    pairs = users * servers
    if kind == "leximin" and pairs * (users + servers * resources) > _TABLEAU:
        return False
    if small_enough(kind, pairs, alpha):
        return True
    concave = (kind == "global" and alpha <= _GENTLE) or (kind == "game" and alpha == 1)
    gentle = concave and servers * resources <= _ROWS and pairs <= _PAIRS
    return gentle and int(np.count_nonzero(cluster.usable)) <= LARGEST["global"]


def kind_of(rule: Criterion) -> Kind | None:
    """Kernel for a criterion; `None` for floors, the game at alpha = 0, and other welfare."""
    if type(rule) is not Criterion or rule.floor.any():
        return None
    if rule.alpha == 0:
        return "efficient" if rule.scope in ("pool", "servers") else None
    if np.isinf(rule.alpha):
        kinds: dict[str, Kind] = {"pool": "leximin", "servers": "leximin", "per_server": "per_server", "game": "psdsf"}
        return kinds[rule.scope]
    if rule.scope == "per_server":
        return None
    return "game" if rule.scope == "game" else "global"
