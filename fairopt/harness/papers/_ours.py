"""Readings that claims are about: of the allocation of a mechanism, by its name and parameters, or of a schedule."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np

from ...base.libraries import pd
from ...model._arrays import Array, Index
from ...model.cluster import Cluster
from ...result.allocation import Allocation
from ...scheduling import Workload, simulate

#: The instances of the papers are tiny, so every engine can be asked for more than its default.
TOL, _SMOOTH_TOL = 1e-8, 1e-11
#: Seconds: of the experiment, and of its tasks.
_UNTIL, _LASTS = 1000.0, 1e6


def solve(cluster: Cluster, mechanism: str) -> Allocation:
    """The allocation of a mechanism."""
    from ...mechanisms import one  # here, since CVXPY takes a second to import and the instances do without

    chosen = one(mechanism)
    alpha = chosen.criterion(chosen.prepare(cluster)[0]).alpha
    return chosen.solve(cluster, tol=_SMOOTH_TOL if 0 < alpha < np.inf else TOL)


def cluster(cluster: Cluster, name: str) -> Array:
    """A quantity of the cluster."""
    return np.asarray(getattr(cluster, name))


def capacity_shares(cluster: Cluster) -> Array:
    """Capacities as parts of the cluster's."""
    return cluster.capacity / cluster.pooled_capacity


def normalised_demand(cluster: Cluster) -> Array:
    """`D / max_r D`."""
    return cluster.share_per_task / cluster.dominant_share_per_task[:, None]


def dominant_resources(cluster: Cluster) -> Index:
    """Their numbers from 1, of every user."""
    return cluster.dominant_resource + 1


def monopoly_tasks(cluster: Cluster) -> Array:
    """Tasks of every user if all servers were its own (placement constraints kept)."""
    return np.asarray(cluster.gamma.sum(axis=1))


def whole_monopoly_tasks(cluster: Cluster) -> Array:
    """The same in whole tasks."""
    return np.floor(monopoly_tasks(cluster))


def tasks_anywhere(cluster: Cluster) -> Array:
    """Tasks of every user if all servers were its own, placement ignored."""
    return np.asarray(cluster.gamma0.sum(axis=1))


def uniform_division(cluster: Cluster) -> Array:
    """`(phi_n / sum phi) sum_i gamma[n,i]`: tasks of the weight's part of every server."""
    return np.asarray(cluster.weight / cluster.weight.sum() * monopoly_tasks(cluster))


def tasks(cluster: Cluster, mechanism: str) -> Array:
    """Tasks of every user."""
    return solve(cluster, mechanism).arrays.user_tasks


def tasks_over(cluster: Cluster, mechanism: str, *parts: float) -> Array:
    """The same, in these units."""
    return np.asarray(tasks(cluster, mechanism) / np.array(parts))


def relative_tasks(cluster: Cluster, mechanism: str) -> Array:
    """The same, relative to the first user's."""
    found = tasks(cluster, mechanism)
    return np.asarray(found / found[0])


def task_shares(cluster: Cluster, mechanism: str) -> Array:
    """Parts of what every user could run with all servers, placement ignored."""
    return tasks(cluster, mechanism) / tasks_anywhere(cluster)


def unlimited(cluster: Cluster, mechanism: str) -> Array:
    """Tasks of every user if nobody had a limit."""
    return tasks(cluster.replace(max_tasks=None), mechanism)


def left_by_the_modest(cluster: Cluster, mechanism: str) -> float:
    """Remainder after users with a limit."""
    return float(np.maximum(unlimited(cluster, mechanism) - cluster.max_tasks, 0).sum())


def second_round(cluster: Cluster, mechanism: str) -> Array:
    """Shares of the last two users in the remainder."""
    return (tasks(cluster, mechanism) - unlimited(cluster, mechanism))[2:]


def newest(cluster: Cluster, mechanism: str) -> float:
    """Tasks of the last user."""
    return float(tasks(cluster, mechanism)[-1])


def newest_shares(cluster: Cluster, mechanism: str) -> Array:
    """Its share of every resource."""
    return np.asarray(bundles(cluster, mechanism)[-1] / cluster.pooled_capacity)


def placement(cluster: Cluster, mechanism: str) -> Array:
    """Tasks of every user on every server."""
    return solve(cluster, mechanism).tasks


def bundles(cluster: Cluster, mechanism: str) -> Array:
    """Amounts of every resource that every user holds."""
    return np.asarray(solve(cluster, mechanism).arrays.usage.sum(axis=1))


def idle(cluster: Cluster, mechanism: str) -> Array:
    """Idle amounts of every resource, over all servers."""
    return np.asarray(cluster.pooled_capacity - bundles(cluster, mechanism).sum(axis=0))


def used_part(cluster: Cluster, mechanism: str) -> float:
    """The used part of the first resource of the cluster."""
    return float(bundles(cluster, mechanism).sum(axis=0)[0] / cluster.pooled_capacity[0])


def dominant_shares(cluster: Cluster, mechanism: str) -> Array:
    """Dominant share of every user."""
    return solve(cluster, mechanism).arrays.dominant_shares


def welfare(cluster: Cluster, mechanism: str) -> float:
    """Their sum."""
    return float(dominant_shares(cluster, mechanism).sum())


def share_ratio(cluster: Cluster, mechanism: str) -> float:
    """The second user's, relative to the first one's."""
    first, second = dominant_shares(cluster, mechanism)
    return float(second / first)


def everybody_has_half(cluster: Cluster, mechanism: str) -> bool:
    """True if all are at least one half."""
    return bool((dominant_shares(cluster, mechanism) >= 0.5 * (1 - TOL)).all())


def resource_shares(cluster: Cluster, resource: str, mechanism: str) -> Array:
    """Share of every user in one resource of the whole cluster."""
    r = cluster.resources.index(resource)
    return np.asarray(bundles(cluster, mechanism)[:, r] / cluster.pooled_capacity[r])


def resource_share(cluster: Cluster, resource: str, mechanism: str) -> float:
    """Their sum."""
    return float(resource_shares(cluster, resource, mechanism).sum())


def use(cluster: Cluster, server: str, resources: tuple[str, ...], mechanism: str) -> Array:
    """Used part of the named resources of a server, or `overall`."""
    found = solve(cluster, mechanism)
    parts = found.utilization if server == "overall" else found.used_parts.loc[server]
    return np.asarray(parts[list(resources)], dtype=float)


def incentive_shortfall(cluster: Cluster, mechanism: str) -> float:
    """Tasks missing to the uniform division, at least 0."""
    return max(0.0, float((uniform_division(cluster) - tasks(cluster, mechanism)).max()))


def keeps_incentive(cluster: Cluster, mechanism: str) -> bool:
    """True if no user misses its sharing incentive."""
    return incentive_shortfall(cluster, mechanism) <= TOL


def everyone_gains(cluster: Cluster, better: str, than: str) -> bool:
    """True if the first mechanism gives every user more tasks than the second."""
    return bool((tasks(cluster, better) > tasks(cluster, than) * (1 + TOL)).all())


def not_everyone_gains(cluster: Cluster, better: str, than: str) -> bool:
    """True if it does not."""
    return not everyone_gains(cluster, better, than)


def dominated(cluster: Cluster, mechanism: str) -> bool:
    """True if DRFH gives some user more tasks, by at least a hundredth, and no user fewer."""
    mine, other = tasks(cluster, mechanism), tasks(cluster, "drfh")
    return bool((other >= mine * (1 - 1e-7)).all() and (other > mine * 1.01).any())


def gain_from_lying(cluster: Cluster, user: str, mechanism: str) -> float:
    """Largest relative gain in true tasks over lies that scale each demand by 1/4 to 4 (the truth included)."""
    n = cluster.users.index(user)
    truth = cluster.demand[n]

    def true_tasks(factors: tuple[float, ...]) -> float:
        lie = truth * factors
        return float((tasks(cluster.with_demand(user, lie), mechanism)[n] * lie / truth).min())

    lies = product((0.25, 0.5, 1.0, 2.0, 4.0), repeat=len(truth))
    return max(map(true_tasks, lies)) / true_tasks((1.0,) * len(truth)) - 1


def lying_pays(cluster: Cluster, user: str, mechanism: str) -> bool:
    """True if there is such a gain."""
    return gain_from_lying(cluster, user, mechanism) > 1e-6


def filled(cluster: Cluster, policy: str, come: tuple[float, ...] | None = None) -> Array:
    """Whole tasks of every user that run in the end, if users come at these seconds (default: 0).

    Everybody has as many tasks as would fill all servers.
    """
    users, resources = list(cluster.users), list(cluster.resources)
    number = [max(1, int(count) + 1) for count in cluster.gamma.sum(axis=1)]
    table = pd.DataFrame(cluster.demand, columns=resources).assign(
        user=users, tasks=number, duration=_LASTS, arrival=0.0 if come is None else come
    )
    of_users = pd.DataFrame({"user": users, "weight": cluster.weight})
    servers = pd.DataFrame(cluster.capacity, columns=resources)
    schedule = simulate(Workload.from_frames(table, servers, of_users), policy, until=_UNTIL)
    running = schedule.tasks[schedule.tasks["state"] == "running"]
    return np.asarray(running.groupby("user", observed=False).size().reindex(users), dtype=float)


def shares(cluster: Cluster, policy: str) -> Array:
    """The same as dominant shares of the pool."""
    return filled(cluster, policy) * cluster.dominant_share_per_task


def used(cluster: Cluster, policy: str) -> Array:
    """The used part of every resource of the pool."""
    return filled(cluster, policy) @ cluster.share_per_task


#: Below it, alpha-fair dominant shares of the lecture's example fill CPU and memory; above it only CPU (derived
#: here).
_THRESHOLD = math.log(2) / math.log(5 / 3)


def alpha_fair_tasks(alpha: float) -> tuple[Fraction | float, Fraction | float]:
    """`u_A = 2 / (1 + 2^(1 - 1/alpha))` with CPU full, `x = 4.5 u_A`, `y = (9 - x)/3`."""
    if alpha <= _THRESHOLD:
        return Fraction(45, 11), Fraction(18, 11)
    x = 4.5 * 2 / (1 + 2 ** (1 - 1 / alpha))
    return x, (9 - x) / 3
