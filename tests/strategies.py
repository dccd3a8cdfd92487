"""Random clusters for the law tests: ordinary ones, degenerate ones and those at the edge of double precision."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from fairopt.model._arrays import Array
from fairopt.model.cluster import Cluster

#: How the numbers of a cluster are drawn; `nice` ones tie, `wide` ones span 1e-4..1e4.
_NICE = st.sampled_from([1.0, 1.0, 2.0, 3.0, 4.0, 6.0])
_PLAIN = st.floats(0.25, 5.0, width=32)
_WIDE = st.floats(-4.0, 4.0, width=32).map(lambda exponent: 10.0**exponent)
STYLES = {"nice": _NICE, "plain": _PLAIN, "wide": _WIDE}


def tables(draw: st.DrawFn, rows: int, columns: int, numbers: st.SearchStrategy[float], zeros: bool) -> Array:
    """A table of numbers, a quarter of them zero if `zeros`."""
    size = rows * columns
    values = np.array(draw(st.lists(numbers, min_size=size, max_size=size)))
    if zeros:
        keep = draw(st.lists(st.sampled_from([1.0, 1.0, 1.0, 0.0]), min_size=size, max_size=size))
        values = values * np.array(keep)
    return values.reshape(rows, columns)


@st.composite
def clusters(
    draw: st.DrawFn,
    styles: tuple[str, ...] = ("nice", "nice", "plain", "plain", "wide"),
    max_users: int = 5,
    max_servers: int = 4,
    max_resources: int = 3,
    limits: bool = True,
    placement: bool = True,
    zeros: bool = True,
    copies: bool = True,
    weights: bool = True,
) -> Cluster:
    """1-5 users, 1-4 servers, 1-3 resources; with weights, zeros, constraints, finite tasks and proportional copies.

    Users who can run nowhere come of their own (a resource that no server has, or no eligible server).
    """
    numbers = STYLES[draw(st.sampled_from(styles))]
    users, servers, resources = (draw(st.integers(1, most)) for most in (max_users, max_servers, max_resources))
    demand = tables(draw, users, resources, numbers, zeros and draw(st.booleans()))
    nothing = ~demand.any(axis=1)
    demand[nothing, draw(st.integers(0, resources - 1))] = 1.0
    capacity = tables(draw, servers, resources, numbers, zeros and draw(st.booleans()))
    if copies and servers > 1 and draw(st.integers(0, 3)) == 0:
        capacity[-1] = capacity[0] * draw(st.sampled_from([1.0, 2.0, 0.3]))
    if copies and users > 1 and draw(st.integers(0, 3)) == 0:
        demand[-1] = demand[0] * draw(st.sampled_from([1.0, 2.0, 0.3]))
    weight = np.ones(users)
    if weights and draw(st.booleans()):
        weight = tables(draw, users, 1, numbers, False)[:, 0]
    eligible = np.ones((users, servers), dtype=bool)
    if placement and draw(st.booleans()):
        flat = st.lists(st.sampled_from([True, True, False]), min_size=users * servers, max_size=users * servers)
        eligible = np.array(draw(flat)).reshape(users, servers)
    cluster = Cluster(capacity, demand, weight, eligible)
    if limits and draw(st.integers(0, 2)) == 0:
        # In parts of what the user could run alone: 0, some that bind, one that nearly does and one that does not.
        part = draw(st.lists(st.sampled_from([0.0, 0.1, 0.3, 0.9, 2.0, np.inf]), min_size=users, max_size=users))
        alone = cluster.gamma.sum(axis=1)
        tasks = np.array([np.inf if np.isinf(p) else p * a for p, a in zip(part, alone, strict=True)])
        cluster = cluster.replace(max_tasks=tasks)
    return cluster


def plain_clusters(**changes: object) -> st.SearchStrategy[Cluster]:
    """Well-conditioned clusters without zeros, constraints, limits or copies: tasks of most mechanisms are unique."""
    arguments: dict[str, object] = {"styles": ("plain",), "limits": False, "placement": False, "zeros": False}
    return clusters(**(arguments | {"copies": False} | changes))
