"""Random clusters by family and number: `draw("nested", 3)`. All tests and tools that draw clusters by seed use it.

Three families are of every kind at once and differ in their numbers: `nice` ones tie, `plain` ones do not, `wide` ones
span 1e-4..1e4. The others, `FAMILIES`, have one difficulty each. Drawing takes no time, so hundreds are no matter;
`strategies` draws the first three for Hypothesis, which makes a failing cluster smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Set

import numpy as np
from numpy.typing import NDArray

from fairopt.model._arrays import Array
from fairopt.model.cluster import Cluster

Rng = np.random.Generator
Most = tuple[int, int, int]  # users, servers, resources

#: The one cluster that is not drawn: the example of DRF, section 4.1, whose answers are known by hand.
EXAMPLE = Cluster([[9, 18]], [[1, 4], [3, 1]])


def numbers(rng: Rng, style: str, *shape: int) -> Array:
    """Numbers of the families `nice`, `plain` and `wide`."""
    if style == "nice":
        return rng.choice([1.0, 1.0, 2.0, 3.0, 4.0, 6.0], shape)
    return rng.uniform(0.25, 5, shape) if style == "plain" else 10 ** rng.uniform(-4, 4, shape)


#: What a cluster of these families may have, now and then.
PARTS = {"zeros", "weights", "placement", "copies", "limits"}


def everything(rng: Rng, style: str, size: Most, parts: Set[str] = PARTS) -> Cluster:
    """Weights, zero demands and capacities, placement, proportional copies and finite tasks, each now and then."""
    n, k, m = size
    demand, capacity = numbers(rng, style, n, m), numbers(rng, style, k, m)
    if "zeros" in parts:
        if rng.random() < 0.5:
            demand *= rng.random(demand.shape) < 0.75
        if rng.random() < 0.4:
            capacity *= rng.random(capacity.shape) < 0.85
        demand[~demand.any(axis=1), rng.integers(m)] = 1.0
    weight = numbers(rng, style, n) if "weights" in parts and rng.random() < 0.5 else np.ones(n)
    placed = "placement" in parts and rng.random() < 0.5
    eligible = rng.random((n, k)) < 0.7 if placed else np.ones((n, k), bool)
    if "copies" in parts:
        for table in (capacity, demand):
            if len(table) > 1 and rng.random() < 0.25:
                table[-1] = table[0] * rng.choice([1.0, 2.0, 0.3])
    found = Cluster(capacity, demand, weight, eligible)
    if "limits" in parts and rng.random() < 0.35:
        part, alone = rng.choice([0, 0.1, 0.3, 0.9, 2, np.inf], n), found.gamma.sum(axis=1)
        tasks = [np.inf if np.isinf(p) else p * a for p, a in zip(part, alone, strict=True)]
        found = found.replace(max_tasks=tasks)
    return found


def some_zero(rng: Rng, demand: Array, part: float) -> Array:
    """Demands of which about this part is left; whoever would need nothing needs the first resource."""
    demand = demand * (rng.random(demand.shape) < part)
    demand[~demand.any(axis=1), 0] = 1.0
    return demand


def _size(rng: Rng, most: Most) -> Most:
    """(users, servers, resources), two or more users and servers."""
    return int(rng.integers(2, most[0] + 1)), int(rng.integers(2, most[1] + 1)), int(rng.integers(1, most[2] + 1))


def _plain(rng: Rng, n: int, k: int, m: int) -> tuple[Array, Array]:
    """Capacities (k, m) and demands (n, m) of one magnitude."""
    return rng.uniform(1, 5, (k, m)) * n, rng.uniform(0.25, 5, (n, m))


def _placement(rng: Rng, n: int, k: int, chance: float = 0.6) -> NDArray[np.bool_]:
    """Everybody may run somewhere."""
    eligible = rng.random((n, k)) < chance
    eligible[np.arange(n), rng.integers(k, size=n)] = True
    return eligible


def identical(rng: Rng, most: Most) -> Cluster:
    """Equal servers, users stuck on one of them and users who may run on all.

    Half of the time as many equal users as servers, no two stuck on the same: each has exactly what one server gives,
    and nothing is gained or lost elsewhere.
    """
    n, k, m = _size(rng, most)
    even = rng.random() < 0.5
    n = k if even else n
    capacity, demand = _plain(rng, n, 1, m)
    if even:
        demand[:] = demand[0]
    stuck, place = rng.random(n) < 0.6, rng.permutation(n) if even else rng.integers(k, size=n)
    return Cluster(np.repeat(capacity, k, axis=0), demand, eligible=~stuck[:, None] | (np.arange(k) == place[:, None]))


def near_ties(rng: Rng, most: Most) -> Cluster:
    """As `identical`, all numbers off by a relative 1e-3 to 1e-9."""
    found, off = identical(rng, most), 10 ** rng.uniform(-9, -3)
    shaken = {name: getattr(found, name) for name in ("capacity", "demand")}
    return found.replace(**{name: a * (1 + off * rng.uniform(-1, 1, a.shape)) for name, a in shaken.items()})


def types(rng: Rng, most: Most) -> Cluster:
    """A few types of servers, which users may run on or not."""
    n, k, m = _size(rng, most)
    capacity, demand = _plain(rng, n, int(rng.integers(1, 4)), m)
    kind = rng.integers(len(capacity), size=k)
    kind[: min(k, len(capacity))] = np.arange(min(k, len(capacity)))
    return Cluster(capacity[kind], demand, eligible=_placement(rng, n, len(capacity))[:, kind] | (k < len(capacity)))


def nested(rng: Rng, most: Most) -> Cluster:
    """User n may run on the first servers only, as many as it can."""
    n, k, m = _size(rng, most)
    return Cluster(*_plain(rng, n, k, m), eligible=np.arange(k) < rng.integers(1, k + 1, size=(n, 1)))


def weights(rng: Rng, most: Most) -> Cluster:
    """Weights over 1e-3 to 1e3, now and then with placement."""
    n, k, m = _size(rng, most)
    chance = 1.0 if rng.random() < 0.5 else 0.6
    return Cluster(*_plain(rng, n, k, m), 10 ** rng.uniform(-3, 3, n), _placement(rng, n, k, chance))


def limits(rng: Rng, most: Most) -> Cluster:
    """Finite tasks; half of the time some that bind exactly: what a user has alone, or its fair part of that."""
    n, k, m = _size(rng, most)
    found = Cluster(*_plain(rng, n, k, m), eligible=_placement(rng, n, k, 0.7))
    exactly = rng.random() < 0.5
    part = rng.choice([1.0, 1.0 / n], n) if exactly else 10 ** rng.uniform(-2, 0.3, n)
    tasks = np.where(rng.random(n) < 0.6, part * found.gamma.sum(axis=1), np.inf)
    return found.replace(max_tasks=tasks)


def zeros(rng: Rng, most: Most) -> Cluster:
    """Demands and capacities of zero; somebody may run nowhere."""
    n, k, m = _size(rng, most)
    capacity, demand = _plain(rng, n, k, m)
    demand *= rng.random(demand.shape) < 0.6
    demand[~demand.any(axis=1), rng.integers(m)] = 1.0
    return Cluster(capacity * (rng.random(capacity.shape) < 0.85), demand)


def integers(rng: Rng, most: Most) -> Cluster:
    """Small integers, which tie."""
    n, k, m = _size(rng, most)
    return Cluster(
        rng.choice([2.0, 4.0, 6.0, 12.0], (k, m)),
        rng.choice([1.0, 1.0, 2.0, 3.0], (n, m)),
        rng.choice([1.0, 1.0, 2.0], n),
        _placement(rng, n, k, 0.8),
    )


def traces(rng: Rng, most: Most) -> Cluster:
    """As merged machines of Google's: 1 to 7,000 of a kind of few sizes, demands lognormal over many decades."""
    n, k, m = _size(rng, most)
    size = rng.choice([0.25, 0.5, 0.75, 1.0], (k, m)) * 10 ** rng.uniform(0, 3.85, (k, 1)).round()
    return Cluster(size, rng.lognormal(-3, 2, (n, m)), eligible=_placement(rng, n, k, 0.8))


def proportional(rng: Rng, most: Most) -> Cluster:
    """Several users with demands in proportion, with placement of their own."""
    n, k, m = _size(rng, most)
    capacity, demand = _plain(rng, n, k, m)
    kinds = int(rng.integers(1, max(n // 2, 1) + 1))
    demand = demand[rng.integers(kinds, size=n)] * rng.choice([0.5, 1.0, 2.0, 3.0], (n, 1))
    return Cluster(capacity, demand, eligible=_placement(rng, n, k, 0.7))


def many_users(rng: Rng, most: Most) -> Cluster:
    """N >> K."""
    n, m = most[0] * 2, int(rng.integers(1, max(most[2], 2)))
    k = int(rng.integers(1, 3))
    return Cluster(*_plain(rng, n, k, m), eligible=_placement(rng, n, k, 0.8))


def many_servers(rng: Rng, most: Most) -> Cluster:
    """K >> N."""
    k, m = most[1] * 2, int(rng.integers(1, max(most[2], 2)))
    n = int(rng.integers(2, 4))
    return Cluster(*_plain(rng, n, k, m), eligible=_placement(rng, n, k, 0.8))


FAMILIES: dict[str, Callable[[Rng, Most], Cluster]] = {
    "identical": identical,
    "near-ties": near_ties,
    "types": types,
    "nested": nested,
    "weights": weights,
    "limits": limits,
    "zeros": zeros,
    "integers": integers,
    "traces": traces,
    "proportional": proportional,
    "many-users": many_users,
    "many-servers": many_servers,
}

#: Families of every kind at once.
STYLES = ("nice", "plain", "wide")


def draw(family: str, seed: int, users: int = 8, servers: int = 5, resources: int = 4) -> Cluster:
    """Number `seed` of a family, of at most so many users, servers and resources.

    Families of many users or servers have twice as many of these.
    """
    most = users, servers, resources
    if family in STYLES:
        rng = np.random.default_rng(seed)
        return everything(rng, family, tuple(int(rng.integers(1, size + 1)) for size in most))
    return FAMILIES[family](np.random.default_rng([seed, *family.encode()]), most)


def in_another_order(cluster: Cluster, rng: Rng) -> tuple[Cluster, tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """The same cluster with users and servers permuted, and which of them stands where."""
    users, servers = (rng.permutation(count) for count in cluster.shape[:2])
    return cluster.select([cluster.users[n] for n in users], [cluster.servers[i] for i in servers]), (users, servers)
