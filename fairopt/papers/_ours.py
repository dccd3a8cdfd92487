"""Values that claims are about: readings of a mechanism's allocation, or of a schedule, as functions of the cluster."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._libraries import pd
from ..model.cluster import Cluster
from ..result.allocation import Allocation
from ..scheduling import Workload, simulate

Array = NDArray[np.float64]
Numbers = Callable[[Cluster], Array]
T = TypeVar("T")

#: The instances of the papers are tiny, so every engine can be asked for more than its default.
TOL = 1e-8

#: For finite alpha a gap g vouches for tasks to about sqrt(2 g): ask for g = 1e-11 and compare within 1e-5.
SMOOTH_TOL, SMOOTH = 1e-11, 1e-5
#: Seconds: of the experiment, and of its tasks.
_UNTIL, _LASTS = 1000.0, 1e6


def solve(cluster: Cluster, mechanism: str, **parameters: Any) -> Allocation:
    """The allocation of a mechanism by name."""
    from ..mechanisms import get  # here, since CVXPY takes a second to import and the instances do without

    chosen = get(mechanism, **parameters)
    alpha = chosen.criterion(chosen.prepare(cluster)[0]).alpha
    return chosen.solve(cluster, tol=SMOOTH_TOL if 0 < alpha < np.inf else TOL)


def reading(read: Callable[[Allocation], T], mechanism: str, **parameters: Any) -> Callable[[Cluster], T]:
    """`read` applied to the allocation of the mechanism."""
    return lambda cluster: read(solve(cluster, mechanism, **parameters))


def tasks(mechanism: str, **parameters: Any) -> Numbers:
    """Tasks of every user."""
    return reading(lambda found: found.arrays.user_tasks, mechanism, **parameters)


def placement(mechanism: str, **parameters: Any) -> Numbers:
    """Tasks of every user on every server."""
    return reading(lambda found: found.tasks, mechanism, **parameters)


def bundles(mechanism: str, **parameters: Any) -> Numbers:
    """Amounts of every resource that every user holds."""
    return reading(lambda found: found.arrays.usage.sum(axis=1), mechanism, **parameters)


def dominant_shares(mechanism: str, **parameters: Any) -> Numbers:
    """Dominant share of every user."""
    return reading(lambda found: found.arrays.dominant_shares, mechanism, **parameters)


def resource_shares(resource: str, mechanism: str, **parameters: Any) -> Numbers:
    """Share of every user in one resource of the whole cluster."""

    def read(found: Allocation) -> Array:
        r = found.cluster.resources.index(resource)
        return np.asarray(found.arrays.usage.sum(axis=1)[:, r] / found.cluster.pooled_capacity[r])

    return reading(read, mechanism, **parameters)


def idle(mechanism: str, **parameters: Any) -> Numbers:
    """Idle amounts of every resource, over all servers."""
    return reading(
        lambda found: found.cluster.pooled_capacity - found.arrays.usage.sum(axis=(0, 1)), mechanism, **parameters
    )


def use(server: str, resources: list[str], mechanism: str, **parameters: Any) -> Numbers:
    """Used part of the named resources of a server, or `overall`."""

    def read(found: Allocation) -> Array:
        parts = found.utilization if server == "overall" else found.used_parts.loc[server]
        return np.asarray(parts[resources], dtype=float)

    return reading(read, mechanism, **parameters)


def monopoly_tasks(cluster: Cluster) -> Array:
    """Tasks of every user if all servers were its own (placement constraints kept)."""
    return np.asarray(cluster.gamma.sum(axis=1))


def incentive_shortfall(mechanism: str, **parameters: Any) -> Callable[[Cluster], float]:
    """Tasks missing to the uniform division, `max_n (phi_n/sum phi) sum_i gamma[n,i] - x_n`, at least 0."""

    def read(found: Allocation) -> float:
        weight = found.cluster.weight
        missing = weight / weight.sum() * monopoly_tasks(found.cluster) - found.arrays.user_tasks
        return max(0.0, float(missing.max()))

    return reading(read, mechanism, **parameters)


def everyone_gains(better: Numbers, than: Numbers) -> Callable[[Cluster], bool]:
    """Does the first allocation give every user more tasks than the second?"""
    return lambda cluster: bool((better(cluster) > than(cluster) * (1 + TOL)).all())


def gain_from_lying(user: str, mechanism: str, **parameters: Any) -> Callable[[Cluster], float]:
    """Largest relative gain in true tasks over lies that scale each demand by 1/4 to 4 (the truth included)."""

    def largest(cluster: Cluster) -> float:
        n = cluster.users.index(user)
        truth = cluster.demand[n]

        def true_tasks(factors: tuple[float, ...]) -> float:
            lie = truth * factors
            found = solve(cluster.with_demand(user, lie), mechanism, **parameters)
            return float((found.arrays.user_tasks[n] * lie / truth).min())

        honest = true_tasks((1.0,) * len(truth))
        lies = product((0.25, 0.5, 1.0, 2.0, 4.0), repeat=len(truth))
        return max(map(true_tasks, lies)) / honest - 1

    return largest


def filled(policy: str, come: tuple[float, ...] | None = None, leave: tuple[float, ...] | None = None) -> Numbers:
    """Whole tasks of every user that run in the end, if users come and leave at these seconds (default: 0, never).

    Everybody has as many tasks as would fill all servers.
    """

    def tasks(cluster: Cluster) -> Array:
        users, resources = list(cluster.users), list(cluster.resources)
        number = [max(1, int(count) + 1) for count in cluster.gamma.sum(axis=1)]
        table = pd.DataFrame(cluster.demand, columns=resources).assign(
            user=users, tasks=number, duration=_LASTS, arrival=[0.0] * len(users) if come is None else come
        )
        servers = pd.DataFrame(cluster.capacity, columns=resources)
        of_users = pd.DataFrame({"user": users, "weight": cluster.weight, "leaves": leave or [np.inf] * len(users)})
        schedule = simulate(Workload.from_frames(table, servers, of_users), policy, until=_UNTIL)
        running = schedule.tasks[schedule.tasks["state"] == "running"]
        return np.asarray(running.groupby("user", observed=False).size().reindex(users), dtype=float)

    return tasks


def shares(policy: str) -> Numbers:
    """The same as dominant shares of the pool."""
    return lambda cluster: filled(policy)(cluster) * cluster.dominant_share_per_task


def used(policy: str) -> Numbers:
    """The used part of every resource of the pool."""
    return lambda cluster: filled(policy)(cluster) @ cluster.share_per_task
